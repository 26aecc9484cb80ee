"""The wires beside a region's operations: each value runs in a lane from what makes it to what reads it last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_LANES = 7
_GAP, _LEFT, _MIDDLE, _ROW = 11, 9, 15, 30  # pixels


@dataclass(frozen=True)
class Step:
    """What a row reads and makes; a construct's outputs have a row each, below its regions."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nested: bool = False


@dataclass(frozen=True)
class Wires:
    """The drawings beside one step.

    Attributes:
        row: SVG elements beside its row, or the head of the construct.
        beside: those beside the construct's regions.
        outputs: those beside each of the construct's outputs.
        before: those of the values that arrive, for a row put in front.
    """

    row: str
    beside: str = ""
    outputs: tuple[str, ...] = ()
    before: str = ""


@dataclass(frozen=True)
class Drawing:
    """The wires of a region: how wide they are in pixels, beside its inputs, its steps, and what it returns."""

    width: int
    inputs: str
    steps: tuple[Wires, ...]
    returns: str


class _Lanes:
    """Which value is in which lane."""

    def __init__(self) -> None:
        self.values: list[str | None] = []
        self.of: dict[str, int] = {}

    def take(self, name: str, wish: int | None = None) -> int | None:
        free = [lane for lane, value in enumerate(self.values) if value is None]
        if wish in free and wish is not None:
            lane = wish
        elif free:
            lane = free[0]
        elif len(self.values) < MOST_LANES:
            lane = len(self.values)
            self.values.append(None)
        else:
            return None
        self.values[lane] = name
        self.of[name] = lane
        return lane

    def leave(self, name: str) -> None:
        lane = self.of.pop(name, None)
        if lane is not None:
            self.values[lane] = None

    def taken(self) -> list[int]:
        return sorted(self.of.values())


def draw(inputs: Iterable[str], steps: Sequence[Step], returns: Iterable[str]) -> Drawing:
    """Draw the wires of a region.

    Args:
        inputs: the values that have a wire from the top.
        steps: its operations, in order.
        returns: the values it gives.
    """
    last = {name: index for index, step in enumerate(steps) for name in step.inputs}
    last.update(dict.fromkeys(returns, len(steps)))
    lanes = _Lanes()
    for name in inputs:
        if name in last:
            lanes.take(name)
    begin = "".join(_down(lane, _MIDDLE) + _dot(lane) for lane in lanes.taken())
    drawn = [_step(step, index, last, lanes) for index, step in enumerate(steps)]
    end = "".join(_line(lane, 0, _MIDDLE) + _dot(lane) for lane in lanes.taken())
    return Drawing(_LEFT + _GAP * len(lanes.values) + 2, begin, tuple(drawn), end)


def _step(step: Step, index: int, last: dict[str, int], lanes: _Lanes) -> Wires:
    before = "".join(_down(lane) for lane in lanes.taken())
    read = [lanes.of[name] for name in step.inputs if name in lanes.of]
    for name in step.inputs:
        if last.get(name) == index:
            lanes.leave(name)
    through = "".join(_down(lane) for lane in lanes.taken())
    if step.nested:
        return _nested(step, read, through, before, index, last, lanes)
    made = [lane for name in step.outputs if last.get(name, -1) > index for lane in [lanes.take(name, *read[:1])]]
    at = next((lane for lane in made if lane is not None), read[0] if read else 0)
    arriving = "".join(_curve(lane, at) for lane in read)
    leaving = "".join(_down(lane, _MIDDLE) for lane in made if lane is not None)
    return Wires(through + arriving + leaving + _dot(at), before=before)


def _nested(
    step: Step, read: list[int], through: str, before: str, index: int, last: dict[str, int], lanes: _Lanes
) -> Wires:
    head = through + "".join(_to_the_right(lane) for lane in read)
    rows = []
    for name in step.outputs:
        passing = "".join(_down(lane) for lane in lanes.taken())
        lane = lanes.take(name) if last.get(name, -1) > index else None
        rows.append(passing + ("" if lane is None else _from_the_right(lane)))
    return Wires(head, through, tuple(rows), before)


# ---- SVG; a line that ends at 100% goes as far as its row is high
def _x(lane: int) -> int:
    return _LEFT + _GAP * lane


def _down(lane: int, start: int = 0) -> str:
    begin = f' y1="{start}"' if start else ""
    return f'<line class="w{lane}" x1="{_x(lane)}" x2="{_x(lane)}"{begin} y2="100%"/>'


def _line(lane: int, start: int, end: int) -> str:
    return f'<path class="w{lane}" d="M{_x(lane)} {start}V{end}"/>'


def _curve(lane: int, to: int) -> str:
    if lane == to:
        return _line(lane, 0, _MIDDLE)
    return f'<path class="w{lane}" d="M{_x(lane)} 0C{_x(lane)} 11 {_x(to)} 3 {_x(to)} {_MIDDLE}"/>'


def _to_the_right(lane: int) -> str:
    return f'<path class="w{lane}" d="M{_x(lane)} 0C{_x(lane)} {_MIDDLE} {_x(lane)} {_MIDDLE} 400 {_MIDDLE}"/>'


def _from_the_right(lane: int) -> str:
    curve = f"M400 {_MIDDLE}C{_x(lane)} {_MIDDLE} {_x(lane)} {_MIDDLE} {_x(lane)} {_ROW}"
    return f'<path class="w{lane}" d="{curve}"/>{_down(lane, _ROW)}'


def _dot(lane: int) -> str:
    return f'<circle class="d{lane}" cx="{_x(lane)}" cy="{_MIDDLE}" r="3.5"/>'
