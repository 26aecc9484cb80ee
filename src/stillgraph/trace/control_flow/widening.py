"""Widening: the state of a loop made to cover what one more iteration left, until it covers all of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from stillgraph.program.constants import united
from stillgraph.program.outputs import has_table
from stillgraph.program.types import (
    JoinFailure,
    ListType,
    NumberType,
    table_of,
)
from stillgraph.trace.control_flow.joined.covering import covering, may_be, same_type, table_before
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.elements import as_left, leading, wants_columns
from stillgraph.trace.control_flow.joined.failure_sides import explain
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.join_errors import quoted
from stillgraph.trace.control_flow.joined.leaves import DEAD, has_leaf, is_empty, same_constant
from stillgraph.trace.control_flow.joined.optional_parts import optional_tuple, unasked
from stillgraph.trace.control_flow.joined.stale import is_stale
from stillgraph.trace.control_flow.joined.told_objects import has_objects, objects_in
from stillgraph.trace.control_flow.joined.unjoined import is_leaf
from stillgraph.trace.control_flow.joined.unlike_elements import telling_elements
from stillgraph.trace.control_flow.loop_state import (
    Fixed,
    Kept,
    Listed,
    Possible,
    Slot,
    State,
    Tree,
    as_child,
    entry_of,
    is_entry,
    is_stale_state,
    like,
    never_read,
    slots_of,
    tells,
    tree_of,
    tuple_state,
)
from stillgraph.trace.control_flow.spreads import only_if
from stillgraph.trace.control_flow.tables import before_unset
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, AttributePlace, ContentsPlace
from stillgraph.trace.values.containers import Parts, complex_parts, object_parts, split
from stillgraph.trace.values.entries import Entry
from stillgraph.trace.values.key_cover import ABSENT, alike, cover, is_keyed
from stillgraph.trace.values.list_columns import columns
from stillgraph.trace.values.list_contents import same_structure
from stillgraph.trace.values.lists import StagedSpread, types
from stillgraph.trace.values.lists import cover as cover_elements
from stillgraph.trace.values.numbers import OfComplex
from stillgraph.trace.values.texts_of_paths import joined_texts

C = TypeVar("C", bound=Tree | Listed)


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
    if is_stale(after):
        return state if is_stale_state(state) else Fixed(after)
    if isinstance(state, Slot):
        type_ = covering(state.type, joiner, after, place)
        return state if same_type(type_, state.type) else Slot(type_, state.entry, place)
    if isinstance(state, Tree):
        possible = _possible(joiner, state, after, place)
        return _widen_children(joiner, state, after, place) if possible is None else possible
    if isinstance(state, Possible):
        return _widen_possible(joiner, state, after, place)
    if isinstance(state, Listed):
        return _widen_list(joiner, state, after, place)
    if state.value is DEAD or not same_constant(state.value, after):
        return _unfix_or_tell(joiner, state.value, after, place)
    return state


def _unfix_or_tell(joiner: Joiner, before: Any, after: Any, place: str) -> State:
    """As `_unfix`; where the two are not alike, and each is an object from before the loop, which of them it is.

    Of two objects nothing that they hold is told so: what differs in them tells that they are two.
    """
    mine, left = (objects_in(value, joiner.is_older) for value in (before, after))
    if mine is None or left is None or not has_objects(united(mine, left)):
        return _unfix(joiner, before, after, place)
    two = len(mine) == len(left) == 1 and has_objects(mine) and has_objects(left)
    try:
        return _unfix(replace(joiner, tells_objects=False) if two else joiner, before, after, place)
    except JoinFailure:
        if not joiner.tells_objects:
            raise
        return Slot(table_of(mine, left), before, place)


def _unfix(joiner: Joiner, before: Any, after: Any, place: str) -> State:
    if isinstance(joiner.at, AttributePlace) and place == str(joiner.at) and (before is MISSING) != (after is MISSING):
        before_unset(joiner.recorder, joiner.at, after if before is MISSING else before)
    text = joined_texts(before, after, joiner.type_of)
    if text is not None:
        return Slot(text, before, place)
    table = table_before(before, after)
    if table is not None:
        return Slot(table, before, place)
    possible = _possible(joiner, Fixed(before), after, place)
    if possible is not None:
        return possible
    if is_leaf(after) and before is DEAD:
        return Slot(joiner.type_of(after), DEAD, place) if _carried_anyway(after) else Fixed(after)
    if is_leaf(after) and (before is None or before is MISSING):
        return Slot(may_be(joiner.type_of(after), before), before, place)
    if is_leaf(before):
        return Slot(covering(joiner.type_of(before), joiner, after, place), before, place)
    if before is DEAD and joiner.is_older(after):
        return Fixed(after)  # an object from outside is handed out as it is
    view = joiner.views[1]
    parts = view(after)
    if (before is DEAD or before is MISSING) and parts is not None:
        if before is MISSING and place == str(joiner.at) and not has_leaf(after, view):
            raise JoinFailure("SG204", f"{describe(after)} on one path only")  # what tells whether the loop ran?
        children = tuple(Fixed(before if before is DEAD or has_leaf(c, view) else DEAD) for c in parts.children)
        kept = None if isinstance(after, _NO_OBJECTS) else Kept(before, (), joiner.recorder)
        return _widen_children(joiner, Tree(parts, children, kept), after, place)
    if before is DEAD:
        return Fixed(after)
    mine = object_parts(before)
    if type(before) is complex:
        mine, parts = complex_parts(before), _seen(joiner, after)
    if mine is None or parts is None:
        name, (first, then) = quoted(joiner.named(place)), joiner.when
        raise JoinFailure("SG203", f"{name} is {describe(before)} {first} and {describe(after)} {then}")
    state = tree_of(before, mine)
    if not isinstance(before, _NO_OBJECTS):
        state = replace(state, kept=Kept(before, (), joiner.recorder))
    inside = isinstance(joiner.at, ContentsPlace) and place != str(joiner.at)
    is_held = inside and not place.endswith("()")  # by a container, no column of ours, and other names may lead to it
    if is_held or joiner.recorder.is_outer(before) or joiner.recorder.identities.is_told(before):
        state = telling_entry(state, place)
    return _widen_children(joiner, state, after, place)


def _possible(joiner: Joiner, state: Fixed | Tree, after: Any, place: str) -> State | None:
    """The state of a place that holds None, a tuple or one of the two before the loop, and another after an iteration.

    None where it is something else: what is carried in another way, too.
    """
    before = entry_of(state)
    if before is DEAD or before is MISSING or after is MISSING:
        return None
    mine, left = optional_tuple(before, joiner.recorder.opposite), optional_tuple(after, unasked)
    if mine is None or left is None or (mine.there is True and left.there is True):
        return None
    if mine.tuple is DEAD and left.tuple is DEAD:
        return None
    joiner.recorder.has_optionals = True
    there, child = Slot(NumberType(bool), mine.there, place), tuple_state(state, mine, left)
    return _widen_possible(joiner, Possible(there, child, joiner.recorder), after, place)


def _widen_possible(joiner: Joiner, state: Possible, after: Any, place: str) -> State:
    found = optional_tuple(after, unasked)
    if found is None:
        name, (first, then) = quoted(joiner.named(place)), joiner.when
        raise JoinFailure("SG203", f"{name} is {describe(entry_of(state))} {first} and {describe(after)} {then}")
    child = state.child if found.tuple is DEAD else widen(joiner, state.child, found.tuple, place)
    return state if child is state.child else replace(state, child=child)


def _seen(joiner: Joiner, after: Any) -> Parts | None:
    """The parts of what an iteration leaves beside a container or a complex number."""
    return complex_parts(after) if type(after) is complex else joiner.views[1](after)


def telling_entry(state: C, place: str) -> C:
    """A state with a leaf that tells whether a place still holds the object that it held before the loop."""
    kept = state.kept
    if kept is None or is_empty(kept.entry) or kept.knows(kept.entry):
        return state
    slot = Slot(NumberType(bool), True, place)
    return replace(state, kept=replace(kept, slots=((kept.entry, slot), *kept.slots)))


def _telling(joiner: Joiner, state: C, after: Any, place: str) -> C:
    """A state with leaves that tell whether a place holds the objects from before the loop that an iteration left."""
    kept = state.kept
    if kept is None or isinstance(after, _NO_OBJECTS):
        return state
    found = [after] if joiner.is_older(after) else joiner.recorder.identities.may_be(after)
    new = [each for each in found if joiner.is_older(each) and each is not kept.entry and not kept.knows(each)]
    slots = ((each, Slot(NumberType(bool), False, place)) for each in new)
    # Where it is none of these it may be the one from the beginning, which other names may lead to.
    return telling_entry(replace(state, kept=replace(kept, slots=(*kept.slots, *slots))), place) if new else state


_NO_OBJECTS = (Exit, Entry, complex, OfComplex)


def _carried_anyway(value: Any) -> bool:
    return not isinstance(value, (bool, int, float))


def _without_value(joiner: Joiner, state: Tree, place: str) -> Tree:
    """The state of a variable that may have no value: all that it carries says so."""
    named = zip(state.children, state.parts.names)
    children = tuple(widen(joiner, s, MISSING, place + n) if slots_of(s) else s for s, n in named)
    return state if all(a is b for a, b in zip(children, state.children)) else replace(state, children=children)


def _widen_children(joiner: Joiner, state: Tree, after: Any, place: str) -> State:
    if after is MISSING and slots_of(state) and (not tells(state) or is_empty(entry_of(state))):
        return _without_value(joiner, state, place)
    state = _telling(joiner, state, after, place)
    parts = _seen(joiner, after)
    if parts is not None and wants_columns(replace(state.parts, children=_shown(state)), parts, in_loop=True):
        return _widen_list(joiner, _listed(joiner, state, parts, place), after, place)
    if parts is not None and is_keyed(parts) and parts.type is state.parts.type:
        state = _covering(joiner, state, parts)
        parts = like(state, parts)
    if parts is None or parts.type is not state.parts.type or parts.context != state.parts.context:
        name, (first, then) = quoted(joiner.named(place)), joiner.when
        raise JoinFailure("SG203", f"{name} has another structure {first} than {then}")
    values = [never_read(parts, child) for child in parts.children]
    with joiner.opened((id(after), id(after)), after):
        children = tuple(widen(joiner, s, v, place + n) for s, v, n in zip(state.children, values, parts.names))
    return state if all(a is b for a, b in zip(children, state.children)) else replace(state, children=children)


def _covering(joiner: Joiner, state: Tree, after: Parts) -> Tree:
    """The state of a dict or set with children for the keys that an iteration leaves too."""
    if has_table(after.context) and not has_table(state.parts.context):
        entry, _ = alike(
            replace(state.parts, children=tuple(map(entry_of, state.children))),
            after,
            *(functools.partial(only_if, joiner.recorder),) * 2,
        )
        state = replace(state, parts=entry, children=tuple(map(Fixed, entry.children)))
    after = alike(state.parts, after)[1]
    both = cover(replace(state.parts, children=tuple(map(as_child, state.children))), after)
    if both.is_unknown:
        joiner.recorder.follow_libraries()
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


def _entry_for(child: State | None, rank: Fixed | None, ranked: bool) -> State:
    """The state of an entry, made of that of a child which may be none yet."""
    parts = split(ABSENT)
    assert parts is not None
    if child is None or rank is None:
        return Tree(parts, (Fixed(False), Fixed(DEAD), Fixed(-1 if ranked else None)))
    if not is_entry(child):
        return Tree(parts, (Fixed(True), child, rank))
    if isinstance(child, Fixed):
        child = Tree(parts, tuple(map(Fixed, (child.value.present, child.value.value, child.value.rank))))
    assert isinstance(child, Tree)
    present, value, mine = child.children
    unranked = isinstance(mine, Fixed) and mine.value is None
    return Tree(parts, (present, value, rank)) if unranked and rank.value is not None else child


def _shown(state: Tree) -> tuple[Any, ...]:
    """The children of a container, as far as it matters whether there is a spread among them."""
    return tuple(child.value if isinstance(child, Fixed) else None for child in state.children)


def _listed(joiner: Joiner, state: Tree, after: Parts, place: str) -> Listed:
    entry = [entry_of(child) for child in state.children]
    if entry and (entry[0] is DEAD or entry[0] is MISSING):
        return Listed(state.parts, joiner.structure(after.children), entry[0], (), kept=state.kept)
    kept = leading(joiner.recorder, entry, after.children)
    both, named = (entry[kept:], as_left(after.children[kept:], joiner.views[1])), joiner.named(place)
    with telling_elements(joiner.recorder, state.parts.type, both, joiner.structure, named, joiner.lines):
        element = joiner.structure([*both[0], *both[1]])
    return Listed(state.parts, element, tuple(entry[kept:]), (), tuple(entry[:kept]), state.kept)


def _widen_list(joiner: Joiner, state: Listed, after: Any, place: str) -> State:
    state = _telling(joiner, state, after, place)
    parts = joiner.views[1](after)
    if parts is None or parts.type is not state.parts.type:
        raise JoinFailure("SG203", f"{quoted(joiner.named(place))} is {describe(after)} {joiner.when[1]}")
    state = _beginning_as(joiner, state, parts.children)
    element, carried = state.element, as_left(parts.children[len(state.begin) :], joiner.views[1])
    if carried:
        wider = cover_elements(element, joiner.structure(carried))
        assert wider is not None
        element = wider
    kinds = [each.columns[0].type for each in carried if type(each) is StagedSpread]
    told = any(isinstance(slot.type, ListType) and slot.type.may_be_unbound for slot in state.slots)
    may_be_unbound = state.entry is MISSING or any(kind.may_be_unbound for kind in kinds)
    if state.slots and told >= may_be_unbound and same_structure(element, state.element, same_type):
        return state
    if is_empty(state.entry):
        entries: list[Any] = [state.entry] * len(types(element))
    else:
        entries = list(columns(element, state.entry))
    named = zip(types(element), entries)
    slots = tuple(Slot(ListType(type_, told or may_be_unbound), entry, place) for type_, entry in named)
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
