"""The state of a staged loop: for each place a tree whose leaves are fixed for all iterations, or carried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stillgraph.program.types import Type
from stillgraph.trace.control_flow.joined.elements import View, as_left, refuse_changed
from stillgraph.trace.control_flow.joined.leaves import DEAD, is_empty
from stillgraph.trace.control_flow.joined.optional_parts import OptionalTuple, none_or, optional_tuple
from stillgraph.trace.control_flow.joined.stale import is_stale
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.containers import Parts, split
from stillgraph.trace.values.entries import Entry
from stillgraph.trace.values.key_cover import Cover, alike, is_keyed
from stillgraph.trace.values.list_columns import columns
from stillgraph.trace.values.lists import Element, StagedSpread


@dataclass(frozen=True, eq=False)
class Fixed:
    """The same value before every iteration."""

    value: Any


@dataclass(frozen=True, eq=False)
class Slot:
    """A leaf that the loop carries: its type, and what it is before the first iteration."""

    type: Type
    entry: Any
    place: str


@dataclass(frozen=True, eq=False)
class Kept:
    """The objects from before the loop that a place may hold: leaves tell which it is, if any.

    Attributes:
        entry: what the place holds before the first iteration.
        slots: those objects, each with the leaf that tells whether it is that one.
        recorder: the capture.
        others: more objects from before the call that an iteration may leave: of those the place has copies.
    """

    entry: Any
    slots: tuple[tuple[Any, Slot], ...]
    recorder: Recorder
    others: list[Any] = field(default_factory=list)

    def knows(self, value: Any) -> bool:
        """Whether a leaf tells whether the place holds an object."""
        return any(value is each for each, _ in self.slots)

    def stands_for(self, value: Any, flags: Sequence[Any]) -> None:
        """Let the container that a place is given for its leaves stand for that object of which a flag says so."""
        identities = self.recorder.identities
        objects = [each for each, _ in self.slots]
        told: Any = value
        for each, flag in zip(reversed(objects), reversed(flags)):
            told = Origin(value, flag, each, told, (True, told is not value))
        identities.stands_for(told)
        identities.meet(value, *objects)
        if self.others:
            identities.copy_of(value, self.others)

    def which(self, value: Any) -> list[tuple[Slot, Any]]:
        """The leaves, each with whether a value is its object: of the open region if only the run knows."""
        return [(slot, self._is(each, value, {})) for each, slot in self.slots]

    def _is(self, known: Any, value: Any, told: dict[int, Any]) -> Any:
        """Whether a value is an object.

        ``told`` has the answers so far: what paths leave of one object leads to it in many ways.
        """
        if id(value) not in told:
            told[id(value)] = self._asked(known, value, told)
        return told[id(value)]

    def _asked(self, known: Any, value: Any, told: dict[int, Any]) -> Any:
        if value is known:
            return True
        origin = value if isinstance(value, Origin) else self.recorder.identities.origins.get(id(value))
        if origin is None or origin.flag is DEAD:
            if self.recorder.is_outer(value) and not self.knows(value):
                self.others.append(value)
            return False
        sides = zip((origin.left, origin.right), origin.older)
        left, right = (older and self._is(known, side, told) for side, older in sides)
        if left is right:
            return left
        parts = (origin.flag, left), (self.recorder.opposite(origin.flag), right)
        found = [flag if side is True else flag & side for flag, side in parts if side is not False]
        return found[0] if len(found) == 1 else found[0] | found[1]


@dataclass(frozen=True, eq=False)
class Tree:
    """A container some of whose leaves are carried."""

    parts: Parts
    children: tuple[State, ...]
    kept: Kept | None = None


@dataclass(frozen=True, eq=False)
class Listed:
    """A list (tuple, deque) whose length changes: all its columns are carried."""

    parts: Parts  # as it was found
    element: Element
    entry: Any  # the elements before the first iteration, or `DEAD` or `MISSING`
    slots: tuple[Slot, ...]
    begin: tuple[Any, ...] = ()  # what it always begins with, and is not carried: see `leading`
    kept: Kept | None = None


@dataclass(frozen=True, eq=False)
class Possible:
    """None or a tuple: a leaf tells whether it is the tuple. Where it is none, what is carried for it is never read."""

    there: Slot
    child: State
    recorder: Recorder


State = Fixed | Slot | Tree | Listed | Possible


def tells(state: Tree | Listed) -> bool:
    """Whether leaves tell which object from before a place holds."""
    return state.kept is not None and bool(state.kept.slots)


def is_rebuilt(state: State) -> bool:
    """Whether each iteration finds a container or object made anew in a place."""
    return isinstance(state, (Tree, Listed))


def is_stale_state(state: State) -> bool:
    """Whether code that the loop calls as it is, or another name, may have changed what a place holds."""
    return isinstance(state, Fixed) and is_stale(state.value)


def has_stale(state: State) -> bool:
    """Whether a place holds, or has in what it holds, something that is stale."""
    return is_stale_state(state) or (isinstance(state, Tree) and any(map(has_stale, state.children)))


def tree_of(value: Any, parts: Parts) -> Tree:
    """A container as a tree with nothing carried yet; what a return carries is never read before it is set."""
    return Tree(parts, tuple(Fixed(never_read(parts, child)) for child in parts.children))


def never_read(parts: Parts, child: Any) -> Any:
    """A child of a container; what an exit or an entry does not have is never read."""
    return DEAD if child is MISSING and parts.type in (Exit, Entry) else child


def as_child(state: State) -> Any:
    """What a child of a dict is to `cover`: an entry, with a rank or without, or anything else."""
    if not is_entry(state) or isinstance(state, Fixed):
        return state.value if isinstance(state, Fixed) else state
    assert isinstance(state, Tree)
    rank = state.children[2]
    unranked = isinstance(rank, Fixed) and rank.value is None
    return Entry(True, None, None if unranked else 0)


def is_entry(state: State) -> bool:
    """Whether a child of a dict or set is one that may not be there."""
    if isinstance(state, Fixed):
        return isinstance(state.value, Entry)
    return isinstance(state, Tree) and state.parts.type is Entry


def tuple_state(state: Fixed | Tree, before: OptionalTuple, left: OptionalTuple) -> State:
    """The state of the tuple that a place may hold.

    Args:
        state: that of the place, so far.
        before: the tuple that it holds before the loop, if any.
        left: that which an iteration leaves, if any.
    """
    if before.tuple is DEAD:
        return _unread(left.tuple)
    return state if isinstance(state, Tree) else Fixed(before.tuple)


def _unread(value: Any) -> State:
    """The state of a tuple of which there is none before the loop."""
    parts = split(value)
    assert parts is not None
    return Tree(parts, tuple(_unread(c) if isinstance(c, tuple) else Fixed(DEAD) for c in parts.children))


def like(state: Tree, parts: Parts) -> Parts:
    """What a container holds, with children for all that the state of a dict or set has."""
    if not is_keyed(parts):
        return parts
    parts = alike(state.parts, parts)[1]
    entries = frozenset(index for index, child in enumerate(state.children) if is_entry(child))
    ranked = any(getattr(as_child(state.children[index]), "rank", None) is not None for index in entries)
    return Cover(tuple(state.parts.context), ranked, entries).of(parts)


def entry_of(state: State) -> Any:
    """What a place holds before the first iteration."""
    if isinstance(state, Fixed):
        return state.value
    if isinstance(state, Slot):
        return state.entry
    if isinstance(state, Possible):
        return entry_of(state.child) if state.there.entry is True else None
    if isinstance(state, (Tree, Listed)) and state.kept is not None:
        return state.kept.entry
    if isinstance(state, Listed):
        return state.entry if is_empty(state.entry) else state.parts.rebuild([*state.begin, *state.entry])
    children = [entry_of(child) for child in state.children]
    nothing = next((each for each in (DEAD, MISSING) if children and all(child is each for child in children)), None)
    return state.parts.rebuild(children) if nothing is None else nothing


def slots_of(state: State) -> list[Slot]:
    """The carried leaves of a state, in order."""
    if isinstance(state, Slot):
        return [state]
    if isinstance(state, Fixed):
        return []
    if isinstance(state, Possible):
        return [state.there, *slots_of(state.child)]
    kept = [] if state.kept is None else [slot for _, slot in state.kept.slots]
    if isinstance(state, Listed):
        return [*state.slots, *kept]
    return [*(s for child in state.children for s in slots_of(child)), *kept]


def build(state: State, fill: Callable[[Slot], Any]) -> Any:
    """The value of a place, its carried leaves supplied by ``fill`` in order."""
    if isinstance(state, Slot):
        return fill(state)
    if isinstance(state, Fixed):
        return MISSING if state.value is DEAD else state.value
    if isinstance(state, Possible):
        there = fill(state.there)
        return none_or(there, build(state.child, fill), state.there.place)
    if isinstance(state, Tree):
        value = state.parts.rebuild([build(child, fill) for child in state.children])
    else:
        columns = tuple(fill(slot) for slot in state.slots)
        value = state.parts.rebuild([*state.begin, StagedSpread(state.element, columns)])
    if state.kept is not None and tells(state):
        state.kept.stands_for(value, [fill(slot) for _, slot in state.kept.slots])
    return value


def leaves_of(state: State, value: Any, view: View) -> list[tuple[Slot, Any]]:
    """The carried leaves of a state, each with what ``value`` has in its place, seen by ``view`` in the open region."""
    if isinstance(state, Slot):
        return [(state, value)]
    if isinstance(state, Possible):
        found = optional_tuple(value, state.recorder.opposite)
        assert found is not None, "widening has made it one"
        return [(state.there, found.there), *leaves_of(state.child, found.tuple, view)]
    if isinstance(state, (Tree, Listed)):
        if value is DEAD or (value is MISSING and (not tells(state) or is_empty(entry_of(state)))):
            flags = () if state.kept is None else {slot for _, slot in state.kept.slots}  # the run computes with them
            return [(slot, False if slot in flags else value) for slot in slots_of(state)]
        parts = view(value)
        assert parts is not None
        kept = [] if state.kept is None else state.kept.which(value)
        parts = like(state, parts) if isinstance(state, Tree) else parts
        if isinstance(state, Listed):
            carried = as_left(parts.children[len(state.begin) :], view)
            refuse_changed(() if is_empty(state.entry) else state.entry, view)
            return [*zip(state.slots, columns(state.element, carried)), *kept]
        values = [never_read(parts, child) for child in parts.children]
        return [*(pair for child, v in zip(state.children, values) for pair in leaves_of(child, v, view)), *kept]
    return []
