"""Augmented assignment (`+=` and its kin): what is changed in place, and what is computed anew."""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.lookup import of_class
from stillgraph.operators.conditions.methods import binary, by_methods, or_else
from stillgraph.operators.dispatch import call, taken
from stillgraph.operators.elements.indices import counted
from stillgraph.operators.objects.changes import CONTAINERS, change, note_contents
from stillgraph.operators.objects.stores import refuse_unknown, require_holds
from stillgraph.polyfills.sets import OPERATORS as SETS
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.maybe_number import change_in_place, may_be_number
from stillgraph.trace.control_flow.spreads import is_spread
from stillgraph.trace.heap.contents import replace_contents
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray, beside_a_tensor
from stillgraph.trace.values.entries import are_of_numbers, refuse_operator
from stillgraph.trace.values.numbers import Staged, StagedNumber

_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "@": operator.imatmul,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
    "<<": operator.ilshift,
    ">>": operator.irshift,
}

_BINARY = {symbol: binary(symbol, plain) for symbol, plain in _INPLACE.items()}


def _take_all(left: Any, symbol: str, right: Any) -> bool:
    return taken(left, f"__{_INPLACE[symbol].__name__}__", (right,))


_ATOMS = (int, float, complex, str, bytes, tuple, frozenset)


def inplace(symbol: str, left: Any, right: Any) -> Any:
    """``left += right`` and its kin, as an expression."""
    several = next((s for s in (left, right) if isinstance(s, Unjoined)), None)
    if several is not None and (several is left or isinstance(left, CONTAINERS)):
        stays: list[bool] = []
        result = several.either(functools.partial(_of_one, symbol, left, right, several, stays))
        return left if all(stays) else result
    method = of_class(left, f"__{_INPLACE[symbol].__name__}__")
    if session() is not None and isinstance(method, FunctionType) and not isinstance(left, torch.Tensor):
        return or_else(call(method, left, right), lambda: _BINARY[symbol](left, right))
    if session() is not None and by_methods(symbol, left, right, in_place=method is not None):
        return _BINARY[symbol](left, right)
    return change(left, f"__{_INPLACE[symbol].__name__}__", (right,), lambda: _in_c(symbol, left, right))


def _of_one(symbol: str, left: Any, right: Any, several: Unjoined, stays: list[bool], one: Any) -> Any:
    """``left += right`` for one of several values; ``stays`` is told whether what is changed is still itself."""
    left, right = (one if each is several else each for each in (left, right))
    result = inplace(symbol, left, right)
    stays.append(result is left)
    return result


def _is_repeated_anew(left: Any, right: Any) -> bool:
    """Whether C cannot repeat a list or deque in place: only the run knows how often, or what leaves a full deque."""
    if type(left) is deque:
        return left.maxlen is not None and is_spread(left)
    return type(left) is list and isinstance(right, StagedNumber)


def _in_c(symbol: str, left: Any, right: Any) -> Any:
    """``left += right``, where no method of the user's does it."""
    note_contents(left, method=(f"__{_INPLACE[symbol].__name__}__", (right,)))
    capture = session()
    if symbol == "*" and capture is not None:
        left, right = counted(capture, left, right)
    if symbol == "*" and _is_repeated_anew(left, right):
        replace_contents(left, [*_BINARY[symbol](left, right)])
        return left
    if capture is not None:
        right = capture.iterators.to_draw_from(right)
        if isinstance(left, set) and are_of_numbers(left, right):
            return call(SETS[f"__{_INPLACE[symbol].__name__}__"], left, right)
        if isinstance(left, CONTAINERS) and _take_all(left, symbol, right):
            return left
        refuse_operator(symbol, left, right)
    if capture is not None and may_be_number(left):
        return change_in_place(capture, _INPLACE[symbol], left, right)
    if is_array(left):
        require_holds(left, right)
    if isinstance(left, torch.Tensor) and isinstance(right, StagedArray):
        right = beside_a_tensor(right)
    if hasattr(type(left), f"__{_INPLACE[symbol].__name__}__") and not isinstance(left, (Staged, *_ATOMS)):
        refuse_unknown(left)
    return _INPLACE[symbol](left, right)
