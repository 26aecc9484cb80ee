"""The join: one value out of what two paths left in the same place. This is the only place that says what a join is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from stillgraph.core.diagnostics import Side
from stillgraph.core.lookup import is_exactly
from stillgraph.program.constants import Known
from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import (
    JoinFailure,
    ListType,
    NumberType,
    TensorType,
    Type,
    join_types,
    optional,
    table_of,
)
from stillgraph.trace.control_flow.elements import View, freeze_elements, leading, refuse_changed, wants_columns
from stillgraph.trace.control_flow.ruled_out import OnPath, narrowed
from stillgraph.trace.control_flow.unjoined import (
    TWO_TEXTS,
    Stale,
    Unjoined,
    alternatives,
    describe,
    explain,
    is_leaf,
    is_lost,
    named,
)
from stillgraph.trace.control_flow.unlike_elements import telling_elements
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.assigned import Line, nowhere
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.journal import MISSING, Place
from stillgraph.trace.values.arrays import StagedArray
from stillgraph.trace.values.callables import CALLABLES, callable_parts
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import Parts, complex_parts, holds_staged, instance_parts, split
from stillgraph.trace.values.entries import Entry, alike, cover, is_keyed
from stillgraph.trace.values.lists import (
    Element,
    StagedSpread,
    columns,
    structure,
    types,
)
from stillgraph.trace.values.numbers import Staged, StagedNumber
from stillgraph.trace.values.several import known_in


class _Dead:
    def __repr__(self) -> str:
        return "<never reached>"


DEAD = _Dead()  # what every place holds after a path that raises

_MOST_CHOICES = 8

Build = Callable[[Sequence[Any]], Any]
Stood = Callable[[Any, Sequence[Any]], Any]  # of a joined container and the leaves: what it stands for, maybe itself


def same_constant(left: Any, right: Any) -> bool:
    """Whether two values are one constant, whichever path is taken."""
    if left is right:
        return True
    if type(left) is not type(right) or isinstance(left, (torch.Tensor, Staged)):
        return False
    if isinstance(left, float):
        return left == right and str(left) == str(right)
    return isinstance(left, (int, str, bytes, complex, torch.dtype, torch.device, range)) and bool(left == right)


def may_be_parameter(value: Any) -> bool:
    """Whether a tensor is a parameter, or was joined of one: a module then has it among its parameters."""
    return isinstance(value, torch.nn.Parameter) or bool(info(value).parameters)


def has_leaf(value: Any, view: View, inside: tuple[int, ...] = ()) -> bool:
    """Whether a tensor, a number, an entry of a table or a list of unknown length is in a value, seen by ``view``."""
    if isinstance(value, Unjoined):
        return known_in(value) is not None
    if value is None or is_leaf(value) or isinstance(value, StagedSpread):
        return value is not None
    parts = None if id(value) in inside else view(value)
    return parts is not None and any(has_leaf(child, view, (*inside, id(value))) for child in parts.children)


@dataclass(frozen=True, eq=False)
class Pair:
    """A leaf that two paths have to hand out, and the type that covers what they have."""

    left: Any
    right: Any
    type: Type
    place: str

    def side(self, index: int) -> Any:
        """What the left (0) or right (1) path has."""
        return self.right if index else self.left


@dataclass
class Joiner:
    """Joins places one after another and collects the leaves that the two paths have to hand out.

    ``pairs`` are those leaves. A leaf is a tensor, a number, None, `MISSING` (the
    path did not assign the variable) or `DEAD` (the path never arrives).
    """

    recorder: Recorder
    mark: int  # symbols made since are local to the paths
    pairs: list[Pair] = field(default_factory=list)
    allow_unjoined: bool = True
    is_older: Callable[[Any], bool] = lambda value: False  # whether an object was there before the two paths
    when: tuple[str, str] = ("before the loop", "after an iteration")  # what messages call the two, if no arms
    views: tuple[View, View] = (split, split)  # how each path sees a container: with what it wrote into it
    at: Place | None = None  # what is being joined: messages name it by the user's variables
    lines: tuple[Line, Line] = (nowhere, nowhere)  # where each path, or the entry and an iteration, assigned a place
    paths: tuple[OnPath, OnPath] | None = None  # within which the recorder answers as at the end of each path
    _flag: int | None = None
    _open: set[tuple[int, int]] = field(default_factory=set)  # containers whose children are being joined
    _joined: dict[tuple[int, int], Build] = field(default_factory=dict)  # mutable containers that met before
    _partners: dict[tuple[int, int], int] = field(default_factory=dict)  # (side, container): what it met
    _apart: set[int] = field(default_factory=set)  # containers with two names on one path that are two on the other

    def join(self, left: Any, right: Any, place: str) -> Build:
        """How to build the joined value out of the instantiated ``pairs``.

        Raises:
            JoinFailure: the values have no join and ``allow_unjoined`` is off.
        """
        if left is DEAD or right is DEAD:
            return self._one_sided(left, right, place, lambda type_: type_)
        if same_constant(left, right):
            return lambda _: left
        left, right = map(self.recorder.unpacked, (left, right))  # what the two leave is told by what is in it
        stale = next((side for side in (left, right) if isinstance(side, Stale)), None)
        if stale is not None:
            return lambda _: stale
        left, right = (self._as_its_path_knows(value, side) for side, value in enumerate((left, right)))
        try:
            return self._join_unlike(left, right, place)
        except JoinFailure as failure:
            self._explain(failure, left, right, place)
            if not self.allow_unjoined:
                raise
            return self._unjoined(left, right, place, failure)

    def join_contents(self, left: Any, right: Any, place: str) -> Build:
        """As `join`, for what a container holds on each path: there is one container, so it has to be one structure."""
        if left is DEAD or right is DEAD or same_constant(left, right):
            return self.join(left, right, place)
        try:
            return self._join_unlike(left, right, place)
        except JoinFailure as failure:
            self._explain(failure, left, right, place)
            raise

    def _explain(self, failure: JoinFailure, left: Any, right: Any, place: str) -> None:
        first, second = self.lines
        sides = ("one path leaves", left, first), ("the other path leaves", right, second)
        explain(self.recorder, failure, self.named(place), *sides)

    def named(self, place: str) -> str:
        """A place as the user's function names it."""
        rough = str(self.at)
        return named(self.at) + place.removeprefix(rough) if self.at is not None and place.startswith(rough) else place

    def _join_unlike(self, left: Any, right: Any, place: str) -> Build:
        entries = known_in(left), known_in(right)
        if entries[0] is not None and entries[1] is not None and any(isinstance(v, Unjoined) for v in (left, right)):
            return self._join_in_table(left, right, entries[0], entries[1], place)
        if left is MISSING or right is MISSING:
            self._require_told(right if left is MISSING else left, int(left is MISSING))
            return self._one_sided(left, right, place, lambda type_: optional(type_, unbound=True))
        if left is None and right is None:
            return lambda _: None
        if (left is None and is_leaf(right)) or (right is None and is_leaf(left)):
            return self._one_sided(left, right, place, lambda type_: optional(type_, none=True))
        if is_leaf(left) and is_leaf(right):
            return self._pair(left, right, join_types(self.type_of(left, 0), self.type_of(right, 1)), place)
        return self._join_containers(left, right, place)

    def _join_in_table(
        self, left: Any, right: Any, first: tuple[Known, ...], second: tuple[Known, ...], place: str
    ) -> Build:
        """An entry of the table that has those of both; what one path alone leaves tells which path was taken."""
        index = self._add(left, right, table_of(first, second), place)
        told = [
            (side, mine[0])
            for side, (mine, other) in enumerate(((first, second), (second, first)))
            if len(mine) == 1 and mine[0] not in other
        ]
        flag = self._take_flag(place) if told else index

        def build(outs: Sequence[Any]) -> Any:
            for side, entry in told:
                self.recorder.tells_entry(outs[index], entry, outs[flag], not side)
            return outs[index]

        return build

    def _require_told(self, value: Any, side: int) -> None:
        """Refuse to join with nothing what holds no leaf: only a leaf tells the run that its place has no value.

        Raises:
            JoinFailure: it holds none.
        """
        if value is not MISSING and not has_leaf(value, self.views[side]):
            raise JoinFailure("SG204", f"{describe(value)} on one path only")

    def _join_containers(self, left: Any, right: Any, place: str) -> Build:
        known = self._joined.get((id(left), id(right)))
        if known is not None:
            return known
        first, second = self._parts(left, 0), self._parts(right, 1)
        if is_exactly(left, _COMPLEX) and is_exactly(right, _COMPLEX):
            first, second = complex_parts(left), complex_parts(right)
        if first is not None and second is not None and wants_columns(first, second):
            return self._join_lists(left, right, first, second, place)
        if first is None or second is None or first.type is not second.type or _are_unlike_callables(first, second):
            hint = TWO_TEXTS if isinstance(left, str) and isinstance(right, str) else None
            raise JoinFailure("SG203", f"{describe(left)} on one path, {describe(right)} on the other", hint)
        if is_keyed(first):
            first, second = alike(first, second)
            both = cover(first, second)
            if both.is_unknown:
                self.recorder.before_unknown_length()
            first, second = both.of(first), both.of(second)
        if first.context != second.context or len(first.children) != len(second.children):
            raise JoinFailure("SG203", f"outputs differ in structure: {describe(left)} and {describe(right)}")
        if first.type is Exit or first.type is Entry:  # what these hold is only looked at where the flag says so
            first, second = (
                replace(p, children=tuple(DEAD if c is MISSING else c for c in p.children)) for p in (first, second)
            )
        with self._opened((id(left), id(right)), left), self._children_joined(first.type in CALLABLES):
            builds = [self.join(a, b, place + name) for a, b, name in zip(first.children, second.children, first.names)]
        return self._remembered(left, right, place, lambda outs: first.rebuild([build(outs) for build in builds]))

    @contextlib.contextmanager
    def _opened(self, key: tuple[int, int], value: Any) -> Iterator[None]:
        """While the children of a container are being joined, which it must not be one of."""
        if key in self._open:
            raise JoinFailure("SG203", f"{describe(value)} that contains itself")
        self._open.add(key)
        try:
            yield
        finally:
            self._open.discard(key)

    @contextlib.contextmanager
    def _children_joined(self, all_of_them: bool) -> Iterator[None]:
        """While children are being joined. What is called is one thing with joined parts, or is unjoined itself."""
        if not all_of_them:
            yield
            return
        before = self.allow_unjoined, self._flag, len(self.pairs), {**self._joined}, {**self._partners}, {*self._apart}
        self.allow_unjoined = False
        try:
            yield
        except JoinFailure:  # what it holds has met nobody
            _, self._flag, count, self._joined, self._partners, self._apart = before
            del self.pairs[count:]
            raise
        finally:
            self.allow_unjoined = before[0]

    def _once(self, left: Any, right: Any, build: Build) -> Build:
        """A build that gives one object however many places hold these two: two names stay names of one container."""
        if isinstance(left, (tuple, slice, Exit, Entry, StagedArray)):
            return build
        for side, (mine, other) in enumerate(((left, right), (right, left))):
            if left is DEAD or right is DEAD or is_empty(mine):
                continue
            if self._partners.setdefault((side, id(mine)), id(other)) != id(other):
                self._apart.add(id(mine))
        made: list[Any] = []

        def build_once(outs: Sequence[Any]) -> Any:
            if not made:
                made.append(build(outs))
                self.recorder.identities.meet(made[0], left, right)
                for side in (left, right):
                    self._remember_copy(made[0], side)
                if {id(left), id(right)} & self._apart:
                    self.recorder.identities.freeze(made[0])
            return made[0]

        self._joined[id(left), id(right)] = build_once
        return build_once

    def _remember_copy(self, made: Any, side: Any) -> None:
        """Remember what a joined container may be, where one side is a copy."""
        if id(side) in self.recorder.identities.copies:
            self.recorder.identities.copy_of(made, [side])

    def _remembered(self, left: Any, right: Any, place: str, build: Build) -> Build:
        """A build whose result stands, on one path, for an object that was there before the two."""
        if is_exactly(left, _COMPLEX):  # a number: nothing tells two of the same value apart
            return build
        build = self._once(left, right, build)
        stood = (self._elsewhere(left, 0, right), self._elsewhere(right, 1, left))
        stood = (stood[0] or self._stood_for(left, 0, place), stood[1] or self._stood_for(right, 1, place))
        if self._are_before_the_call(left, right):
            stood = (lambda joined, outs: left, lambda joined, outs: right)
        if stood == (None, None):
            return build
        flag = self._take_flag(place)
        return self._noting_origin(build, lambda joined, outs: _origin(joined, outs[flag], (left, right), stood, outs))

    def _noting_origin(self, build: Build, origin: Stood) -> Build:
        def build_from_outer(outs: Sequence[Any]) -> Any:
            joined = build(outs)
            self.recorder.identities.stands_for(origin(joined, outs))
            return joined

        return build_from_outer

    def _are_before_the_call(self, *sides: Any) -> bool:
        """Whether tuples and the like are but chosen from: each is found by a path, and may be asked to be that one."""
        return all(isinstance(each, (tuple, slice)) and self.recorder.is_found(each) for each in sides)

    def _stood_for(self, value: Any, side: int, place: str) -> Stood | None:
        """What a container that a path left stands for: an object from before the two, or one by the path's own flag.

        None is for a container that was certainly made on the path.
        """
        origin = value if isinstance(value, Origin) else self.recorder.identities.origins.get(id(value))
        if origin is not value and (self.is_older(value) or self._is_from_before(value)):
            return lambda joined, outs: value
        if origin is None:
            return None
        held = (origin.left, origin.right)
        left, right = (self._inside(v, side, place) if old else None for v, old in zip(held, origin.older))
        if left is None and right is None:
            return None
        here, there = (DEAD, origin.flag) if side else (origin.flag, DEAD)
        flag = self._add(here, there, NumberType(bool), place)
        return lambda joined, outs: _origin(joined, outs[flag], held, (left, right), outs)

    def _is_from_before(self, value: Any) -> bool:
        """Whether it is a tuple from before the call: one that the code makes is told from none by what is in it."""
        return isinstance(value, tuple) and self.recorder.is_outer(value)

    def _inside(self, value: Any, side: int, place: str) -> Stood | None:
        """As `_stood_for`, for what stands in another's origin: where the path has it elsewhere too, it is that one."""
        stood = self._stood_for(value, side, place)
        if isinstance(value, Origin) or self.is_older(value) or self._is_from_before(value):
            return stood

        def found(joined: Any, outs: Sequence[Any]) -> Any:
            build = self._met(value, side)
            if build is not None:
                return build(outs)
            self.recorder.identities.copy_of(joined, [value])
            return joined if stood is None else stood(joined, outs)

        return found

    def _elsewhere(self, value: Any, side: int, other: Any) -> Stood | None:
        """What one container of a path is that meets several of the other: the first of those joined ones."""
        known = self._partners.get((side, id(value)))
        if known is None or known == id(other) or self.is_older(value):
            return None
        build = self._joined[(known, id(value)) if side else (id(value), known)]
        return lambda joined, outs: build(outs)

    def _join_lists(self, left: Any, right: Any, first: Parts, second: Parts, place: str) -> Build:
        """Lists of different length, or of a length that only the run knows."""
        kept = leading(self.recorder, first.children, second.children)
        begin, held = first.children[:kept], (first.children[kept:], second.children[kept:])
        for side, children in enumerate(held):
            refuse_changed(children, self.views[side])
        with telling_elements(self.recorder, first.type, held, self.structure, self.named(place), self.lines):
            element = self.structure([*held[0], *held[1]])
        sides = [columns(element, children) for children in held]
        listed = map(ListType, types(element))
        indices = [self._add(a, b, type_, place) for a, b, type_ in zip(*sides, listed)]

        def build(outs: Sequence[Any]) -> Any:
            spread = StagedSpread(element, tuple(outs[index] for index in indices))
            freeze_elements(self.recorder, spread, held, self.is_older)
            return first.type([*begin, spread])

        return self._remembered(left, right, place, build)

    def structure(self, children: Sequence[Any]) -> Element:
        """The structure that covers elements that the paths put into a list.

        Raises:
            JoinFailure: there is none.
        """
        return structure(children, self.type_of, self.is_older)

    def _parts(self, value: Any, side: int) -> Parts | None:
        if isinstance(value, Unjoined):
            known = alternatives(value)
            children = (known.flag, known.left, known.right)
            where, why = known.place, known.failure
            return Parts(
                Unjoined, None, ("", "", ""), children, lambda new: Unjoined(new[0], new[1], new[2], where, why)
            )
        parts = self.views[side](value)
        if parts is not None or self.is_older(value):
            return parts
        return callable_parts(value) or instance_parts(value)

    def _take_flag(self, place: str) -> int:
        """The index of the leaf that tells which path was taken."""
        return self._add(True, False, NumberType(bool), place)

    def _one_sided(self, left: Any, right: Any, place: str, widen: Callable[[Type], Type]) -> Build:
        empty, value = (left, right) if is_empty(left) else (right, left)
        if is_empty(value):
            held = empty if value is DEAD else value
            return lambda _: MISSING if held is DEAD else held
        if is_leaf(value):
            if empty is DEAD and not isinstance(value, (torch.Tensor, StagedNumber, Unjoined)):
                return lambda _: value
            return self._pair(left, right, widen(self.type_of(value, int(value is right))), place)
        if empty is DEAD and (self.is_older(value) or self._is_from_before(value)):
            return lambda _: value
        if isinstance(value, StagedSpread):
            return self._one_sided_spread(empty is left, value, empty, place)
        parts = self._parts(value, int(value is right))
        if empty is DEAD and (parts is None or parts.attributes) and not holds_staged(value):
            return self._where_met(value, int(value is right), lambda _: value)
        if parts is None:
            if empty is DEAD:
                failure = JoinFailure("SG203", f"{describe(value)} that is made on one path holds values of that path")
                made = self.lines[int(value is right)](place)
                failure.sides = () if made is None else (Side("one path leaves it", made),)
                raise failure
            raise JoinFailure("SG204" if empty is MISSING else "SG203", f"{describe(value)} on one path only")
        return self._one_sided_container(left, right, parts, place, widen)

    def _one_sided_container(
        self, left: Any, right: Any, parts: Parts, place: str, widen: Callable[[Type], Type]
    ) -> Build:
        known = self._joined.get((id(left), id(right)))
        if known is not None:
            return known
        on_left = is_empty(right)
        value = left if on_left else right
        with self._opened((id(value), id(value)), value):
            builds = [
                self._one_sided(*((c, right) if on_left else (left, c)), place + n, widen)
                for c, n in zip(parts.children, parts.names)
            ]

        def rebuild(outs: Sequence[Any]) -> Any:
            return parts.rebuild([build(outs) for build in builds])

        if left is not DEAD and right is not DEAD:
            return self._remembered(left, right, place, rebuild)
        side = int(not on_left)
        stood = None if isinstance(value, Unjoined) else self._stood_for(value, side, place)
        once = self._once(left, right, rebuild)
        alone = once if stood is None else self._noting_origin(once, stood)

        build = self._where_met(value, side, alone)
        self._joined[id(left), id(right)] = build
        return build

    def _where_met(self, value: Any, side: int, alone: Build) -> Build:
        """The build of a container without a partner: where another place holds it with one, all places look there."""

        def build(outs: Sequence[Any]) -> Any:
            met = self._met(value, side) if (side, id(value)) in self._partners else None
            return (met or alone)(outs)

        return build

    def _met(self, value: Any, side: int) -> Build | None:
        """How a container is built that another place holds: it is to be one object wherever the path has it."""
        other = self._partners.get((side, id(value)), id(DEAD))
        return self._joined.get((other, id(value)) if side else (id(value), other))

    def _one_sided_spread(self, on_left: bool, spread: StagedSpread, empty: Any, place: str) -> Build:
        indices = []
        for column in spread.columns:
            left, right = (empty, column) if on_left else (column, empty)
            indices.append(self._add(left, right, self.type_of(column), place))

        def build(outs: Sequence[Any]) -> Any:
            made = StagedSpread(spread.element, tuple(outs[index] for index in indices))
            self.recorder.identities.take_over(made, spread)
            return made

        return build

    def _unjoined(self, left: Any, right: Any, place: str, failure: JoinFailure) -> Build:
        self.recorder.has_optionals = self.recorder.has_optionals or left is None or right is None
        self.recorder.has_unset = self.recorder.has_unset or left is MISSING or right is MISSING
        flag = self._take_flag(place)
        first = self._one_sided(left, DEAD, place, lambda type_: type_)
        second = self._one_sided(DEAD, right, place, lambda type_: type_)
        return lambda outs: Unjoined(outs[flag], first(outs), second(outs), place, failure)

    def _pair(self, left: Any, right: Any, type_: Type, place: str) -> Build:
        index = self._add(left, right, type_, place)
        choices = self.recorder.choices_of(left), self.recorder.choices_of(right)
        if choices[0] and choices[1] and type_ == NumberType(int):
            return self._chosen(index, tuple(dict.fromkeys((*choices[0], *choices[1]))))
        if not may_be_parameter(left) and not may_be_parameter(right):
            return lambda outs: outs[index]

        def build(outs: Sequence[Any]) -> Any:
            mark(outs[index], parameters=(left, right))
            return outs[index]

        return build

    def _chosen(self, index: int, choices: tuple[int, ...]) -> Build:
        def build(outs: Sequence[Any]) -> Any:
            if len(choices) <= _MOST_CHOICES:
                self.recorder.is_one_of(outs[index], choices)
            return outs[index]

        return build

    def _add(self, left: Any, right: Any, type_: Type, place: str) -> int:
        """The index of a leaf; there is one alone that tells which path was taken."""
        if left is True and right is False:
            if self._flag is not None:
                return self._flag
            self._flag = len(self.pairs)
        self.pairs.append(Pair(left, right, type_, place))
        return len(self.pairs) - 1

    def _as_its_path_knows(self, value: Any, side: int) -> Any:
        """A value without what it cannot be at the end of its path: one that it is on other paths alone, or None."""
        if self._absence(value, side) is True:
            return None
        if self.paths is None or not issubclass(type(value), Unjoined) or is_lost(value):
            return value
        with self.paths[side]():
            return narrowed(self.recorder, value)

    def _absence(self, value: Any, side: int) -> bool | None:
        """Whether a leaf is None, if its path knows."""
        if self.paths is None or not is_leaf(value) or not info(value).may_be_missing:
            return None
        with self.paths[side]():
            return self.recorder.known_absence(value)

    def type_of(self, value: Any, side: int = 1) -> Type:
        """The type of a leaf as seen from outside its path: sizes that only the path knows are unknown."""
        type_ = self._from_outside(self.recorder.type_of(value))
        if isinstance(type_, ListType) or self._absence(value, side) is not False:
            return type_
        return replace(type_, may_be_none=False)

    def _from_outside(self, type_: Type) -> Type:
        if isinstance(type_, ListType):
            return ListType(self._from_outside(type_.element))
        if isinstance(type_, TensorType):
            newer = self.recorder.symbolic.is_newer
            shape = tuple(
                None if d is None or (not isinstance(d, int) and newer(d, self.mark)) else d for d in type_.shape
            )
            return replace(type_, shape=shape)
        return type_


_COMPLEX = (complex, StagedComplex)


def _are_unlike_callables(first: Parts, second: Parts) -> bool:
    return first.type in CALLABLES and first.context != second.context


def is_empty(value: Any) -> bool:
    """Whether a place holds nothing that could be handed out."""
    return value is None or value is MISSING or value is DEAD


def _origin(
    joined: Any, flag: Any, held: tuple[Any, Any], stood: tuple[Stood | None, Stood | None], outs: Sequence[Any]
) -> Origin:
    """What a joined container stands for, where ``held`` is what the two paths had."""
    found = [joined if each is None else each(joined, outs) for each in stood]
    left, right = (side if each is joined else each for side, each in zip(held, found))
    return Origin(joined, flag, left, right, (found[0] is not joined, found[1] is not joined))
