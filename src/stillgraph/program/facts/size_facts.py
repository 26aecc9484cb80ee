"""What torch knows of symbolic sizes, and how it is forgotten: what it learns on one path does not hold on others.

torch takes every operation for one that runs: of ``x[0]`` it learns that ``x`` has an element, of ``x + y`` that their
sizes are equal. Of an arm of a branch, of a loop's body or a ``try`` that is true inside alone.

The adapter to the private state of torch's ``ShapeEnv``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]  # has none
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.value_ranges import ValueRangeError

_BY_SYMBOL = ("var_to_range", "var_to_range_sloc", "replacements", "replacements_slocs", "deferred_runtime_asserts")
_WHOLE = ("axioms", "divisible")
_LEARNING: tuple[Any, ...] = (
    ShapeEnv.guard_or_defer_runtime_assert,
    ShapeEnv._inner_evaluate_expr,
    ShapeEnv._maybe_guard_rel,
    ShapeEnv.constrain_symbol_range,
)
"""What learns of sizes when it is asked, and by torch's doing only the first time that it is asked the same."""


@contextlib.contextmanager
def learned_inside(environment: ShapeEnv, *, guards: bool = False) -> Iterator[None]:
    """Forget in the end what is learned meanwhile of sizes that were there before.

    Args:
        environment: of the sizes.
        guards: whether what was asked of the sizes of inputs is forgotten as well. A capture keeps it.
    """
    known = _Known.of(environment)
    asked = len(environment.guards)
    try:
        yield
    finally:
        known.restore(environment)
        if guards:
            del environment.guards[asked:]


@contextlib.contextmanager
def of_any_size(environment: ShapeEnv) -> Iterator[None]:
    """Forget in the end that sizes of inputs are not 0.

    torch asks it where it works out strides. What an operation gives does not depend on the answer; where one fails
    for want of an element, it does so in the run as well.
    """
    known, asked = _Known.of(environment), len(environment.guards)
    yield
    news = [guard._replace(expr=_of_any_size(guard.expr)) for guard in environment.guards[asked:]]
    if news != environment.guards[asked:]:
        asserts = _new_asserts(environment, known)
        environment.guards[asked:] = [guard for guard in news if guard.expr is not sympy.true]
        known.restore(environment, asks_again=False)
        for guard in environment.guards[asked:]:
            _learn(environment, guard.expr)
        for each in asserts:
            environment.guard_or_defer_runtime_assert(each.expr, each.msg)


@dataclass(frozen=True)
class Equalities:
    """What an operation has torch take for equal, of sizes that only the run knows."""

    environment: ShapeEnv
    known: _Known

    @classmethod
    def before(cls, environment: ShapeEnv) -> Equalities:
        """To be called before the operation."""
        return cls(environment, _Known.of(environment))

    def symbols(self) -> frozenset[Any]:
        """The sizes that are said to be equal to others since."""
        news = _new_asserts(self.environment, self.known)
        equal = [each.expr for each in news if isinstance(each.expr, sympy.Eq)]
        return frozenset(symbol for each in equal for symbol in each.free_symbols if symbol in self.known.symbols)

    def forget(self) -> None:
        """Take nothing for equal that was not before."""
        self.known.restore(self.environment)


class Undo:
    """What a torch function has learned of sizes, to be forgotten where it has learned too much.

    Args:
        environment: of the sizes.
    """

    def __init__(self, environment: ShapeEnv) -> None:
        self.environment = environment
        self._known = _Known.of(environment)
        self._asked = len(environment.guards)

    def all(self) -> None:
        """Know what was known before."""
        self._known.restore(self.environment)
        del self.environment.guards[self._asked :]

    def all_but_guards(self) -> None:
        """Know what was known before; what was asked of the sizes of inputs stays asked."""
        self._known.restore(self.environment)

    def redoing(self) -> Callable[[], None]:
        """What has all that is learned by now known once more, after it was forgotten: torch would not ask again."""
        known, guards = _Known.of(self.environment), self.environment.guards[self._asked :]

        def redo() -> None:
            self.all()
            known.restore(self.environment)
            self.environment.guards.extend(guards)

        return redo

    def settled(self) -> bool:
        """Whether the size of an input, which may be any, is taken to be a certain number since."""
        before, now = self._known.by_symbol["replacements"], self.environment.replacements
        news = {symbol: value for symbol, value in now.items() if symbol not in before}
        news |= fixed_by(self.environment.guards[self._asked :])
        return any(each in self.environment.backed_var_to_val and value.is_number for each, value in news.items())


