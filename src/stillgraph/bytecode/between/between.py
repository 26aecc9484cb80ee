"""From the end of a program to the beginning of the next: by a route where calls have gone that way, else by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stillgraph.bytecode.between.resuming import Astray, Hand, rethrow, run_on
from stillgraph.bytecode.between.route_writing import ENDED, RAISED, THERE, Unsupported
from stillgraph.bytecode.between.routes import Route, route_of
from stillgraph.bytecode.between.way import Done, Ending
from stillgraph.bytecode.segments.breaks import Breaks
from stillgraph.bytecode.segments.layouts import Layout, restored, suspended
from stillgraph.core.tracebacks import let_go_behind


@dataclass(frozen=True)
class Following:
    """With what a call goes on: a layout and the values for it; or what it gives, where it came to its end."""

    layout: Layout | None
    values: list[Any]
    result: Any = None


class Listener(Protocol):
    """Is told of what is new between two programs."""

    def compiled(self, layout: Layout, why_not: str | None) -> None:
        """A route was made; or none can be."""

    def fails(self, error: Exception) -> None:
        """Making one has failed."""


def _suspended(hand: Hand) -> Following:
    try:
        layout, values = suspended(hand.frames)
        for number, value in enumerate(values):
            if isinstance(value, BaseException):
                let_go_behind(values[number])
            del value
        return Following(layout, values)
    except Exception as error:  # of any kind: nothing of the user's is carried out for this
        raise Astray(error) from None


@dataclass
class Between:
    """What Python does behind a program that has ended with a layout.

    Attributes:
        layout: how the frames are there.
        breaks: which instructions are Python's.
        listener: told of what is new.
        followed: the layouts that calls went on with (None: the end of the call), and what Python has done that counts.
        route: the way that calls take.
        ending: how one has come to its end, if any has; by an exception only as long as none returned.
    """

    layout: Layout
    breaks: Breaks
    listener: Listener
    followed: dict[Layout | None, tuple[Done, ...]] = field(default_factory=dict)
    route: Route | None = None
    ending: Ending | None = None
    _tried: bool = False

    def go(self, values: list[Any]) -> Following:
        """Go on, given what the program has handed out, out of its parcels; nothing but the frames holds it then."""
        route = self.route
        if route is None:
            frames = restored(self.layout, [*values])
            values.clear()
            return self._by_hand(Hand(frames, self.breaks), begun=False)
        kind, *found = route.run(values)
        if kind == THERE:
            return Following(route.target, found)
        if kind == ENDED:
            return Following(None, [], found[0])
        place = route.places[found[0]]
        frames = restored(place.layout, place.values(found[1]))
        found[1].clear()
        if kind == RAISED:
            error: BaseException = found.pop()
            try:
                rethrow(frames, error)
            finally:
                del error, found  # its traceback leads here
        return self._by_hand(Hand(frames, self.breaks), begun=True)

    def _by_hand(self, hand: Hand, begun: bool) -> Following:
        functions = [frame.function for frame in hand.frames]
        try:
            ended = hand.go_on() if begun else hand.go()
            following = _suspended(hand) if ended is None else Following(None, [], ended[0])
        except Astray as astray:
            error = astray.error
        except Exception:  # of any kind: it is noted how the call has ended, and goes on its way
            if not begun and self.ending is None and hand.frames:
                innermost = hand.frames[-1]
                self.ending = Ending(tuple(hand.way), tuple(hand.done), (innermost.code, innermost.next))
            raise
        else:
            hand.frames.clear()
            if not begun:
                self._note(hand, functions, following.layout)
            elif following.layout not in self.followed:  # of which the route has done the beginning
                self.followed = {**self.followed, following.layout: tuple(hand.done)}
            return following
        self.listener.fails(error)  # outside of the handler: it is no context of what the call raises
        del error
        return Following(None, [], run_on(hand.frames))

    def _note(self, hand: Hand, functions: Sequence[Any], target: Layout | None) -> None:
        """Remember the way; one that is taken again becomes a route."""
        if target is None and (self.ending is None or self.ending.raised is not None):
            self.ending = Ending(tuple(hand.way), tuple(hand.done))
        if target not in self.followed:
            self.followed = {**self.followed, target: tuple(hand.done)}
        elif not self._tried:
            self._tried = True
            try:
                self.route = route_of(self.layout, functions, hand.way, target)
            except Unsupported as error:
                self.listener.compiled(self.layout, str(error))
            except Exception as error:  # of any kind: the steps are done by hand, then
                self.listener.fails(error)
            else:
                self.listener.compiled(self.layout, None)
