"""For each of Python's operations on numbers what it fails for, in the order in which Python looks."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import fx

from stillgraph.passes.numbers.known_numbers import is_below, is_nonnegative, is_positive
from stillgraph.passes.numbers.number_errors import COMPLEX, FRACTION, LEAST, MOST, WIDE, said_of
from stillgraph.passes.regions.regions import call
from stillgraph.passes.regions.values import Fakes, kind_of, value_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import divisor, require

Truth = fx.Node | bool
"""A truth value of the program's, or one that is known before the run."""


class Operation:
    """An operation on numbers, and where what it needs is required: before it, or (``behind``) right behind it.

    Args:
        node: the operation.
        fakes: makes stand-ins.
    """

    def __init__(self, node: fx.Node, fakes: Fakes) -> None:
        self.node = node
        self.fakes = fakes
        self.args = arguments(node)
        self.kinds = [kind_of(value_of(argument)) or float for argument in self.args]  # of a tensor: what is in it
        self._next = node.next

    @property
    def function(self) -> Callable[..., Any]:
        """Python's function or operator."""
        return cast("Callable[..., Any]", self.node.target)

    def emit(self, function: Any, *args: Any, kind: type = bool, behind: bool = False) -> Any:
        """``function(*args)`` as a node; its value, where all is known."""
        if not any(isinstance(argument, fx.Node) for argument in args):
            return function(*args)
        with self.node.graph.inserting_before(self._next if behind else self.node):
            return call(self.node, function, args, self.fakes.number(kind))

    def test(self, function: Any, *args: Any, behind: bool = False) -> Truth:
        """:meth:`emit` of a function that gives a bool."""
        truth: Truth = self.emit(function, *args, behind=behind)
        return truth

    def both(self, left: Truth, right: Truth, behind: bool = False) -> Truth:
        """``left and right``."""
        if isinstance(left, bool):
            return right if left else False
        if isinstance(right, bool):
            return left if right else False
        return self.test(operator.and_, left, right, behind=behind)

    def either(self, left: Truth, right: Truth) -> Truth:
        """``left or right``."""
        if isinstance(left, bool):
            return True if left else right
        if isinstance(right, bool):
            return True if right else left
        return self.test(operator.or_, left, right)

    def is_finite(self, argument: Any, behind: bool = False) -> Truth:
        """Whether a number is neither infinite nor NaN: whole ones never are."""
        if kind_of(value_of(argument)) is not float:
            return True
        return self.test(math.isfinite, argument, behind=behind)

    def outside(self, argument: Any, least: Any, most: Any) -> Truth:
        """Whether a number is less than ``least`` or more than ``most``."""
        return self.either(self.emit(operator.gt, argument, most), self.emit(operator.lt, argument, least))

    def forbid(self, wrong: Truth, text: str, behind: bool = False) -> None:
        """Require that something is not so; nothing, where it is known not to be."""
        if wrong is False:
            return
        fine = self.emit(operator.not_, wrong, behind=behind)
        with self.node.graph.inserting_before(self._next if behind else self.node):
            call(self.node, require, (fine, text), None)

    def forbid_infinity(self, text: str, given: tuple[Any, ...]) -> None:
        """Require that the result is finite, where what it is made of is."""
        wrong = self.emit(math.isinf, self.node, behind=True)
        for argument in given:
            wrong = self.both(wrong, self.is_finite(argument, behind=True), behind=True)
        self.forbid(wrong, text, behind=True)


Rule = Callable[[Operation], None]


def rule_of(node: fx.Node) -> Rule | None:
    """What is required of the operands of an operation on numbers, if anything may have to be."""
    if node.op != "call_function" or node.kwargs:
        return None
    args = arguments(node)
    if node.target is operator.getitem and isinstance(args[0], (list, tuple)):
        return _item if kind_of(value_of(args[1])) is not None and isinstance(args[1], fx.Node) else None
    if kind_of(value_of(node)) is None:
        return None
    values = [value_of(argument) for argument in args]
    if node.target is int and len(args) == 1 and isinstance(values[0], torch.Tensor):
        return _to_whole if values[0].dtype.is_floating_point else None
    if not all(kind_of(value) is not None for value in values):
        return None
    if node.target in _OF_ONE and len(args) != 1:
        return None
    return RULES.get(node.target)


def _division(it: Operation) -> None:
    left, right = it.kinds
    by = it.args[1]
    wrong = False if is_positive(by) else it.emit(operator.eq, by, 0)
    it.forbid(wrong, said_of(it.function, left(1), right(0)))
    whole = it.function is not operator.truediv and float not in it.kinds
    if whole and wrong is not False:  # torch's own division would fail, before what is required is looked at
        with it.node.graph.inserting_before(it.node):
            safe = call(it.node, divisor, (by,), value_of(by)) if isinstance(by, fx.Node) else 1
        it.node.args = (it.args[0], safe)


