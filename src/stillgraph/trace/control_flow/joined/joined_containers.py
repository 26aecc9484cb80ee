"""Containers joined of two: each is built once, and known for the object that it stands for on a path."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stillgraph.core.lookup import is_exactly
from stillgraph.program.types import JoinFailure, NumberType
from stillgraph.trace.control_flow.joined.leaves import DEAD, Build, Leaves, is_empty
from stillgraph.trace.control_flow.joined.told_once import told_once
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.paths import Paths, paths_of
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.entries import Entry

Stood = Callable[[Any, Sequence[Any]], Any]  # of a joined container and the leaves: what it stands for, maybe itself

COMPLEX = (complex, StagedComplex)


class JoinedContainers:
    """The containers that a join has met.

    Two names of one container stay names of one. What a path leaves of an object from before the two paths is told by
    a flag, which is one more leaf.

    Args:
        recorder: the capture.
        leaves: what the two paths hand out.
        arms: of a branch, if the two paths are its.

    Attributes:
        is_older: whether an object was there before the two paths.
    """

    def __init__(
        self,
        recorder: Recorder,
        leaves: Leaves,
        is_older: Callable[[Any], bool],
        arms: tuple[Region, Region] | None = None,
    ) -> None:
        self._arms = arms
        self._recorder = recorder
        self._leaves = leaves
        self.is_older = is_older
        self._builds: dict[tuple[int, int], Build] = {}  # mutable containers that met before
        self._partners: dict[tuple[int, int], int] = {}  # (side, container): what it met
        self._apart: set[int] = set()  # containers with two names on one path that are two on the other

    def known(self, left: Any, right: Any) -> Build | None:
        """How what these two are joined to is built, if they met before."""
        return self._builds.get((id(left), id(right)))

    @contextlib.contextmanager
    def tried(self) -> Iterator[None]:
        """While something is being joined that may have no join: then what it holds has met nobody."""
        before = {**self._builds}, {**self._partners}, {*self._apart}
        try:
            with self._leaves.tried():
                yield
        except JoinFailure:
            self._builds, self._partners, self._apart = before
            raise

    def alone(self, left: Any, right: Any, place: str, rebuild: Build, *, is_object: bool) -> Build:
        """A build of a container that one path leaves, and the other, which never arrives, does not."""
        side = int(left is DEAD)
        value = right if side else left
        stood = self._stood_for(value, side, place) if is_object else None
        once = self._once(left, right, rebuild)
        alone = once if stood is None else self._noting_origin(once, stood)
        build = self.where_met(value, side, alone)
        self._builds[id(left), id(right)] = build
        return build

    def _once(self, left: Any, right: Any, build: Build) -> Build:
        """A build that gives one object however many places hold these two: two names stay names of one container."""
        if isinstance(left, (tuple, slice, Exit, Entry, StagedArray)):
            return lambda outs: self._recorder.identities.tuples.join(build(outs))
        for side, (mine, other) in enumerate(((left, right), (right, left))):
            if left is DEAD or right is DEAD or is_empty(mine):
                continue
            if self._partners.setdefault((side, id(mine)), id(other)) != id(other):
                self._apart.add(id(mine))
        made: list[Any] = []

        def build_once(outs: Sequence[Any]) -> Any:
            if not made:
                made.append(build(outs))
                self._recorder.identities.meet(made[0], left, right, arms=self._arms)
                for side in (left, right):
                    self._remember_copy(made[0], side)
                if {id(left), id(right)} & self._apart:
                    self._recorder.identities.freeze(made[0])
            return made[0]

        self._builds[id(left), id(right)] = build_once
        return build_once

    def _remember_copy(self, made: Any, side: Any) -> None:
        """Remember what a joined container may be, where one side is a copy."""
        if id(side) in self._recorder.identities.copies:
            self._recorder.identities.copy_of(made, [side])

    def joined(self, left: Any, right: Any, place: str, build: Build) -> Build:
        """A build whose result stands, on one path, for an object that was there before the two."""
        if is_exactly(left, COMPLEX):  # a number: nothing tells two of the same value apart
            return build
        build = self._once(left, right, build)
        stood = (self._elsewhere(left, 0, right), self._elsewhere(right, 1, left))
        stood = (stood[0] or self._stood_for(left, 0, place), stood[1] or self._stood_for(right, 1, place))
        if self._are_before_the_call(left, right):
            stood = (lambda joined, outs: left, lambda joined, outs: right)
        if stood == (None, None):
            return build
        flag = self._leaves.flag(place)
        held, on = (left, right), paths_of(self._arms)
        return self._noting_origin(build, lambda joined, outs: _origin(joined, outs[flag], held, stood, outs, on))

    def _noting_origin(self, build: Build, origin: Stood) -> Build:
        def build_from_outer(outs: Sequence[Any]) -> Any:
            joined = build(outs)
            self._recorder.identities.stands_for(told_once(self._recorder, origin(joined, outs)))
            return joined

        return build_from_outer

    def _are_before_the_call(self, *sides: Any) -> bool:
        """Whether tuples and the like are but chosen from: each is found by a path, and may be asked to be that one."""
        return all(isinstance(each, (tuple, slice)) and self._recorder.is_found(each) for each in sides)

    def _stood_for(self, value: Any, side: int, place: str) -> Stood | None:
        """What a container that a path left stands for: an object from before the two, or one by the path's own flag.

        None is for a container that was certainly made on the path, and for a place without one.
        """
        if is_empty(value):
            return None
        origin = value if isinstance(value, Origin) else self._recorder.identities.origins.get(id(value))
        if origin is not value and (self.is_older(value) or self.is_from_before(value)):
            return lambda joined, outs: value
        if origin is None:
            return None
        held = (origin.left, origin.right)
        left, right = (self._inside(v, side, place) if old else None for v, old in zip(held, origin.older))
        if left is None and right is None:
            return None
        here, there = (False, origin.flag) if side else (origin.flag, False)  # not nothing: the run computes with it
        flag = self._leaves.add(here, there, NumberType(bool), place)
        return lambda joined, outs: _origin(joined, outs[flag], held, (left, right), outs, origin.on)

    def is_from_before(self, value: Any) -> bool:
        """Whether it is a tuple from before the call: one that the code makes is told from none by what is in it."""
        return isinstance(value, tuple) and self._recorder.is_outer(value)

    def _inside(self, value: Any, side: int, place: str) -> Stood | None:
        """As `_stood_for`, for what stands in another's origin: where the path has it elsewhere too, it is that one."""
        stood = self._stood_for(value, side, place)
        if isinstance(value, Origin) or self.is_older(value) or self.is_from_before(value):
            return stood

        def found(joined: Any, outs: Sequence[Any]) -> Any:
            build = self._met(value, side)
            if build is not None:
                return build(outs)
            self._recorder.identities.copy_of(joined, [value])
            return joined if stood is None else stood(joined, outs)

        return found

    def _elsewhere(self, value: Any, side: int, other: Any) -> Stood | None:
        """What one container of a path is that meets several of the other: the first of those joined ones."""
        known = self._partners.get((side, id(value)))
        if known is None or known == id(other) or self.is_older(value):
            return None
        build = self._builds[(known, id(value)) if side else (id(value), known)]
        return lambda joined, outs: build(outs)

    def where_met(self, value: Any, side: int, alone: Build) -> Build:
        """The build of a container without a partner: where another place holds it with one, all places look there."""

        def build(outs: Sequence[Any]) -> Any:
            met = self._met(value, side) if (side, id(value)) in self._partners else None
            return (met or alone)(outs)

        return build

    def _met(self, value: Any, side: int) -> Build | None:
        """How a container is built that another place holds: it is to be one object wherever the path has it."""
        other = self._partners.get((side, id(value)), id(DEAD))
        return self._builds.get((other, id(value)) if side else (id(value), other))


def _origin(
    joined: Any,
    flag: Any,
    held: tuple[Any, Any],
    stood: tuple[Stood | None, Stood | None],
    outs: Sequence[Any],
    on: tuple[Paths, Paths],
) -> Origin:
    """What a joined container stands for, where ``held`` is what the two paths had, which are ``on`` some."""
    found = [joined if each is None else each(joined, outs) for each in stood]
    left, right = (side if each is joined else each for side, each in zip(held, found))
    return Origin(joined, flag, left, right, (found[0] is not joined, found[1] is not joined), on)
