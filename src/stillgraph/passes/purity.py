"""What passes know of single operations: which arguments they write, whether they draw random numbers."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from stillgraph.program import operations
from stillgraph.program.operations import EFFECTFUL

_IN_PLACE_OPERATORS = frozenset(
    {
        operator.setitem,
        operator.delitem,
        operator.iadd,
        operator.isub,
        operator.imul,
        operator.itruediv,
        operator.ifloordiv,
        operator.imod,
        operator.ipow,
        operator.imatmul,
        operator.iand,
        operator.ior,
        operator.ixor,
        operator.ilshift,
        operator.irshift,
        setattr,
    }
)
_RUNNING_STATISTICS = {"batch_norm": "training", "instance_norm": "use_input_stats"}
_RANDOM = frozenset(
    {
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "bernoulli",
        "bernoulli_",
        "multinomial",
        "normal",
        "normal_",
        "uniform_",
        "random_",
        "exponential_",
        "geometric_",
        "cauchy_",
        "log_normal_",
        "poisson",
        "rrelu",
        "gumbel_softmax",
        "fractional_max_pool2d",
    }
)
_WITH_TRAINING = frozenset(
    {
        "dropout",
        "dropout_",
        "alpha_dropout",
        "feature_alpha_dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "feature_dropout",
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "rrelu",
    }
)
OWN = frozenset(value for value in vars(operations).values() if callable(value))


def name_of(node: fx.Node) -> str:
    """The name of the function or method that a node calls."""
    if node.op == "call_method":
        return str(node.target)
    name: str = getattr(node.target, "__name__", "")
    return name.split(".")[0]  # an ATen operator's name has its overload behind a dot


def written_arguments(node: fx.Node) -> list[fx.Node]:
    """The tensors among a node's arguments that the operation writes in place."""
    if node.op not in ("call_function", "call_method") or node.target in OWN:
        return []
    name = name_of(node)
    written: list[Any] = []
    if node.target in _IN_PLACE_OPERATORS or (name.endswith("_") and not name.endswith("__")):
        written.append(node.args[0] if node.args else node.kwargs.get("input", node.kwargs.get("self")))
    if node.kwargs.get("inplace") is True:
        written.append(node.args[0] if node.args else node.kwargs.get("input"))
    if name in _RUNNING_STATISTICS:
        written += _statistics(node, name)
    out = node.kwargs.get("out")
    written += list(out) if isinstance(out, (tuple, list)) else [out]
    return [w for w in written if isinstance(w, fx.Node) and isinstance(w.meta.get("val"), torch.Tensor)]


def _statistics(node: fx.Node, name: str) -> list[Any]:
    mean = node.args[1] if len(node.args) > 1 else node.kwargs.get("running_mean")
    variance = node.args[2] if len(node.args) > 2 else node.kwargs.get("running_var")
    updates = node.kwargs.get(_RUNNING_STATISTICS[name], node.args[5] if len(node.args) > 5 else False)
    return [mean, variance] if updates else []


def is_random(node: fx.Node) -> bool:
    """Whether an operation may draw from torch's generator."""
    name = name_of(node)
    if name in _RANDOM:
        return True
    if name not in _WITH_TRAINING:
        return False
    if name == "scaled_dot_product_attention":
        return bool(node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0.0))
    training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
    return training is not False


def is_pure(node: fx.Node) -> bool:
    """Whether a node's only trace is its result."""
    if node.op in ("placeholder", "output"):
        return False
    if node.op == "get_attr":
        return True
    return node.target not in EFFECTFUL and not written_arguments(node) and not is_random(node)
