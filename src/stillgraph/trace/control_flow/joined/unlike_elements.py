"""Elements of one list that have no structure in common: which two those are, and the lines that put them there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stillgraph.core.diagnostics import Side
from stillgraph.core.location import Location
from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.assigned import Line
from stillgraph.trace.values.lists import Element, StagedSpread

_HINTS = {
    "SG201": "A {kind} of unknown length holds tensors of one number of dimensions: give what is put into it that of "
    "the others (unsqueeze, reshape, expand), or use a list of its own for each.",
    "SG202": "A {kind} of unknown length holds values of one dtype: convert what is put into it with .to(...), or use "
    "a list of its own for each.",
    "SG203": "A {kind} of unknown length holds values of one kind: use a list of its own for each.",
}


_OF_DICT = "values of a dict whose keys only the run knows"
_EXCHANGED = (
    "Such a dict holds tensors or numbers of one kind, or lists of them: d[key] = d.get(key, []) + [v]. In place of a "
    "set or dict by each key, use one by pairs: pairs.add((key, v)), table[key, other] = v."
)


@contextlib.contextmanager
def telling_elements(
    recorder: Recorder,
    kind: type,
    elements: tuple[Sequence[Any], Sequence[Any]],
    structure_of: Callable[[Sequence[Any]], Element],
    place: str,
    lines: tuple[Line, Line],
) -> Iterator[None]:
    """While the structure of a list's elements is looked for, a failure gets the two elements that are unlike.

    Args:
        recorder: knows which lines made them.
        kind: of the list: ``list``, ``tuple`` or ``deque``.
        elements: of the two sides that are one list.
        structure_of: gives the structure that covers some elements.
        place: the list, as messages name it.
        lines: what finds the line by which each side changed the list.
    """
    try:
        yield
    except JoinFailure as failure:
        elements_are = _OF_DICT if place.endswith(".values()") else f"elements of a {kind.__name__}"
        failure.message = failure.message.replace("elements of a list", elements_are)
        if elements_are is _OF_DICT:
            failure.hint = failure.hint or _EXCHANGED
        found = None if failure.sides else _unlike(elements, structure_of)
        if found is None:
            raise
        failure.place = place
        hint = _HINTS.get(failure.code)
        failure.hint = failure.hint or (hint and hint.replace("{kind}", kind.__name__))

        def made_at(value: Any, side: int) -> Location | None:
            in_both = any(each is value for each in elements[1 - side])
            return recorder.made_at(value) or (None if in_both else lines[side](place))

        failure.sides = tuple(
            Side(f"{which} element is {describe(value, True)}", made_at(value, side))
            for which, (value, side) in zip(("one", "another"), found)
        )
        raise


def _unlike(
    elements: tuple[Sequence[Any], Sequence[Any]], structure_of: Callable[[Sequence[Any]], Element]
) -> list[tuple[Any, int]] | None:
    """Two elements without a common structure, each with the side that it is from; None where spreads are unlike."""
    both = [(value, side) for side in (0, 1) for value in elements[side] if type(value) is not StagedSpread]
    for index, (value, side) in enumerate(both):
        for earlier, from_side in both[:index]:
            try:
                structure_of([earlier, value])
            except JoinFailure:
                return [(earlier, from_side), (value, side)]
    return None
