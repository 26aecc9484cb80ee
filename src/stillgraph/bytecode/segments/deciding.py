"""Which statement decides whether a variable has a value, where only the run knows that: no segment hands that on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import CellType
from typing import Any

from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.segments.breaks import Region
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.control_flow.unset import may_be_unset
from stillgraph.trace.values.callables import contents


@dataclass(frozen=True, eq=False)
class Decided:
    """A statement that has been staged, and the variables that may have no value behind it."""

    region: Region
    variables: tuple[CellType, ...]


def decided(region: Region, frames: Sequence[Frame]) -> Decided | None:
    """What is known behind a statement; None where each variable is known to have a value, or to have none."""
    capture = session()
    if capture is None or not capture.has_unset:
        return None
    variables = [_variable(cell) for frame in frames for cell in frame.slots]
    return Decided(region, tuple([each for each in variables if may_be_unset(capture, contents(each))]))


def _variable(cell: CellType) -> CellType:
    """The cell that holds a variable's value: one that functions share is in a slot of the frame itself."""
    value = contents(cell)
    return value if isinstance(value, CellType) else cell


def unset(capture: Session | None, values: Iterable[Any]) -> list[Any]:
    """Those among the values of variables of which only the run knows whether they are there."""
    if capture is None or not capture.has_unset:
        return []
    return [value for value in values if may_be_unset(capture, value)]


def deciding(passed: Sequence[Decided], values: Iterable[Any]) -> Region | None:
    """The statement that has decided whether some variables have values; None where it is not known.

    Args:
        passed: the statements that were staged, the first one first.
        values: those that the variables hold, see `unset`.
    """
    wanted = {id(value) for value in values}
    found = None
    for each in reversed(passed):
        if not any(id(contents(variable)) in wanted for variable in each.variables):
            break
        found = each.region
    return found
