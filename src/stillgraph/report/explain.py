"""`explain`: what became of a call, as data. It is told as text, in a terminal, as JSON, or as one page of HTML."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.location import Location
from stillgraph.program.blocks import blocks
from stillgraph.program.operations import act, print_
from stillgraph.program.outputs import Choice, Container, Instance, Template
from stillgraph.program.printer import expression, guard_texts, is_part
from stillgraph.program.program import Program
from stillgraph.program.record import Phase, RanFunction, Record
from stillgraph.report.boxes import Box, Place, boxes, place_of
from stillgraph.report.explained import (
    CacheState,
    Explained,
    GuardText,
    Refused,
    RefusedSide,
    Sizes,
    StagedConstruct,
    write,
)
from stillgraph.report.html import page
from stillgraph.report.lines import Refusal, SourceFunction, mark_lines
from stillgraph.report.metadata import Asked, asked_metadata, asked_sizes, asked_types
from stillgraph.report.sources import FunctionText, function_texts
from stillgraph.report.specialised import specialised
from stillgraph.report.terminal import Rendering
from stillgraph.report.text import plain_text
from stillgraph.runtime.calls.cache import CacheInfo
from stillgraph.runtime.native.native import lower


class Explanation(Explained):
    """What a capture gave, or why it gave nothing. `Explained` has its attributes."""

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page of HTML that needs nothing else: no network, no other file, no JavaScript to be read.

        Args:
            path: of the file; it appears whole or not at all.

        Returns:
            The path.

        Raises:
            ModuleNotFoundError: jinja2 is missing; the message says how to install it.
            OSError: the file cannot be written.
        """
        return write(path, page(self))

    def __str__(self) -> str:
        return plain_text(self)

    def __rich__(self) -> Any:
        return Rendering(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page, in a frame of its own; as text where jinja2 is missing."""
        try:
            content = page(self)
        except ModuleNotFoundError:
            return f"<pre>{escape(str(self))}</pre>"
        style = "width: 100%; height: 36rem; border: 1px solid #8888"
        return f'<iframe title="{escape(self.name)}" style="{style}" srcdoc="{escape(content)}"></iframe>'


# ---- of a program
def explain(
    program: Program,
    seconds: float = 0.0,
    *,
    cache: CacheState | None = None,
    visits: Sequence[int | None] | None = None,
) -> Explanation:
    """Describe a program.

    Args:
        program: the program.
        seconds: how long its capture took, torch's start-up included.
        cache: how the cache that it belongs to has done.
        visits: how often each region was entered by the calls so far, in the order of `Program.regions`; None for one
            that was not counted, or for all.
    """
    record = program.record
    begin = time.perf_counter()
    driver = lower(program, None).code
    lowering = Phase("lowering", time.perf_counter() - begin)
    regions = boxes(program, visits)
    ran = {file: frozenset(lines) for file, lines in record.lines}
    texts = function_texts(_functions(program))
    special = tuple(specialised(program, texts, ran))
    choices = tuple(_choices(program.result))
    sides = tuple(side for choice in choices for side in choice.sides)
    asked = _asked(record, texts, ran)
    functions = mark_lines(texts, regions, record.decisions, special, program.splits, ran, sides=sides, asked=asked)
    counts = Counter(_operation_names(program))
    return Explanation(
        name=program.name,
        place=place_of(program.location),
        program=program,
        refused=None,
        seconds=_capture_seconds(record, seconds),
        nodes=sum(counts.values()),
        regions=len(regions),
        staged=tuple(_staged(regions, place_of(program.location))),
        operations=tuple(counts.most_common()),
        functions=functions,
        boxes=regions,
        decisions=record.decisions,
        specialised=special,
        guards=tuple(_guards(program)),
        effects=(*_acts(program), *map(str, program.effects)),
        splits=tuple(f"{split} ({split.reason})" for split in program.splits) + tuple(map(_per_path, choices)),
        phases=(*_phases(record, seconds), lowering),
        attempts=record.attempts,
        driver=driver,
        cache=cache,
        sizes=_sizes(program, functions, sum(counts.values())),
    )


def _asked(record: Record, texts: Sequence[FunctionText], ran: Mapping[str, frozenset[int]]) -> list[Asked]:
    return [*asked_sizes(record), *asked_metadata(record), *asked_types(texts, ran)]


def _per_path(choice: Choice) -> str:
    lines = dict.fromkeys(str(place_of(side.location)) for side in choice.sides if side.location is not None)
    return f"the result is another one on each path{f' at {chr(32).join(lines)}' if lines else ''} (SG603)"


def _capture_seconds(record: Record, seconds: float) -> float:
    return max(seconds - record.start_up, 0.0)


def _phases(record: Record, seconds: float) -> Iterator[Phase]:
    yield from record.phases
    rest = seconds - sum(phase.seconds for phase in record.phases)
    if record.phases and rest > 0:
        yield Phase("everything else", rest)


def _functions(program: Program) -> Iterator[RanFunction]:
    """Those that ran; of a program without a record, the function itself."""
    if program.record.functions:
        yield from program.record.functions
    elif program.location is not None:
        yield RanFunction(program.location.file, program.location.line, program.location.function or program.name)


def _operation_names(program: Program) -> Iterator[str]:
    constructs = {block.node for block in blocks(program.graph)}
    for region in program.regions:
        for node in region.graph.nodes:
            if node.op in ("call_function", "call_method") and node not in constructs and not is_part(node):
                yield getattr(node.target, "__name__", str(node.target))


def _acts(program: Program) -> Iterator[str]:
    """What a program prints, logs and writes to what is outside, by its operations."""
    for region in program.regions:
        for node in region.graph.nodes:
            if node.target in (print_, act):
                yield expression(node)


def _staged(regions: Sequence[Box], start: Place | None) -> Iterator[StagedConstruct]:
    """The user's constructs, each followed by those inside. Recursion of the function itself stands at its start."""

    def inside(number: int, depth: int) -> Iterator[StagedConstruct]:
        for operation in regions[number].operations:
            place = operation.place or start
            if operation.written and place is not None:
                yield StagedConstruct(operation.construct, place.file, place.line, depth)
            for child in operation.boxes:
                yield from inside(child, depth + bool(operation.written))

    yield from inside(0, 0)


def _guards(program: Program) -> Iterator[GuardText]:
    about_call = guard_texts(program)
    for text in about_call:
        yield GuardText(text, "", "call")
    shown = set(about_call)
    for guard in program.guards:
        text = str(guard)
        if text not in shown:
            yield GuardText(text, type(guard).__name__.removesuffix("Guard").lower(), "code")


def _sizes(program: Program, functions: Sequence[SourceFunction], operations: int) -> Sizes:
    parameters = [each.value for each in program.inputs if each.kind == "parameter"]
    buffers = [each.value for each in program.inputs if each.kind == "buffer"]
    return Sizes(
        operations=operations,
        regions=len(program.regions),
        functions=len(functions),
        lines=sum(len(function.lines) for function in functions),
        arguments=sum(each.kind == "argument" for each in program.inputs),
        parameters=len(parameters),
        parameter_elements=sum(int(each.numel()) for each in parameters),
        parameter_bytes=sum(int(each.numel()) * each.element_size() for each in parameters),
        buffers=len(buffers),
        buffer_bytes=sum(int(each.numel()) * each.element_size() for each in buffers),
        guards=len(program.guards),
    )


def _choices(template: Template) -> Iterator[Choice]:
    """The results that are picked by the path taken, for want of a join."""
    inside: tuple[Template, ...] = ()
    match template:
        case Choice(left=left, right=right):
            yield template
            inside = (left, right)
        case Container(children=children):
            inside = tuple(children)
        case Instance(attributes=attributes):
            inside = tuple(value for _, value in attributes)
    for each in inside:
        yield from _choices(each)


# ---- of a call that is refused
def explain_refusal(
    error: CaptureError, name: str, location: Location | None, record: Record, seconds: float = 0.0
) -> Explanation:
    """Describe why a call cannot become a program.

    Args:
        error: what the capture raised.
        name: of the function.
        location: of the function.
        record: what the capture did until then.
        seconds: how long that took, torch's start-up included.
    """
    place = place_of(error.location)
    callers = tuple(filter(None, map(place_of, error.location.callers))) if error.location is not None else ()
    sides = tuple(RefusedSide(side.text, place_of(side.location)) for side in error.sides)
    code, title = error.reason.code, error.reason.title
    refused = Refused(code, title, error.message, error.hint or "", str(error), place, callers, sides)
    refusal = Refusal(error.message, code, place, callers, record.recorded, record.branched)
    ran = {file: frozenset(lines) for file, lines in record.lines}
    texts = function_texts(record.functions)
    asked = _asked(record, texts, ran)
    functions = mark_lines(texts, (), record.decisions, (), (), ran, refusal, asked=asked)
    lines = sum(len(function.lines) for function in functions)
    return Explanation(
        name=name,
        place=place_of(location),
        program=None,
        refused=refused,
        seconds=_capture_seconds(record, seconds),
        nodes=0,
        regions=0,
        staged=(),
        operations=(),
        functions=functions,
        boxes=(),
        decisions=record.decisions,
        specialised=(),
        guards=(),
        effects=(),
        splits=(),
        phases=tuple(_phases(record, seconds)),
        attempts=record.attempts,
        driver="",
        cache=None,
        sizes=Sizes(0, 0, len(functions), lines, 0, 0, 0, 0, 0, 0, 0),
    )


def cache_state(info: CacheInfo, reasons: Sequence[str], this_call: str | None) -> CacheState:
    """A cache's state as data."""
    return CacheState(info.hits, info.misses, info.programs, info.evictions, info.size, tuple(reasons), this_call)
