"""What is known of a number before the run: that it is no less than 0, more than 0, or below a bound."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from stillgraph.passes.regions.values import kind_of, value_of
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments

_NEVER_BELOW = frozenset({abs, operator.abs, math.fabs, math.sqrt, math.exp, math.exp2, math.cosh, math.hypot, len})
_GROWING = frozenset({int, float, bool, operator.pos, operator.index, round, math.trunc, math.floor, math.ceil})
"""They give no less than 0 for what is no less than 0."""

_OF_TENSORS = frozenset({"norm", "vector_norm", "sqrt", "exp", "sigmoid", "softmax", "relu", "numel"})
_WRAPPING = frozenset({"abs", "square"})
_OF_SUCH = frozenset({"sum", "mean", "max", "min", "amax", "amin", "sqrt", "prod", "item", "int", "float", "size"})
_DEPTH = 12


def is_nonnegative(argument: Any, depth: int = _DEPTH) -> bool:
    """Whether a number is no less than 0, or NaN, in every run.

    Args:
        argument: of a node: a node that stands for a number or tensor, or a constant.
        depth: how many operations it is followed back.
    """
    if not isinstance(argument, fx.Node):
        return isinstance(argument, (bool, int, float)) and not argument < 0
    value = value_of(argument)
    if kind_of(value) is bool or (isinstance(value, torch.SymInt) and statically_known_true(value >= 0)):
        return True
    if depth == 0 or argument.op not in ("call_function", "call_method"):
        return False
    args, target = arguments(argument), argument.target
    if kind_of(value) is None or isinstance(value_of(args[0] if args else None), torch.Tensor):
        return _of_tensor(argument, depth)
    if target in _NEVER_BELOW:
        return True
    if target in _GROWING:
        return is_nonnegative(args[0], depth - 1)
    if target is operator.mul and args[0] is args[1]:
        return True
    if target is operator.pow and isinstance(args[1], int) and args[1] % 2 == 0:
        return True
    if target is operator.mod:
        return is_positive(args[1], depth - 1)
    if target is max:
        return any(is_nonnegative(each, depth - 1) for each in args)
    if target in (operator.add, operator.mul, operator.truediv, operator.floordiv, operator.pow, min):
        return all(is_nonnegative(each, depth - 1) for each in args)
    return False


def is_positive(argument: Any, depth: int = _DEPTH) -> bool:
    """Whether a number is more than 0, or NaN, in every run: as `is_nonnegative`."""
    if not isinstance(argument, fx.Node):
        return isinstance(argument, (bool, int, float)) and not argument <= 0
    value = value_of(argument)
    if isinstance(value, torch.SymInt) and statically_known_true(value > 0):
        return True
    if depth == 0 or argument.op != "call_function":
        return False
    args, target = arguments(argument), argument.target
    if target is operator.add:
        sides = [(args[0], args[1]), (args[1], args[0])]
        return any(is_positive(one, depth - 1) and is_nonnegative(other, depth - 1) for one, other in sides)
    if target is max:
        return any(is_positive(each, depth - 1) for each in args)
    if target is float and kind_of(value_of(args[0])) is not None:
        return is_positive(args[0], depth - 1)
    if target is min or (target is operator.mul and kind_of(value) is int):
        return all(is_positive(each, depth - 1) for each in args)
    return False


def is_below(argument: Any, most: int) -> bool:
    """Whether a whole number is less than another in every run."""
    if not isinstance(argument, fx.Node):
        return isinstance(argument, int) and argument < most
    value = value_of(argument)
    if kind_of(value) is bool:
        return most > 1
    if isinstance(value, torch.SymInt) and statically_known_true(value < most):
        return True
    args = arguments(argument)
    if argument.target in (int, operator.index) and kind_of(value_of(args[0])) in (int, bool):
        return is_below(args[0], most)
    by = args[1] if argument.target is operator.mod else None
    return isinstance(by, int) and 0 < by <= most


def _of_tensor(node: fx.Node, depth: int) -> bool:
    """Whether a tensor, or a number that is made of one, is nowhere below 0.

    A tensor that others use as well may have been written to since. Whole numbers in tensors wrap around: the square
    and the absolute value of one may be less than 0.
    """
    name, value = name_of(node), value_of(node)
    if isinstance(value, torch.Tensor) and (len(node.users) != 1 or "out" in node.kwargs):
        return False
    if name in _WRAPPING or (name == "mul" and arguments(node)[0] is arguments(node)[1]):
        return isinstance(value, torch.Tensor) and value.is_floating_point()
    if name in _OF_TENSORS:
        return True
    if name not in _OF_SUCH or any(isinstance(each, fx.Node) for each in node.args[1:]):
        return False
    return bool(node.args) and is_nonnegative(node.args[0], depth - 1)
