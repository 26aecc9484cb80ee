"""Python code that the run calls as it is: it finds what the function has written, and is not read behind its back.

What the function has written by then is written by the program too, before the call (`operations.settle`). What the
call may change is known to the run alone: it is stale from then on, and whoever looks at it is refused.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.effects import ExtendContents
from stillgraph.program.operations import settle
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.hook_reads import all_hooks_of_modules, global_hooks_of_autograd
from stillgraph.trace.control_flow.joined.stale import STALE_HINT, Stale, stale_message
from stillgraph.trace.effects.escapes import reach_of
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session


class Settling:
    """Keeps account of what such code may have changed.

    Attributes:
        attributes: the attributes and variables, by their keys, each with what it held; they hold a `Stale` value.
        changed: keys of all places that such code may change: what is written there counts, if only what was there.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.attributes: dict[Hashable, tuple[Place, Any]] = {}
        self.changed: set[Hashable] = set()

    @contextlib.contextmanager
    def around(self, handed: Iterable[Any], what: str, changed: Iterable[Place]) -> Iterator[None]:
        """As `Recorder.calling_python`."""
        with self._session.executed.paused():  # each is walked for itself: what one reads is not what another changes
            reaches = [reach_of([each]) for each in handed]
        outcome = [write.place for write in self._session.journal.outcome()]
        written = {place.key for place in outcome if not isinstance(place.get(), Stale)}
        places = [*changed, *(place for reach in reaches for place in reach.changed())]
        self.changed.update(place.key for place in places)
        iterators = [each for reach in reaches for each in reach.iterators]
        keys = {place.key for place in places}.union(*(reach.places.keys() for reach in reaches))
        keys |= self._session.iterators.outside.keys(iterators)
        if not written.isdisjoint(keys):
            self._settle(written & keys if self._session.in_arm else written)
        yield
        self._has_changed(places, written, what)
        changed = (each for reach in reaches if reach.mutates for each in reach.memory)
        for value in itertools.chain(changed, iterators):
            self._session.stale[id(value)] = value, what

    def _settle(self, keys: set[Hashable]) -> None:
        session = self._session
        effects, values = session.effects_so_far(keys)
        if not effects:
            return
        if session.in_arm and any(isinstance(effect, ExtendContents) for effect in effects):
            message = "a list gets elements in a branch or loop, and code that is called there may look at it"
            raise refuse("SG305", message, location=here(), hint="Do one of the two outside.")
        session.midway.append(tuple(effects))
        session.emit("call_function", settle, (len(session.midway) - 1, values), {})
        for write in session.journal.outcome():
            if write.place.key in keys:
                session.journal.settle(write.place, certain=not session.in_arm)

    def _has_changed(self, places: list[Place], written: set[Hashable], what: str) -> None:
        for place in places:
            if place.key in written and self._session.in_arm:
                message = f"{place} is written, and {what} in a branch or loop may change it"
                raise refuse("SG305", message, location=here(), hint="Do both on the same path.")
            if isinstance(place, ContentsPlace):
                self._session.stale[id(place.target)] = place.target, what
            elif self._outlives(place) and not isinstance(place.get(), Stale):
                self.attributes[place.key] = place, place.get()
                self._session.journal.write(place, Stale(str(place), what))
                self._session.journal.take_up(place)

    def _outlives(self, place: Place) -> bool:
        """Whether the journal puts a place back. What the capture does not know, the code cannot lead to either."""
        target = place.target if isinstance(place, AttributePlace) else None
        return target is None or isinstance(target, (torch.nn.Module, type)) or self._session.is_outer(target)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Let attributes and variables hold something in the body, for code that the run calls anew."""
        stale = [(place, place.get()) for place, _ in self.attributes.values() if isinstance(place.get(), Stale)]
        for place, _ in stale:
            place.set(self.attributes[place.key][1])
        try:
            yield
        finally:
            for place, value in stale:
                place.set(value)

    def put_back(self) -> None:
        """Let nothing be stale any more that an arm, undone and resumed, has left so."""
        for place, before in self.attributes.values():
            if isinstance(place.get(), Stale):
                place.set(before)

    def clears(self, function: Any) -> bool:
        """Told of a call: a container that is emptied is known from then on; whether it was stale."""
        container = getattr(function, "__self__", None)
        if getattr(function, "__name__", "") != "clear" or self._session.in_arm:
            return False
        if self._session.stale.pop(id(container), None) is None:
            return False
        self._session.journal.take_up(ContentsPlace(container))
        return True

    def require_current(self, container: Any) -> None:
        """To be called before the contents of a container are looked at or changed.

        Raises:
            CaptureError: they may have been changed by then.
        """
        known = self._session.stale.get(id(container))
        if known is not None:
            source = self._session.finder.find(container)
            message = stale_message(f"a {type(container).__name__}" if source is None else str(source), known[1])
            raise refuse("SG305", message, location=here(), hint=STALE_HINT)


def callbacks_of_autograd(session: Session) -> list[Any]:
    """What a backward pass may call: hooks of tensors and modules, and ``backward`` of what was applied."""
    found: list[Any] = [*session.hooked.called, *session.functions, *global_hooks_of_autograd()]
    for real, _ in session.fakes.by_real.values():
        for table in (real._backward_hooks, getattr(real, "_post_accumulate_grad_hooks", None)):
            found += (table or {}).values()
    return found + list(all_hooks_of_modules(value for value, _ in session.finder.everything()))
