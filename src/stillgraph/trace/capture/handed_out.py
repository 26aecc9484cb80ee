"""What a program hands out, and on which paths: whether one of its results may be a copy of another one."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.identities import AMBIGUOUS
from stillgraph.trace.heap.paths import Paths
from stillgraph.trace.values.containers import held_in
from stillgraph.trace.values.list_contents import is_mutable
from stillgraph.trace.values.lists import StagedSpread


@dataclass
class HandedOut:
    """The objects among the results of a program."""

    session: Recorder
    _made: list[Any] = field(default_factory=list)
    _spreads: list[StagedSpread] = field(default_factory=list)  # the elements of lists of unknown length
    _handed: dict[int, tuple[Any, set[tuple[Paths, ...]]]] = field(default_factory=dict)  # by their ids
    _on: tuple[Paths, ...] = ()

    @contextlib.contextmanager
    def on(self, paths: Paths) -> Iterator[None]:
        """In the body, what is added is handed out only on one of some paths."""
        before = self._on
        self._on = (*before, paths)
        try:
            yield
        finally:
            self._on = before

    def add(self, value: Any) -> None:
        """Hand out an object that the call has made; what is in it is added for itself."""
        self._made.append(value)
        self._note(value)

    def add_again(self, value: Any) -> None:
        """Hand out one that was added, with all that is in it."""
        for each in (value, *held_in(value)):
            if id(each) in self._handed:
                self._note(each)

    def add_given(self, value: Any) -> None:
        """Hand out an object of the caller's."""
        self._note(value)

    def add_spread(self, spread: StagedSpread) -> None:
        """Hand out what stands for the elements of a list."""
        self._spreads.append(spread)
        self._note(spread)

    def _note(self, value: Any) -> None:
        self._handed.setdefault(id(value), (value, set()))[1].add(self._on)

    def refuse_uncertain(self) -> None:
        """Refuse two containers of which only the run knows whether they are one; to be called at the end.

        Raises:
            CaptureError: there are such.
        """
        identities = self.session.identities
        inside = lambda: {id(each): {*map(id, held_in(each))} for each in self._made}  # noqa: E731 - asked for if need be
        found = identities.uncertain(self._handed, inside)
        if found is None:
            several = collections.Counter(id(each) for each in self._spreads if is_mutable(each.element))
            twice = identities.repeated.keys() | {key for key, count in several.items() if count > 1}
            found = next((each for each in self._spreads if id(each) in twice), None)
        outer = None if found is not None else next(filter(self._copies_outer, self._spreads), None)
        if found is None and outer is None:
            return
        identities.before_refusal(outer if found is None else found)
        if outer is not None:
            message = "a result is a list of unknown length, which has a copy of an object from before the call"
        elif id(found) in identities.repeated:
            message = "a result is a list of unknown length, in which one object may be twice"
        elif isinstance(found, StagedSpread):
            message = "two results hold one object, of which a list of unknown length has a copy"
        else:
            message = f"whether two results are one {type(found).__name__}, only the run knows: a loop"
            message = f"{message}, branch or handler makes one of them anew"
        raise refuse("SG305", message, hint=AMBIGUOUS)

    def _copies_outer(self, spread: StagedSpread) -> bool:
        """Whether some elements stand for containers from before the call, which others may hold too."""
        session = self.session  # the collector does not know a dict of numbers or texts alone
        originals = session.identities.originals(spread)
        return any(session.is_new(each) is False or session.is_found(each) for each in originals)
