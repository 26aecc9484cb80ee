"""Torch functions that take a plain float and not a symbolic one, though what they give looks the same for each.

Such a function runs on fakes with some float or other, for its result's metadata; the program calls it with the number
of the run. No shortcut that it takes for certain values (``p == 0``) is decided before that: it is recorded as it was
called, not what it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stillgraph.trace.values.numbers import StagedFloat

_T = torch.Tensor
_F = torch.nn.functional

_DRAWING: tuple[Any, ...] = (
    *(_T.normal_, _T.uniform_, _T.bernoulli_, _T.exponential_, _T.cauchy_, _T.log_normal_, _T.geometric_),
    *(torch.normal, torch.bernoulli, _T.bernoulli, torch.nn.init.normal_, torch.nn.init.uniform_),
    _F.rrelu,
)
_LOSSES: tuple[Any, ...] = (
    *(_F.cross_entropy, _F.huber_loss, _F.smooth_l1_loss, _F.poisson_nll_loss, _F.margin_ranking_loss),
    *(_F.triplet_margin_loss, _F.cosine_embedding_loss, _F.hinge_embedding_loss),
)
_NORMS: tuple[Any, ...] = (
    *(_F.layer_norm, _F.group_norm, _F.rms_norm, _F.normalize),
    *(_F.cosine_similarity, _F.pairwise_distance, torch.cdist, torch.norm, _T.norm, torch.linalg.vector_norm),
)
_OTHERS: tuple[Any, ...] = (
    *(_F.scaled_dot_product_attention, _F.hardtanh, _F.pad, torch.isclose, _T.isclose),
    *(torch.nan_to_num, torch.nan_to_num_, _T.nan_to_num, _T.nan_to_num_),
    *(torch.logit, _T.logit, _T.logit_, torch.quantile, _T.quantile),
)
_IN_A_CALL: frozenset[Any] = frozenset((*_DRAWING, *_LOSSES, *_NORMS, *_OTHERS))
_ANYWHERE: frozenset[Any] = frozenset(
    {
        *(_F.dropout, _F.dropout1d, _F.dropout2d, _F.dropout3d, _F.alpha_dropout, _F.feature_alpha_dropout),
        *(_F.batch_norm, _F.instance_norm),
    }
)
"""Those that a whole graph has a form for."""

_SOME_FLOAT = 0.5  # a probability, a scale and a width


def takes_any_float(func: Callable[..., Any], arguments: Any) -> bool:
    """Whether a torch function is given a number with a fraction, of which only the run knows whether it may be."""
    return (func in _ANYWHERE or func in _IN_A_CALL) and any(
        isinstance(value, StagedFloat) for value in torch.utils._pytree.tree_leaves(arguments)
    )


def with_known_floats(func: Callable[..., Any], arguments: Any, in_a_call: bool) -> Any:
    """The arguments of a call on fakes, with some float in place of each symbolic one.

    Args:
        func, arguments: the call.
        in_a_call: whether the program is to be called; one for a file has no plain floats.
    """
    if func not in _ANYWHERE and not (in_a_call and func in _IN_A_CALL):
        return arguments
    return torch.utils._pytree.tree_map(lambda v: _SOME_FLOAT if isinstance(v, torch.SymFloat) else v, arguments)