def _new_asserts(environment: ShapeEnv, known: _Known) -> list[Any]:
    """What has come to be asserted of sizes that only the run knows."""
    before = known.by_symbol["deferred_runtime_asserts"]
    asserts = environment.deferred_runtime_asserts
    return [each for symbol, now in asserts.items() for each in now if each not in before.get(symbol, ())]


def _learn(environment: ShapeEnv, condition: Any) -> None:
    environment.axioms.update(dict(environment.get_implications(environment.simplify(condition))))
    if _holds_for_example(environment, condition):  # torch wants the example to be in the range it assumes
        with contextlib.suppress(ValueRangeError):  # there is no such size: the run never comes here
            environment._maybe_guard_rel(condition)
    _tell_that_it_changed(environment)


def _of_any_size(condition: Any) -> Any:
    """What is left of a condition for sizes that are 0 as well: of ``s > 0`` nothing, of ``s > 1`` that it is not 1."""
    condition = condition.replace(_is_at_least_one, lambda largest: next(a for a in largest.args if a != 1))
    match condition:
        case sympy.And():
            return sympy.And(*map(_of_any_size, condition.args))
        case sympy.Ne(lhs=number, rhs=bound) | sympy.Ne(lhs=bound, rhs=number) if bound.is_Integer:
            return _unlike(condition, number, bound)
        case sympy.Gt(lhs=number, rhs=bound) | sympy.Lt(lhs=bound, rhs=number) if bound.is_Integer:
            return _at_least(condition, number, bound + 1)
        case sympy.Ge(lhs=number, rhs=bound) | sympy.Le(lhs=bound, rhs=number) if bound.is_Integer:
            return _at_least(condition, number, bound)
    return condition


def _is_at_least_one(expression: Any) -> bool:
    """Whether an expression is ``max(1, size)``, with which torch works out strides."""
    return type(expression).__name__ == "Max" and len(expression.args) == 2 and 1 in expression.args


def _unlike(condition: Any, number: Any, bound: Any) -> Any:
    factor, sizes = number.as_coeff_Mul()
    if bound == 0 and _is_product(sizes):
        return sympy.true
    return sympy.true if factor.is_Integer and bound % factor else condition


