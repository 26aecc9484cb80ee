"""Where only the run knows whether something that draws from an iterator stops before its end.

The capture draws all the items, each in an arm for when the run comes to it. What Python does with the iterator itself
is not in any arm: how far it has been advanced, and what generators clean up when they are left.
"""

from __future__ import annotations

import dis
import gc
import itertools
from collections import deque
from collections.abc import Iterator
from types import BuiltinMethodType, CodeType, FunctionType, GeneratorType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_ours, is_users
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.core.rewritten import HELD, is_rewritten
from stillgraph.operators.conditions.methods import method_of
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.effects.iterators import behind
from stillgraph.trace.guards.allocations import writes_outside


def before_stop(capture: Session, iterator: Any) -> None:
    """To be called where only the run knows whether a loop, or ``any`` or ``all``, stops drawing from an iterator.

    Raises:
        Restart: what is drawn binds variables unseen, and another front end would follow that.
        CaptureError: nobody would; or drawing calls a method of the user's that nobody follows; or a generator waits
            in a ``try`` or ``with``.
    """
    _require_nothing_to_clean_up(iterator)
    drawn_from = list(behind(iterator))
    if any(map(capture.iterators.binds_unseen, drawn_from)):
        capture.unseen.follow_all()
        message = "only the run knows how many elements are drawn from a generator expression that binds variables"
        raise refuse("SG305", message, location=here(), hint="Write a for loop.")
    if any(map(_changes_unseen, drawn_from)):
        message = "only the run knows how often something is done that drawing from an iterator does"
        raise refuse("SG305", message, location=here(), hint="Do it in the loop itself.")
    if any(map(_calls_unseen, drawn_from)):
        message = "only the run knows how often a method '__next__' is called that Python itself calls"
        raise refuse("SG305", message, location=here(), hint="Loop over the object itself.")
    capture.iterators.stopped(drawn_from)


def _changes_unseen(iterator: Any) -> bool:
    """Whether drawing writes variables of a function around, or calls a method of a container: no arm knows of that."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        held = None if frame is None else frame.f_locals.get(HELD)
        code = iterator.gi_code if held is None else held.code
        return not is_ours(code.co_filename) and writes_outside(code)
    if not isinstance(iterator, _CALLING):
        return False
    called = gc.get_referents(iterator)
    if any(isinstance(each, BuiltinMethodType) and isinstance(each.__self__, _CONTAINERS) for each in called):
        return True
    return any(isinstance(each, FunctionType) and writes_outside(each.__code__) for each in called)


_CALLING = (
    *(itertools.accumulate, itertools.dropwhile, itertools.filterfalse),
    *(itertools.groupby, itertools.starmap, itertools.takewhile),
)
_CONTAINERS = (list, dict, set, deque, bytearray)


def _calls_unseen(iterator: Any) -> bool:
    """Whether Python itself, or a generator that it runs, may call a method ``__next__`` to draw from an iterator."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        unseen = frame is not None and HELD not in frame.f_locals and not is_ours(frame.f_code.co_filename)
    else:
        unseen = isinstance(iterator, (enumerate, zip, map, filter)) or type(iterator).__module__ == "itertools"
    return unseen and any(method_of(each, "__next__") is not None for each in behind(iterator))


def _require_nothing_to_clean_up(iterator: Any) -> None:
    """Refuse to go on where a generator waits in a block.

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
    return any(map(_may_wait, behind(iterator)))


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
    for each in behind(iterator):
        if not isinstance(each, GeneratorType) or each.gi_frame is None or not each.gi_suspended:
            continue
        frame = each.gi_frame
        held = frame.f_locals.get(HELD)
        in_block = held.waits_in_block if held is not None else _is_in_block(frame.f_code, frame.f_lasti)
        if in_block and not is_ours(frame.f_code.co_filename):
            yield each


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
    if found is not None and dis.opname[code.co_code[found.target]] == "CLEANUP_THROW":
        return _is_in_block(code, found.target)  # a generator that this one delegates to waits for itself
    return found is not None and not _is_pythons_own(code, found.target)


def _is_pythons_own(code: CodeType, target: int) -> bool:
    """Whether a handler is the one around every generator from Python 3.12 on, for what may not leave it."""
    at = code.co_code
    return dis.opname[at[target]] == "CALL_INTRINSIC_1" and at[target + 1] == _STOPITERATION_ERROR


_STOPITERATION_ERROR = 3
