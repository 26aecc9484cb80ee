"""What a capture asks of the front end that rewrites functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True)
class FrontEnd:
    """What a capture asks of its front end.

    Attributes:
        convert: rewrites a function, its ``try`` statements too if the last argument says so; gives the new one and
            the names of the outer variables it assigns.
        turn_inside_out: the same for a generator, as a function that hands out what it yields; gives the name of the
            parameter for that too, or None where it cannot be done. The last argument says whether it is the function
            of a context manager, which sees what its block raises.
        is_converted: whether a code object is rewritten code.
        skipped: whether the user wants a function left as it is.
        following: one that follows also the methods that Python calls for operators, if this one does not.
        for_segments: whether it is asked without a full graph. Then it converts also what surrounds a function that a
            mode of torch's decorates (see `frames.surrounds_with_mode`), and the user's code that was not read from a
            file.
        may_end: whether care is taken of what matters where a program ends inside of what is called: every block around
            an operation that fails is told of it, and a call that each path makes with keywords of its own is refused.
    """

    convert: Callable[[FunctionType, frozenset[str], bool], tuple[FunctionType, tuple[str, ...]]]
    turn_inside_out: Callable[
        [FunctionType, frozenset[str], bool, bool], tuple[FunctionType, tuple[str, ...], str] | None
    ]
    is_converted: Callable[[CodeType], bool]
    skipped: Callable[[Any], bool]
    following: FrontEnd | None = None
    for_segments: bool = False
    may_end: bool = False
