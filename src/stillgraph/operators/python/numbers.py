"""Python's functions of numbers (`int`, `len`, `range`, `round`, `math` ...) where only the run knows an argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from stillgraph.core.diagnostics import InternalError, refuse
from stillgraph.core.lookup import is_exactly, of_class
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.conditions.one_element import require_one_element
from stillgraph.operators.conditions.truth import tensor_of, truth_number
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.ranges import Range
from stillgraph.operators.dispatch import asked
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import NOT_AN_INDEX, as_index
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.narrowing import is_optional
from stillgraph.trace.torch_rules.special import number_kind
from stillgraph.trace.torch_rules.tensor_attributes import read_shape
from stillgraph.trace.values import number_failures
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.numbers import Staged, StagedBool, StagedNumber, is_mixed, is_number, kind_of
from stillgraph.trace.values.operands import require_one_kind, unsupported
from stillgraph.trace.values.text import StagedText

with torch._C.DisableTorchFunction(), _disable_current_modes():  # of whoever is the first to import this
    _EMPTY = torch.empty(0, dtype=torch.int64, device="cpu")


def _said(function: Callable[[Any], Any]) -> Exception:
    """What a function says to a tensor that does not have one element."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        try:
            function(_EMPTY)
        except Exception as error:  # of any kind: it is what is asked for
            return error.with_traceback(None)  # which would hold the frames that this is imported in
    raise InternalError(f"{function.__name__} takes a tensor without elements")


_NOT_ONE: dict[Any, Exception] = {function: _said(function) for function in (int, float, range)}


def _from_tensor(kind: type, value: torch.Tensor, asked_by: Any = None) -> Any:
    """``int(tensor)``, ``float(tensor)``: recorded as the user wrote it."""
    capture = capturing()
    numel = capture.to_fake(value).numel()
    said = _NOT_ONE[asked_by or kind]
    if isinstance(numel, int) and numel != 1:
        raise type(said)(*said.args)
    if not isinstance(numel, int):
        capture.before_raise(type(said))
    if number_kind(capture.to_fake(value).dtype) is float and kind is int:
        capture.before_failures(number_failures.rounding())
    return capture.fresh_result(kind, capture.emit("call_function", kind, (value,), {}))


_ASKED_FOR = {
    int: ("__int__", "__index__"),
    float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
    range: ("__index__",),
}
"""Which methods Python asks an object for, for a number of a kind; the first that there is gives it."""


def number_of(value: Any, kind: type) -> Any:
    """What an object of the user's gives for a number of a kind; anything else as it is."""
    name = next((each for each in _ASKED_FOR[kind] if of_class(value, each) is not None), None)
    return value if name is None or method_of(value, name) is None else asked(value, name)


def int_(value: Any = 0, /, *base: Any) -> Any:
    """``int``."""
    value = value if base else number_of(value, int)
    if isinstance(value, StagedArray):
        require_one_element(capturing(), value, int)
    value = tensor_of(value)
    if base and isinstance(value, (torch.Tensor, Staged)):
        unsupported(int, value, *base)
    if base:
        return int(value, *base)
    if isinstance(value, torch.Tensor):
        return _from_tensor(int, value)
    if isinstance(value, StagedNumber):
        return _as_kind(int, value)
    return unsupported(int, value) if isinstance(value, StagedComplex) else int(value)


def _as_kind(kind: type, value: StagedNumber) -> Any:
    if kind_of(value) is kind and not is_optional(value) and not is_mixed(value):
        return value
    return capturing().number_operation(kind, (value,))


def float_(value: Any = 0.0, /) -> Any:
    """``float``."""
    value = number_of(value, float)
    if isinstance(value, StagedArray):
        require_one_element(capturing(), value, float)
    value = tensor_of(value)
    if isinstance(value, torch.Tensor):
        return _from_tensor(float, value)
    if isinstance(value, StagedNumber):
        return _as_kind(float, value)
    return unsupported(float, value) if isinstance(value, StagedComplex) else float(value)


def bool_(value: Any = False, /) -> Any:
    """``bool``."""
    return truth_number(capturing(), value)


