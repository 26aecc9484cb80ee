"""Statements `try` and `with` in code objects: whether an instruction is protected by one."""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

from stillgraph.core.identity_cache import weakly_cached
from stillgraph.trace.graph.recorder import Recorder


def frame_in_try(recorder: Recorder) -> FrameType | None:
    """A frame of rewritten code that is in the body of a ``try`` which stayed a Python statement."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if recorder.is_rewritten(frame.f_code) and frame.f_lasti in _protected(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def collects(handler: Sequence[str]) -> bool:
    """Whether instructions, by their names, take what the block of an ``except*`` raises for a group.

    They unset the exception's name first, where it has one.
    """
    after_unset = 3 if handler[:1] == ["LOAD_CONST"] else 0
    return [*handler[after_unset : after_unset + 1]] == ["LIST_APPEND"]


def in_protected_block(recorder: Recorder, code: CodeType) -> bool:
    """Whether the innermost call of a function, given its original code, is inside a ``try`` or ``with`` of its own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if recorder.is_rewritten(frame.f_code) and frame.f_code.co_filename == code.co_filename:
            entries: list[Any] = dis.Bytecode(frame.f_code).exception_entries  # type: ignore[attr-defined]  # not in the stubs
            if any(entry.start <= frame.f_lasti < entry.end for entry in entries):
                return True
            if frame.f_code.co_qualname == code.co_qualname:
                return False
        frame = frame.f_back
    return False


@weakly_cached
def _protected(code: CodeType) -> frozenset[int]:
    """The offsets of instructions in the body of a ``try``, not merely a ``with``, or in a handler of ``except*``."""
    instructions = {i.offset: i for i in dis.get_instructions(code)}
    entries: list[Any] = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]  # not in the stubs

    def is_try(entry: Any) -> bool:
        handler = [instructions[o].opname for o in sorted(instructions) if entry.target <= o <= entry.target + 8]
        return collects(handler) or (handler[:1] == ["PUSH_EXC_INFO"] and "WITH_EXCEPT_START" not in handler)

    def is_in_try(entry: Any) -> bool:
        # The table gives each instruction its innermost handler alone: what is around that one is the handler's own.
        passed: set[int] = set()
        while entry is not None and entry.target not in passed:
            if is_try(entry):
                return True
            passed.add(entry.target)
            entry = next((each for each in entries if each.start <= entry.target < each.end), None)
        return False

    return frozenset(o for entry in entries if is_in_try(entry) for o in range(entry.start, entry.end + 2))
