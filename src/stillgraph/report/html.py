"""An explanation as one page of HTML that needs nothing else."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from stillgraph.report.boxes import Box, Operation, Place, Value
from stillgraph.report.explained import Explained
from stillgraph.report.highlight import highlight
from stillgraph.report.lines import MARKS
from stillgraph.report.wires import Drawing, Step, Wires, draw

_FEW = 24  # operations of a region that need no folding
_OPEN = 150  # operations of a page up to which folds are open
_LIFTED = ("parameter", "buffer")


@dataclass(frozen=True)
class Row:
    """An operation of a region, ready to be shown."""

    operation: Operation
    box: int
    wires: Wires
    text: str  # HTML
    lines: str  # the ids of the source lines it comes from, its own first
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class Fold:
    """Consecutive operations of one called function."""

    label: str
    about: str
    count: int
    large: bool  # whether it is most of what it stands in
    wires: str
    rows: tuple[Row | Fold, ...]


@dataclass(frozen=True)
class Region:
    """A region, ready to be shown."""

    box: Box
    drawing: Drawing
    given: tuple[Value, ...]  # its inputs but for parameters and buffers
    lifted: tuple[Value, ...]
    returns: str  # HTML
    rows: tuple[Row | Fold, ...]


def page(explanation: Explained) -> str:
    """The whole page.

    Raises:
        ModuleNotFoundError: jinja2 is missing; the message says how to install it.
    """
    try:
        import jinja2
        import markupsafe
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a report in HTML needs jinja2: pip install 'stillgraph[report]'", name=error.name
        ) from None
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["amount"] = _amount
    folder = resources.files("stillgraph.report") / "templates"
    read = {name: (folder / name).read_text("utf-8") for name in ("report.html.jinja", "report.css", "report.js")}
    maker = _Maker(explanation)
    rendered = environment.from_string(read["report.html.jinja"]).render(
        explanation=explanation,
        marks=MARKS,
        counts=_counts(explanation),
        functions=maker.functions(),
        top=maker.region(0) if explanation.boxes else None,
        driver=highlight(explanation.driver.splitlines()),
        open=explanation.sizes.operations <= _OPEN,
        few=len(explanation.functions) <= 12,
        css=markupsafe.Markup(read["report.css"]),
        js=markupsafe.Markup(read["report.js"]),
    )
    return rendered.strip() + "\n"


def _counts(explanation: Explained) -> dict[str, int]:
    found = {kind: sum(f.counts.get(kind, 0) for f in explanation.functions) for kind in MARKS}
    return {kind: count for kind, count in found.items() if count}


def _amount(count: int) -> str:
    """A number of bytes, to read."""
    size, units = float(count), ["bytes", "kB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{count} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"


class _Maker:
    """Makes what the template shows."""

    def __init__(self, explanation: Explained) -> None:
        self.boxes = explanation.boxes
        self.explained = explanation
        self.ids: dict[tuple[str, int], str] = {}
        self.names: dict[tuple[str, int], str] = {}
        for index, function in enumerate(explanation.functions):
            for line in function.lines:
                self.ids.setdefault((function.file, line.number), f"L{index}-{line.number}")
                self.names.setdefault((function.file, line.number), function.name)

    # ---- the source
    def functions(self) -> list[dict[str, Any]]:
        """The functions with their lines as HTML."""
        first = {
            operation.id: f"o{operation.id.replace('/', '-')}" for box in self.boxes for operation in box.operations
        }
        shown = []
        for index, function in enumerate(self.explained.functions):
            texts = highlight(textwrap.dedent("\n".join(line.text for line in function.lines)).split("\n"))
            lines = [
                {
                    "id": f"L{index}-{line.number}",
                    "line": line,
                    "html": text,
                    "target": first.get(line.operations[0]) if line.operations else None,
                    "why": " · ".join(f"{mark.kind}: {mark.why}" for mark in line.marks),
                }
                for line, text in zip(function.lines, texts)
            ]
            shown.append({"function": function, "lines": lines, "file": function.file.rsplit("/", 1)[-1]})
        return shown

    # ---- the regions
    def region(self, number: int) -> Region:
        """A region with those inside it."""
        box = self.boxes[number]
        given = tuple(value for value in box.inputs if value.kind not in _LIFTED)
        lifted = tuple(value for value in box.inputs if value.kind in _LIFTED)
        steps = [Step(o.inputs, tuple(v.name for v in o.outputs), bool(o.boxes)) for o in box.operations]
        drawing = draw([value.name for value in given], steps, box.returns)
        rows = tuple(self._row(operation, box, wires) for operation, wires in zip(box.operations, drawing.steps))
        folded = tuple(self._folded(rows, 0, box)) if len(rows) > _FEW else rows
        known = {value.name for value in box.inputs} | {v.name for o in box.operations for v in o.outputs}
        returns = ", ".join(_linked(each, number, known) for each in box.returns) or "nothing"
        return Region(box, drawing, given, lifted, returns, folded)

    def _row(self, operation: Operation, box: Box, wires: Wires) -> Row:
        places = [operation.place, *reversed(operation.callers)]
        lines = dict.fromkeys(id for place in places if place is not None and (id := self._line(place)))
        text = _linked(operation.text, box.number, set(operation.inputs))
        regions = tuple(self.region(number) for number in operation.boxes)
        return Row(operation, box.number, wires, text, " ".join(lines), regions)

    def _line(self, place: Place) -> str | None:
        return self.ids.get((place.file, place.line))

    # ---- folding by the calls of the user's functions
    def _folded(self, rows: Sequence[Row], depth: int, box: Box) -> Iterator[Row | Fold]:
        for run in _runs(rows, depth):
            callers = run[0].operation.callers
            if len(callers) <= depth or len(run) < 3:
                yield from run
            elif len(run) == len(rows):
                yield from self._folded(run, depth + 1, box)
            else:
                yield self._fold(run, depth, box, large=2 * len(run) > len(rows))

    def _fold(self, run: Sequence[Row], depth: int, box: Box, large: bool) -> Fold:
        chain = _chain(run[0])
        inner = chain[depth + 1]
        name = self.names.get((inner.file, inner.line)) or inner.function or "call"
        lifted = {value.name for value in box.inputs if value.kind in _LIFTED}
        used = [each for row in run for each in row.operation.inputs if each in lifted]
        about = _common(used).rpartition("_")[0]
        inside = tuple(self._folded(run, depth + 1, box)) if len(run) > 8 else tuple(run)
        return Fold(name, about, len(run), large, run[0].wires.before, inside)


def _common(names: Sequence[str]) -> str:
    """What all names begin with."""
    first, last = min(names, default=""), max(names, default="")
    return first[: next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), len(first))]


def _chain(row: Row) -> list[Place]:
    """The lines that called, and the operation's own."""
    place = row.operation.place
    return [*row.operation.callers, *([place] if place is not None else [])]


def _runs(rows: Iterable[Row], depth: int) -> Iterator[list[Row]]:
    """Consecutive rows of one call at a depth: of one calling line, and going forward in the function called."""
    run: list[Row] = []
    for row in rows:
        if run and not _goes_on(run[-1], row, depth):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _goes_on(before: Row, row: Row, depth: int) -> bool:
    first, second = _chain(before), _chain(row)
    if min(len(first), len(second)) <= depth + 1:
        return len(first) <= depth + 1 and len(second) <= depth + 1
    same = (first[depth].file, first[depth].line) == (second[depth].file, second[depth].line)
    return same and first[depth + 1].line <= second[depth + 1].line


def _linked(text: str, box: int, names: set[str]) -> str:
    """A text as HTML, the names of values in it linked to what makes them."""
    from markupsafe import Markup, escape

    parts = re.split(r"([A-Za-z_]\w*)", text)
    linked = (
        Markup('<a class="v" href="#v{}-{}">{}</a>').format(box, part, part) if part in names else escape(part)
        for part in parts
    )
    return Markup("").join(linked)
