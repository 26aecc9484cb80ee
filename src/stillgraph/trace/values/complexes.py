"""Complex numbers of Python's that only the run knows: two floats, of which Python makes the number where it is used.

Branches and loops join and carry the two floats. What is computed is computed by Python's own rules: an operation of
the program takes the complex numbers themselves, and the two parts of its result are read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.types import ObjectType
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.numbers import OfComplex, StagedNumber
from stillgraph.trace.values.operands import is_asked_itself, sample, unsupported

if TYPE_CHECKING:
    from torch import fx

    from stillgraph.trace.graph.recorder import Recorder


class StagedComplex(OfComplex):
    """A ``complex`` that only the run knows.

    Args:
        real: its real part, a float, staged or not.
        imag: its imaginary part, likewise; one of the two is staged.
    """

    __slots__ = ("_imag", "_real", "recorder")
    __array_ufunc__ = None  # an array on the left of an operator leaves it to this class

    def __init__(self, real: Any, imag: Any) -> None:
        self.recorder: Any = (real if isinstance(real, StagedNumber) else imag).recorder
        self._real, self._imag = real, imag

    @property
    def real(self) -> Any:
        """As `complex.real`."""
        return self._real

    @property
    def imag(self) -> Any:
        """As `complex.imag`."""
        return self._imag

    def conjugate(self) -> Any:
        """As `complex.conjugate`."""
        return complex_of(self._real, -self._imag)

    def stillgraph_sample(self) -> complex:
        """A number in its place, where only its type matters (`operands.SAMPLE`)."""
        return SAMPLE_NUMBER

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """There so that torch lets it stand beside a tensor; the recorder is asked first."""
        return NotImplemented

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(complex, name):
            self._refuse()
        raise AttributeError(f"'complex' object has no attribute '{name}'", name=name, obj=self)

    def _refuse(self, *args: Any) -> NoReturn:
        message = "a complex number that only the run knows is used by code that Python runs itself"
        raise refuse("SG301", message, location=here(), hint="Use its .real and .imag, which are numbers of the run.")

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __copy__(self) -> StagedComplex:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StagedComplex:
        return self

    def __abs__(self) -> Any:
        self.recorder.before_risk()
        return self.recorder.fresh_result(float, self.recorder.emit("call_function", abs, (self,), {}))

    def __neg__(self) -> Any:
        return complex_of(-self._real, -self._imag)

    def __pos__(self) -> StagedComplex:
        return self

    def __complex__(self) -> NoReturn:
        self._refuse()

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other, "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other, "__ne__")

    def _compared(self, function: Callable[..., Any], other: Any, reflected: str) -> Any:
        if is_operand(other):
            return self.recorder.fresh_result(bool, self.recorder.emit("call_function", function, (self, other), {}))
        if is_asked_itself(other, reflected) or sample(other) is other:
            return NotImplemented
        return unsupported(function, self, other)

    __str__ = __repr__ = __format__ = __hash__ = __reduce_ex__ = __getnewargs__ = _refuse


SAMPLE_NUMBER = 1.5 + 0.5j
"""Stands for a complex number where only its type matters."""

_OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": operator.pow,
}
_NONE_OF_COMPLEX = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "divmod": divmod,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "matmul": operator.matmul,
}
_EXACT = (operator.add, operator.sub, operator.mul)  # which never raise


def is_operand(value: Any) -> bool:
    """Whether Python's complex numbers compute with a value, staged or not."""
    return isinstance(value, (StagedComplex, StagedNumber)) or is_exactly(value, (bool, int, float, complex))


def _binary(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: StagedComplex, other: Any, *modulus: Any) -> Any:
        if modulus and modulus != (None,):
            unsupported(function, self, other, *modulus)
        if is_operand(other):
            return operation(self.recorder, function, (self, other))
        return NotImplemented if is_asked_itself(other, f"__r{name}__") else unsupported(function, self, other)

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: StagedComplex, other: Any, *modulus: Any) -> Any:
        if is_operand(other):
            return operation(self.recorder, function, (other, self))
        return unsupported(function, other, self)

    return method


for _name, _function in {**_OPERATORS, **_NONE_OF_COMPLEX}.items():
    setattr(StagedComplex, f"__{_name}__", _binary(_function, _name))
    setattr(StagedComplex, f"__r{_name}__", _reflected(_function))


def operation(recorder: Recorder, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Record ``function(*operands)``, which gives a complex number.

    Raises:
        TypeError: Python raises it for values of these types.
    """
    if function not in (*_OPERATORS.values(), complex) and getattr(function, "__module__", "") != "cmath":
        unsupported(function, *operands)
    if function not in _EXACT:
        recorder.before_risk()
    node = recorder.emit("call_function", function, operands, {})
    node.meta["val"] = ObjectType(complex)
    parts = (recorder.fresh_result(float, recorder.emit("call_function", getattr, (node, part), {})) for part in _PARTS)
    return StagedComplex(*parts)


_PARTS = ("real", "imag")


def complex_of(real: Any, imag: Any) -> Any:
    """The complex number of two parts, which are floats; a plain one where both are known."""
    if isinstance(real, StagedNumber) or isinstance(imag, StagedNumber):
        return StagedComplex(real, imag)
    return complex(real, imag)


def node_of(recorder: Recorder, value: StagedComplex) -> fx.Node:
    """The node that makes Python's complex number, for an operation that takes it."""
    node = recorder.emit("call_function", complex, (value.real, value.imag), {})
    node.meta["val"] = ObjectType(complex)
    return node


def item(recorder: Recorder, tensor: torch.Tensor) -> Any:
    """The only element of a complex tensor."""
    parts = [recorder.record(part, (tensor,), {}) for part in (torch.real, torch.imag)]
    emitted = (recorder.emit("call_method", "item", (part,), {}) for part in parts)
    return StagedComplex(*(recorder.fresh_result(float, node) for node in emitted))
