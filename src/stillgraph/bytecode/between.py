"""From the end of a program to the beginning of the next: by a route where calls have gone that way, else by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stillgraph.bytecode.resuming import Done, Hand, rethrow
from stillgraph.bytecode.routes import ENDED, RAISED, THERE, Route, Unsupported, route_of
from stillgraph.bytecode.segments import Breaks, Layout, restored, suspended
from stillgraph.core.parcel import opened


@dataclass(frozen=True)
class Following:
    """With what a call goes on: a layout and the values for it; or what it gives, where it came to its end."""

    layout: Layout | None
    values: Sequence[Any]
    result: Any = None


@dataclass
class Between:
    """What Python does behind a program that has ended with a layout.

    Attributes:
        layout: how the frames are there.
        breaks: which instructions are Python's.
        followed: the layouts that calls went on with (None: the end of the call), and what Python has done that counts.
        route: the way that calls take.
    """

    layout: Layout
    breaks: Breaks
    followed: dict[Layout | None, tuple[Done, ...]] = field(default_factory=dict)
    route: Route | None = None
    _tried: bool = False

    def go(self, values: Sequence[Any]) -> Following:
        """Go on, given the values that the program has handed out."""
        route = self.route
        if route is None:
            return self._by_hand(Hand(restored(self.layout, list(map(opened, values))), self.breaks), begun=False)
        kind, *found = route.run(values)
        if kind == THERE:
            return Following(route.target, found)
        if kind == ENDED:
            return Following(None, (), found[0])
        place = route.places[found[0]]
        frames = restored(place.layout, place.values(found[1]))
        if kind == RAISED:
            error: BaseException = found.pop()
            try:
                rethrow(frames, error)
            finally:
                del error, found  # its traceback leads here
        return self._by_hand(Hand(frames, self.breaks), begun=True)

    def _by_hand(self, hand: Hand, begun: bool) -> Following:
        functions = [frame.function for frame in hand.frames]
        ended = hand.go_on() if begun else hand.go()
        if ended is not None:
            following = Following(None, (), ended[0])
        else:
            layout, found = suspended(hand.frames)
            following = Following(layout, found)
        if not begun:
            self._note(hand, functions, following.layout)
        return following

    def _note(self, hand: Hand, functions: Sequence[Any], target: Layout | None) -> None:
        """Remember the way; one that is taken again becomes a route."""
        if target not in self.followed:
            self.followed = {**self.followed, target: tuple(hand.done)}
        elif not self._tried:
            self._tried = True
            try:
                self.route = route_of(self.layout, functions, hand.way, target)
            except Unsupported:
                self.route = None
