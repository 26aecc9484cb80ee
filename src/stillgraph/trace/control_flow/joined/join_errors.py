"""Errors for places without a join: their messages and hints, and the names of places in messages."""

from __future__ import annotations

import re

from stillgraph.core.diagnostics import CaptureError, refusal, refuse
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here, name_of
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place

ON_STACK = "a value on the stack"
"""The name of a place that code has no name for."""


def refuse_join(place: str, failure: JoinFailure) -> BaseException:
    """The error for a place whose two values have no join."""
    if failure.place is not None and not is_nameless(failure.place):
        place = failure.place
    message = f"{failure.message.removesuffix('.')} (in {quoted(place)})"
    return refuse(failure.code, message, location=here(), hint=_hint(place, failure), sides=failure.sides)


def named(place: Place) -> str:
    """A place by the variables of the function that is being run, where they lead to it."""
    if isinstance(place, (AttributePlace, ContentsPlace)):
        name = name_of(place.target)
        if name is not None:
            return f"{name}.{place.name}" if isinstance(place, AttributePlace) else name
    return str(place)


def is_result(place: str) -> bool:
    """Whether a place is what a block gives: of a function, of a conditional expression."""
    return place == "the result" or place.startswith("return")


def is_nameless(place: str) -> bool:
    """Whether code has no name for a place."""
    return is_result(place) or place.startswith(ON_STACK)


def quoted(place: str) -> str:
    """A place as messages name it."""
    if is_result(place):
        return f"the result{place.removeprefix('return').removeprefix('.value').removeprefix('the result')}"
    nameless = re.fullmatch(r"an? (\w+)", place)
    if nameless is not None:
        return f"the {nameless[1]}"
    argument = re.fullmatch(r"\['(\w+)'\](.*)", place)  # of a function that calls itself
    return f"'{place}'" if argument is None else f"'{argument[1]}{argument[2]}'"


_ON_PATHS = {
    "SG201": "Give {place} the same number of dimensions on both paths (unsqueeze, reshape, keepdim=True), or return "
    "from each path.",
    "SG202": "Convert {place} on one of the paths with .to(...), so that both have the same dtype and device.",
    "SG203": "Give {place} the same kind of value on both paths, or use a name of its own for each.",
    "SG204": "Set {place} before the branch or loop, if only to None.",
}
_IN_LOOPS = {
    "SG201": "Give {place} its final number of dimensions before the loop (with unsqueeze or reshape).",
    "SG202": "Give {place} its final dtype and device before the loop, with .to(...).",
    "SG205": "Give {place} a value of its final kind before the loop, or collect the values in a list with append.",
    "SG203": "Give {place} a value of the same kind before the loop as after an iteration; collect what grows in a "
    "list with append.",
}

_ONE_NAME = "Make a copy for one of the two names, or use one name for both."


def _hint(place: str, failure: JoinFailure) -> str | None:
    text = failure.hint or (_IN_LOOPS if failure.in_loop else _ON_PATHS).get(failure.code)
    return None if text is None else text.format(place=quoted(place))


def refuse_loop(failure: JoinFailure) -> CaptureError:
    """The error for what a loop carries and one kind of value does not cover."""
    place = failure.place or ""
    message = failure.message.removesuffix(".")
    if place and quoted(place) not in message:
        message = f"{message} (in {quoted(place)})"
    hint = _hint(place, failure) if place else _ONE_NAME if failure.code == "SG203" else None
    return refusal(failure.code, message, location=here(), hint=hint, sides=failure.sides)
