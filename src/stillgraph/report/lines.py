"""What became of each line of the user's source."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stillgraph.core.diagnostics import Side
from stillgraph.core.location import Location
from stillgraph.program.program import Split
from stillgraph.program.record import Decision
from stillgraph.report.boxes import Box, Operation, Place
from stillgraph.report.metadata import Asked
from stillgraph.report.sources import FunctionText
from stillgraph.report.specialised import Specialised

MARKS = ("refused", "split", "staged", "specialised", "evaluated")
"""The marks a line can have, the one that is shown first first."""


@dataclass(frozen=True)
class Mark:
    """What became of a line, and why that is said."""

    kind: str
    why: str


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's source.

    Attributes:
        number: in its file.
        text: the line.
        marks: what became of it, the most important first; empty where it did not run, or says nothing.
        operations: the ids of the operations it stands for, those of functions it calls included.
        visits: how often a run came by; None where nobody counted.
    """

    number: int
    text: str
    marks: tuple[Mark, ...] = ()
    operations: tuple[str, ...] = ()
    visits: int | None = None

    @property
    def mark(self) -> str:
        """The most important mark; empty for a plain line."""
        return self.marks[0].kind if self.marks else ""


@dataclass(frozen=True)
class SourceFunction:
    """A function that the capture ran."""

    file: str
    line: int
    name: str
    rewritten: bool
    lines: tuple[SourceLine, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many lines have which mark."""
        found = [line.mark for line in self.lines if line.mark]
        return {kind: found.count(kind) for kind in MARKS if kind in found}


@dataclass(frozen=True)
class Refusal:
    """What ended a capture.

    Attributes:
        message, code: why.
        place: the line.
        callers: the lines that called, the outermost first.
        recorded, branched: as `Record` has them.
    """

    message: str
    code: str
    place: Place | None
    callers: tuple[Place, ...]
    recorded: tuple[Location, ...]
    branched: tuple[tuple[str, int], ...]


@dataclass
class _Notes:
    """What is known of the lines of one file, by their numbers."""

    whys: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    own: dict[int, list[Operation]] = field(default_factory=dict)
    called: dict[int, list[Operation]] = field(default_factory=dict)
    branched: set[int] = field(default_factory=set)

    def has_region(self, lines: Iterable[int]) -> bool:
        """Whether a construct on these lines is, or was going to be, a region of the program."""
        every = (*lines,)
        return not self.branched.isdisjoint(every) or any(
            operation.written for each in every for operation in self.own.get(each, ())
        )

    def modes(self, lines: Iterable[int]) -> set[str]:
        """The modes in which the operations of these lines run."""
        every = (*lines,)
        return {each.modes for notes in (self.own, self.called) for line in every for each in notes.get(line, ())}

    def add(self, line: int, kind: str, why: str) -> None:
        reasons = self.whys.setdefault(line, {}).setdefault(kind, [])
        if why not in reasons:
            reasons.append(why)


def mark_lines(
    texts: Iterable[FunctionText],
    boxes: Sequence[Box],
    decisions: Iterable[Decision],
    special: Iterable[Specialised],
    splits: Iterable[Split],
    ran: Mapping[str, frozenset[int]],
    refusal: Refusal | None = None,
    sides: Iterable[Side] = (),
    asked: Iterable[Asked] = (),
) -> tuple[SourceFunction, ...]:
    """Mark the lines of functions.

    Args:
        texts: the functions.
        boxes: the program's regions; their operations say what is staged.
        decisions: what Python decided.
        special: what was specialised on.
        splits: what is done once per path.
        ran: by file the lines that ran; without a file's, its lines that left nothing stay plain.
        refusal: what ended the capture, and what had been recorded until then.
        sides: what gives another result on each path.
        asked: what Python answered of tensors.
    """
    texts = list(texts)
    notes: dict[str, _Notes] = {}

    def of(file: str) -> _Notes:
        return notes.setdefault(file, _Notes())

    for box in boxes:
        for operation in box.operations:
            _note_operation(operation, of)
            for place, name in _calls_left_to_python(operation, texts):
                of(place.file).add(place.line, "evaluated", f"{name} runs as it is (SG605)")
    for decision in decisions:
        of(decision.file).add(decision.line, "evaluated", f"'{decision.kind}' {decision} ({decision.reason})")
    for answer in asked:
        of(answer.place.file).add(answer.place.line, "evaluated", answer.why)
    for each in special:
        for place in each.places:
            of(place.file).add(place.line, "specialised", each.why)
    for split in splits:
        if split.location is not None:
            of(split.location.file).add(split.location.line, "split", f"{split} ({split.reason})")
    for side in sides:
        if side.location is not None:
            why = f"the result is another one on each path: {side.text} (SG603)"
            of(side.location.file).add(side.location.line, "split", why)
    if refusal is not None:
        _note_refusal(refusal, of)
    count = _Visits(boxes)
    return tuple(_function(text, of(text.ran.file), ran.get(text.ran.file, frozenset()), count) for text in texts)


def _note_operation(operation: Operation, of: Callable[[str], _Notes]) -> None:
    if operation.place is not None:
        of(operation.place.file).own.setdefault(operation.place.line, []).append(operation)
    for caller in operation.callers:
        of(caller.file).called.setdefault(caller.line, []).append(operation)


def _calls_left_to_python(operation: Operation, texts: Iterable[FunctionText]) -> Iterator[tuple[Place, str]]:
    """The lines, of those that led to an operation, that call a function which is not rewritten, and its name."""
    left = [text for text in texts if not text.ran.rewritten]

    def name(place: Place) -> str | None:
        found = (text for text in left if text.ran.file == place.file and text.ran.line <= place.line <= text.last)
        return next((text.ran.name for text in found), None)

    if left and operation.place is not None:
        for outer, inner in itertools.pairwise((*operation.callers, operation.place)):
            called = name(inner)
            if called is not None and name(outer) is None:
                yield outer, called


def _note_refusal(refusal: Refusal, of: Callable[[str], _Notes]) -> None:
    """There is no program to tell by what the lines before it became: what was recorded for them tells it."""
    for file, line in refusal.branched:
        of(file).branched.add(line)
        of(file).add(line, "staged", "a branch, as far as the capture got")
    for location in refusal.recorded:
        of(location.file).add(location.line, "staged", "operations, as far as the capture got")
        for caller in location.callers:
            of(caller.file).add(caller.line, "staged", "operations of functions called here, as far as the capture got")
    for call in refusal.callers:
        of(call.file).add(call.line, "refused", f"calls what ended the capture at {refusal.place} ({refusal.code})")
    if refusal.place is not None:
        why = f"{refusal.message} ({refusal.code})"
        of(refusal.place.file).add(refusal.place.line, "refused", why)


class _Visits:
    """How often runs came by operations."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._counts = {box.number: box.visits for box in boxes}
        self._around = {inner: box.number for box in boxes for each in box.operations for inner in each.boxes}

    def of(self, ids: Iterable[str]) -> int | None:
        """Of operations in several regions, the visits of the outermost of these regions together."""
        regions = {int(each.partition("/")[0]) for each in ids}
        counts = [self._counts[each] for each in regions if not any(a in regions for a in self._all_around(each))]
        counted = [count for count in counts if count is not None]
        return sum(counted) if counted else None

    def _all_around(self, number: int) -> Iterator[int]:
        while number in self._around:
            number = self._around[number]
            yield number


def _function(text: FunctionText, notes: _Notes, ran: frozenset[int], visits: _Visits) -> SourceFunction:
    spans = _spans(text)
    plain = _without_code(text) - {number for number, whys in notes.whys.items() if "refused" in whys}
    steering = _steering(text, notes)
    lines = []
    for number, line in enumerate(text.lines, text.ran.line):
        span = spans.get(number, (number,))
        own = [operation for each in span for operation in notes.own.get(each, ())]
        called = [operation for each in span for operation in notes.called.get(each, ())]
        shapes = [steering[each] for each in span if each in steering and (not ran or each in ran)]
        plainly = _RAN if text.ran.rewritten else _RAN_AS_IT_IS
        marks = () if number in plain else tuple(_marks(span, notes, own, called, ran, shapes, plainly))
        shown = (*own, *called) if marks else ()
        ids = tuple(dict.fromkeys(operation.id for operation in shown))
        lines.append(SourceLine(number, line, marks, ids, visits.of(ids)))
    return SourceFunction(text.ran.file, text.ran.line, text.ran.name, text.ran.rewritten, tuple(lines))


def _marks(
    span: Sequence[int],
    notes: _Notes,
    own: list[Operation],
    called: list[Operation],
    ran: frozenset[int],
    shapes: list[str],
    plainly: str,
) -> Iterator[Mark]:
    whys: dict[str, list[str]] = {}
    for number in span:
        for kind, reasons in notes.whys.get(number, {}).items():
            whys.setdefault(kind, []).extend(reasons)
    staged = ", ".join(filter(None, (_staged(own, called), *shapes)))
    if staged:
        whys["staged"] = [staged]
    elif whys.keys().isdisjoint(("evaluated", "staged", "refused")) and any(number in ran for number in span):
        whys["evaluated"] = [plainly]
    for kind in MARKS:
        if kind in whys:
            yield Mark(kind, "; ".join(dict.fromkeys(whys[kind])))


_RAN = "ran during capture, and left nothing in the program"
_RAN_AS_IT_IS = "ran as it is, and left nothing in the program: the function is not rewritten (SG605)"


def _staged(own: list[Operation], called: list[Operation]) -> str:
    constructs = dict.fromkeys(operation.construct for operation in own if operation.written)
    plain = len({operation.id for operation in own if not operation.construct})
    inside = len({operation.id for operation in called} - {operation.id for operation in own})
    parts = [f"'{construct}' is a region of the program" for construct in constructs]
    if plain:
        parts.append(_counted(plain, "operation"))
    if inside:
        parts.append(f"{_counted(inside, 'operation')} of functions called here")
    if own and not parts:
        parts.append("a branch of the program")
    return ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# ---- statements
def _steering(text: FunctionText, notes: _Notes) -> dict[int, str]:
    """The statements that shape the program without an operation: exits in staged regions, and modes of torch's."""
    found: dict[int, str] = {}

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inside = False
        elif isinstance(node, (ast.If, ast.While, ast.For)):
            head = range(node.lineno, _first(node.body[0]))
            inside = inside or notes.has_region(head)
        elif type(node) in _EXITS and inside:
            found[getattr(node, "lineno", 0)] = f"'{_EXITS[type(node)]}' in a region decides what the program does next"
        elif isinstance(node, ast.With):
            modes = [mode or "the call's own modes are on" for mode in notes.modes(_body(node)) - usual]
            if modes:
                found[node.lineno] = f"operations in it run where {' and '.join(sorted(modes))}"
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    if text.tree is None:
        return found
    blocks = {line for node in ast.walk(text.tree) if isinstance(node, ast.With) for line in _body(node)}
    usual = notes.modes(set(range(text.ran.line, text.last + 1)) - blocks) or {""}
    visit(text.tree, False)
    return found


def _body(node: ast.With) -> range:
    return range(_first(node.body[0]), (node.end_lineno or node.lineno) + 1)


_EXITS: dict[type, str] = {ast.Break: "break", ast.Continue: "continue", ast.Return: "return"}


def _spans(text: FunctionText) -> dict[int, tuple[int, ...]]:
    """By line, the lines of the statement, or of the head of the statement, that it belongs to."""
    spans: dict[int, tuple[int, ...]] = {}
    if text.tree is None:
        return spans
    for node in ast.walk(text.tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            last = node.end_lineno or node.lineno
            if body:
                first = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else _first(body[0])
                last = max(node.lineno, first - 1)
            if last > node.lineno:
                head = tuple(range(node.lineno, last + 1))
                spans.update(dict.fromkeys(head, head))
    return spans


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", None)
    return decorators[0].lineno if decorators else node.lineno


def _without_code(text: FunctionText) -> frozenset[int]:
    """The lines on which nothing happens: empty ones, comments, docstrings, a function's own head."""
    plain = {
        number
        for number, line in enumerate(text.lines, text.ran.line)
        if not line.strip() or line.strip().startswith("#") or line.strip() in _CLOSING
    }
    if text.tree is None:
        return frozenset(plain)
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            plain.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    function = text.tree.body[0]
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        plain.update(range(text.ran.line, max(function.lineno, _first(function.body[0]) - 1) + 1))
    return frozenset(plain)


_CLOSING = frozenset({")", "]", "}", "):", "),", "],", "},", "else:", "try:", "finally:"})
