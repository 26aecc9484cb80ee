"""Generators that have something to clean up: Python does that when a loop over one is left before its end."""

from __future__ import annotations

import dis
import gc
from collections import deque
from collections.abc import Iterator
from types import CodeType, GeneratorType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_ours
from stillgraph.core.lookup import own_attributes
from stillgraph.core.rewritten import HELD, values_in
from stillgraph.trace.frames import here

_MOST = 1000  # objects that are looked at: an iterator leads to few others


def require_nothing_to_clean_up(iterator: Any) -> None:
    """To be called where only the run knows whether a loop is left.

    Raises:
        CaptureError: if it is, a generator that waits in a ``try`` or ``with`` ends there, and what it does then
            belongs to that path alone.
    """
    waiting = next(_waiting_in_a_block(iterator), None)
    if waiting is not None:
        message = f"only the run knows whether a loop leaves the generator '{waiting.__name__}' in a try or with"
        hint = "Make a list of it before the loop, or do what it cleans up behind the loop."
        raise refuse("SG305", message, location=here(), hint=hint)


def waits_in_a_block(iterator: Any) -> bool:
    """Whether something is done when an iterator is gone: a generator behind it waits in a ``try`` or ``with``."""
    return next(_waiting_in_a_block(iterator), None) is not None


def _waiting_in_a_block(iterator: Any) -> Iterator[GeneratorType[Any, Any, Any]]:
    """The generators behind an iterator that wait in a block which Python has to leave when they are closed."""
    seen: set[int] = set()
    waiting = deque([iterator])
    while waiting and len(seen) < _MOST:
        each = waiting.popleft()
        if id(each) in seen or not isinstance(each, Iterator):
            continue
        seen.add(id(each))
        if isinstance(each, GeneratorType):
            frame = each.gi_frame
            if frame is None or not each.gi_suspended:
                continue
            held = frame.f_locals.get(HELD)
            offset = frame.f_lasti
            in_block = held.waits_in_block if held is not None else _is_in_block(frame.f_code, offset)
            if in_block and not is_ours(frame.f_code.co_filename):
                yield each
            waiting += values_in(frame)
        waiting += gc.get_referents(each)
        waiting += (own_attributes(each) or {}).values()


def _is_in_block(code: CodeType, offset: int) -> bool:
    """Whether an exception that is raised at an offset meets a handler of the user's."""
    entries: Any = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]  # not in the stubs
    found = next((each for each in entries if each.start <= offset < each.end), None)
    return found is not None and not _is_pythons_own(code, found.target)


def _is_pythons_own(code: CodeType, target: int) -> bool:
    """Whether a handler is the one around every generator from Python 3.12 on, for what may not leave it."""
    at = code.co_code
    return dis.opname[at[target]] == "CALL_INTRINSIC_1" and at[target + 1] == _STOPITERATION_ERROR


_STOPITERATION_ERROR = 3
