"""The arguments of a call that stand behind ``*`` and ``**``."""

from __future__ import annotations

import functools
from typing import Any

from stillgraph.operators.calls.binding import NamedAs
from stillgraph.operators.calls.calls import call
from stillgraph.operators.calls.some_keywords import has_some
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import called
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.values.entries import MaybeKey, MaybeName, container_of, some_keys, table_of


def calling(function: Any) -> Any:
    """What is called with ``*`` or ``**`` for a function: what is wrong with these, Python says with its name."""
    return function if session() is None else NamedAs(function, functools.partial(call, function))


def keywords(given: Any) -> Any:
    """What stands behind ``**`` in a call; a key that may be missing is a `MaybeName`.

    Raises:
        CaptureError: nobody knows which keys there may be, or in which order.
    """
    if session() is None or container_of(given) is None:
        return given
    if table_of(given) is None and all(map(_may_be_name, given)):
        return {MaybeName.of(key) if type(key) is MaybeKey else key: value for key, value in given.items()}
    message = f"only the run knows which keywords a call has: they are those of {called(given)}, {some_keys(given)}"
    hint = "Give the dict its keys before the branch, with the values that the function has for them by default."
    raise refuse_unknown("SG211", message, given, hint=hint)


def _may_be_name(key: Any) -> bool:
    """Whether a key may name a keyword; one that may be missing has to have its place among the others."""
    return type(key) is not MaybeKey or (key.rank is None and isinstance(key.key, str))


def received(given: dict[str, Any]) -> dict[Any, Any]:
    """What a function finds in its ``**kwargs``: a keyword that a call may have is a key that may be missing."""
    if session() is None or not has_some(given):
        return given
    return {MaybeKey(str(key), key.present) if type(key) is MaybeName else key: value for key, value in given.items()}
