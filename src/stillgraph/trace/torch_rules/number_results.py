"""What stands for the result of an operation on numbers before the run."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import is_integer
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.numbers import StagedNumber, is_mixed, is_number, kind_of, kinds_of, plain
from stillgraph.trace.values.operands import ONE_KIND

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

MAY_RAISE = frozenset(
    {
        *(operator.floordiv, operator.mod, operator.truediv, operator.pow, operator.lshift, operator.rshift),
        *(divmod, int, round),
    }
)
_COMPARISONS = frozenset({operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge})
_SYMBOLIC = frozenset({operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg})
_BITWISE = frozenset({operator.and_, operator.or_, operator.xor})
_TO_INT = frozenset({int, math.trunc, math.floor, math.ceil, len, operator.index})
_WHOLE_MATH = frozenset({math.gcd, math.lcm, math.isqrt, math.comb, math.perm, math.factorial})
_TO_FLOAT = frozenset({float, operator.truediv})
_TO_BOOL = frozenset(
    {
        bool,
        is_integer,
        operator.not_,
        operator.is_,
        operator.contains,
        isinstance,
        math.isnan,
        math.isinf,
        math.isfinite,
        math.isclose,
    }
)


def number_result(recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What stands for ``function(*args)`` on numbers: exact for whole numbers, else of unknown value."""
    kinds = [kind_of(a) for a in args if is_number(a)]
    whole = all(kind is int for kind in kinds) and len(kinds) == len(args)
    if whole and (function in _COMPARISONS or function in _SYMBOLIC):
        with torch._C.DisableTorchFunction():
            return function(*(plain(a) for a in args))
    if whole and function in (max, min) and len(args) == 2:
        with torch._C.DisableTorchFunction():
            symbolic: Callable[..., Any] = torch.sym_max if function is max else torch.sym_min
            return symbolic(*(plain(a) for a in args))
    return plain(recorder.fresh_number(_result_kind(function, kinds, args)))


def refuse_mixed(does: str) -> BaseException:
    """What to raise where the kind of a number decides what a tensor is.

    Args:
        does: what the number does, as the end of a sentence.
    """
    message = f"a number that is an int on one path and a float on the other {does}"
    return refuse("SG202", message, location=here(), hint=ONE_KIND)


def mixes(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether it depends on the path of which kind ``function(*args)`` is."""
    given = [kinds_of(value) for value in args if is_number(value)]
    if function in (max, min):
        return len(set(itertools.chain(*given))) > 1
    if not any(map(is_mixed, args)):
        return False
    return len({_result_kind(function, list(kinds), args) for kinds in itertools.product(*given)}) > 1


def _result_kind(function: Callable[..., Any], kinds: list[type], args: tuple[Any, ...]) -> type:
    if function in _COMPARISONS or function in _TO_BOOL:
        return bool
    if function in _TO_INT or (function is round and len(args) == 1):
        return int
    if function in _WHOLE_MATH:
        return int
    if function in (math.frexp, math.modf):
        raise refuse("SG301", f"math.{function.__name__} of a staged number", location=here())
    if function in _TO_FLOAT or getattr(function, "__module__", "") == "math":
        return float
    if function in _BITWISE and all(kind is bool for kind in kinds):
        return bool
    if function is operator.pow and not isinstance(args[1], StagedNumber) and args[1] < 0:
        return float
    if function in (max, min):
        return max(kinds, key=(bool, int, float).index)
    return float if float in kinds else int
