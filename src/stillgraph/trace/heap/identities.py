"""Containers that are another one on each path, or made anew in each iteration: what they stand for."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stillgraph.trace.heap.families import Families
from stillgraph.trace.heap.references import References


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


Conditions = tuple[tuple[Any, bool], ...]  # flags, each with what it is
Path = tuple[Any, int]  # what stands for the two paths of a branch, and which of them it is


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
        copies: some of them, each with what it may be; also what stands for elements of a list of unknown length, with
            what was copied there.
        repeated: what stands for elements of such a list, one of which may be there twice.
        families: which objects may be one, or hold one that is.
        references: where elements of such lists were read, by which they are changed there.
        place: tells where a capture is, for `before_refusal`.
        refusing: told of a place where the capture found out what it is about to be refused for.
    """

    place: Callable[[], Any] | None = None
    refusing: Callable[[Any], None] | None = None

    def __init__(self) -> None:
        self.origins: dict[int, Origin] = {}
        self.frozen: dict[int, Any] = {}
        self.copies: dict[int, tuple[Any, dict[int, Any]]] = {}
        self.repeated: dict[int, Any] = {}
        self.families = Families()
        self.references = References()
        self._changing: dict[int, Any] = {}  # of which `changing` is open: whoever opened it changes the others
        self._checked: dict[int, Any] = {}  # those of them that were joined to what is changed
        self._sides: dict[int, Any] = {}  # what the joined containers stand for
        self._met: dict[int, tuple[Any, tuple[Any, ...], Any]] = {}  # a joined container, and what each path has for it
        self._frozen_on: dict[int, set[Path | None]] = {}  # on which paths; None is for all
        self._branches: set[Any] = set()  # the branches whose paths `_frozen_on` names
        self._apart: dict[int, Any] = {}  # of what loops and handlers have made others
        self._joined_tuples: dict[int, tuple[Any, ...]] = {}  # made anew of two that paths leave
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

    def join_tuple(self, made: Any) -> Any:
        """Remember a tuple that was made of two: on a path, it may be one that the code has by another name."""
        if isinstance(made, tuple):
            self._joined_tuples[id(made)] = made
        return made

    def is_joined_tuple(self, value: Any) -> bool:
        """Whether `join_tuple` was told of it."""
        return id(value) in self._joined_tuples

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

        What one path of a branch has frozen is no copy where the other path left it.
        """
        nowhere: frozenset[Path] = frozenset()
        queue = [(id(target), nowhere)] if self.frozen else []
        seen: set[tuple[int, frozenset[Path]]] = set()
        while queue:
            key, taken = queue.pop()
            if any(on is None or (on[0], 1 - on[1]) not in taken for on in self._frozen_on.get(key, ())):
                return True
            _, sides, paths = self._met.get(key, (None, (), None))
            for side, value in enumerate(sides):
                way = id(value), taken | {(paths, side)} if paths in self._branches else taken
                if way not in seen:
                    seen.add(way)
                    queue.append(way)
        return False

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

    def freeze(self, value: Any, on: Path | None = None) -> None:
        """Let nobody change a container, for it is one of several copies of one; be it on one path of a branch."""
        self.frozen[id(value)] = value
        self._frozen_on.setdefault(id(value), set()).add(on)
        if on is not None:
            self._branches.add(on[0])

    def copy_of(self, copy: Any, originals: Iterable[Any]) -> None:
        """As `freeze`, for one that a loop or handler makes anew while other names lead to what it may be."""
        self.freeze(copy)
        self.copied_into(copy, originals)

    def copied_into(self, copy: Any, originals: Iterable[Any]) -> None:
        """Remember that something has copies of containers in it, or of what these are copies of."""
        mine = self.copies.setdefault(id(copy), (copy, {}))[1]
        for original in originals:
            mine[id(original)] = original
            mine.update(self.copies.get(id(original), (None, {}))[1])
        self.families.relate(copy, *mine.values())
        if self.place is not None:
            self._places.setdefault(id(copy), self.place())

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

    def keep(self, value: Any) -> None:
        """Remember an object of a path that a list of unknown length holds as it is: joins make another of it."""
        self._kept[id(value)] = value

    def meet(self, joined: Any, *sides: Any, paths: Any = None) -> None:
        """Remember of what a container was joined: what is found out about these holds for it too.

        ``paths`` stands for the two paths of a branch, if these have left the sides.
        """
        self._met[id(joined)] = joined, sides, paths
        self.families.relate(joined, *(side for side in sides if type(side) is type(joined)))
        if self.place is not None:
            self._places.setdefault(id(joined), self.place())

    def met_by(self, joined: int) -> set[int]:
        """The ids of what a container, given its id, was joined of, be it in several joins."""
        found: set[int] = set()
        queue = [joined]
        while queue:
            sides = self._met.get(queue.pop(), (None, (), None))[1]
            new = {id(side) for side in sides} - found
            found |= new
            queue += new
        return found

    def uncertain(self, handed_out: Iterable[int], inside: Callable[[], Mapping[int, set[int]]]) -> Any:
        """One of the objects with the given ids that may be, or hold, a copy of another one of them; or None.

        Args:
            handed_out: the ids.
            inside: gives by the id of an object the ids of all that is in it: none of these is the object itself.
        """
        handed_out = set(handed_out)
        told = {each: {each, *self.met_by(each)} for each in handed_out}  # which of these it is, a flag tells
        for each, sides in told.items():
            if not sides.isdisjoint(self._kept.keys() & handed_out - {each}):
                return self._met[each][0]
        copied = {each: self._originals(sides).keys() - sides for each, sides in told.items()}
        seen: dict[int, list[int]] = {}
        for each in handed_out:
            for key in told[each] | copied[each]:
                seen.setdefault(key, []).append(each)
        pairs = {(one, other) for one, keys in copied.items() for key in keys for other in seen[key] if one != other}
        held = inside() if pairs else {}
        for one, other in pairs:
            is_in = other in held.get(one, ()) or one in held.get(other, ())
            if not is_in and not self._are_apart(one, other):
                return next(self.copies[key][0] for key in told[one] if key in self.copies)
        return None

    def behind(self, container: Any) -> list[Any]:
        """A container, and what it may be: what it was joined of, or is a copy of, whatever lies between."""
        found = {id(container): container}
        queue = [container]
        while queue:
            key = id(queue.pop())
            sides = (*self._met.get(key, (None, (), None))[1], *self.copies.get(key, (None, {}))[1].values())
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
