"""Staged numbers: Python numbers that only the run knows.

They are torch's symbolic numbers, so that sizes and indices accept them, with two differences: every operation on them
is recorded, and nothing can turn them silently into text, a hash key or a concrete number.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import path_in_torch
from stillgraph.core.lookup import is_exactly
from stillgraph.program.facts.info import info, mark
from stillgraph.program.operations import is_integer
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.number_operands import (
    NUMBERS,
    UNEQUAL,
    base_value,
    equal_number,
    is_asked_first,
    is_equal_to_none,
    keeps_any_number,
    takes,
)
from stillgraph.trace.values.number_recorder import NumberRecorder
from stillgraph.trace.values.operands import is_asked_itself, require_known, require_one_kind, unsupported
from stillgraph.trace.values.operator_tables import (
    BINARY,
    COMPARISONS,
    OF_COMPLEX,
    OF_FLAGS,
    OF_WHOLE_NUMBERS,
    REFLECTED_COMPARISONS,
    SLOTS,
    UNARY,
)

SYMBOLIC_SHAPES = path_in_torch("fx", "experimental", "symbolic_shapes.py")
"""Where torch asks what it knows of its symbols."""


class Staged:
    """What only the run knows, and no tensor stands for."""

    __slots__ = ()


class OfComplex(Staged):
    """Base of what stands for a complex number of Python's."""

    __slots__ = ()


class StagedNumber(Staged):
    """Behaviour shared by the three staged kinds; ``recorder`` is the capture they belong to."""

    node: Any  # torch's symbolic node
    recorder: NumberRecorder

    def __bool__(self) -> bool:
        return bool(self.recorder.number_demanded(self, "bool"))

    def __int__(self) -> int:
        return int(self.recorder.number_demanded(self, "int"))

    def __index__(self) -> int:
        return int(self.recorder.number_demanded(self, "index"))

    def __float__(self) -> float:
        return float(self.recorder.number_demanded(self, "float"))

    def __str__(self) -> str:
        return str(self.recorder.number_demanded(self, "text"))

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.recorder.number_demanded(self, "text"), spec)

    def __getattr__(self, name: str) -> Any:
        """What Python's own number has and torch's has not."""
        if name.startswith("_") or not hasattr(KINDS[type(self)], name):
            if not name.startswith(("_", "stillgraph_")):
                require_known((self,), f"is asked for its {name}")
            text = f"'{KINDS[type(self)].__name__}' object has no attribute '{name}'"
            raise AttributeError(text, name=name, obj=self)
        return getattr(self.recorder.number_demanded(self, name), name)

    def stillgraph_sample(self) -> Any:
        """A number in its place, where only its type matters (`operands.SAMPLE`)."""
        return KINDS[type(self)](1)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.recorder.number_meets_array(self)

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        """What numpy asks for ``numpy.log(number)``, and for operators with an array or scalar on the left."""
        if method != "__call__" or options:
            self.recorder.number_meets_array(self)
        return self.recorder.numpy_operation(function, operands)

    def __hash__(self) -> int:
        return hash(self.recorder.number_demanded(self, "hash"))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is None:
            return self.recorder.number_operation(round, (self,))
        args = (self, ndigits if is_number(ndigits) else base_value(ndigits))
        if not is_number(args[1]) or kind_of(args[1]) is float:
            unsupported(round, self, ndigits)
        return self.recorder.number_operation(round, args)

    def __trunc__(self) -> Any:
        return self.recorder.number_operation(math.trunc, (self,))

    def __floor__(self) -> Any:
        return self.recorder.number_operation(math.floor, (self,))

    def __ceil__(self) -> Any:
        return self.recorder.number_operation(math.ceil, (self,))

    def is_integer(self) -> Any:
        """As `float.is_integer`, which Python's whole numbers have from 3.12 on."""
        if not hasattr(kind_of(self), "is_integer"):
            raise AttributeError(f"'{kind_of(self).__name__}' object has no attribute 'is_integer'")
        require_one_kind((self,), "is asked whether it is whole")
        return self.recorder.number_operation(is_integer, (self,))


def _binary(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Any, other: Any, *modulus: Any) -> Any:
        if modulus and modulus != (None,):
            unsupported(pow, self, other, *modulus)
        if _asks_first(self, other, f"__r{name}__"):
            return _asked(self, function, other, f"__r{name}__")
        computed = by_kind(self, function, self, other)
        if computed is not NotImplemented:
            return computed
        return NotImplemented if is_asked_itself(other, f"__r{name}__") else unsupported(function, self, other)

    return method


