"""What differs from call to call of a static function, and so becomes an input of its next program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly
from stillgraph.core.parcel import opened
from stillgraph.program.guards import BytesGuard, ConstantGuard, FactGuard, Guard, IdentityGuard, SizeGuard, TensorGuard
from stillgraph.program.input_spec import Marks
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Cell, Item, Memory, Source, has_memory
from stillgraph.runtime.calls.cache import CapturedCall
from stillgraph.runtime.guards.explaining import failing
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.tensor_checks import differing_sizes, differing_strides
from stillgraph.trace.guards.argument_structure import parts_at

Args = Sequence[Any]
Kwargs = Mapping[str, Any]


@dataclass
class Varying:
    """Numbers and sizes that differ between calls.

    Attributes:
        dynamic: whether sizes, and whole numbers among the arguments, become inputs of the first program already, or
            never; by default they do when they are seen to differ.
        takes_any: whether any number may: variables around functions, most of which are settings, and 0 and 1, most of
            which are switches.
        place_of: where the tensor of a guard is, as the next capture names it.
        numbers: where numbers are that differ.
        constant: those of which some program needs the value.
        sizes: the dimensions that differ, by tensor.
        fixed: those of which some program takes one size alone.
    """

    dynamic: bool | None = None
    takes_any: bool = False
    place_of: Callable[[Source], Source] = lambda source: source
    numbers: set[Source] = field(default_factory=set)
    constant: set[Source] = field(default_factory=set)
    sizes: dict[Source, set[int]] = field(default_factory=dict)
    fixed: set[tuple[Source, int]] = field(default_factory=set)

    def learn(self, calls: Sequence[CapturedCall], args: Args, kwargs: Kwargs) -> None:
        """Take in what alone keeps some program from fitting a call.

        Args:
            calls: what was captured for calls of as many arguments, of the same names.
            args: those of the call, by position.
            kwargs: those by keyword.
        """
        for call in calls:
            found = [*self._differences(call.program.guards, args, kwargs)]
            for place in found if None not in found else ():
                if isinstance(place, tuple):
                    for each in _like_it(place[0], args, kwargs):
                        self.sizes.setdefault(each, set()).add(place[1])
                elif place is not None:
                    self.numbers.add(place)

    def _differences(
        self, guards: Sequence[Guard], args: Args, kwargs: Kwargs
    ) -> Iterator[Source | tuple[Source, int] | None]:
        """Where numbers and sizes are that guards do not hold of; None for anything else."""
        for guard, _ in failing(guards, tuple(args), dict(kwargs)):
            if isinstance(guard, ConstantGuard):
                yield guard.source if self._may_vary(guard, args, kwargs) else None
            elif isinstance(guard, TensorGuard):
                found = [*self._open(guard, args, kwargs)]
                yield from found
                if not found:
                    yield None
            elif isinstance(guard, (BytesGuard, IdentityGuard)):
                yield guard.source if _is_array_now(guard.source, args, kwargs) else None
            elif not isinstance(guard, (FactGuard, SizeGuard)):  # which follow from sizes
                yield None

    def _open(self, guard: TensorGuard, args: Args, kwargs: Kwargs) -> Iterator[tuple[Source, int]]:
        """The dimensions of a tensor that may become inputs, if it differs from a guard in these alone."""
        place = self.place_of(guard.source)
        found = [] if self.dynamic is False else changed_sizes(guard, args, kwargs)
        yield from ((place, dim) for dim in found if (place, dim) not in self.fixed)

    def _may_vary(self, guard: ConstantGuard, args: Args, kwargs: Kwargs) -> bool:
        """Whether a number that differs between calls may be an input of a program."""
        if not (is_exactly(guard.value, (int, float)) or has_memory(guard.value)):
            return False
        if self.takes_any or not isinstance(guard.source, (Argument, Cell)):
            return True
        if isinstance(guard.source, Cell):
            return False
        given = read_source(guard.source, tuple(args), dict(kwargs))
        if type(given) is int and type(guard.value) is int:
            return self.dynamic is not False and min(given, guard.value) > 1
        return type(given) is float or has_memory(given)

    def look_at(self, args: Args, kwargs: Kwargs) -> None:
        """Take in what is said of the arguments of a call: by `dynamic`, and by marks on tensors."""
        passed: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        given: list[tuple[Any, Source]] = [(value, Argument(key)) for key, value in passed]
        seen: set[int] = set()
        for value, source in given:
            if isinstance(value, torch.Tensor):
                marks = Marks.of(value)
                self.fixed |= {(source, dim) for dim in marks.static}
                found = range(value.dim()) if self.dynamic else marks.maybe
                self.sizes.setdefault(source, set()).update(d for d in found if (source, d) not in self.fixed)
            elif self.dynamic and type(value) is int and value > 1:
                self.numbers.add(source)
            elif id(value) not in seen:
                seen.add(id(value))
                given.extend(parts_at(value, source) or ())

    def inputs(self) -> set[Source]:
        """The numbers that are to be inputs of the next program."""
        return self.numbers - self.constant

    def note(self, program: Program) -> None:
        """Take in what a program made of what differs."""
        self.numbers |= {item.source for item in program.inputs if item.kind == "state"}
        self.numbers |= {item.source.base for item in program.inputs if isinstance(item.source, Memory)}
        for guard in program.guards:
            if isinstance(guard, (ConstantGuard, BytesGuard)) and guard.source in self.numbers:
                self.constant.add(guard.source)
            elif isinstance(guard, TensorGuard):
                dims = self.sizes.get(guard.source, set())
                fixed = {dim for dim, size in enumerate(guard.shape) if dim in dims and size is not None and size > 1}
                dims -= fixed
                self.fixed |= {(guard.source, dim) for dim in fixed}


def _is_array_now(source: Source, args: Args, kwargs: Kwargs) -> bool:
    """Whether there is an array at a source that may be an input of a program."""
    try:
        return has_memory(read_source(source, tuple(args), dict(kwargs)))
    except Exception:  # of any kind: reading may run the user's code
        return False


def changed_sizes(guard: TensorGuard, args: Args, kwargs: Kwargs) -> list[int]:
    """The dimensions of a tensor that are others than in a program, if nothing else is; 0 and 1 are not for others."""
    try:
        value = read_source(guard.source, tuple(args), dict(kwargs))
        found = differing_sizes(guard, value) or differing_strides(guard, value)
    except Exception:  # of any kind: reading may run the user's code
        return []
    return [] if any(min(guard.shape[dim] or 2, value.shape[dim]) < 2 for dim in found) else found


def _like_it(place: Source, args: Args, kwargs: Kwargs) -> Iterator[Source]:
    """Where a tensor is, and those beside it in a list, if they have as many dimensions."""
    yield place
    if not isinstance(place, Item):
        return
    beside = read_source(place.base, tuple(map(opened, args)), {name: opened(value) for name, value in kwargs.items()})
    for number, each in enumerate(beside if type(beside) is list else ()):
        if isinstance(each, torch.Tensor) and each.dim() == beside[place.key].dim():
            yield Item(place.base, number)
