"""What a user declares of sizes as guards, so that a program of calls that kept to it is not run for others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stillgraph.program.guards import Guard, SizeGuard, TensorGuard
from stillgraph.program.input_spec import Dim
from stillgraph.program.sources import Source


def declared_guards(dims: Mapping[Source, tuple[Dim | None, ...]], guards: Iterable[Guard]) -> Iterator[SizeGuard]:
    """Guards on ranges, and on dimensions of one name being of one size.

    Args:
        dims: by argument, what was declared of its dimensions.
        guards: of the program: where they ask for a size, nothing is added.
    """
    first: dict[str, tuple[str, Source, int]] = {}
    for number, (dim, source, axis) in enumerate(_open(dims, guards)):
        place = (f"{dim.name}_{number}", source, axis)
        if dim.min is not None or dim.max is not None:
            yield SizeGuard(_range(dim, place[0]), (place,))
        known = first.setdefault(dim.name, place)
        if known is not place:
            yield SizeGuard(f"{known[0]} == {place[0]}", (known, place))


def _open(
    dims: Mapping[Source, tuple[Dim | None, ...]], guards: Iterable[Guard]
) -> Iterator[tuple[Dim, Source, int]]:
    for guard in guards:
        if isinstance(guard, TensorGuard):
            for axis, (dim, size) in enumerate(zip(dims.get(guard.source, ()), guard.shape, strict=False)):
                if dim is not None and size is None:
                    yield dim, guard.source, axis


def _range(dim: Dim, name: str) -> str:
    low, high = ("" if dim.min is None else f"{dim.min} <= "), ("" if dim.max is None else f" <= {dim.max}")
    return f"{low}{name}{high}"
