"""What an operation may raise by itself, and why: torch's own errors end the whole program, so no handler has them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from stillgraph.passes.exceptions.failing import ATTRIBUTES, divides_safely, is_pointwise
from stillgraph.passes.numbers.arithmetic_rules import cannot_fail
from stillgraph.passes.regions.regions import COND, WHILE, is_result
from stillgraph.passes.regions.values import is_number, kind_of, value_of
from stillgraph.program import exceptions, operations
from stillgraph.program.exceptions import reraise, which
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import keep
from stillgraph.program.types import ListType

Kinds = tuple[type[BaseException], ...]


@dataclass(frozen=True)
class OwnError:
    """What an operation may raise by itself.

    Attributes:
        kinds: the classes, those derived from them included.
        reason: a sentence that follows the refusal.
    """

    kinds: Kinds
    reason: str

    def among(self, caught: Sequence[type[BaseException]]) -> list[type[BaseException]]:
        """Those of the classes that a handler takes which this may be."""
        raised = [kind for kind in _RAISED if issubclass(kind, self.kinds)]
        return [each for each in caught if any(issubclass(kind, each) for kind in raised)]


_RAISED: Kinds = (
    *(RuntimeError, IndexError, ValueError, TypeError, NotImplementedError),
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]  # public, but not declared so
    *(ZeroDivisionError, OverflowError, AttributeError, KeyError, UnboundLocalError),
)
"""What torch's operations and Python's raise by themselves: no class of a user's."""

_OF_TORCH: Kinds = (RuntimeError, IndexError, ValueError, TypeError)
_OF_PYTHON: Kinds = tuple(kind for kind in _RAISED if kind is not UnboundLocalError)

_UNKNOWN = "it is not among those that give a value for all values of their arguments"
_SIZES = "sizes that only the run knows may not fit"
_SINGULAR = "there are matrices that it has no result for"
_BOUNDS = "an index that only the run knows may be out of bounds"
_STEP = "a step that only the run knows may be zero or less"
_ELEMENTS = "a tensor whose size only the run knows may have no element, or several"
_ZERO = "a divisor may be zero"
_POWER = "a whole number may have a negative exponent"
_ORDER = "of no elements there is no norm of this order"

USED = "a value is used where it is None or unbound"
"""What a file says where it has nothing to compute with, in the place of what Python raises."""

OF_NOTHING = OwnError(_RAISED, USED)
"""What Python may raise for an operation on None, or on a variable without a value."""

SITES = frozenset({exceptions.raise_, exceptions.raise_made, operations.assert_, operations.require, reraise})
"""What raises an exception that a handler is told of."""

_TOLD_OF_LISTS = frozenset(
    {
        *(operations.build_list, operations.popped, operations.deleted, operations.inserted, operations.replaced),
        *(operations.found_to_remove, operations.rows_with, operations.taken, operations.repeated),
        *(operations.copied_tensors, operator.getitem, len),
        *(torch.stack, torch.cat),
    }
)
"""Operations of which, on a list, the pass for lists makes what raises visible."""

_SILENT = frozenset({keep, operations.print_, operations.as_tensor, operations.unbound, operations.is_unbound})
_SILENT |= {operations.text, operations.sort_order, isinstance, which}
"""Operations that raise nothing, whatever they are given."""

_ON_NUMBERS = frozenset({"add", "sub", "mul", "neg", "pos", "abs", "not_", "and_", "or_", "xor", "max", "min", "truth"})
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_"})
_OPERATORS = _COMPARISONS | {"truediv", "and_", "or_", "xor", "invert", "lshift", "rshift", "neg", "pos"}
"""Python's operators, by names that torch does not have, or has for what writes in place."""

_OF_ANY_SIZE = frozenset(
    {
        *("all", "any", "clone", "contiguous", "count_nonzero", "cumprod", "cumsum", "detach", "diagonal", "dim"),
        *("empty_like", "flatten", "flip", "full_like", "log_softmax", "logsumexp", "mean", "norm", "numel"),
        *("ones_like", "permute", "prod", "ravel", "size", "softmax", "sort", "argsort", "squeeze", "std", "sum", "t"),
        *("to", "transpose", "tril", "triu", "type_as", "unsqueeze", "var", "zeros_like"),
    }
)
"""Operations on one tensor that give a value for every size of it."""

_OF_KNOWN_SIZE = frozenset(
    {
        *("amax", "amin", "arange", "argmax", "argmin", "bmm", "bool", "cat", "diag", "dot", "double"),
        *("einsum", "float", "full", "half", "int", "item", "layer_norm", "linear", "long", "matmul", "max", "min"),
        *("mm", "ones", "reshape", "scalar_tensor", "stack", "topk", "view", "zeros"),
    }
)
"""Operations that give a value for all values of tensors, once the sizes fit."""

_CONVERSIONS = frozenset({"bool", "double", "float", "half", "int", "long", "bfloat16"})
"""As methods they convert all elements, as functions of Python's the only one."""

_REASONS: dict[str, str] = {
    **dict.fromkeys(("cholesky", "inv", "inverse", "solve", "eig", "eigh", "eigvals", "eigvalsh", "svd"), _SINGULAR),
    **dict.fromkeys(("lu_factor", "ldl_factor", "lstsq", "pinv", "matrix_power", "tensorinv"), _SINGULAR),
    "pow": _POWER,
    "norm": _ORDER,
    **dict.fromkeys(("item", "bool", "float", "int", "max", "min", "amax", "amin", "argmax", "argmin"), _ELEMENTS),
    **dict.fromkeys(("floordiv", "mod", "floor_divide", "remainder", "fmod", "div", "divide"), _ZERO),
}
"""Why operations may raise, besides those for which a size is the reason."""


