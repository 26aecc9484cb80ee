"""Plans: a call is a chain of *segments*.

Each is a program, cached and guarded like that of a whole function, of the values that the frames of the call hold
where it begins. Where it ends, Python carries out an instruction, and goes on by hand up to one that the next segment
can begin with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from stillgraph.api.bounds import MOST_FAILURES, MOST_PARTS
from stillgraph.api.front_ends import interpret_in, turn_inside_out_in
from stillgraph.api.left_whole import why_left
from stillgraph.api.parts import Failed, Part
from stillgraph.api.planned import ending_of, explained, signature_of
from stillgraph.bytecode.between.between import Between
from stillgraph.bytecode.between.resuming import SUSPENDED, resume, run_on
from stillgraph.bytecode.entry import convert as bytecode
from stillgraph.bytecode.segments.breaks import Breaks, place_of, reason_of, sees_frames
from stillgraph.bytecode.segments.layouts import FrameLayout, Layout, left_by_raising, packed, restored
from stillgraph.bytecode.segments.segments import Segment
from stillgraph.bytecode.segments.whys import Why, why_of
from stillgraph.core import faults
from stillgraph.core.diagnostics import MisreadError, StillgraphError
from stillgraph.core.logs import log
from stillgraph.core.parcel import empty, opened
from stillgraph.core.shown import brief_error
from stillgraph.core.warning import warn
from stillgraph.program.context import dispatch_mode_depth
from stillgraph.program.program import Program
from stillgraph.report.plan import PlanExplanation
from stillgraph.settings import SETTINGS
from stillgraph.source.compiled import is_converted
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.fakes import torch_modes


def _beside() -> tuple[int, int]:
    """What a call shares its effects with when it begins: threads, and dispatch modes around it."""
    return threading.active_count(), dispatch_mode_depth()


def _is_joined(beside: tuple[int, int]) -> bool:
    """Whether a step has begun what no capture may go on beside.

    What a thread of the call's writes cannot be undone, and modes see what a capture does, too.
    """
    threads, modes = beside
    return threading.active_count() > threads or dispatch_mode_depth() > modes or torch_modes.in_function_mode()


class Plan:
    """The segments of a function.

    Attributes:
        breaks: where they end.
        ends: how frames are where they end, and how calls go on there.
        entry: the first segment.
        parts: the others, by the layout that they begin with.
        strict: whether a capture that fails is an error, rather than the call's being made in plain PyTorch.
        gave_up: why calls are made in plain PyTorch from now on; None where they are not.
        changing: the variables, by code and slot, of which some segment leaves to Python what they hold.
        left: why Python makes the calls as a whole, and where the function begins; None where it does not.
        may_end: whether the first program of a call may end before the call does, see `FrontEnd.may_end`.
    """

    def __init__(self, name: str, original: Any, strict: bool, options: dict[str, Any]) -> None:
        self.breaks = Breaks()
        self.ends: list[Between] = []
        self.parts: dict[Layout, Part] = {}
        self.strict = strict
        self.gave_up: str | None = None
        self.changing: set[tuple[CodeType, int]] = set()
        self.left = why_left(original)
        self.may_end = False
        self._name = name
        self._numbers: dict[Layout, int] = {}
        self._options = {**options, "input_spec": None}
        self._resumed: dict[int, Callable[[Segment], FunctionType]] = {}
        self._failures = 0
        self._told = False
        self.entry = Part(self, original, None, **options)

    @property
    def segments(self) -> tuple[Part, ...]:
        """All segments, the first one first."""
        return (self.entry, *self.parts.values())

    def number(self, layout: Layout) -> int:
        """The number of a layout."""
        found = self._numbers.get(layout)
        if found is None:
            found = self._numbers[layout] = len(self.ends)
            self.ends.append(Between(layout, self.breaks, self))
        return found

    def front_end(self, segment: Segment, may_end: bool = True) -> FrontEnd:
        """The front end of one attempt; see `FrontEnd.may_end`."""

        def convert(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            resumed = self._resumed.get(id(function))
            return interpret_in(segment, function) if resumed is None else (resumed(segment), ())

        def inside_out(function: FunctionType, watched: frozenset[str], tries: bool, manages: bool) -> Any:
            return turn_inside_out_in(segment, function, manages)

        return FrontEnd(convert, inside_out, is_converted, SETTINGS.skips, None, True, may_end)

    def part(self, layout: Layout) -> Part:
        """The segment that begins with a layout."""
        found = self.parts.get(layout)
        if found is None:
            found = self.parts[layout] = Part(self, self._resuming(layout), layout, **self._options)
            place = place_of(layout[-1].code, layout[-1].index)
            self._log("segment", f"segment {len(self.parts)} of {self._name} begins at {place}", at=str(place))
        return found

    def _resuming(self, layout: Layout) -> FunctionType:
        is_left = left_by_raising(layout) is not None

        def in_python(*values: Any) -> Any:
            return run_on(restored(layout, list(map(opened, values))))

        def in_segment(segment: Segment) -> FunctionType:
            def run(*values: Any) -> Any:
                return resume(segment, restored(layout, list(values)), is_left)

            return bytecode.resuming(layout[0].code, run, True)

        made = bytecode.resuming(layout[0].code, in_python, False)
        made.__signature__ = signature_of(layout)  # type: ignore[attr-defined]  # as `inspect` looks for it
        self._resumed[id(made)] = in_segment
        return made

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call."""
        part, beside = self.entry, None
        values: Sequence[Any] = args
        if torch_modes.in_function_mode():
            return part.plainly(args, kwargs)  # it would see what we ask of tensors, too
        if part.passing.packs:
            values, kwargs = part.passing.packed(args, kwargs)
        while True:
            result = self._run(part, values, kwargs)
            kwargs = {}
            if type(result) is not tuple or not result or result[0] is not SUSPENDED:
                result = opened(result)
                empty(values)
                return result
            end, held = self.ends[result[1]], [*map(opened, result[2:])]
            del result
            empty(values)  # what is gone with the frames goes in the order of their variables, whoever has the parcels
            values = ()
            beside = beside or _beside()  # a program starts no thread, and enters no mode
            following = end.go(held)
            layout, given = following.layout, following.values
            if layout is None:
                return following.result
            del following
            if layout not in self.parts and len(self.parts) >= MOST_PARTS:
                self.give_up(f"programs would begin at more than {MOST_PARTS} places. Call it for parts of the work")
            if self.gave_up is not None or _is_joined(beside):
                return run_on(restored(layout, list(given)))
            try:
                part = self.part(layout)
                values = packed(given, part.unread)
                if part.passing.spread:
                    values = part.passing.spread_out(values)
            except Exception as error:  # of any kind: only code of ours runs here
                self.fails(error)
                return run_on(restored(layout, list(given)))
            given.clear()  # nothing else is to hold them

    def _run(self, part: Part, values: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run a segment; where the attempt at its program fails, the rest of the call in plain PyTorch."""
        try:
            return part(*values, **kwargs)
        except Failed as failed:
            failure = failed.error
        try:  # outside of the handler: it is no context of what the call raises
            if not self.strict and part is not self.entry and sees_frames(failure):
                # the frames of this call are gone; those of the next one are there from its beginning on
                self.give_up(f"{reason_of(failure).text}, which a call that has begun cannot be left to Python for")
                raise failure
            self.fails(failure)
        finally:
            del failure  # whose traceback may lead here
        return part.plainly(tuple(values), kwargs)

    def explain_miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Why no program of the first segment fits a call; None where one does."""
        if self.left is not None or self.gave_up is not None:
            why = self.gave_up if self.left is None else self.left[0].text
            return f"its calls are not captured: {why}"
        return self.entry.explain_miss(*args, **kwargs)

    def explanation(self, name: str) -> PlanExplanation:
        """What is told of the calls so far."""
        parts: list[tuple[Layout | None, Sequence[Program]]] = [(None, self.entry.programs)]
        parts += ((layout, part.programs) for layout, part in self.parts.items())
        return explained(name, self.entry.original, parts, self.ends, self._why, SUSPENDED, self.gave_up, self.left)

    def _why(self, frame: FrameLayout) -> Why:
        return self.breaks.residual.get(frame.code, {}).get(frame.index, why_of("other"))

    # ---- what goes wrong
    def give_up(self, why: str) -> None:
        """Make the calls from now on in plain PyTorch, and drop all programs."""
        if self.gave_up is not None:
            return
        self.gave_up = why
        text = f"{self._name} is called in plain PyTorch from now on: {why}."
        self._log("fallback", text, why=why)
        for part in self.segments:
            part._cache.clear()
        self._warn(text)

    def fails(self, error: BaseException) -> None:
        """Note that a capture has failed; the call goes on in plain PyTorch. A fault of ours is not tried again.

        Raises:
            Exception: what has failed, if that is to be an error.
        """
        if self.strict:
            raise error
        if self.gave_up is not None:
            return
        if not isinstance(error, (StillgraphError, MisreadError)) and faults.arises_in_ours(error):
            self._log("fault", faults.traceback_of(error), function=self._name)
            hint = "Please report it, with the traceback that STILLGRAPH_LOG=plan shows"
            self.give_up(f"{faults.told(error)}. {hint}")
            return
        self._failures += 1
        what = str(error)
        if not isinstance(error, StillgraphError):
            what = f"the capture of {self._name} raises {brief_error(error)}, but eager PyTorch does not"
        text = f"{what}\n  The rest of the call is made in plain PyTorch."
        self._log("fallback", f"the rest of a call of {self._name} is made in plain PyTorch: {what}", why=what)
        self._warn(text)
        if self._failures >= MOST_FAILURES:
            self.give_up(f"{MOST_FAILURES} captures of it have failed, the last one for: {what}")

    def _warn(self, text: str) -> None:
        if not self._told:
            self._told = True
            warn(text)

    def _log(self, event: str, text: str, **data: Any) -> None:
        log("plan", event, text, **{"function": self._name, **data})

    # ---- what is new between two programs
    def captured(self, program: Program, known: int) -> None:
        """A program was captured when ``known`` ends were: it may lead back to one of them."""
        ending = ending_of(program, SUSPENDED)
        if ending is not None and ending[0] < known:
            innermost = self.ends[ending[0]].layout[-1]
            place = place_of(innermost.code, innermost.index)
            self._log("linked", f"a segment of {self._name} leads back to {place}", at=str(place))

    def compiled(self, layout: Layout, why_not: str | None) -> None:
        """A route was made, or cannot be; as `between.Listener`."""
        place = place_of(layout[-1].code, layout[-1].index)
        made = "are compiled" if why_not is None else f"are done by hand ({why_not})"
        self._log("route", f"the steps of {self._name} from {place} {made}", at=str(place), why_not=why_not)
