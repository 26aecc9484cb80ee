"""What passes know of single operations: whether they draw random numbers, whether their result is all they leave."""

from __future__ import annotations

from torch import fx

from stillgraph.program.operations import EFFECTFUL
from stillgraph.program.writes import name_of, written_arguments

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
