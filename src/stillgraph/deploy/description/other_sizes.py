"""Sizes of open dimensions other than the example's: by these it is tried whether a file serves every size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations, zip_longest
from types import CodeType
from typing import Any

import torch

from stillgraph.program.guards import SizeGuard, TensorGuard
from stillgraph.program.input_spec import Dim
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Source

Place = tuple[Source, int]
Sizes = Mapping[Place, int]

_SMALL = (1, 2, 3, 4, 5, 7, 8, 0)
_LARGE = (16, 64, 256, 1024, 4096)  # for conditions that hold for all small sizes
_PROBES = (1, 3, 6)
_MOST_ELEMENTS = 1 << 20  # of a tensor of a call
_MOST_OF_A_CONDITION = 6  # calls that it is tried with
_MOST = 24  # of a round


OTHER_SIZES = (
    "Declare a range (sg.Dim) in which all sizes take the example's way through the code, one name for dimensions that"
    " have one size, or the dimension as the example has it."
)
"""What to do where not all sizes are served."""


@dataclass(frozen=True, eq=False)
class Other:
    """Sizes other than the example's.

    Attributes:
        sizes: by place the size of a dimension.
        broken: the conditions that do not hold for them.
    """

    sizes: Sizes
    broken: frozenset[SizeGuard]


ROUNDS: tuple[tuple[int, Sequence[int]], ...] = ((1, _SMALL), (2, _SMALL), (1, _LARGE), (2, _LARGE))
"""In how many dimensions the sizes differ from the example's, and which sizes they have: the plainest first."""


@dataclass(frozen=True)
class Served:
    """Sizes that a program serves.

    Attributes:
        sizes: by place the size of a dimension.
        text: says what differs from the example: ``x.shape[0] = 1``.
    """

    sizes: Sizes
    text: str

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The example call, with these sizes."""
        return resized(args, kwargs, self.sizes)


def resized(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], sizes: Sizes
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call with tensors of other sizes: they hold what there is again and again, or the beginning of it."""
    found: dict[int | str, Any] = dict(enumerate(args))
    found.update(kwargs)
    with torch.no_grad():
        for (source, dim), size in sizes.items():
            assert isinstance(source, Argument), "other dimensions are not open"
            tensor = found[source.key]
            index = torch.arange(size, device=tensor.device) % tensor.shape[dim]
            found[source.key] = tensor.index_select(dim, index).requires_grad_(tensor.requires_grad)
    return tuple(found[key] for key in range(len(args))), {key: found[key] for key in kwargs}


def open_sizes(program: Program, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sizes:
    """The sizes of the open dimensions in a call."""
    found: dict[Place, int] = {}
    for guard in program.guards:
        if isinstance(guard, TensorGuard) and isinstance(guard.source, Argument):
            key = guard.source.key
            tensor = args[key] if isinstance(key, int) else kwargs[key]
            found |= {(guard.source, d): int(tensor.shape[d]) for d, size in enumerate(guard.shape) if size is None}
    return found


def fitting_sizes(program: Program, example: Sizes) -> list[Other]:
    """A few of them that no condition of a program rules out."""
    conditions = [_Condition(guard) for guard in program.guards if isinstance(guard, SizeGuard)]
    found = _Assignments(program, example).changed(1, _PROBES)
    fitting = [Other(sizes, frozenset()) for sizes in found if all(each.holds(sizes) for each in conditions)]
    return fitting[:_MOST]


def other_sizes(
    program: Program, example: Sizes, wanted: Set[SizeGuard], changes: tuple[int, Sequence[int]]
) -> list[Other]:
    """Sizes for which some condition of a program does not hold.

    Args:
        program: its conditions on sizes relate dimensions of ``example``.
        example: the sizes of the call that the program was captured from.
        wanted: the conditions that are not to hold: some of them for each of the sizes.
        changes: one of `ROUNDS`.
    """
    conditions = [_Condition(guard) for guard in program.guards if isinstance(guard, SizeGuard)]
    found = []
    for sizes in _Assignments(program, example).changed(*changes):
        broken = frozenset(each.guard for each in conditions if not each.holds(sizes))
        if not broken.isdisjoint(wanted):
            found.append(Other(sizes, broken))
    found.sort(key=lambda other: len(other.broken))  # stable: the plainest first
    lists = ([other for other in found if guard in other.broken][:_MOST_OF_A_CONDITION] for guard in wanted)
    in_turn = (other for others in zip_longest(*lists) for other in others if other is not None)
    once = {tuple(other.sizes.items()): other for other in in_turn}
    return sorted([*once.values()][:_MOST], key=lambda other: len(other.broken))


@dataclass(frozen=True)
class _Condition:
    guard: SizeGuard
    code: CodeType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", compile(self.guard.expression, "<sizes>", "eval"))

    def holds(self, sizes: Sizes) -> bool:
        """Whether it holds; where it divides by a size of 0, it does not."""
        found: dict[str, Any] = {name: sizes[source, dim] for name, source, dim in self.guard.sizes}
        try:
            return bool(eval(self.code, {"math": math}, found))
        except ZeroDivisionError:
            return False


@dataclass(frozen=True)
class _Assignments:
    """What the sizes of a program's open dimensions may be.

    Dimensions of one name have one size. Those that are alike in the example are changed apart, and together.
    """

    program: Program
    example: Sizes

    def changed(self, amount: int, takes: Sequence[int]) -> Iterator[Sizes]:
        """Sizes in which so many groups of dimensions differ from the example's."""
        for groups in combinations(self._groups(), amount):
            places = [place for group in groups for place in group]
            if len(set(places)) == len(places):
                for sizes in self._of(groups, takes):
                    if self._is_within_bounds(sizes):
                        yield sizes

    def _of(self, groups: Sequence[tuple[Place, ...]], takes: Sequence[int]) -> Iterator[Sizes]:
        if not groups:
            yield self.example
            return
        for sizes in self._of(groups[1:], takes):
            for size in self._sizes_for(groups[0], takes):
                yield {**sizes, **dict.fromkeys(groups[0], size)}

    def _groups(self) -> list[tuple[Place, ...]]:
        named: dict[Any, tuple[Place, ...]] = {}
        for place in self.example:
            key = place if (dim := self._dim(place)) is None else dim.name
            named[key] = (*named.get(key, ()), place)
        alike: dict[int, tuple[Place, ...]] = {}
        for group in named.values():
            size = self.example[group[0]]
            alike[size] = (*alike.get(size, ()), *group)
        return list(dict.fromkeys((*named.values(), *alike.values())))

    def _sizes_for(self, group: tuple[Place, ...], takes: Sequence[int]) -> Iterator[int]:
        now = self.example[group[0]]
        known = [dim for place in group if (dim := self._dim(place)) is not None]
        beside = (now - 1, now + 1) if takes is _SMALL else ()
        for size in dict.fromkeys((*takes, *beside)):
            if size != now and all(dim.holds(size) for dim in known):
                yield size

    def _dim(self, place: Place) -> Dim | None:
        source, index = place
        known = self.program.dims.get(source, ())
        return known[index] if index < len(known) else None

    def _is_within_bounds(self, sizes: Sizes) -> bool:
        for guard in self.program.guards:
            if isinstance(guard, TensorGuard):
                places = [(guard.source, dim) for dim in range(len(guard.shape))]
                shape = (sizes.get(place, 1) if size is None else size for place, size in zip(places, guard.shape))
                if not sizes.keys().isdisjoint(places) and math.prod(shape) > _MOST_ELEMENTS:
                    return False
        return True
