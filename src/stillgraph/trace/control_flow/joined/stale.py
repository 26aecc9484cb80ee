"""Values that other code, or another name, may have changed where only the run knows: nothing can be done with them."""

from __future__ import annotations

from typing import Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.list_contents import is_outdated


class Stale(Unjoined):
    """What other code may have changed, where only the run knows: nothing can be done with it."""

    def __init__(self, place: str, what: str, hint: str | None = None) -> None:
        failure = JoinFailure("SG305", stale_message(place, what), hint or STALE_HINT)
        super().__init__(None, MISSING, MISSING, place, failure)

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise the error that says why.

        Raises:
            CaptureError: always.
        """
        failure = alternatives(self).failure
        raise refuse("SG305", failure.message, location=here(), hint=failure.hint)


def is_stale(value: Any) -> bool:
    """Whether other code, or another name, may have changed a value, or the list that it is."""
    return isinstance(value, Stale) or is_outdated(value)


STALE_HINT = "Read it before, or after the call, outside the static function."


def stale_message(place: str, what: str) -> str:
    """What is said of a place that is read too late."""
    return f"{place} is used after {what}, which may have changed it"