def _reflected(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Any, other: Any, *modulus: Any) -> Any:
        if _asks_first(self, other, f"__{name}__") and not is_asked_itself(other, f"__{name}__"):
            return _asked(self, function, other, f"__{name}__", reflected=True)  # by what did not know the stand-in
        computed = by_kind(self, function, other, self)
        return unsupported(function, other, self) if computed is NotImplemented else computed

    return method


def _asks_first(number: Any, other: Any, method: str) -> bool:
    """Whether Python asks the other operand by its own ``method``, and not a number what it makes of that.

    Raises:
        CaptureError: that depends on the kind of the number, which depends on the path.
    """
    if is_number(other) or base_value(other) is None:
        return False
    answers = {is_asked_first(kind, other, method) for kind in kinds_of(number)}
    if len(answers) > 1:
        require_one_kind((number,), f"meets a {type(other).__name__}")
    return True in answers


def _asked(number: Any, function: Callable[..., Any], other: Any, method: str, reflected: bool = False) -> Any:
    """What a number of a class with a ``method`` of its own makes of a number of the run."""
    if function in OF_FLAGS and keeps_any_number(other):
        flag = number.recorder.number_operation(function, (other, number) if reflected else (number, other))
        if isinstance(flag, StagedNumber):
            let_kind_vary(flag)  # it is of the class of the flag
        return flag
    if is_asked_itself(other, method):
        return NotImplemented
    kinds = f"{type(other).__name__} and {kind_of(number).__name__}"
    message = f"no program has '{function.__name__.strip('_')}' of {kinds}, of which only the run knows one"
    raise refuse("SG301", message, location=here(), hint=f"Use int(...) of the {type(other).__name__}.")


def by_kind(number: Any, function: Callable[..., Any], left: Any, right: Any) -> Any:
    """What Python's own number makes of an operator on two operands, of which ``number`` is the one it is asked of.

    Returns:
        The result, or ``NotImplemented`` where such a number knows nothing of such an operand.
    """
    other = right if left is number else left
    if not is_number(other):
        if is_of_numpy(other):
            return number.recorder.numpy_operation(function, (left, right))
        if function is operator.mul and is_exactly(other, (list, tuple)):
            return number.recorder.repeated(other, number)
        if function in OF_COMPLEX and (type(other) is complex or isinstance(other, OfComplex)):
            return number.recorder.complex_operation(function, (left, right))
        other = base_value(other)
        if other is None:
            return NotImplemented
    operands = (number, other) if left is number else (other, number)
    if function in OF_WHOLE_NUMBERS and any(kind_of(each) is float for each in operands):
        unsupported(function, *operands)
    return number.recorder.number_operation(function, operands)


def _compared(function: Callable[..., Any], reflected: str) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if type(other) is float and other != other:
            self.recorder.needs_value(self)  # lists and dicts ask first whether it is this very object
        if _asks_first(self, other, reflected):
            return _asked(self, function, other, reflected)
        computed = by_kind(self, function, self, other)
        if computed is not NotImplemented:
            return computed
        return _compared_by(self, function, other, reflected)

    return method


def _compared_by(number: Any, function: Callable[..., Any], other: Any, reflected: str) -> Any:
    """A comparison with what is no number of Python's: never what Python's code in C makes of the stand-in."""
    is_equality = function in (operator.eq, operator.ne)
    if isinstance(other, Staged) or is_asked_itself(other, reflected):
        return NotImplemented
    kinds = kinds_of(number)
    if is_equality:
        known = {equal_number(kind, other) for kind in kinds}
        if known == {UNEQUAL}:
            return function is operator.ne
        if len(known) == 1 and None not in known:
            return number.recorder.number_operation(function, (number, known.pop()))
    method = f"__{function.__name__}__"
    if all(is_equal_to_none(kind, other, method, reflected) for kind in kinds):
        return NotImplemented
    return unsupported(function, number, other)


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        if function in OF_WHOLE_NUMBERS and kind_of(self) is float:
            unsupported(function, self)
        return self.recorder.number_operation(function, (self,))

    return method


def by_method(number: Any, name: str, other: Any) -> Any:
    """``number.name(other)`` as by the method that Python's own numbers have for an operator."""
    function, reflected = SLOTS.get(name, (None, False))
    if function is None or (base_value(other) is not None and not takes(kind_of(number), base_value(other))):
        return NotImplemented
    return by_kind(number, function, other, number) if reflected else by_kind(number, function, number, other)


