"""The join: one value out of what two paths left in the same place. This is the only place that says what a join is."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from stillgraph.core.diagnostics import Side
from stillgraph.core.lookup import is_exactly
from stillgraph.program.constants import Known
from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import JoinFailure, ListType, NumberType, TensorType, Type, join_types, optional, table_of
from stillgraph.trace.control_flow.joined import elements
from stillgraph.trace.control_flow.joined.descriptions import TWO_TEXTS, describe
from stillgraph.trace.control_flow.joined.elements import View, as_left, freeze_elements, leading, wants_columns
from stillgraph.trace.control_flow.joined.failure_sides import explain
from stillgraph.trace.control_flow.joined.join_errors import named
from stillgraph.trace.control_flow.joined.joined_containers import COMPLEX, JoinedContainers
from stillgraph.trace.control_flow.joined.leaves import (
    DEAD,
    Build,
    Leaves,
    Pair,
    has_leaf,
    is_empty,
    may_be_parameter,
    nothing,
    same_constant,
)
from stillgraph.trace.control_flow.joined.optional_parts import none_or, on_paths
from stillgraph.trace.control_flow.joined.ruled_out import OnPath, narrowed
from stillgraph.trace.control_flow.joined.stale import is_stale
from stillgraph.trace.control_flow.joined.told_objects import tables_of
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives, is_leaf, is_lost
from stillgraph.trace.control_flow.joined.unlike_elements import telling_elements
from stillgraph.trace.control_flow.spreads import only_if
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.assigned import Line, nowhere
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, Place
from stillgraph.trace.values.callables import CALLABLES, are_unlike, callable_parts
from stillgraph.trace.values.containers import Parts, complex_parts, holds_staged, instance_parts, object_parts
from stillgraph.trace.values.entries import Entry
from stillgraph.trace.values.key_cover import alike, cover, is_keyed
from stillgraph.trace.values.list_columns import columns
from stillgraph.trace.values.lists import Element, StagedSpread, types
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import StagedText
from stillgraph.trace.values.texts_of_paths import joined_texts

_MOST_CHOICES = 8


@dataclass
class Joiner:
    """Joins places one after another and collects the leaves that the two paths have to hand out.

    A leaf is a tensor, a number, None, `MISSING` (the path did not assign the variable) or `DEAD` (it never arrives).
    """

    recorder: Recorder
    mark: int  # symbols made since are local to the paths
    allow_unjoined: bool = True
    is_late: bool = False  # whether what a loop carries has changed for so many rounds that it has to settle
    is_older: Callable[[Any], bool] = lambda value: False  # whether an object was there before the two paths
    when: tuple[str, str] = ("before the loop", "after an iteration")  # what messages call the two, if no arms
    views: tuple[View, View] = (object_parts, object_parts)  # how each path sees an object: with what it wrote into it
    at: Place | None = None  # what is being joined: messages name it by the user's variables
    lines: tuple[Line, Line] = (nowhere, nowhere)  # where each path, or the entry and an iteration, assigned a place
    paths: tuple[OnPath, OnPath] | None = None  # within which the recorder answers as at the end of each path
    arms: tuple[Region, Region] | None = None  # of these paths
    tells_objects: bool = True  # whether objects that are not alike may be told by a number: see `told_objects`
    _open: set[tuple[int, int]] = field(default_factory=set)  # containers whose children are being joined
    _leaves: Leaves = field(default_factory=Leaves)
    _containers: JoinedContainers = field(init=False)

    def __post_init__(self) -> None:
        self._containers = JoinedContainers(self.recorder, self._leaves, self.is_older, self.arms)

    def tell_older_by(self, is_older: Callable[[Any], bool]) -> None:
        """From now on this says whether an object was there before the two paths."""
        self.is_older = self._containers.is_older = is_older

    @property
    def pairs(self) -> list[Pair]:
        """The leaves, in order."""
        return self._leaves.pairs

    def join(self, left: Any, right: Any, place: str) -> Build:
        """How to build the joined value out of the instantiated ``pairs``.

        Raises:
            JoinFailure: the values have no join and ``allow_unjoined`` is off.
        """
        if is_stale(left) or is_stale(right):
            return lambda _: left if is_stale(left) else right
        if left is DEAD or right is DEAD:
            return self._one_sided(left, right, place, lambda type_: type_)
        if same_constant(left, right):
            return lambda _: left
        left, right = map(self.recorder.unpacked, (left, right))  # what the two leave is told by what is in it
        left, right = (self._as_its_path_knows(value, side) for side, value in enumerate((left, right)))
        if same_constant(left, right):
            return lambda _: left
        try:
            return self._join_unlike(left, right, place)
        except JoinFailure as failure:
            self._explain(failure, left, right, place)
            if not self.allow_unjoined:
                raise
            return self._unjoined(left, right, place, failure)

    def join_contents(self, left: Any, right: Any, place: str) -> Build:
        """As `join`, for what a container holds on each path: there is one container, so it has to be one structure."""
        if left is DEAD or right is DEAD or same_constant(left, right) or is_stale(left) or is_stale(right):
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
        entries = tables_of(left, right, self.is_older)
        if entries is not None:
            return self._join_in_table(left, right, *entries, place)
        text = joined_texts(left, right, self.type_of)
        if text is not None:
            return self._pair(left, right, text, place)
        if left is MISSING or right is MISSING:
            self._require_told(right if left is MISSING else left, int(left is MISSING))
            return self._one_sided(left, right, place, lambda type_: optional(type_, unbound=True))
        if left is None and right is None:
            return nothing
        if (left is None and is_leaf(right)) or (right is None and is_leaf(left)):
            return self._one_sided(left, right, place, lambda type_: optional(type_, none=True))
        if is_leaf(left) and is_leaf(right):
            return self._pair(left, right, join_types(self.type_of(left, 0), self.type_of(right, 1)), place)
        found = None if self.paths is None else on_paths(self.recorder, (left, right), self.paths)
        if found is None:
            return self._join_containers(left, right, place)
        flag = self._pair(found[0].there, found[1].there, NumberType(bool), place)
        build = self.join(found[0].tuple, found[1].tuple, place)
        return lambda outs: none_or(flag(outs), build(outs), place)

    def _join_in_table(
        self, left: Any, right: Any, first: tuple[Known, ...], second: tuple[Known, ...], place: str
    ) -> Build:
        """An entry of the table that has those of both; what one path alone leaves tells which path was taken."""
        index = self._leaves.add(left, right, table_of(first, second), place)
        told = [
            (side, mine[0])
            for side, (mine, other) in enumerate(((first, second), (second, first)))
            if len(mine) == 1 and mine[0] not in other
        ]
        flag = self._leaves.flag(place) if told else index

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
        known = self._containers.known(left, right)
        if known is not None:
            return known
        first, second = self._parts(left, 0), self._parts(right, 1)
        if is_exactly(left, COMPLEX) and is_exactly(right, COMPLEX):
            first, second = complex_parts(left), complex_parts(right)
        if first is not None and second is not None and wants_columns(first, second):
            return self._join_lists(left, right, first, second, place)
        if first is None or second is None or first.type is not second.type or are_unlike(first, second):
            hint = TWO_TEXTS if isinstance(left, str) and isinstance(right, str) else None
            raise JoinFailure("SG203", f"{describe(left)} on one path, {describe(right)} on the other", hint)
        if is_keyed(first):
            makes = (functools.partial(only_if, self.recorder, path=path) for path in self.paths or ())
            first, second = alike(first, second, *makes)
            both = cover(first, second)
            if both.is_unknown:
                self.recorder.follow_libraries()
            first, second = both.of(first), both.of(second)
        if first.context != second.context or len(first.children) != len(second.children):
            raise JoinFailure("SG203", f"outputs differ in structure: {describe(left)} and {describe(right)}")
        if first.type is Exit or first.type is Entry:  # what these hold is only looked at where the flag says so
            first, second = (
                replace(p, children=tuple(DEAD if c is MISSING else c for c in p.children)) for p in (first, second)
            )
        with self.opened((id(left), id(right)), left), self._children_joined(first.type in CALLABLES):
            builds = [self.join(a, b, place + name) for a, b, name in zip(first.children, second.children, first.names)]

        def rebuild(outs: Sequence[Any]) -> Any:
            return first.rebuild([build(outs) for build in builds])

        return self._containers.joined(left, right, place, rebuild)

    @contextlib.contextmanager
    def opened(self, key: tuple[int, int], value: Any) -> Iterator[None]:
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
        before, self.allow_unjoined = self.allow_unjoined, False
        try:
            with self._containers.tried():
                yield
        finally:
            self.allow_unjoined = before

    def _join_lists(self, left: Any, right: Any, first: Parts, second: Parts, place: str) -> Build:
        """Lists of different length, or of a length that only the run knows."""
        kept = leading(self.recorder, first.children, second.children)
        begin, held = first.children[:kept], (first.children[kept:], second.children[kept:])
        left_so = as_left(held[0], self.views[0]), as_left(held[1], self.views[1])
        with telling_elements(self.recorder, first.type, left_so, self.structure, self.named(place), self.lines):
            element = self.structure([*left_so[0], *left_so[1]])
        sides = (columns(element, children) for children in left_so)
        indices = [self._leaves.add(a, b, ListType(type_), place) for a, b, type_ in zip(*sides, types(element))]

        def build(outs: Sequence[Any]) -> Any:
            spread = StagedSpread(element, tuple(outs[index] for index in indices))
            freeze_elements(self.recorder, spread, held, self.is_older, self.arms)
            return first.rebuild([*begin, spread])

        return self._containers.joined(left, right, place, build)

    def structure(self, children: Sequence[Any]) -> Element:
        """The structure that covers elements that the paths put into a list; see `elements.structure_of`."""
        return elements.structure_of(self.recorder, children, self.is_older, self.type_of)

    def _parts(self, value: Any, side: int) -> Parts | None:
        if isinstance(value, Unjoined):
            known = alternatives(value)
            children = (known.flag, known.left, known.right)
            where, why = known.place, known.failure
            return Parts(
                Unjoined, None, ("", "", ""), children, lambda new: Unjoined(new[0], new[1], new[2], where, why)
            )
        parts = self.views[side](value)
        if self.is_older(value):
            stays = self.allow_unjoined and not self.recorder.handlers.may_carry
            return None if stays and parts is not None and parts.is_instance else parts
        return parts or callable_parts(value) or instance_parts(value)

    def _one_sided(self, left: Any, right: Any, place: str, widen: Callable[[Type], Type]) -> Build:
        empty, value = (left, right) if is_empty(left) else (right, left)
        if is_empty(value):
            return lambda _: next((each for each in (value, empty) if each is not DEAD), MISSING)
        if is_leaf(value):
            if empty is DEAD and not isinstance(value, (torch.Tensor, StagedNumber, StagedText, Unjoined)):
                return lambda _: value
            return self._pair(left, right, widen(self.type_of(value, int(value is right))), place)
        if empty is DEAD and (self.is_older(value) or self._containers.is_from_before(value)):
            return lambda _: value
        if isinstance(value, StagedSpread):
            return self._one_sided_spread(empty is left, value, empty, place, widen)
        parts = self._parts(value, int(value is right))
        if empty is DEAD and (parts is None or parts.attributes) and not holds_staged(value):
            return self._containers.where_met(value, int(value is right), lambda _: value)
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
        known = self._containers.known(left, right)
        if known is not None:
            return known
        on_left = is_empty(right)
        value = left if on_left else right
        with self.opened((id(value), id(value)), value):
            builds = [
                nothing if c is None else self._one_sided(*((c, right) if on_left else (left, c)), place + n, widen)
                for c, n in zip(parts.children, parts.names)
            ]  # where one is None, others tell whether it is there

        def rebuild(outs: Sequence[Any]) -> Any:
            return parts.rebuild([build(outs) for build in builds])

        if left is not DEAD and right is not DEAD:
            return self._containers.joined(left, right, place, rebuild)
        return self._containers.alone(left, right, place, rebuild, is_object=not isinstance(value, Unjoined))

    def _one_sided_spread(
        self, on_left: bool, spread: StagedSpread, empty: Any, place: str, widen: Callable[[Type], Type]
    ) -> Build:
        sides = ([empty] * len(spread.columns), [*spread.columns])[:: 1 if on_left else -1]
        indices = [self._leaves.add(a, b, widen(self.type_of(c)), place) for a, b, c in zip(*sides, spread.columns)]

        def build(outs: Sequence[Any]) -> Any:
            made = StagedSpread(spread.element, tuple(outs[index] for index in indices))
            self.recorder.identities.take_over(made, spread)
            return made

        return build

    def _unjoined(self, left: Any, right: Any, place: str, failure: JoinFailure) -> Build:
        self.recorder.has_optionals = self.recorder.has_optionals or left is None or right is None
        self.recorder.has_unset = self.recorder.has_unset or left is MISSING or right is MISSING
        flag = self._leaves.flag(place)
        first = self._one_sided(left, DEAD, place, lambda type_: type_)
        second = self._one_sided(DEAD, right, place, lambda type_: type_)
        return lambda outs: Unjoined(outs[flag], first(outs), second(outs), place, failure)

    def _pair(self, left: Any, right: Any, type_: Type, place: str) -> Build:
        index = self._leaves.add(left, right, type_, place)
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

    def _as_its_path_knows(self, value: Any, side: int) -> Any:
        """A value without what it cannot be at the end of its path: one that it is on other paths alone, or None."""
        if self._absence(value, side) is True:
            return None
        if self.paths is None or not (is_leaf(value) or issubclass(type(value), Unjoined)) or is_lost(value):
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
            gone = [d is None or (not isinstance(d, int) and newer(d, self.mark)) for d in type_.shape]
            return replace(type_, shape=tuple(None if unknown else d for d, unknown in zip(type_.shape, gone)))
        return type_