def _at_least(condition: Any, number: Any, bound: Any) -> Any:
    factor, sizes = number.as_coeff_Mul()
    if not factor.is_positive or not _is_product(sizes):
        return condition
    least = -(-bound // factor)
    if least == 2:
        return sympy.Ne(sizes, 1)
    return sympy.true if least < 2 else condition


def _is_product(sizes: Any) -> bool:
    return all(size.is_Symbol for size in sympy.Mul.make_args(sizes))


def assume(environment: ShapeEnv, condition: Any, holds: bool) -> None:
    """Let a condition on sizes be known to hold, or not to.

    Args:
        environment: of the sizes.
        condition: a sympy expression. One that says nothing of sizes is passed over.
        holds: whether it is true.
    """
    condition = condition if holds else sympy.Not(condition)
    says = isinstance(condition, sympy.Rel) and not _is_flag(environment, condition)
    if says and not _is_known(environment, condition):
        _learn(environment, condition)


def _is_flag(environment: ShapeEnv, condition: Any) -> bool:
    """Whether a condition is a truth value of unknown origin: such a one is ``u == 1``, where ``u`` is 0 or 1."""
    bounds = (environment.var_to_range.get(symbol) for symbol in condition.free_symbols)
    return all(each is not None and each.lower == 0 and each.upper == 1 for each in bounds)


def _holds_for_example(environment: ShapeEnv, condition: Any) -> bool:
    """Whether a condition holds for the sizes of the example, as far as it is on them."""
    return condition.xreplace(environment.backed_var_to_val) is not sympy.false


def _is_known(environment: ShapeEnv, condition: Any) -> bool:
    """Whether a condition is decided by what is known already."""
    return environment._maybe_evaluate_static(condition) is not None


def fixed_by(guards: list[Any]) -> dict[Any, Any]:
    """The sizes for which guards, be they of one path, ask for one number: by symbol that number."""
    equal = [guard.expr for guard in guards if isinstance(guard.expr, sympy.Eq)]
    sides = [side for each in equal for side in (each.args, each.args[::-1])]
    return {symbol: number for symbol, number in sides if symbol.is_Symbol and number.is_number}


def asked_for(guards: list[Any]) -> frozenset[Any]:
    """The sizes of which guards ask that something with them is a certain number, or another size.

    Whether something is 0 or 1, torch asks of its own accord, for it treats such sizes apart.
    """
    equal = (guard.expr for guard in guards if isinstance(guard.expr, sympy.Eq))
    asked = (each for each in equal if each.lhs not in (0, 1) and each.rhs not in (0, 1))
    return frozenset(symbol for each in asked for symbol in each.free_symbols)


@dataclass(frozen=True)
class _Known:
    """What an environment knew at some time."""

    symbols: frozenset[Any]
    by_symbol: dict[str, dict[Any, Any]]
    whole: dict[str, Any]
    size_like: frozenset[Any]

    @classmethod
    def of(cls, environment: ShapeEnv) -> _Known:
        return cls(
            frozenset(environment.var_to_range),
            {name: _copy(getattr(environment, name)) for name in _BY_SYMBOL if hasattr(environment, name)},
            {name: getattr(environment, name).copy() for name in _WHOLE},
            frozenset(environment.size_like),
        )

    def restore(self, environment: ShapeEnv, asks_again: bool = True) -> None:
        """Let an environment know this and no more; ``asks_again``: torch asks once more what it has asked since."""
        if self._is_still_all(environment):
            return
        for name, known in self.by_symbol.items():
            now = getattr(environment, name)
            for symbol in set(now).difference(known):  # of dicts, which have the hashes: symbols work theirs out
                if symbol in self.symbols or symbol is None:
                    del now[symbol]
            now.update(_copy(known))
        for name, held in self.whole.items():
            setattr(environment, name, held.copy())
        environment.size_like -= (environment.size_like & self.symbols) - self.size_like
        environment.num_deferred_runtime_asserts = sum(map(len, environment.deferred_runtime_asserts.values()))
        _tell_that_it_changed(environment)
        for remembering in _LEARNING if asks_again else ():
            remembering.cache_clear()

    def _is_still_all(self, environment: ShapeEnv) -> bool:
        same = all(getattr(environment, name) == held for name, held in self.by_symbol.items())
        return same and all(getattr(environment, name) == held for name, held in self.whole.items())


def _copy(table: dict[Any, Any]) -> dict[Any, Any]:
    if isinstance(next(iter(table.values()), None), list):  # the assertions of a symbol
        return {symbol: list(held) for symbol, held in table.items()}
    return dict.copy(table)  # asks no symbol for its hash: this runs for each arm, and there are many symbols


def _tell_that_it_changed(environment: ShapeEnv) -> None:
    """Let nobody go by what was worked out before."""
    if hasattr(environment, "_replacements_version_counter"):  # since torch 2.12
        environment._replacements_version_counter += 1
    environment._version_counter += 1
    environment._prev_cache_key = environment._get_key()
    environment.fake_tensor_cache.clear()
    ShapeEnv._maybe_guard_rel.cache_clear()  # what has been learned once would not be learned again
