"""Two names for one container: what a loop carries is made anew in each iteration, and leaves other names behind."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.arms import Arm
from stillgraph.trace.control_flow.heap import OlderObjects
from stillgraph.trace.control_flow.joined.elements import freeze_elements, parts_in
from stillgraph.trace.control_flow.joined.join_errors import named
from stillgraph.trace.control_flow.joined.leaves import is_empty
from stillgraph.trace.control_flow.loop_state import Listed, State, Tree, like
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.identities import Conditions, Identities
from stillgraph.trace.heap.paths import ALWAYS, On
from stillgraph.trace.heap.places import MISSING, ContentsPlace, Place
from stillgraph.trace.heap.references import Reference, contents_of
from stillgraph.trace.values import lists
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import object_parts
from stillgraph.trace.values.entries import Entry, table_of
from stillgraph.trace.values.list_contents import is_mutable, mutable_parts
from stillgraph.trace.values.lists import Element, StagedSpread

IsOlder = Callable[[Any], bool]
Put = list[tuple[Any, On]]  # containers that an iteration puts into a list, each with the path on which it does
Stays = Callable[[Put, IsOlder], bool]  # whether another iteration may put one of them in as well


def mutable_containers(value: Any) -> Iterator[Any]:
    """The containers in a value that can be changed in place."""
    queue, seen = [value], set[int]()
    while queue:
        item = queue.pop()
        parts = None if is_empty(item) or id(item) in seen else object_parts(item)
        if parts is None:
            continue
        seen.add(id(item))
        if not isinstance(item, _NO_CONTAINERS):
            yield item
        queue.extend(parts.children)


def is_mutable_container(value: Any) -> bool:
    """Whether something that is taken apart is what the user could change in place."""
    return not (isinstance(value, _NO_CONTAINERS) or is_empty(value) or object_parts(value) is None)


_NO_CONTAINERS = (tuple, slice, Exit, Entry, StagedArray, StagedComplex)


def keys_of_shared(places: dict[Hashable, Place], values: dict[Hashable, Any]) -> set[Hashable]:
    """The places that hold a container which another of them holds too."""
    owners: dict[int, list[Hashable]] = {}
    for key, value in values.items():
        if not isinstance(places[key], ContentsPlace):
            for container in mutable_containers(value):
                owners.setdefault(id(container), []).append(key)
    return {key for keys in owners.values() if len(keys) > 1 for key in keys}


def with_other_names(recorder: Recorder, places: Iterable[Place]) -> list[Place]:
    """Those of some places whose containers something else leads to as well."""
    places = [place for place in places if not isinstance(place, ContentsPlace)]
    held = [(place, place.get()) for place in places]
    found = [(place, list(mutable_containers(value))) for place, value in held]
    behind = {id(c): recorder.identities.behind(c) for _, containers in found for c in containers}
    counts = collections.Counter(id(each) for _, containers in found for c in containers for each in behind[id(c)])
    if not counts:
        return []
    try:
        for place in places:
            place.set(MISSING)
        older = OlderObjects(recorder)
        older.look()
    finally:
        for place, value in held:
            place.set(value)
    named = {key for key, each in behind.items() if any(counts[id(c)] > 1 or older.holds(c) for c in each)}
    return [place for place, inside in found if not named.isdisjoint(map(id, inside))]


def freeze_copies(recorder: Recorder, entry: Any, copy: Any) -> None:
    """Freeze the containers of two values that are not the same in both."""
    first, second = ({id(c): c for c in mutable_containers(value)} for value in (entry, copy))
    told = {id(each) for container in second.values() for each in recorder.identities.may_be(container)}
    for key in first.keys() - second.keys() - told:
        recorder.identities.freeze(first[key])
    for key in second.keys() - first.keys():
        if not recorder.identities.is_told(second[key]):
            recorder.identities.copy_of(second[key], first.values())


def remember_copies(recorder: Recorder, is_older: Callable[[Any], bool], result: Any, last: Any) -> None:
    """Remember which objects from before the loop the containers behind it may be."""
    older = {id(container): container for container in mutable_containers(last) if is_older(container)}
    for container in mutable_containers(result) if older else ():
        if not is_older(container) and not recorder.identities.is_told(container):
            recorder.identities.copy_of(container, older.values())


def held_elsewhere(identities: Identities, left: dict[Hashable, Any], places: dict[Hashable, Place]) -> set[Hashable]:
    """The places in which an iteration leaves an object that a container holds, too: the next one finds another there.

    Args:
        identities: what is known of copies: those of elements of a list of unknown length are some.
        left: what an iteration leaves where containers are made anew.
        places: where that is.
    """
    contents = {key for key in left if isinstance(places[key], ContentsPlace)}
    held = {
        key: {id(c): c for c in mutable_containers(value) if key not in contents or c is not value}
        for key, value in left.items()
    }
    holders = collections.Counter(each for key in contents for each in held[key])

    def is_held(key: Hashable, container: Any) -> bool:
        if holders[id(container)] > (key in contents) or identities.is_copy(container):
            return True
        return key not in contents and not holders.keys().isdisjoint(identities.met_by(id(container)))

    rows = {key for key in contents if _is_listed(left[key])}  # of these, the elements are copies anyhow
    return {key for key in left.keys() - rows if any(is_held(key, each) for each in held[key].values())}


def freeze_all(identities: Identities, copy: Any, original: Any) -> None:
    """Let nobody change what a loop makes anew of objects that a container has as well."""
    originals = [*mutable_containers(original)]
    for each in mutable_containers(copy):
        identities.copy_of(each, originals)


def freeze_result(identities: Identities, result: Any, left: Any) -> None:
    """As `freeze_all`, for what a block that is run many times returns, where that is a copy."""
    relate(identities, result, left)
    if any(map(identities.is_copy, mutable_containers(left))):
        freeze_all(identities, result, left)


def refuse_lost_names(identities: Identities, left: dict[Place, Any], inputs: Iterable[Any]) -> None:
    """Refuse an iteration that leaves one container in two places: behind the loop they would be two.

    Each is what it is found as, or what its flags tell: one that the iteration was given in another place.

    Args:
        identities: what the flags tell.
        left: what an iteration leaves in the places whose containers are made anew.
        inputs: what it was given.

    Raises:
        JoinFailure: there is such a container.
    """
    given = {id(c) for value in inputs for c in mutable_containers(value)}
    seen: dict[int, list[tuple[Place, Conditions]]] = {}
    for place, value in left.items():
        held = [*mutable_containers(value)]
        mine = [(on, c) for each in held for on, c in identities.told(each) if c is each or id(c) in given]
        for conditions, container in mine:
            others = (other for other, on in seen.get(id(container), ()) if not _exclude(on, conditions))
            other = next(others, None)
            if other is not None:
                names = f"'{named(place)}' and '{named(other)}' are one {type(container).__name__} after an iteration"
                raise JoinFailure("SG203", f"{names}, of which the loop would make two")
        for conditions, container in mine:
            seen.setdefault(id(container), []).append((place, conditions))


def _exclude(some: Conditions, others: Conditions) -> bool:
    """Whether no path has both: a flag would be true and false."""
    return any(flag is other and holds is not wanted for flag, holds in some for other, wanted in others)


def staying(recorder: Recorder, inputs: dict[Hashable, Any], left: dict[Hashable, Any], key: Hashable) -> Stays:
    """Whether an iteration that puts containers into a list may do so with one that another one puts in, too.

    Args:
        recorder: the capture.
        inputs: what stands in an iteration for what the loop carries: another container in each.
        left: what it leaves in these places; where that may be one of the former, the next has it as well.
        key: the place of the list.
    """
    identities, region = recorder.identities, recorder.region
    carried = {id(each) for value in inputs.values() for each in (*mutable_containers(value), *_spreads_in(value))}
    held = [c for value in left.values() for c in ((value,) if _is_listed(value) else mutable_containers(value))]
    elements = [spread for place, value in left.items() if place != key for spread in _spreads_in(value)]

    @functools.cache
    def again(on: On) -> set[int]:
        containers = {each for container in held for each in identities.on_path(container, on)}
        return containers | {id(each) for spread in elements for each in identities.held_on(spread, on)}

    def was_there(value: Any, is_older: IsOlder) -> bool:
        if type(value) is StagedSpread:
            return not value.is_outdated and all(map(region.holds, value.columns))
        return is_older(value)

    def stays(put_in: Put, is_older: IsOlder) -> bool:
        given = any(id(each) in carried for each, _ in put_in)
        kept = any(id(each) in again(on) for each, on in put_in) if given else False
        return kept or any(id(each) not in carried and was_there(each, is_older) for each, _ in put_in)

    return stays


def _spreads_in(value: Any) -> Iterator[StagedSpread]:
    """What stands, in a value, for elements that the user could change."""
    return (each for each in _inside(value) if type(each) is StagedSpread)


def freeze_put_in(recorder: Recorder, state: State, value: Any, result: Any, arm: Arm, stays: Stays) -> None:
    """Let nobody change what has become elements of a list of unknown length: of what an iteration leaves, by parts."""
    parts, made = (None, None) if is_empty(value) else (arm.view(value), object_parts(result))
    if parts is None or made is None:
        return
    if isinstance(state, Listed):
        entry = () if is_empty(state.entry) else state.entry
        begin = len(state.begin)
        for spread in made.children[begin:]:
            freeze_elements(recorder, spread, (entry, parts.children[begin:]), arm.is_older)
            put_in = [each for child in parts.children[begin:] for each in _put_in(recorder, spread.element, child)]
            if stays(put_in, arm.is_older):
                recorder.identities.repeat(spread)
    elif isinstance(state, Tree):
        for child, inner, out in zip(state.children, like(state, parts).children, made.children):
            freeze_put_in(recorder, child, inner, out, arm, stays)


def freeze_older(recorder: Recorder, state: State, value: Any, before: Any, arm: Arm) -> None:
    """As `freeze_put_in`, before the next round, for what was there before the loop: each iteration finds it frozen.

    What a list held ``before`` an iteration, that has not put in.
    """
    held = {id(each) for each in mutable_containers(before)}
    for each in _newly_listed(state, value, arm):
        if id(each) not in held and arm.is_older(each):
            recorder.identities.freeze(each, recorder.region.path)


def _newly_listed(state: State, value: Any, arm: Arm) -> Iterator[Any]:
    """The objects that an iteration leaves in lists of unknown length."""
    parts = None if is_empty(value) else arm.view(value)
    if isinstance(state, Listed) and parts is not None:
        for child in parts.children[len(state.begin) :]:
            yield from () if type(child) is StagedSpread else mutable_parts(state.element, child)
    elif isinstance(state, Tree) and parts is not None:
        for child, inner in zip(state.children, like(state, parts).children):
            yield from _newly_listed(child, inner, arm)


def _put_in(recorder: Recorder, element: Element, child: Any) -> Put:
    """The objects that the user could change of which an iteration puts copies into a list, and on which path.

    Of what stands for elements, only what an object has in it that was put in: no list that was read from.
    """
    identities, is_spread = recorder.identities, type(child) is StagedSpread
    put = identities.copied_on(id(child)) if is_spread else [(part, ALWAYS) for part in parts_in(element, child)]
    read = {id(each) for part, _ in put if id(part) in identities.frozen for each, _ in identities.copied_on(id(part))}
    return [
        (each, on)
        for part, on in put
        for each in identities.on_path(part, on).values()
        if type(each) is not StagedSpread or (each is part and id(part) not in read)
    ]


def _is_listed(value: Any) -> bool:
    return isinstance(value, (list, tuple, collections.deque)) and lists.has_spread(value)


# ---- elements of lists that iterations change
Values = dict[Hashable, Any]


@dataclass(eq=False)
class CarriedElements:
    """What a loop finds out about elements of lists that its iterations change.

    Attributes:
        outdated: what no iteration may use, for one before it has changed what it stands for.
        broken: the references whose elements an iteration leaves as something else than their holders have.
        held: the others, with the keys of what their holders have.
        left: what the last iteration left in each place.
        together: the places of which something may be one object.
    """

    recorder: Recorder
    outdated: dict[int, Any] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    held: list[tuple[Reference, Hashable]] = field(default_factory=list)
    left: Values = field(default_factory=dict)
    together: set[frozenset[Hashable]] = field(default_factory=set)

    def begin(self, region: Region, places: dict[Hashable, Place], inputs: Values) -> None:
        """Told of what stands in an iteration for what is carried; the places hold what they do before the loop."""
        region.outdated.update(self.outdated)
        self.held = []
        for key, value in inputs.items():
            place = places[key]
            relate(self.recorder.identities, value, place.get())
            relate(self.recorder.identities, value, self.left.get(key, value))
            if isinstance(place, ContentsPlace):
                for reference in self.recorder.identities.references.into(place.target):
                    if id(reference) not in self.broken:
                        reference.agreed.append(contents_of(value))
                        self.held.append((reference, key))

    def settle(self, region: Region, inputs: Values, left: Values, rebuilt: Collection[Hashable]) -> bool:
        """Whether what an iteration found is true of the next one.

        Args:
            region: of the iteration.
            inputs: what stood there for what is carried.
            left: what it left in each place.
            rebuilt: the keys of the places whose containers each iteration finds made anew.
        """
        inputs = {key: value for key, value in inputs.items() if key in rebuilt}
        for key, value in inputs.items():
            relate(self.recorder.identities, value, left[key])
        new = {k: v for k, v in region.outdated.items() if k not in self.outdated and self.recorder.region.holds(v)}
        broken = {id(each) for each, key in self.held if not each.agrees(contents_of(left[key]))}
        together = self._together(inputs)
        settled = not new and not broken and together == self.together
        self.outdated |= new
        self.broken |= broken
        self.left, self.together = left, together
        return settled

    def _together(self, inputs: Values) -> set[frozenset[Hashable]]:
        """The groups of keys whose values have objects of one family in them."""
        families = self.recorder.identities.families
        by_family: dict[int, set[Hashable]] = {}
        for key, value in inputs.items():
            for each in _inside(value):
                by_family.setdefault(families.number_of(each), set()).add(key)
        return {frozenset(keys) for keys in by_family.values() if len(keys) > 1}

    def close(self, key: Hashable, left: Any, result: Any) -> None:
        """Told of what a place holds behind the loop."""
        relate(self.recorder.identities, result, left)
        for reference, mine in self.held:
            if mine == key and id(reference) not in self.broken:
                reference.agreed.append(contents_of(result))

    def finish(self) -> None:
        """To be called when the loop is recorded: what its iterations must not use, nobody may use behind it."""
        self.recorder.region.outdated.update(self.outdated)


def relate(identities: Identities, made: Any, source: Any) -> None:
    """Note that what is in a value, and the value, may be what is in another one."""
    if made is source or is_empty(made) or is_empty(source):
        return
    if is_mutable_container(made) and is_mutable_container(source):
        identities.families.relate(made, source)
    ours, theirs = ([*_inside(value)] for value in (made, source))
    if not ours:
        return
    identities.families.relate(*ours)
    for each in theirs:
        if type(each) is StagedSpread:
            identities.families.relate_to_elements(ours[0], each)
        else:
            identities.families.relate(ours[0], each)


def know_elsewhere(identities: Identities, value: Any) -> None:
    """Note that nobody can tell which other names lead to what is in a value, and to the value."""
    for each in (value, *_inside(value)):
        if type(each) is StagedSpread or is_mutable_container(each):
            identities.families.know_elsewhere(each)


def _inside(value: Any) -> Iterator[Any]:
    """The containers in a value that can be changed, and what stands for elements that can, at any depth."""
    queue, seen, ours = [value], set[int](), set[int]()
    while queue:
        item = queue.pop()
        if type(item) is StagedSpread:
            yield from (item,) if is_mutable(item.element) else ()
            continue
        parts = None if is_empty(item) or id(item) in seen else object_parts(item)
        if parts is None:
            continue
        seen.add(id(item))
        table = table_of(item) if isinstance(item, (dict, set)) else None
        if table is not None:
            ours |= {id(table.keys), id(table.values)}  # nobody else has these lists
        if item is not value and id(item) not in ours and not isinstance(item, _NO_CONTAINERS):
            yield item
        queue.extend(parts.children)
