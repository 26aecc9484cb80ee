"""Functions with a cache: what the cache holds outlives the call, so it is real, and found again by asking for it."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

from stillgraph.core.cached_calls import held_for
from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.purity import is_pure
from stillgraph.program.sources import Called, Held, Source
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.current import can_step_out, stepping_out
from stillgraph.trace.heap.journal import Write
from stillgraph.trace.heap.places import AttributePlace, CellPlace, ContentsPlace, GlobalPlace
from stillgraph.trace.values.numbers import Staged

_CONSTANTS = (
    *(int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, enum.Enum),
    *(type, FunctionType, ModuleType),
)


def held_result(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What the cache of a function holds for a call, in a tuple, for which Python runs no code. None: it holds nothing.

    A guard asks that it still does.
    """
    given = (*args, *kwargs.values())
    if not _is_known(capture, function, given):
        return None
    if None in _found(capture, given)[1]:
        return None
    try:
        value = held_for(function, args, kwargs)
    except (LookupError, TypeError):  # an argument without a hash: the call raises that
        return None
    if _has_staged(value):
        return None
    return _kept(capture, function, args, kwargs, value, functools.partial(_held_again, function, *args, **kwargs))


def _held_again(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What the cache holds, by a call that counts as one.

    Raises:
        LookupError: it holds nothing any more. The guard that asks does not hold, and runs no code of the function's.
    """
    held_for(function, args, kwargs)
    return function(*args, **kwargs)


def _kept(
    capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any, asking: Any
) -> tuple[Any]:
    """Guard what a function with a cache gives: ``asking`` gives it to the guard."""
    others, sources = _found(capture, (*args, *kwargs.values()))
    capture.reads.same.extend((source, other) for source, other in zip(sources, others) if source is not None)
    asking = capture.knowledge.asking.setdefault(_key(function, args, kwargs), asking)
    source = Called(Held(getattr(function, "__name__", "cached"), asking))
    capture.finder.add(value, source)
    capture.reads.same.append((source, value))
    return (value,)


def call_cached(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What a function with a cache gives, in a tuple; None where the cache cannot be asked.

    With arguments that are there before the run the function is called as it is, outside the capture: what it makes is
    what the next call gets. The program asks again, and gets the same for as long as the cache holds it.
    """
    given = (*args, *kwargs.values())
    if not _is_known(capture, function, given) or not can_step_out(capture):
        return None
    if None in _found(capture, given)[1]:
        return None
    if any(_has_staged(write.place.get()) for write in _outer_writes(capture)):
        message = "a function with a cache is called behind a write of what only the run knows"
        raise refuse("SG305", message, location=here(), hint="Call it before, or keep what it gives.")
    misses = function.cache_info().misses
    with stepping_out(capture):
        value = function(*args, **kwargs)
    if function.cache_info().misses > misses and _has_staged(value):  # what was there, the code may have written to
        function.cache_clear()
        raise refuse("SG305", "a function with a cache reads what only the run knows", location=here())
    return _kept(capture, function, args, kwargs, value, functools.partial(function, *args, **kwargs))


def refuse_counts(method: Any) -> None:
    """Refuse to ask a function with a cache how often it has been called: a capture puts nothing into the cache.

    Raises:
        CaptureError: it is asked.
    """
    if isinstance(method.__self__, functools._lru_cache_wrapper) and method.__name__ == "cache_info":
        message = "a function with a cache is asked for its counts, but no program puts anything into the cache"
        raise refuse("SG305", message, location=here(), hint="Ask it outside the static function.")


def can_be_asked(function: Any, given: tuple[Any, ...]) -> bool:
    """Whether a program may ask a function with a cache, instead of ending at its call.

    Args:
        function: what is called.
        given: its arguments, those by keyword as well.
    """
    capture = session()
    if capture is None or function in capture.knowledge.cached or _has_done(capture):
        return False
    if not _is_known(capture, function, given) or None in _found(capture, given)[1]:
        return False
    most = function.cache_parameters()["maxsize"]  # what a full cache has dropped would be another object in each call
    return most is None or function.cache_info().currsize < most or function in capture.knowledge.quiet


def _has_done(capture: Session) -> bool:
    """Whether the program does anything before the call: the guard would ask before that, and be told otherwise."""
    nodes = (node for node in capture.region.graph.nodes if node.op.startswith("call_"))
    return any(True for _ in _outer_writes(capture)) or not all(map(is_pure, nodes))


def _outer_writes(capture: Session) -> Iterator[Write]:
    """What the capture has written to what was there before the call."""
    return (write for write in capture.journal.written(0).values() if _was_there(capture, write.place))


def require_no_writes(capture: Session, function: Any, mark: int) -> None:
    """To be called behind the body of a function with a cache.

    Args:
        capture: the capture.
        function: what has been called.
        mark: the journal's, from before.

    Raises:
        Restart: it has written to what was there before the call, which each call of it does that misses the cache.
    """
    places = [write.place for write in capture.journal.written(mark).values()]
    if any(_was_there(capture, each) for each in places):
        raise Restart("cached", function)


def _was_there(capture: Session, place: Any) -> bool:
    if isinstance(place, (CellPlace, AttributePlace, ContentsPlace)):
        return capture.is_outer(place.cell if isinstance(place, CellPlace) else place.target)
    return isinstance(place, GlobalPlace)


def _is_known(capture: Session, function: Any, given: tuple[Any, ...]) -> bool:
    return capture.finder.find(function) is not None and not _has_staged(given)


def _found(capture: Session, given: tuple[Any, ...]) -> tuple[list[Any], list[Source | None]]:
    """The arguments that are no constants, and where the next call finds them."""
    others = [value for value in given if not _is_constant(value)]
    return others, [capture.finder.find_owner(value) for value in others]


def _key(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return id(function), functools._make_key(args, kwargs, typed=True)


def _has_staged(value: Any) -> bool:
    return any(isinstance(leaf, Staged) or is_fake(leaf) for leaf in torch.utils._pytree.tree_leaves(value))


def _is_constant(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_constant, value))
    return isinstance(value, _CONSTANTS)