def _give(name: str, method: Callable[..., Any]) -> None:
    method.__name__ = f"__{name}__"
    setattr(StagedNumber, method.__name__, method)


for _name, _function in BINARY.items():
    _give(_name, _binary(_function, _name))
    _give(f"r{_name}", _reflected(_function, _name))
for _name, _function in COMPARISONS.items():
    _give(_name, _compared(_function, REFLECTED_COMPARISONS[f"__{_name}__"]))
for _name, _operation in UNARY.items():
    _give(_name, _unary(_operation))


class StagedInt(StagedNumber, torch.SymInt):
    """An ``int`` that only the run knows."""


class StagedFloat(StagedNumber, torch.SymFloat):
    """A ``float`` that only the run knows."""

    def hex(self) -> str:
        """As `float.hex`: a text that would be made before the run."""
        return float(self.recorder.number_demanded(self, "hexadecimal text")).hex()

    def as_integer_ratio(self) -> tuple[int, int]:
        """As `float.as_integer_ratio`."""
        return float(self.recorder.number_demanded(self, "integer ratio")).as_integer_ratio()


class StagedBool(StagedNumber, torch.SymBool):
    """A ``bool`` that only the run knows.

    Of torch's own truths, torch's code may assume what it cannot tell (``expect_true``); of the user's it may not.
    """

    @property
    def node(self) -> Any:
        """torch's symbolic node."""
        if sys._getframe(1).f_code.co_filename == SYMBOLIC_SHAPES:
            self.recorder.number_demanded(self, "bool")
        return self._node

    @node.setter
    def node(self, node: Any) -> None:
        self._node = node

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """There so that torch lets it stand for a plain ``bool``; the recorder is asked first."""
        return NotImplemented


class StagedMixedInt(StagedInt):
    """A ``bool`` or an ``int``: of which kind it is depends on the path.

    It has a class of its own for what C says of it in an error, where nobody could tell otherwise.
    """


class StagedMixedFloat(StagedFloat):
    """An ``int``, a ``bool`` or a ``float``, as above."""


KINDS: dict[type, type] = {
    StagedInt: int,
    StagedFloat: float,
    StagedBool: bool,
    StagedMixedInt: int,
    StagedMixedFloat: float,
}
_MIXED: dict[type, Any] = {StagedInt: StagedMixedInt, StagedFloat: StagedMixedFloat}
_PLAIN: dict[type, Any] = {
    **dict.fromkeys((StagedInt, StagedMixedInt), torch.SymInt),
    **dict.fromkeys((StagedFloat, StagedMixedFloat), torch.SymFloat),
    StagedBool: torch.SymBool,
}


def let_kind_vary(number: Any) -> None:
    """Mark a new staged number: of which kind it is depends on the path."""
    number.__class__ = _MIXED.get(type(number), type(number))
    mark(number, kind_varies=True)


def is_number(value: object) -> bool:
    """Whether ``value`` is a Python number, staged or not: of no class that is derived from ``int`` or ``float``."""
    return is_exactly(value, NUMBERS) or isinstance(value, StagedNumber)


def is_mixed(value: Any) -> bool:
    """Whether the kind of a number is another on another path."""
    return isinstance(value, StagedNumber) and info(value).kind_varies


def kinds_of(value: Any) -> tuple[type, ...]:
    """The kinds that a number may be of: where that depends on the path, those that are joined to the widest."""
    return NUMBERS[: NUMBERS.index(kind_of(value)) + 1] if is_mixed(value) else (kind_of(value),)


def is_of_numpy(value: object) -> bool:
    """Whether ``value`` is an array or a scalar of numpy's."""
    return hasattr(type(value), "__array_interface__")


def kind_of(value: Any) -> type:
    """``int``, ``float`` or ``bool``: the Python type of a number, staged or not."""
    if isinstance(value, StagedNumber):
        return KINDS[type(value)]
    return bool if isinstance(value, bool) else int if isinstance(value, int) else float


def plain(number: Any) -> Any:
    """torch's own symbolic number for a staged one; anything else as it is."""
    kind = _PLAIN.get(type(number))
    return number if kind is None else kind(number.node)


def staged(symbolic: Any, recorder: NumberRecorder) -> Any:
    """The staged number for one of torch's symbolic numbers."""
    kinds: dict[type, Any] = {torch.SymInt: StagedInt, torch.SymFloat: StagedFloat, torch.SymBool: StagedBool}
    number = kinds[type(symbolic)](symbolic.node)
    number.recorder = recorder
    return number
