"""Torch's functions that are written in Python, which no schema describes: which compute, draw and normalise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import init

Given = Mapping[str, Any]

COMPUTING = frozenset(
    {"torch.functional", "torch.nn.functional", "torch._lowrank", "torch._linalg_utils", "torch._jit_internal"}
)
"""Where torch has functions in Python that compute and do nothing else."""

WITHOUT_SCHEMA: frozenset[Any] = frozenset(
    {
        *(torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy, torch.Size),
        *("cpu", "cuda", "numpy", "tolist", "unique", "new", "new_tensor", "type", "ndimension", "nelement"),
        *("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double", "cfloat", "cdouble"),
    }
)
"""Functions of torch's, and names of methods, that compute and do nothing else, of which there is no operator."""


def _always(given: Given) -> bool:
    return True


def _in_training(given: Given) -> bool:
    return given.get("training") is not False


def _with_dropout(given: Given) -> bool:
    return _in_training(given) and given.get("dropout_p") != 0


def _without_samples(given: Given) -> bool:
    return given.get("_random_samples") is None


DRAWING: dict[Any, Callable[[Given], bool]] = {
    **dict.fromkeys((F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout), _in_training),
    **dict.fromkeys((F.feature_alpha_dropout, F.rrelu), _in_training),
    F.multi_head_attention_forward: _with_dropout,
    F.gumbel_softmax: _always,
    **dict.fromkeys((F.fractional_max_pool2d, F.fractional_max_pool3d), _always),
    **dict.fromkeys((F.fractional_max_pool2d_with_indices, F.fractional_max_pool3d_with_indices), _without_samples),
    **dict.fromkeys((torch.svd_lowrank, torch.pca_lowrank, torch.lobpcg), _always),
    **dict.fromkeys((torch._lowrank._svd_lowrank, torch._lowrank.get_approximate_basis), _always),
    **dict.fromkeys((init.uniform_, init.normal_, init.trunc_normal_, init.orthogonal_, init.sparse_), _always),
    **dict.fromkeys((init.xavier_uniform_, init.xavier_normal_), _always),
    **dict.fromkeys((init.kaiming_uniform_, init.kaiming_normal_), _always),
    **dict.fromkeys((init._no_grad_uniform_, init._no_grad_normal_, init._no_grad_trunc_normal_), _always),
}
"""Torch's functions in Python that draw, with what of their arguments, by name, makes them do it."""

NORMALISING: frozenset[Any] = frozenset({F.batch_norm, F.instance_norm})
RENORMALISING: frozenset[Any] = frozenset({F.embedding, F.embedding_bag})
