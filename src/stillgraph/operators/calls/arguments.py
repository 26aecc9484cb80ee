"""The arguments of a call that stand behind ``*`` and ``**``."""

from __future__ import annotations

import functools
from typing import Any

from stillgraph.operators.calls.binding import NamedAs
from stillgraph.operators.calls.calls import call
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import called
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.values.entries import container_of, some_keys


def calling(function: Any) -> Any:
    """What is called with ``*`` or ``**`` for a function: what is wrong with these, Python says with its name."""
    return function if session() is None else NamedAs(function, functools.partial(call, function))


def keywords(given: Any) -> Any:
    """What stands behind ``**`` in a call."""
    if session() is not None and container_of(given) is not None:
        message = f"only the run knows which keywords a call has: they are those of {called(given)}, {some_keys(given)}"
        hint = "Give the dict its keys before the branch, with the values that the function has for them by default."
        raise refuse_unknown("SG211", message, given, hint=hint)
    return given
