"""Calls of functions with a cache."""

from __future__ import annotations

from typing import Any

from stillgraph.core.diagnostics import CaptureError
from stillgraph.operators.dispatch import call
from stillgraph.operators.outside import acts, caches
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.signals import Restart


def call_cached(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function with ``lru_cache``: nothing of a capture may stay in the user's cache."""
    held = caches.held_result(capture, function, args, kwargs)
    if held is not None:
        return held[0]
    if function in capture.knowledge.cached:
        return acts.call_cached(capture, function, args, kwargs)
    asked = not capture.in_arm and capture.finder.find(function) is not None
    if asked and function in capture.knowledge.quiet:
        cached = caches.call_cached(capture, function, args, kwargs)
        if cached is not None:
            return cached[0]
        asked = False
    capture.side_effects.cached_calls.append(function)
    mark = capture.journal.mark
    try:
        value = call(function.__wrapped__, *args, **kwargs)
        caches.require_no_writes(capture, function, mark)
    except CaptureError:
        if not asked:
            raise
    finally:
        capture.side_effects.cached_calls.pop()
    if asked:  # it has done nothing outside that would have to be done by the program
        raise Restart("quiet", function)
    return value
