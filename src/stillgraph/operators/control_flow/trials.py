"""Code that is run to find out what it comes to, before it is known whether it will be run: has it done anything?"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.passes.regions.purity import is_pure
from stillgraph.trace.capture.session import Session
from stillgraph.trace.heap.places import MISSING, PassingPlace


def only_computed(capture: Session, function: Callable[[], Any]) -> Any:
    """What a function gives; `MISSING` if it does anything that other code would find, or anybody see."""
    context = Context(capture, [], [])
    start, trial = context.checkpoint(), Trial(context)
    result = function()
    is_seen = trial.has_done_something() or not all(map(is_pure, capture.region.since(start.region)))
    return MISSING if is_seen else result


class Trial:
    """Tells whether code has done something since, but for the nodes that it has recorded.

    Args:
        context: the capture, and the variables that the code may assign; what its expressions hold is left out.
    """

    def __init__(self, context: Context) -> None:
        places = (*context.keeps, *context.drops)
        self._capture = context.session
        self._variables = [place for place in places if not isinstance(place, PassingPlace)]
        self._done, self._held = self._now()

    def _now(self) -> tuple[tuple[int, ...], list[Any]]:
        """What is another once something is done: counts, and what the variables hold."""
        capture = self._capture
        counts = capture.journal.mark, len(capture.iterators.advances), capture.raises
        return counts, [place.get() for place in self._variables]

    def has_done_something(self) -> bool:
        """Whether it has written, advanced an iterator or recorded what may raise."""
        done, held = self._now()
        return done != self._done or not all(map(operator.is_, held, self._held))
