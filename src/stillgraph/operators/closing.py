"""Generators that have something to clean up: Python does that when a loop over one is left before its end."""

from __future__ import annotations

import dis
import gc
from collections import deque
from collections.abc import Iterator
from types import CodeType, GeneratorType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_ours, is_users
from stillgraph.core.lookup import own_attributes
from stillgraph.core.rewritten import HELD, is_rewritten, values_in
from stillgraph.core.weak_cache import weakly_cached
from stillgraph.operators.methods import method_of
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


def may_wait_in_a_block(iterator: Any) -> bool:
    """Whether a generator behind an iterator, or one that it will make, may come to wait in a ``try`` or ``with``."""
    return any(map(_may_wait, _behind(iterator)))


def is_followed(generator: GeneratorType[Any, Any, Any]) -> bool:
    """Whether a generator is interpreted, so that the capture is told when it is closed."""
    return is_rewritten(generator.gi_code)


def _may_wait(value: Any) -> bool:
    if not isinstance(value, GeneratorType):  # the other iterators are there already
        return not isinstance(value, Iterator) and method_of(value, "__iter__") is not None
    if not is_followed(value):
        return is_users(value.gi_code.co_filename)  # whatever generators it makes, nobody is told of these
    held = None if value.gi_frame is None else value.gi_frame.f_locals.get(HELD)
    return held is not None and _yields_in_a_block(held.code)


def _waiting_in_a_block(iterator: Any) -> Iterator[GeneratorType[Any, Any, Any]]:
    """The generators behind an iterator that wait in a block which Python has to leave when they are closed."""
    for each in _behind(iterator):
        if not isinstance(each, GeneratorType) or each.gi_frame is None or not each.gi_suspended:
            continue
        frame = each.gi_frame
        held = frame.f_locals.get(HELD)
        in_block = held.waits_in_block if held is not None else _is_in_block(frame.f_code, frame.f_lasti)
        if in_block and not is_ours(frame.f_code.co_filename):
            yield each


def _behind(iterator: Any) -> Iterator[Any]:
    """An iterator, those that it draws from, and what iterators of Python's will run over (``chain``, ``zip``)."""
    seen: set[int] = set()
    waiting = deque([iterator])
    while waiting and len(seen) < _MOST:
        each = waiting.popleft()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if not isinstance(each, Iterator):
            continue
        referred = gc.get_referents(each)
        if type(each).__module__ in ("builtins", "itertools") and not isinstance(each, GeneratorType):
            waiting += referred
            waiting += (part for several in referred if type(several) in (tuple, list) for part in several)
            continue
        if isinstance(each, GeneratorType) and each.gi_frame is not None:
            referred += values_in(each.gi_frame)
        referred += (own_attributes(each) or {}).values()
        waiting += (value for value in referred if isinstance(value, Iterator))  # it need not run over the others


@weakly_cached
def _yields_in_a_block(code: CodeType) -> bool:
    """Whether a generator yields in a ``try`` or ``with`` of the user's."""
    if is_ours(code.co_filename):
        return False
    return any(_is_in_block(code, each.offset) for each in dis.get_instructions(code) if each.opname == "YIELD_VALUE")


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
