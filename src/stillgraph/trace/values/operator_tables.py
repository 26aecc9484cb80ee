"""Tables of Python's operators on numbers: the functions behind the methods, and their reflections."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "divmod": divmod,
}

OF_COMPLEX = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)

OF_FLAGS = (operator.and_, operator.or_, operator.xor)

OF_WHOLE_NUMBERS = (operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.invert)

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

REFLECTED_COMPARISONS = {
    "__lt__": "__gt__",
    "__gt__": "__lt__",
    "__le__": "__ge__",
    "__ge__": "__le__",
    "__eq__": "__eq__",
    "__ne__": "__ne__",
}
"""The method of the other operand that Python asks where the first knows no answer."""

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": operator.abs,
    "invert": operator.invert,
}

SLOTS: dict[str, tuple[Callable[..., Any], bool]] = {
    **{f"__{name}__": (function, False) for name, function in (*BINARY.items(), *COMPARISONS.items())},
    **{f"__r{name}__": (function, True) for name, function in BINARY.items()},
}
"""What the methods of Python's numbers with one operand compute, and whether the number stands on the right."""
