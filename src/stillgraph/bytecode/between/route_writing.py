"""Writing a route: frames whose values are variables of a generated function, and what has been written of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.segments.layouts import COUNTS, FrameLayout, Layout
from stillgraph.bytecode.segments.lifetimes import is_missed
from stillgraph.core.parcel import Parcel

ENDED, THERE, OTHER, RAISED = range(4)
"""How a route ends."""


@dataclass(frozen=True)
class Place:
    """A place on a route: how the frames are there, and the variables of the route that hold their values."""

    layout: Layout
    names: tuple[str, ...]

    def values(self, variables: dict[str, Any]) -> list[Any]:
        """The frames' values, given the route's variables."""
        return [variables[name] for name in self.names]


class Unsupported(Exception):
    """There is something on the way that no route has."""


@dataclass
class At:
    """A frame of which the values are variables; those that are `COUNTS` "leaving" are in ``leaving``."""

    code: CodeType
    function: str
    globals: dict[str, Any]
    index: int
    slots: dict[int, str]
    stack: list[str | tuple[str, str] | None]
    leaving: frozenset[str] = frozenset()

    def layout(self) -> FrameLayout:
        """As it is, with all of its variables: what is not read any more is still there."""
        return FrameLayout(self.code, self.index, tuple(sorted(self.slots)), tuple(map(self._kind_of, self.stack)), 0)

    def _kind_of(self, name: str | tuple[str, str] | None) -> str:
        if name is None:
            return "null"
        if isinstance(name, tuple):
            return "iteration"
        return "leaving" if name in self.leaving else "value"

    def names(self, slots: Sequence[int] | None = None) -> list[str]:
        """The names of its values, of some of its variables or of all."""
        found = [self.function, *(self.slots[slot] for slot in (sorted(self.slots) if slots is None else slots))]
        for each in self.stack:
            found += [] if each is None else [each] if isinstance(each, str) else each
        return found


@dataclass
class Writer:
    """What has been written of a route.

    Attributes:
        frames: those of the call, as they are behind it.
        lines: of its function.
        namespace: what the lines name.
        places: where it may have to be gone on with by hand.
        known: of variables that hold a constant, which.
        made: how many variables there are.
    """

    frames: list[At]
    lines: list[str] = field(default_factory=list)
    namespace: dict[str, Any] = field(default_factory=lambda: {"Parcel": Parcel})
    places: list[Place] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    made: int = 0

    def constant(self, value: Any) -> str:
        """A name for an object."""
        if value is None or value is True or value is False:
            return repr(value)
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def fresh(self, expression: str) -> str:
        """A new variable."""
        name = f"a{self.made}"
        self.made += 1
        self.lines.append(f"{name} = {expression}")
        return name

    def place(self) -> int:
        """The number of the place where the frames are now."""
        names = tuple([name for frame in self.frames for name in frame.names()])
        self.places.append(Place(tuple([frame.layout() for frame in self.frames]), names))
        return len(self.places) - 1

    def arrive(self, target: Layout) -> list[str]:
        """The names of the values of a layout; other ways are taken where a variable besides holds what is missed.

        Raises:
            Unsupported: the frames are not like that.
        """
        here = self.place()
        names: list[str] = []
        for frame, wanted in zip(self.frames, target):
            own = frame.layout()
            live = prepared(frame.code).flow.live[frame.index]
            dropped = [slot for slot in own.slots if slot not in wanted.slots]
            like = (own.code, own.index, own.stack) == (wanted.code, wanted.index, wanted.stack)
            if not like or wanted.handled or not set(wanted.slots) <= set(own.slots) or not live.isdisjoint(dropped):
                raise Unsupported("the way leads elsewhere")
            for name in (frame.slots[slot] for slot in dropped):
                if name not in self.known:
                    asked = f"{self.constant(is_missed)}({name})"
                    self.lines.append(f"if {asked}: return {OTHER}, {here}, locals()")
            names += frame.names(wanted.slots)
        if len(self.frames) != len(target):
            raise Unsupported("the way leads elsewhere")
        return names

    def act(self, function: str, args: Sequence[str], keywords: str = "{}") -> str:
        """A call at the user's line, below those of the frames that wait."""
        called, given, keywords_given = function, f"({''.join(f'{each}, ' for each in args)})", keywords
        for frame in reversed(self.frames):
            line = FunctionType(prepared(frame.code).line(frame.index, "call"), frame.globals)
            inner = f"({called}, {given}, {keywords_given})"
            called, given, keywords_given = self.constant(line), inner, "{}"
        return f"{called}(*{given})"


def frames_at(layout: Layout, functions: Sequence[FunctionType]) -> list[At]:
    """The frames of a layout, and their functions, with a variable ``v…`` for each of their values in its order.

    Raises:
        Unsupported: an exception is being handled in one of them.
    """
    count = iter(range(1_000_000))
    frames = []
    for each, function in zip(layout, functions):
        if each.handled:
            raise Unsupported("an exception is being handled")
        name = f"v{next(count)}"
        slots = {slot: f"v{next(count)}" for slot in each.slots}
        stack: list[str | tuple[str, str] | None] = []
        for kind in each.stack:
            if kind == "null":
                stack.append(None)
            else:
                first = f"v{next(count)}"
                stack.append(first if COUNTS[kind] == 1 else (first, f"v{next(count)}"))
        leaving = frozenset(str(held) for held, kind in zip(stack, each.stack) if kind == "leaving")
        frames.append(At(each.code, name, function.__globals__, each.index, slots, stack, leaving))
    return frames
