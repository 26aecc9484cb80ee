"""The state of a staged loop: for each place a tree whose leaves are fixed for all iterations, or carried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stillgraph.program.constants import is_table, united
from stillgraph.program.outputs import has_table
from stillgraph.program.types import (
    JoinFailure,
    ListType,
    NumberType,
    TableType,
    TensorType,
    Type,
    join_types,
    optional,
    same_dimension,
    table_of,
)
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.elements import View, leading, refuse_changed, wants_columns
from stillgraph.trace.control_flow.joined.failure_sides import explain
from stillgraph.trace.control_flow.joined.join import Joiner, same_constant
from stillgraph.trace.control_flow.joined.join_errors import quoted
from stillgraph.trace.control_flow.joined.leaves import DEAD, has_leaf, is_empty
from stillgraph.trace.control_flow.joined.unjoined import Stale, Unjoined, is_leaf
from stillgraph.trace.control_flow.joined.unlike_elements import telling_elements
from stillgraph.trace.control_flow.tables import before_unset
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.journal import MISSING, AttributePlace
from stillgraph.trace.values.containers import Parts, complex_parts, split
from stillgraph.trace.values.entries import ABSENT, Cover, Entry, alike, cover, is_keyed
from stillgraph.trace.values.lists import Element, StagedSpread, columns, same_structure, types
from stillgraph.trace.values.lists import cover as cover_elements
from stillgraph.trace.values.numbers import OfComplex
from stillgraph.trace.values.several import known_in


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
    """The object from before the call that a place holds until an iteration puts another there: a leaf tells which.

    Attributes:
        entry: that object, or what stands for it on some paths.
        slot: whether it is still there.
        recorder: the capture.
        others: more objects from before the call that an iteration may leave: of those the place has copies.
    """

    entry: Any
    slot: Slot
    recorder: Recorder
    others: list[Any] = field(default_factory=list)

    def stands_for(self, value: Any, flag: Any) -> None:
        """Let the container that a place is given for its leaves stand for that object where a flag says so."""
        identities = self.recorder.identities
        identities.stands_for(Origin(value, flag, self.entry, value, (True, False)))
        identities.meet(value, self.entry, self.entry)
        if self.others:
            identities.copy_of(value, self.others)

    def is_still(self, value: Any) -> Any:
        """Whether a value is that object, as a truth value of the open region where only the run knows."""
        return self._is_still(value, {})

    def _is_still(self, value: Any, told: dict[int, Any]) -> Any:
        """As `is_still`; ``told`` has the answers so far: what paths leave of one object leads to it in many ways."""
        if id(value) not in told:
            told[id(value)] = self._asked(value, told)
        return told[id(value)]

    def _asked(self, value: Any, told: dict[int, Any]) -> Any:
        if value is self.entry:
            return True
        origin = value if isinstance(value, Origin) else self.recorder.identities.origins.get(id(value))
        if origin is None or origin.flag is DEAD:
            if self.recorder.is_outer(value):
                self.others.append(value)
            return False
        sides = zip((origin.left, origin.right), origin.older)
        left, right = (older and self._is_still(side, told) for side, older in sides)
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

    kind: type
    element: Element
    entry: Any  # the elements before the first iteration, or `DEAD` or `MISSING`
    slots: tuple[Slot, ...]
    begin: tuple[Any, ...] = ()  # what it always begins with, and is not carried: see `leading`
    kept: Kept | None = None


State = Fixed | Slot | Tree | Listed


def widen(joiner: Joiner, state: State, after: Any, place: str) -> State:
    """The state that also covers what one more iteration left; the same object if it covers that already.

    Raises:
        JoinFailure: the place changed its kind.
    """
    try:
        return _widen(joiner, state, after, place)
    except JoinFailure as failure:
        (first, then), (entry, body) = joiner.when, joiner.lines
        place = joiner.named(place)
        name = quoted(place)
        sides = (f"{first} {name} is", entry_of(state), entry), (f"{then} {name} is", after, body)
        explain(joiner.recorder, failure, place, *sides, in_loop=True)
        raise


def _widen(joiner: Joiner, state: State, after: Any, place: str) -> State:
    if after is DEAD:
        return state
    if isinstance(after, Stale):
        return state if is_stale(state) else Fixed(after)
    if isinstance(state, Slot):
        type_ = _cover(state.type, joiner, after, place)
        return state if _same_type(type_, state.type) else Slot(type_, state.entry, place)
    if isinstance(state, Tree):
        return _widen_children(joiner, state, after, place)
    if isinstance(state, Listed):
        return _widen_list(joiner, state, after, place)
    if state.value is DEAD or not same_constant(state.value, after):
        return _unfix(joiner, state.value, after, place)
    return state


def is_stale(state: State) -> bool:
    """Whether code that the loop calls as it is may have changed a place."""
    return isinstance(state, Fixed) and isinstance(state.value, Stale)


def _unfix(joiner: Joiner, before: Any, after: Any, place: str) -> State:
    if isinstance(joiner.at, AttributePlace) and place == str(joiner.at) and (before is MISSING) != (after is MISSING):
        before_unset(joiner.recorder, joiner.at)
    table = _table(before, after)
    if table is not None:
        return Slot(table, before, place)
    if is_leaf(after) and before is DEAD:
        return Slot(joiner.type_of(after), DEAD, place) if _carried_anyway(after) else Fixed(after)
    if is_leaf(after) and (before is None or before is MISSING):
        return Slot(_optional(joiner.type_of(after), before), before, place)
    if is_leaf(before):
        return Slot(_cover(joiner.type_of(before), joiner, after, place), before, place)
    if before is DEAD and joiner.is_older(after):
        return Fixed(after)  # an object from outside is handed out as it is
    view = joiner.views[1]
    parts = view(after)
    if (before is DEAD or before is MISSING) and parts is not None:
        if before is MISSING and place == str(joiner.at) and not has_leaf(after, view):
            raise JoinFailure("SG204", f"{describe(after)} on one path only")  # what tells whether the loop ran?
        children = tuple(Fixed(before if before is DEAD or has_leaf(c, view) else DEAD) for c in parts.children)
        return _widen_children(joiner, Tree(parts, children), after, place)
    if before is DEAD:
        return Fixed(after)
    mine = split(before)
    if type(before) is complex:
        mine, parts = complex_parts(before), _seen(joiner, after)
    if mine is None or parts is None:
        name, (first, then) = quoted(joiner.named(place)), joiner.when
        raise JoinFailure("SG203", f"{name} is {describe(before)} {first} and {describe(after)} {then}")
    state = replace(tree_of(before, mine), kept=_kept(joiner, before, place))
    return _widen_children(joiner, state, after, place)


def _seen(joiner: Joiner, after: Any) -> Parts | None:
    """The parts of what an iteration leaves beside a container or a complex number."""
    return complex_parts(after) if type(after) is complex else joiner.views[1](after)


def _kept(joiner: Joiner, before: Any, place: str) -> Kept | None:
    identities = joiner.recorder.identities
    known = joiner.recorder.is_outer(before) or id(before) in identities.origins
    if isinstance(before, (Exit, Entry, complex, OfComplex)) or not known:
        return None
    return Kept(before, Slot(NumberType(bool), True, place), joiner.recorder)


def _table(before: Any, after: Any) -> TableType | None:
    """The type of a place that is one of some constants before the first iteration and after it; None for any other."""
    entries = known_in(after)
    if before is DEAD:
        return table_of(entries) if entries is not None and isinstance(after, Unjoined) else None
    mine = known_in(before)
    if not mine or not entries or not is_table(e for e in united(mine, entries) if e.value is not MISSING):
        return None  # a number that is not always there has a type of its own
    return table_of(mine, entries)


def _carried_anyway(value: Any) -> bool:
    return not isinstance(value, (bool, int, float))


def tree_of(value: Any, parts: Parts) -> Tree:
    """A container as a tree with nothing carried yet; what a return carries is never read before it is set."""
    return Tree(parts, tuple(Fixed(_never_read(parts, child)) for child in parts.children))


def _widen_children(joiner: Joiner, state: Tree, after: Any, place: str) -> State:
    parts = _seen(joiner, after)
    if parts is not None and wants_columns(replace(state.parts, children=_shown(state)), parts, in_loop=True):
        return _widen_list(joiner, _listed(joiner, state, parts, place), after, place)
    if parts is not None and is_keyed(parts) and parts.type is state.parts.type:
        state = _covering(joiner, state, parts)
        parts = like(state, parts)
    if parts is None or parts.type is not state.parts.type or parts.context != state.parts.context:
        name, (first, then) = quoted(joiner.named(place)), joiner.when
        raise JoinFailure("SG203", f"{name} has another structure {first} than {then}")
    values = [_never_read(parts, child) for child in parts.children]
    children = tuple(widen(joiner, s, v, place + n) for s, v, n in zip(state.children, values, parts.names))
    return state if all(a is b for a, b in zip(children, state.children)) else replace(state, children=children)


def _covering(joiner: Joiner, state: Tree, after: Parts) -> Tree:
    """The state of a dict or set with children for the keys that an iteration leaves too."""
    if has_table(after.context) and not has_table(state.parts.context):
        entry, _ = alike(replace(state.parts, children=tuple(map(entry_of, state.children))), after)
        state = Tree(entry, tuple(map(Fixed, entry.children)))
    after = alike(state.parts, after)[1]
    both = cover(replace(state.parts, children=tuple(map(_as_child, state.children))), after)
    if both.is_unknown:
        joiner.recorder.before_unknown_length()
    mine = dict(zip(state.parts.context, state.children))
    if after.type is set:
        children = [mine.get(key, Fixed(False)) for key in both.keys]
    else:
        ranks = {key: Fixed(i if both.ranked else None) for i, key in enumerate(state.parts.context)}
        children = [
            _entry_for(mine.get(key), ranks.get(key), both.ranked) if index in both.entries else mine[key]
            for index, key in enumerate(both.keys)
        ]
    if both.keys == tuple(state.parts.context) and all(a is b for a, b in zip(children, state.children)):
        return state
    return replace(state, parts=both.of(state.parts), children=tuple(children))


def _never_read(parts: Parts, child: Any) -> Any:
    """A child of a container; what an exit or an entry does not have is never read."""
    return DEAD if child is MISSING and parts.type in (Exit, Entry) else child


def _entry_for(child: State | None, rank: Fixed | None, ranked: bool) -> State:
    """The state of an entry, made of that of a child which may be none yet."""
    parts = split(ABSENT)
    assert parts is not None
    if child is None or rank is None:
        return Tree(parts, (Fixed(False), Fixed(DEAD), Fixed(-1 if ranked else None)))
    if not _is_entry(child):
        return Tree(parts, (Fixed(True), child, rank))
    if isinstance(child, Fixed):
        child = Tree(parts, tuple(map(Fixed, (child.value.present, child.value.value, child.value.rank))))
    assert isinstance(child, Tree)
    present, value, mine = child.children
    unranked = isinstance(mine, Fixed) and mine.value is None
    return Tree(parts, (present, value, rank)) if unranked and rank.value is not None else child


def _as_child(state: State) -> Any:
    """What a child of a dict is to `cover`: an entry, with a rank or without, or anything else."""
    if not _is_entry(state) or isinstance(state, Fixed):
        return state.value if isinstance(state, Fixed) else state
    assert isinstance(state, Tree)
    rank = state.children[2]
    unranked = isinstance(rank, Fixed) and rank.value is None
    return Entry(True, None, None if unranked else 0)


def _is_entry(state: State) -> bool:
    if isinstance(state, Fixed):
        return isinstance(state.value, Entry)
    return isinstance(state, Tree) and state.parts.type is Entry


def like(state: Tree, parts: Parts) -> Parts:
    """What a container holds, with children for all that the state of a dict or set has."""
    if not is_keyed(parts):
        return parts
    parts = alike(state.parts, parts)[1]
    entries = frozenset(index for index, child in enumerate(state.children) if _is_entry(child))
    ranked = any(getattr(_as_child(state.children[index]), "rank", None) is not None for index in entries)
    return Cover(tuple(state.parts.context), ranked, entries).of(parts)


def _shown(state: Tree) -> tuple[Any, ...]:
    """The children of a container, as far as it matters whether there is a spread among them."""
    return tuple(child.value if isinstance(child, Fixed) else None for child in state.children)


def entry_of(state: State) -> Any:
    """What a place holds before the first iteration."""
    if isinstance(state, Fixed):
        return state.value
    if isinstance(state, Slot):
        return state.entry
    if isinstance(state, (Tree, Listed)) and state.kept is not None:
        return state.kept.entry
    if isinstance(state, Listed):
        return state.entry if is_empty(state.entry) else state.kind((*state.begin, *state.entry))
    children = [entry_of(child) for child in state.children]
    return DEAD if children and all(child is DEAD for child in children) else state.parts.rebuild(children)


def _listed(joiner: Joiner, state: Tree, after: Parts, place: str) -> Listed:
    entry = [entry_of(child) for child in state.children]
    if entry and is_empty(entry[0]):
        return Listed(state.parts.type, joiner.structure(after.children), entry[0], (), kept=state.kept)
    kept = leading(joiner.recorder, entry, after.children)
    kind, both, named = state.parts.type, (entry[kept:], after.children[kept:]), joiner.named(place)
    with telling_elements(joiner.recorder, kind, both, joiner.structure, named, joiner.lines):
        element = joiner.structure([*entry[kept:], *after.children[kept:]])
    return Listed(kind, element, tuple(entry[kept:]), (), tuple(entry[:kept]), state.kept)


def _widen_list(joiner: Joiner, state: Listed, after: Any, place: str) -> State:
    parts = joiner.views[1](after)
    if parts is None or parts.type is not state.kind:
        raise JoinFailure("SG203", f"{quoted(joiner.named(place))} is {describe(after)} {joiner.when[1]}")
    state = _beginning_as(joiner, state, parts.children)
    element, carried = state.element, parts.children[len(state.begin) :]
    if carried:
        wider = cover_elements(element, joiner.structure(carried))
        assert wider is not None
        element = wider
    if state.slots and same_structure(element, state.element, _same_type):
        return state
    if is_empty(state.entry):
        entries: list[Any] = [state.entry] * len(types(element))
    else:
        entries = list(columns(element, state.entry))
    slots = tuple(Slot(ListType(type_), entry, place) for type_, entry in zip(types(element), entries))
    return replace(state, element=element, slots=slots)


def _beginning_as(joiner: Joiner, state: Listed, children: Sequence[Any]) -> Listed:
    """A state of which no more is left out than some elements begin with."""
    kept = leading(joiner.recorder, state.begin, children)
    if kept == len(state.begin):
        return state
    moved = state.begin[kept:]
    element = cover_elements(state.element, joiner.structure(moved))
    assert element is not None
    return replace(state, element=element, entry=(*moved, *state.entry), slots=(), begin=state.begin[:kept])


def _cover(type_: Type, joiner: Joiner, after: Any, place: str) -> Type:
    if isinstance(type_, TableType) and is_leaf(after) and not isinstance(after, Unjoined):
        nothing = {entry.value for entry in type_.entries}
        if all(map(is_empty, nothing)):
            return optional(joiner.type_of(after), none=None in nothing, unbound=MISSING in nothing)
    entries = known_in(after) if isinstance(type_, TableType) else None
    if isinstance(type_, TableType) and entries is not None:
        known, table = len(type_.entries), table_of(type_.entries, entries)
        if known > _MANY and len(table.entries) > 2 * known:  # as of a text that is made longer: there is no end
            raise JoinFailure("SG205", "an iteration makes other constants of those that it finds")
        return table
    if after is None or after is MISSING:
        return _optional(type_, after)
    if not is_leaf(after):
        raise JoinFailure("SG203", f"{quoted(joiner.named(place))} is {describe(after)} {joiner.when[1]}")
    return join_types(type_, joiner.type_of(after))


_MANY = 6


def _optional(type_: Type, empty: Any) -> Type:
    return optional(type_, none=empty is None, unbound=empty is not None)


def _same_type(left: Type, right: Type) -> bool:
    if isinstance(left, ListType) and isinstance(right, ListType):
        return _same_type(left.element, right.element)
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return left == right
    same = len(left.shape) == len(right.shape) and all(
        (a is None and b is None) or same_dimension(a, b) for a, b in zip(left.shape, right.shape)
    )
    return same and replace(left, shape=()) == replace(right, shape=())


def slots_of(state: State) -> list[Slot]:
    """The carried leaves of a state, in order."""
    if isinstance(state, Slot):
        return [state]
    if isinstance(state, Fixed):
        return []
    kept = [] if state.kept is None else [state.kept.slot]
    if isinstance(state, Listed):
        return [*state.slots, *kept]
    return [*(s for child in state.children for s in slots_of(child)), *kept]


def build(state: State, fill: Callable[[Slot], Any]) -> Any:
    """The value of a place, its carried leaves supplied by ``fill`` in order."""
    if isinstance(state, Slot):
        return fill(state)
    if isinstance(state, Fixed):
        return MISSING if state.value is DEAD else state.value
    if isinstance(state, Tree):
        value = state.parts.rebuild([build(child, fill) for child in state.children])
    else:
        value = state.kind([*state.begin, StagedSpread(state.element, tuple(fill(slot) for slot in state.slots))])
    if state.kept is not None:
        state.kept.stands_for(value, fill(state.kept.slot))
    return value


def leaves_of(state: State, value: Any, view: View) -> list[tuple[Slot, Any]]:
    """The carried leaves of a state, each with what ``value`` has in its place, seen by ``view`` in the open region."""
    if isinstance(state, Slot):
        return [(state, value)]
    if isinstance(state, (Tree, Listed)):
        if value is DEAD:
            return [(slot, DEAD) for slot in slots_of(state)]
        parts = view(value)
        assert parts is not None
        kept = [] if state.kept is None else [(state.kept.slot, state.kept.is_still(value))]
        parts = like(state, parts) if isinstance(state, Tree) else parts
        if isinstance(state, Listed):
            carried = parts.children[len(state.begin) :]
            refuse_changed(carried, view)
            return [*zip(state.slots, columns(state.element, carried)), *kept]
        values = [_never_read(parts, child) for child in parts.children]
        return [*(pair for child, v in zip(state.children, values) for pair in leaves_of(child, v, view)), *kept]
    return []