def own_error(node: fx.Node) -> OwnError | None:
    """What an operation may raise by itself; None if it never does."""
    if node.op not in ("call_function", "call_method") or node.target in SITES or node.target in _SILENT:
        return None
    if node.target in (COND, WHILE) or is_result(node):
        return None
    if node.target is operator.getitem and isinstance(value_of(arguments(node)[0]), (tuple, list)):
        return None
    values = [value_of(given) for given in node.all_input_nodes]
    if isinstance(value_of(node), ListType) or any(isinstance(value, ListType) for value in values):
        return None if node.target in _TOLD_OF_LISTS else OwnError(_OF_PYTHON, _UNKNOWN)
    name = name_of(node)
    tensors = [value for value in (*values, value_of(node)) if isinstance(value, torch.Tensor)]
    if not tensors:
        fine = all(map(is_number, values)) and (name in _ON_NUMBERS or name in _COMPARISONS or cannot_fail(node))
        return None if fine else OwnError(_OF_PYTHON, _REASONS.get(name, _UNKNOWN))
    if node.target is operator.getitem and isinstance(value_of(arguments(node)[0]), torch.Tensor):
        return _of_index(node)
    if node.target is getattr and arguments(node)[1] in ATTRIBUTES:
        return None
    return None if _gives_a_value(node, name, values) else OwnError(_OF_TORCH, _reason(node, name, tensors))


def _gives_a_value(node: fx.Node, name: str, values: Sequence[Any]) -> bool:
    given = [value for value in values if isinstance(value, torch.Tensor)]
    fails = (name == "pow" and not _has_power(node)) or (name == "norm" and not _has_norm(node))
    if "out" in node.kwargs or not divides_safely(node, name) or fails:
        return False
    one_alone = len(given) == 1 and len(values) == 1
    by_element = is_pointwise(name) and not name.endswith("_") and name not in _OF_KNOWN_SIZE  # `max` may be either
    if by_element or (node.op == "call_function" and name in _OPERATORS):
        return _fit([value.shape for value in given])
    if name in _OF_ANY_SIZE or (name in _CONVERSIONS and node.op == "call_method"):
        return one_alone
    known = all(_is_known(value) for value in (*given, value_of(node)) if isinstance(value, torch.Tensor))
    return known and name in _OF_KNOWN_SIZE


def _has_power(node: fx.Node) -> bool:
    """Whether a power is of floats, or has a constant exponent that is not negative."""
    whole = isinstance(value_of(node), torch.Tensor) and not value_of(node).dtype.is_floating_point
    exponent = _argument(node, 1, "exponent", None)
    return not whole or (type(exponent) is int and exponent >= 0)


def _has_norm(node: fx.Node) -> bool:
    """Whether a norm surely has a value: without elements, that of an endless or negative order has none."""
    order, value = _argument(node, 1, "p", "fro"), value_of(arguments(node)[0])
    has_elements = isinstance(value, torch.Tensor) and _is_known(value) and value.numel() > 0
    return has_elements or order in ("fro", None) or (type(order) in (int, float) and 0 <= order < math.inf)


def _argument(node: fx.Node, position: int, name: str, default: Any) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _fit(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether shapes are known to broadcast."""
    columns = zip(*([*[1] * (max(map(len, shapes)) - len(shape)), *shape] for shape in shapes))
    for column in columns:
        sizes = [size for size in column if not (type(size) is int and size == 1)]
        if any(not statically_known_true(size == sizes[0]) for size in sizes):
            return False
    return True


def _is_known(value: torch.Tensor) -> bool:
    return all(type(size) is int for size in value.shape)


def _reason(node: fx.Node, name: str, tensors: Sequence[torch.Tensor]) -> str:
    known = name in _OF_ANY_SIZE or name in _OF_KNOWN_SIZE or is_pointwise(name)
    if known and name not in _REASONS:
        return _SIZES
    return next((_REASONS[each] for each in (name, name.removeprefix("linalg_")) if each in _REASONS), _UNKNOWN)


# ---- indices of tensors
def _of_index(node: fx.Node) -> OwnError | None:
    """What ``x[i]`` may raise: a slice cuts whatever there is, a number or a tensor of them may be out of bounds."""
    tensor, index = value_of(arguments(node)[0]), arguments(node)[1]
    parts = list(index) if isinstance(index, (tuple, list)) else [index]
    if any(_is_of_run(part.step) for part in parts if isinstance(part, slice)):
        return OwnError((ValueError,), _STEP)
    dimension, after_dots = 0, False
    for part in parts:
        value = value_of(part)
        if isinstance(value, torch.Tensor):
            return OwnError(_OF_TORCH, _BOUNDS)
        after_dots = after_dots or part is Ellipsis
        if kind_of(value) is int and (after_dots or not _is_within(value, tensor.shape[dimension])):
            return OwnError((IndexError,), _BOUNDS)
        if not isinstance(value, (slice, int, torch.SymInt, type(None), type(Ellipsis))) or isinstance(value, bool):
            return OwnError(_OF_TORCH, _UNKNOWN)
        dimension += 0 if part is None or part is Ellipsis else 1
    return None


def _is_of_run(bound: Any) -> bool:
    return isinstance(bound, fx.Node)


def _is_within(index: Any, size: Any) -> bool:
    return statically_known_true(-size <= index) and statically_known_true(index < size)
