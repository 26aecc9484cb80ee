"""Keeps account, operation by operation, of what the call has written to Python's objects by then.

A program writes when it is done. Where an operation fails in the run, what eager PyTorch has written before it must be
written all the same: so each node knows the effects until then (`program.so_far`). Nothing is added to the graph for
that: a value that no region knows is left out, and so is what could not be stored. Who gets the error is told of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.core.diagnostics import Refusal
from stillgraph.program.effects import Effect
from stillgraph.program.graphs import regions
from stillgraph.program.outputs import Same, Template
from stillgraph.program.so_far import SoFar, so_far_at
from stillgraph.trace.capture.results import Results
from stillgraph.trace.capture.written_effects import WrittenEffects
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.contents import is_same
from stillgraph.trace.heap.journal import Write
from stillgraph.trace.heap.places import AttributePlace, Place

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session

_MOST = 50_000
"""How many parts of effects are built in one attempt: a loop of a thousand appends would build a million. What is
written behind that is not accounted for."""
_MANY = SoFar(None, (), ("what it writes is more than an account is kept of",))


class _NotKnown(Exception):
    """A value has no node yet."""


class _Sketch(Results):
    """Results whose outputs are places of nodes: how many regions further out, and the name there."""

    def node(self, value: Any) -> Any:
        region: Region | None = self.session.region
        hops = 0
        while region is not None:
            found = region.find(value)
            if found is not None:
                return hops, found.name
            region, hops = region.parent, hops + 1
        raise _NotKnown

    def unset_flag(self, leaf: Any) -> Any:
        """As `Results.unset_flag`, if that was asked before."""
        flag = self.session.asked_unboundness(leaf)
        if flag is None:
            raise _NotKnown
        return flag

    def template(self, value: Any) -> Template:
        """A tensor that was there before, and of which the program knows nothing, is found again where it was."""
        if isinstance(value, torch.Tensor) and not self.session.root.holds(value):
            source = self.finder.find(value)
            if source is not None:
                return Same(source)
        return super().template(value)


class Account:
    """The account of one attempt at a capture."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._effects: list[tuple[Effect, ...]] = []
        self._stamp: tuple[int, Region | None] = (0, None)
        self._recent: dict[Hashable, tuple[Place, Any]] = {}  # what was written last, and what it held when looked at
        self._read = 0  # how much of the journal was looked at
        self._last: SoFar | None = None
        self._spent = 0

    def now(self) -> SoFar | None:
        """What has been written by now, for the operation that is recorded next."""
        journal = self._session.journal
        if journal.version == 0:
            return None
        if self._spent > _MOST:
            return _MANY
        stamp = (journal.version, self._session.region)
        if stamp != self._stamp:
            written, self._read = journal.written(min(self._read, journal.mark)), journal.mark
            self._recent = {key: (write.place, None) for key, write in written.items()} or self._recent
        elif all(is_same(place.get(), value) for place, value in self._recent.values()):
            return self._last
        self._stamp = stamp
        self._recent = {key: (place, place.get()) for key, (place, _) in self._recent.items()}
        with self._session.executed.paused():
            self._last = self._taken()
        return self._last

    def _taken(self) -> SoFar | None:
        outcome = self._session.journal.outcome()
        written = [write for write in outcome if not _runs_code(write.place)]
        self._spent += sum(_size(write.place) for write in written) + 1
        with torch._C.DisableTorchFunction():
            sketch = self._sketched(written)
            if sketch is None:
                written = [write for write in written if self._sketched([write]) is not None]
                sketch = self._sketched(written)
        known = {write.place.key for write in written}
        left_out = tuple(str(write.place) for write in outcome if write.place.key not in known)
        effects, values = sketch or ([], ())
        if not effects:
            return SoFar(None, (), left_out) if left_out else None
        self._effects.append(tuple(effects))
        return SoFar(len(self._effects) - 1, tuple(values), left_out)

    def _sketched(self, written: list[Write]) -> tuple[list[Effect], Sequence[Any]] | None:
        """The effects of some writes and the places of their values; None if these are not all known."""
        sketch = _Sketch(self._session, self._session.finder)
        try:
            made = WrittenEffects(self._session, self._session.finder, sketch)
            return made.of(written, self._session.outer_cells), sketch.outputs
        except (Refusal, _NotKnown):
            return None

    def forget(self) -> None:
        """Let go of what was written: the attempt is over."""
        self._stamp, self._recent, self._last = (0, None), {}, None
        self._effects = []

    def effects(self, graph: fx.GraphModule) -> tuple[tuple[Effect, ...], ...]:
        """What the nodes of the finished graph refer to, by its index; the rest is of attempts that were dropped."""
        used = {noted.index for noted in _noted(graph)}
        kept = tuple(effects if index in used else () for index, effects in enumerate(self._effects))
        return (kept or ((),)) if used else ()


def _noted(graph: fx.GraphModule) -> Iterable[SoFar]:
    found = (so_far_at(node) for region in regions(graph) for node in region.graph.nodes)
    return (noted for noted in found if noted is not None)


def _size(place: Place) -> int:
    value = place.get()
    return 1 + len(value) if isinstance(value, (list, tuple, dict, set)) else 1


def _runs_code(place: Place) -> bool:
    """Whether looking at a place runs code of the user's."""
    return isinstance(place, AttributePlace) and place.is_computed
