"""Containers that are another one on each path, or made anew in each iteration: what they stand for."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stillgraph.trace.heap.families import Families
from stillgraph.trace.heap.joined_tuples import JoinedTuples
from stillgraph.trace.heap.paths import ALWAYS, EVERY, On, Paths, note_path
from stillgraph.trace.heap.references import References

Conditions = tuple[tuple[Any, bool], ...]  # flags, each with what it is
_UNMET: tuple[Any, tuple[Any, ...], None] = (None, (), None)


@dataclass(frozen=True, eq=False)
class Origin:
    """A joined container that stands, on one path or both, for an object from before: which one, by ``flag``.

    A side that is older may be an `Origin` itself: one of several, by a flag that the path has handed out.
    """

    joined: Any
    flag: Any
    left: Any
    right: Any
    older: tuple[bool, bool]  # whether the left, and the right, was there before
    on: tuple[Paths, Paths] = (EVERY, EVERY)  # the paths on which it is the left, and the right


def _told(origin: Origin, before: Conditions = ()) -> Iterator[tuple[Conditions, Any]]:
    """The containers from before that a joined one may be, each with the flags, and what they are where it is that."""
    for side, holds, older in zip((origin.left, origin.right), (True, False), origin.older):
        conditions = (*before, (origin.flag, holds))
        if isinstance(side, Origin):
            yield from _told(side, conditions)
        elif older:
            yield conditions, side


AMBIGUOUS = "Assign to local variables inside the branch or loop, and store or change them afterwards."  # a hint


class Identities:
    """What is known of the containers that joins and loops have made.

    Attributes:
        origins: what stands for several containers, by the id of the joined one.
        frozen: containers that other names would have to see change, by their ids.
        freezings: these, each as often as it was frozen on one more path.
        copies: some of them, each with what it may be; also what stands for elements of a list of unknown length, with
            what was copied there.
        repeated: what stands for elements of such a list, one of which may be there twice.
        families: which objects may be one, or hold one that is.
        references: where elements of such lists were read, by which they are changed there.
        path: tells through which arms a capture has gone to where it is.
        place: tells where a capture is, for `before_refusal`.
        refusing: told of a place where the capture found out what it is about to be refused for.
    """

    place: Callable[[], Any] | None = None
    refusing: Callable[[Any], None] | None = None

    def __init__(self, path: Callable[[], On]) -> None:
        self.path = path
        self.origins: dict[int, Origin] = {}
        self.frozen: dict[int, Any] = {}
        self.freezings: dict[int, Any] = {}  # no list: Python's collector would know that of what is older (`births`)
        self.copies: dict[int, tuple[Any, dict[int, Any]]] = {}
        self.repeated: dict[int, Any] = {}
        self.families, self.references, self.tuples = Families(), References(), JoinedTuples()
        self._changing: dict[int, Any] = {}  # of which `changing` is open: whoever opened it changes the others
        self._checked: dict[int, Any] = {}  # those of them that were joined to what is changed
        self._sides: dict[int, Any] = {}  # what the joined containers stand for
        self._met: dict[int, tuple[Any, tuple[Any, ...], tuple[Any, Any] | None]] = {}  # joined of what, in which arms
        self._other: dict[Any, Any] = {}  # by an arm of a branch: the other one
        self._frozen_on: dict[int, set[On]] = {}
        self._copied_on: dict[tuple[int, int], set[On]] = {}  # by the ids of copy and original; always if not here
        self._apart: dict[int, Any] = {}  # of what loops and handlers have made others
        self._kept: dict[int, Any] = {}  # objects of a path that lists of unknown length hold as they are
        self._places: dict[int, Any] = {}  # where the capture was when it made a copy
        self._read_at: dict[int, tuple[Any, Any, int]] = {}  # by copy: out of what it was read, at which known index

    def stands_for(self, origin: Origin) -> None:
        """Remember a joined container: who changes it, or what it stands for, changes all of them."""
        self.origins[id(origin.joined)] = origin
        sides = [origin]
        for each in sides:
            sides += [side for side in (each.left, each.right) if isinstance(side, Origin)]
            self._sides.update({id(side): side for side in (each.left, each.right)})

    def taken_apart(self) -> dict[int, Any]:
        """By their ids, the objects that joins and loops have looked into, to make others of them."""
        sides = [*self._apart.values(), *(side for _, met, _ in self._met.values() for side in met)]
        sides += [side for _, originals in self.copies.values() for side in originals.values()]
        return {id(side): side for side in sides}

    def take_apart(self, containers: Iterable[Any]) -> None:
        """Remember containers of which a loop or handler makes others, element by element."""
        self._apart.update((id(each), each) for each in containers)

    def is_ambiguous(self, target: Any) -> bool:
        """Whether a container has two names on one path, and only one on the other."""
        if id(target) in self._checked:
            return False
        if not self.is_changing(target) and self.may_be_others(target):
            return True
        return self.is_copy(target) or any(each in self._kept for each in self.met_by(id(target)))

    def is_copy(self, target: Any) -> bool:
        """Whether a container is a copy, or was joined of one: other names would have to see it change.

        What one path of a branch has frozen is no copy on the other path, and none where the other path left it.
        """
        if not self.frozen:
            return False
        here, mine = self.path(), {id(target), *self.met_by(id(target))}
        frozen = ((key, on) for key in mine & self._frozen_on.keys() for on in self._frozen_on[key])
        return any(
            not self._exclude(on, here) and (key == id(target) or key in self.met_by(id(target), on))
            for key, on in frozen
        )

    def may_be_others(self, target: Any) -> bool:
        """Whether a flag tells whether a container is another one that the capture knows."""
        return id(target) in self.origins or id(target) in self._sides

    @contextlib.contextmanager
    def changing(self, target: Any, because: Any = None) -> Iterator[None]:
        """While a container is changed, of which the caller changes the `counterparts` afterwards.

        ``because`` is one that was joined of it, and has been changed: where it is that, it is a copy if that is.
        """
        self._changing[id(target)] = target
        if id(target) in self.met_by(id(because)):
            self._checked[id(target)] = target
        try:
            yield
        finally:
            del self._changing[id(target)]
            self._checked.pop(id(target), None)

    @contextlib.contextmanager
    def writing_through(self, target: Any) -> Iterator[None]:
        """While a copy is changed of which the caller changes the original, and forgets the other copies."""
        self._changing[id(target)] = self._checked[id(target)] = target
        try:
            yield
        finally:
            del self._changing[id(target)], self._checked[id(target)]

    def is_changing(self, target: Any) -> bool:
        """Whether somebody will change the `counterparts` of a container, too."""
        return id(target) in self._changing

    def may_be(self, value: Any) -> list[Any]:
        """The objects from before that a flag tells a container to be, or itself where there is no flag."""
        origin = self.origins.get(id(value))
        return [value] if origin is None else [side for _, side in _told(origin)]

    def told(self, value: Any) -> Iterator[tuple[Conditions, Any]]:
        """What a container may be: itself, and those from before, each with the flags and what they are where it is."""
        yield (), value
        origin = self.origins.get(id(value))
        if origin is not None:
            yield from _told(origin)

    def counterparts(self, target: Any) -> Iterator[tuple[Conditions, Any]]:
        """The other containers that a container may be, each with the flags, and what they are where it is that one."""
        for origin in [*self.origins.values()]:
            for conditions, side in _told(origin):
                if (target is side or target is origin.joined) and side is not origin.joined:
                    yield conditions, side if target is origin.joined else origin.joined

    @property
    def count(self) -> int:
        """How many containers have been joined of which a flag tells what they stand for."""
        return len(self.origins)

    def of_the_first(self, count: int, is_known: Callable[[Any], bool]) -> list[Any]:
        """These containers, as many as there were then, and what they may be, as far as their flags are known."""
        first = [each for each in itertools.islice(self.origins.values(), count) if is_known(each.flag)]
        return [each for origin in first for each in (origin.joined, *(side for _, side in _told(origin)))]

    def is_told(self, container: Any) -> bool:
        """Whether a flag tells what a container stands for, so that it is a copy of nothing."""
        return id(container) in self.origins

    def is_another(self, value: Any) -> bool:
        """Whether an object is another one on each path, and has no equality but ``is``: Python cannot compare it."""
        kind: Any = type(value)
        return (id(value) in self.origins or id(value) in self.frozen) and kind.__eq__ is object.__eq__

    def freeze(self, value: Any, on: On = ALWAYS) -> None:
        """Let nobody change a container, for it is one of several copies of one; be it on some paths alone."""
        self.frozen[id(value)] = value
        if note_path(self._frozen_on.setdefault(id(value), set()), on):
            self.freezings[len(self.freezings)] = value

    def copy_of(self, copy: Any, originals: Iterable[Any]) -> None:
        """As `freeze`, for one that a loop or handler makes anew while other names lead to what it may be."""
        self.freeze(copy)
        self.copied_into(copy, originals)

    def copied_into(self, copy: Any, originals: Iterable[Any], on: On = ALWAYS) -> None:
        """Remember that something has copies of containers in it, or of what these are copies of; be it on a path."""
        mine = self.copies.setdefault(id(copy), (copy, {}))[1]
        for original in originals:
            for each, paths in ((original, {on}), *self._copied(id(original))):
                known = self._copied_on.setdefault((id(copy), id(each)), set())
                for path in paths:
                    note_path(known, path)
                mine[id(each)] = each
        self.families.relate(copy, *mine.values())
        if self.place is not None:
            self._places.setdefault(id(copy), self.place())

    def _copied(self, copy: int) -> list[tuple[Any, set[On]]]:
        """What something, given its id, has copies of, each with the paths on which it was copied."""
        originals = self.copies.get(copy, (None, {}))[1]
        return [(each, self._copied_on[copy, key]) for key, each in originals.items()]

    def read_at(self, copy: Any, spread: Any, index: int) -> None:
        """Remember at which index an element was read that something is, or is in."""
        self._read_at[id(copy)] = (copy, spread, index)

    def _are_apart(self, one: int, other: int) -> bool:
        """Whether two objects are of different elements of a list, in which no object is twice."""
        (_, of, index), (_, of_other, position) = (self._read_at.get(key, (None, key, 0)) for key in (one, other))
        apart = index != position and (index < 0) == (position < 0)
        return of is of_other and apart and id(of) not in self.repeated

    def repeat(self, spread: Any) -> None:
        """Remember elements of a list of which two may be one object: each of them would be a copy of its own."""
        self.repeated[id(spread)] = spread

    def take_over(self, copy: Any, spread: Any) -> None:
        """Let something stand for elements that ``spread`` stood for: what is known of these holds for it too."""
        self.families.relate_to_elements(copy, spread)
        self.copied_into(copy, self.copies.get(id(spread), (None, {}))[1].values())
        if id(spread) in self.repeated:
            self.repeat(copy)

    def part(self, *arms: Any) -> None:
        """Told of the two arms of a branch: no path goes through both."""
        self._other.update(zip(arms, reversed(arms)))

    def keep(self, value: Any) -> None:
        """Remember an object of a path that a list of unknown length holds as it is: joins make another of it."""
        self._kept[id(value)] = value

    def meet(self, joined: Any, *sides: Any, arms: tuple[Any, Any] | None = None) -> None:
        """Remember of what a container was joined: what is found out about these holds for it too.

        ``arms`` are those of a branch, if these have left the sides.
        """
        self._met[id(joined)] = joined, sides, arms
        self.families.relate(joined, *(side for side in sides if type(side) is type(joined)))
        if self.place is not None:
            self._places.setdefault(id(joined), self.place())

    def _met_sides(self, joined: int, on: On) -> tuple[Any, ...]:
        """What a container, given its id, was joined of, as far as it may be that on a path."""
        _, sides, arms = self._met.get(joined, _UNMET)
        if arms is None:
            return sides
        return tuple(side for side, other in zip(sides, reversed(arms)) if other not in on)

    def met_by(self, joined: int, on: On = ALWAYS) -> set[int]:
        """The ids of what a container, given its id, was joined of, be it in several joins."""
        found: set[int] = set()
        queue = [joined]
        while queue:
            new = {id(side) for side in self._met_sides(queue.pop(), on)} - found
            found |= new
            queue += new
        return found

    def uncertain(
        self,
        handed_out: Mapping[int, tuple[Any, Collection[tuple[Paths, ...]]]],
        inside: Callable[[], Mapping[int, set[int]]],
    ) -> Any:
        """One of the objects with the given ids that may be, or hold, a copy of another one of them; or None.

        Args:
            handed_out: by the ids, the objects, each with where it is handed out: there, on one of each of some paths.
            inside: gives by the id of an object the ids of all that is in it: none of these is the object itself.
        """
        told = {each: {each, *self.met_by(each)} for each in handed_out}  # which of these it is, a flag tells
        for each, sides in told.items():
            if not sides.isdisjoint(self._kept.keys() & handed_out.keys() - {each}):
                return self._met[each][0]
        copied = {each: self._originals(sides).keys() - sides for each, sides in told.items()}
        seen: dict[int, list[int]] = {}
        for each in handed_out:
            for key in told[each] | copied[each]:
                seen.setdefault(key, []).append(each)
        pairs = {(one, other) for one, keys in copied.items() for key in keys for other in seen[key] if one != other}
        held = inside() if pairs else {}
        for one, other in pairs:
            if other in held.get(one, ()) or one in held.get(other, ()) or self._are_apart(one, other):
                continue
            copied_here = [each for key in told[one] for each in self.copied_on(key)]
            others, both = self._held(handed_out[other][0]), (handed_out[key][1] for key in (one, other))
            if any(self._overlap(copied_here, others, told[one], within) for within in itertools.product(*both)):
                return next(self.copies[key][0] for key in told[one] if key in self.copies)
        return None

    def may_share(self, one: Any, other: Any) -> bool:
        """Whether two objects may be one on some path; of what stands for elements, whether one of these may be."""
        return self._overlap(self._held(one), self._held(other))

    def copied_on(self, copy: int) -> list[tuple[Any, On]]:
        """What something, given its id, is a copy of or has copies of, each with a path on which it was copied."""
        return [(each, on) for each, paths in self._copied(copy) for on in paths]

    def held_on(self, spread: Any, on: On) -> list[Any]:
        """What stands for elements, and what it may have copies of on a path."""
        return [spread, *(each for each, path in self.copied_on(id(spread)) if not self._exclude(path, on))]

    def _held(self, value: Any) -> list[tuple[Any, On]]:
        """An object, and the elements that it stands for, each with a path on which it does."""
        return [(value, ALWAYS), *(() if id(value) in self.frozen else self.copied_on(id(value)))]

    def _overlap(
        self,
        some: list[tuple[Any, On]],
        others: list[tuple[Any, On]],
        apart: Collection[int] = frozenset(),
        within: Iterable[Iterable[Paths]] = (),
    ) -> bool:
        """Whether one of some objects, but for those ``apart``, may be one of the others where a path has both."""
        needed = [*itertools.chain.from_iterable(within)]
        for (one, on), (other, too) in itertools.product(some, others):
            path = None if self._exclude(on, too) else self._narrowed(on | too, needed)
            if path is not None:
                shared = self.on_path(one, path).keys() & self.on_path(other, path).keys()
                if not shared.issubset(apart):
                    return True
        return False

    def _narrowed(self, path: On, within: Iterable[Paths]) -> On | None:
        """What is known of a path that is also one of each of some paths; None if there is no such path."""
        for paths in within:
            left = [each for each in paths if not self._exclude(each, path)]
            if not left:
                return None
            path = path | left[0] if len(left) == 1 else path
        return path

    def _exclude(self, on: On, too: On) -> bool:
        """Whether no path goes through all of the arms."""
        return any(self._other.get(arm) in too for arm in on)

    def on_path(self, value: Any, on: On) -> dict[int, Any]:
        """By its id what an object may be on a path, itself among it; what stands for elements is but that."""
        found = {id(value): value}
        queue = [value]
        while queue:
            key = id(queue.pop())
            sides = [*self._met_sides(key, on)]
            for each, paths in self._copied(key) if key in self.frozen else ():
                if not all(self._exclude(path, on) for path in paths):
                    sides.append(each)
            new = {id(side): side for side in sides if id(side) not in found}
            found |= new
            queue += new.values()
        return found

    def behind(self, container: Any) -> list[Any]:
        """A container, and what it may be: what it was joined of, or is a copy of, whatever lies between."""
        found = {id(container): container}
        queue = [container]
        while queue:
            key = id(queue.pop())
            sides = (*self._met.get(key, _UNMET)[1], *self.copies.get(key, (None, {}))[1].values())
            new = {id(side): side for side in sides if id(side) not in found}
            found |= new
            queue += new.values()
        return [*found.values()]

    def originals(self, copy: Any) -> list[Any]:
        """The containers that something may be a copy of, or have copies of."""
        return [*self._originals([id(copy)]).values()]

    def _originals(self, containers: Iterable[int]) -> dict[int, Any]:
        """What containers may be copies of, given by their ids."""
        originals = [side for key in containers for side in self.copies.get(key, (None, {}))[1].values()]
        return {id(each): each for side in originals for each in self.behind(side)}

    def before_refusal(self, copy: Any) -> None:
        """To be called before a capture is refused for a copy, of which somebody may know how to do without it."""
        if self.refusing is not None and id(copy) in self._places:
            self.refusing(self._places[id(copy)])