# ---- items of sequences
def _item(it: Operation) -> None:
    sequence, at = it.args
    above = False if is_below(at, len(sequence)) else it.test(operator.ge, at, len(sequence))
    below = False if is_nonnegative(at) else it.test(operator.lt, at, -len(sequence))
    wrong = it.either(above, below)
    if wrong is not False:
        it.forbid(wrong, said_of(operator.getitem, [] if isinstance(sequence, list) else (), 0))
        fine = it.test(operator.not_, wrong)  # as for divisors: torch's own error would come before
        it.node.args = (sequence, it.emit(operator.mul, at, fine, kind=int))


# ---- powers
def _power(it: Operation) -> None:
    base, exponent = it.args[:2]
    if len(it.args) != 2:
        return
    if float not in it.kinds and kind_of(value_of(it.node)) is not float:
        _whole_power(it, base, exponent)
        return
    zero = said_of(it.function, it.kinds[0](0), it.kinds[1](-1))
    _float_power(it, zero, COMPLEX, said_of(it.function, 10.0, 400))


def _math_power(it: Operation) -> None:
    domain = said_of(math.pow, -8.0, 0.5)
    _float_power(it, said_of(math.pow, 0.0, -1.0), domain, said_of(math.pow, 10.0, 400.0))


def _float_power(it: Operation, of_zero: str, of_negative: str, too_large: str) -> None:
    base, exponent = it.args
    up = is_nonnegative(exponent)
    if not (up or is_positive(base)):
        downwards = it.both(it.emit(operator.lt, exponent, 0), it.is_finite(exponent))
        it.forbid(it.both(downwards, it.emit(operator.eq, base, 0)), of_zero)
    if it.kinds[1] is float and not is_nonnegative(base):
        broken = it.emit(operator.ne, it.emit(operator.mod, exponent, 1.0, kind=float), 0)
        negative = it.both(it.emit(operator.lt, base, 0), it.is_finite(base))
        it.forbid(it.both(it.both(broken, it.is_finite(exponent)), negative), of_negative)
    shrinks = isinstance(base, (int, float)) and 0 < base <= 1
    if not (up and (shrinks or (isinstance(exponent, (int, float)) and exponent <= 1))):
        it.forbid_infinity(too_large, (base, exponent))


def _whole_power(it: Operation, base: Any, exponent: Any) -> None:
    if not is_nonnegative(exponent):
        below = it.emit(operator.lt, exponent, 0)
        it.forbid(it.both(below, it.emit(operator.eq, base, 0)), said_of(operator.pow, 0, -1))
        it.forbid(below, FRACTION)
    if not isinstance(exponent, fx.Node):
        if exponent > 1:
            it.forbid(it.outside(base, -_root(-LEAST, exponent), _root(MOST, exponent)), WIDE)
    elif not isinstance(base, fx.Node):
        if abs(base) > 1:
            it.forbid(it.emit(operator.gt, exponent, _most_powers(base)), WIDE)
    else:  # no power of whole numbers is so near to 2**63 that a float would not tell
        result = it.emit(math.pow, it.emit(float, base, kind=float), it.emit(float, exponent, kind=float), kind=float)
        above = it.emit(operator.ge, result, 2.0**63)
        it.forbid(it.either(above, it.emit(operator.lt, result, -(2.0**63))), WIDE)


def _root(most: int, exponent: int) -> int:
    """The largest whole number of which the power is no more than ``most``."""
    root = int(most ** (1 / exponent)) + 1
    while root**exponent > most:
        root -= 1
    return root


def _most_powers(base: int) -> int:
    """The largest exponent for which the power has 64 bits."""
    return max(exponent for exponent in range(64) if LEAST <= base**exponent <= MOST)


# ---- shifts
def _shift(it: Operation) -> None:
    base, count = it.args
    below = False if is_nonnegative(count) else it.emit(operator.lt, count, 0)
    it.forbid(below, said_of(it.function, 1, -1))
    if it.function is operator.rshift:
        return
    if not isinstance(count, fx.Node):
        if count > 0:
            it.forbid(it.outside(base, LEAST >> count, MOST >> count), WIDE)
    elif not isinstance(base, fx.Node):
        if base:
            most = next(most for most in range(63, -1, -1) if LEAST <= base << most <= MOST)
            it.forbid(it.emit(operator.gt, count, most), WIDE)
    else:
        far = it.both(it.emit(operator.gt, count, 63), it.emit(operator.ne, base, 0))
        it.forbid(far, WIDE)
        back = it.emit(operator.rshift, it.node, count, kind=int, behind=True)
        it.forbid(it.emit(operator.ne, back, base, behind=True), WIDE, behind=True)


# ---- whole numbers of floats
def _to_whole(it: Operation) -> None:
    number = it.args[0]
    if it.kinds[0] is not float:
        return
    value = value_of(number)
    if isinstance(value, torch.Tensor):
        number = it.emit(float, number, kind=float)
    it.forbid(it.emit(math.isnan, number), said_of(it.function, math.nan))
    it.forbid(it.emit(math.isinf, number), said_of(it.function, math.inf))
    if not (isinstance(value, torch.Tensor) and torch.finfo(value.dtype).max < 2.0**63):
        above = it.emit(operator.ge, number, 2.0**63)
        it.forbid(it.either(above, it.emit(operator.lt, number, -(2.0**63))), WIDE)