def len_(value: Any, /) -> Any:
    """``len``; a symbolic first dimension stays symbolic."""
    value = tensor_of(value)
    capturing().settling.require_current(value)
    if capturing().may_be_none(value):
        return capturing().with_or_without(value, len_)
    if isinstance(value, torch.Tensor):
        capture = capturing()
        shape = read_shape(capture, value, capture.to_fake(value))
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]
    if isinstance(value, Indexed):
        if value.once:
            raise TypeError(f"object of type '{type(value).__name__}' has no len()")
        return value.length()
    if isinstance(value, StagedText):
        return value.stillgraph_computed(len, value)
    if lists.is_spread(value):
        return lists.length(capturing(), value)
    known = container_of(value)
    if known is not None:
        return lists.entry_count(capturing(), known)
    has_method = of_class(value, "__len__") is not None and not isinstance(value, (list, tuple, dict, str, set))
    return asked(value, "__len__") if has_method else len(value)


def range_(*bounds: Any) -> Any:
    """``range``; tensors with one element count as whole numbers."""
    bounds = tuple(as_index(capturing(), each) if isinstance(each, StagedArray) else each for each in bounds)
    for bound in bounds:
        if isinstance(bound, torch.Tensor) and (bound.dtype.is_floating_point or bound.dtype.is_complex):
            raise TypeError(NOT_AN_INDEX)
    whole = [_from_tensor(int, b, range) if isinstance(b, torch.Tensor) else b for b in bounds]
    if not any(isinstance(b, StagedNumber) for b in whole):
        return range(*whole)
    require_one_kind(whole, "is the bound of a range")
    whole = [each if is_number(each) else operator.index(each) for each in whole]
    if len(whole) > 3 or any(kind_of(each) is float for each in whole):
        unsupported(range, *whole)
    whole = [_as_kind(int, each) if isinstance(each, StagedBool) else each for each in whole]
    return Range(*((0, whole[0], 1) if len(whole) == 1 else (*whole, 1)[:3]))


def index(value: Any, /) -> Any:
    """``operator.index``."""
    if capturing().may_be_none(value):
        return capturing().with_or_without(value, index)
    found = as_index(capturing(), value)
    if isinstance(found, StagedNumber):
        return found if kind_of(found) is int else unsupported(operator.index, found)
    return operator.index(found)


def round_(number: Any, ndigits: Any = None) -> Any:
    """``round``."""
    if ndigits is None:
        return round(number)
    if not isinstance(number, torch.Tensor):
        ndigits = as_index(capturing(), ndigits)
    if isinstance(ndigits, StagedNumber) and is_exactly(number, (bool, int, float)):
        return capturing().number_operation(round, (number, ndigits))
    return round(number, ndigits)


def pow_(base: Any, exponent: Any, *modulo: Any) -> Any:
    """``pow``."""
    if any(isinstance(each, StagedNumber) for each in modulo):
        unsupported(pow, base, exponent, *modulo)  # which asks the first two alone
    return base**exponent if not modulo else pow(base, exponent, *modulo)


_BY_METHOD = frozenset({math.trunc, math.floor, math.ceil})
_WHOLE_MATH = frozenset({math.gcd, math.lcm, math.isqrt, math.comb, math.perm, math.factorial})


def math_(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` on numbers that may be staged."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if function is math.trunc and isinstance(args[0] if args else None, torch.Tensor):
            return function(_EMPTY)  # a tensor has no `__trunc__`
        convert = int_ if function in _WHOLE_MATH else float_
        kind = range if function in _WHOLE_MATH else float
        given = args if function in _BY_METHOD else tuple(number_of(each, kind) for each in args)
        numbers = tuple(convert(a) if isinstance(a, torch.Tensor) else a for a in given)
        if any(isinstance(n, StagedNumber) for n in numbers):
            if kwargs:
                raise refuse("SG301", f"math.{function.__name__} with keywords on a staged number", location=here())
            return capturing().number_operation(function, numbers)
        return function(*numbers, **kwargs)

    return wrapped
