"""Marks on the code objects that rewriting makes, by which those who look at frames know them."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

REWRITTEN = type("Rewritten", (), {"__repr__": lambda self: "<rewritten by stillgraph>"})()
"""The last constant of each."""

BLOCK = type("Block", (), {"__repr__": lambda self: "<a block of a function>"})()
"""The last constant but one of what is a part of the user's function, and none that the user wrote."""


RESUMES = type("Resumes", (), {"__repr__": lambda self: "<goes on in a function>"})()
"""The last constant of code that goes on in the midst of the user's functions: it is none of theirs itself."""


def resumes(code: CodeType) -> bool:
    """Whether a code object is of a function that goes on in the midst of the user's."""
    return bool(code.co_consts) and code.co_consts[-1] is RESUMES


HELD = "stillgraph_frame"
"""The local variable of the function that interprets one of the user's, which holds the variables of that."""


class Holder:
    """What runs one of the user's functions, or is known of it: the user's objects in it are those that it names."""

    @property
    def waits_in_block(self) -> bool:
        """Whether something is to be done when it is of a generator that waits, and that is closed."""
        return False

    def held(self) -> list[Any]:
        """The user's objects that it holds."""
        return []


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The user's variables in a frame."""
    held = frame.f_locals.get(HELD)
    if held is None:
        return frame.f_locals
    found: dict[str, Any] = held.variables()
    return found


def values_in(frame: FrameType) -> list[Any]:
    """What a frame holds: its variables, and of one that is interpreted what stands on its stack."""
    held = frame.f_locals.get(HELD)
    found: list[Any] = [*frame.f_locals.values()] if held is None else held.held()
    return found


def is_rewritten(code: CodeType) -> bool:
    """Whether a code object, of a function or of anything nested in one, was made by rewriting."""
    return bool(code.co_consts) and code.co_consts[-1] is REWRITTEN


def is_block(code: CodeType) -> bool:
    """Whether a code object is that of a generated function, such as a loop's body. Lambdas do not tell."""
    return len(code.co_consts) > 1 and code.co_consts[-2] is BLOCK