# ---- functions of math
def _below(least: int, *, open: bool = False) -> Callable[[Operation], Truth]:
    """Numbers less than ``least``; with ``open`` that number as well."""

    def wrong(it: Operation) -> Truth:
        known = is_positive if open and least == 0 else is_nonnegative
        if least <= 0 and known(it.args[0]):
            return False
        return it.test(operator.le if open else operator.lt, it.args[0], least)

    return wrong


def _beyond(most: int, *, open: bool = False) -> Callable[[Operation], Truth]:
    """Numbers of which the absolute value is more than ``most``; with ``open`` that as well."""

    def wrong(it: Operation) -> Truth:
        size = it.emit(abs, it.args[0], kind=it.kinds[0])
        return it.test(operator.ge if open else operator.gt, size, most)

    return wrong


def _infinite(it: Operation) -> Truth:
    return False if it.kinds[0] is not float else it.emit(math.isinf, it.args[0])


def _pole(it: Operation) -> Truth:
    """0 and the negative whole numbers."""
    whole = it.emit(operator.eq, it.emit(operator.mod, it.args[0], 1.0, kind=float), 0)
    return False if is_positive(it.args[0]) else it.both(it.emit(operator.le, it.args[0], 0), whole)


def _domain(wrong: Callable[[Operation], Truth], sample: float) -> Rule:
    """A function that is not defined everywhere; ``sample`` is a number for which it is not."""

    def rule(it: Operation) -> None:
        number = sample if math.isinf(sample) else it.kinds[0](sample)
        it.forbid(wrong(it), said_of(it.function, number))

    return rule


def _range(sample: float) -> Rule:
    """A function that grows beyond what a float can hold, as for ``sample``."""

    def rule(it: Operation) -> None:
        it.forbid_infinity(said_of(it.function, sample), it.args)

    return rule


def _each(*rules: Rule) -> Rule:
    def rule(it: Operation) -> None:
        for each in rules:
            each(it)

    return rule


def _fmod(it: Operation) -> None:
    left, right = it.args
    zero = it.emit(operator.eq, right, 0)
    if it.kinds[0] is float and zero is not False:
        zero = it.both(zero, it.emit(operator.eq, left, left))  # not NaN
    endless: Truth = False
    if it.kinds[0] is float:
        endless = it.both(it.emit(math.isinf, left), it.emit(operator.eq, right, right))
    it.forbid(it.either(zero, endless), said_of(it.function, 1.0, 0.0))


def _log(it: Operation) -> None:
    wrong = _below(0, open=True)
    it.forbid(wrong(it), said_of(math.log, it.kinds[0](0)))
    if len(it.args) == 2:
        base = it.args[1]
        it.forbid(False if is_positive(base) else it.test(operator.le, base, 0), said_of(math.log, 2.0, 0.0))
        it.forbid(it.test(operator.eq, base, 1), said_of(math.log, 2.0, 1.0))


RULES: dict[Any, Rule] = {
    operator.truediv: _division,
    operator.floordiv: _division,
    operator.mod: _division,
    operator.pow: _power,
    pow: _power,
    math.pow: _math_power,
    operator.lshift: _shift,
    operator.rshift: _shift,
    **dict.fromkeys((int, round, math.trunc, math.floor, math.ceil), _to_whole),
    math.sqrt: _domain(_below(0), -1.0),
    math.log: _log,
    math.isqrt: _domain(_below(0), -1.0),
    **dict.fromkeys((math.log2, math.log10), _domain(_below(0, open=True), 0.0)),
    math.log1p: _domain(_below(-1, open=True), -1.0),
    **dict.fromkeys((math.asin, math.acos), _domain(_beyond(1), 2.0)),
    math.acosh: _domain(_below(1), 0.0),
    math.atanh: _domain(_beyond(1, open=True), 1.0),
    **dict.fromkeys((math.sin, math.cos, math.tan), _domain(_infinite, math.inf)),
    **dict.fromkeys((math.exp, math.exp2, math.expm1, math.sinh, math.cosh), _range(1e4)),
    math.lgamma: _each(_domain(_pole, 0.0), _range(1e308)),
    **dict.fromkeys((math.fmod, math.remainder), _fmod),
}
"""By the function: what is required."""

_OF_ONE = frozenset({int, round})
"""Functions of which the rule is for one argument."""

_UNFAILING = frozenset(
    {float, bool, math.isnan, math.isinf, math.isfinite, math.fabs, math.atan, math.atan2, math.tanh, math.asinh}
    | {math.hypot, math.copysign, math.erf, math.erfc, divisor, math.degrees, math.radians, math.gcd, math.lcm}
    | {math.cbrt, math.ulp, math.nextafter, math.isclose}
)


def cannot_fail(node: fx.Node) -> bool:
    """Whether an operation on numbers raises nothing of itself, once what its rule requires holds."""
    if node.target in _OF_ONE and len(node.args) != 1:
        return False
    return node.target in RULES or node.target in _UNFAILING


__all__ = ["RULES", "Operation", "cannot_fail", "rule_of"]
