"""``to_static(..., full_graph=False)``: programs for what can be one, with Python in between for the rest.

A call is a chain of *segments*. Each is a program, cached and guarded like that of a whole function, of the values that
the frames of the call hold where it begins. Where it ends, Python carries out an instruction, and goes on by hand up to
one that the next segment can begin with.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

from stillgraph.api.captures import function_of
from stillgraph.api.front_ends import interpret_in, turn_inside_out_in
from stillgraph.api.planned import explained, signature_of
from stillgraph.api.static import Static
from stillgraph.bytecode import convert as bytecode
from stillgraph.bytecode.between import Between
from stillgraph.bytecode.resuming import SUSPENDED, resume, run_on
from stillgraph.bytecode.segments import (
    CLOCKS,
    Breaks,
    FrameLayout,
    Layout,
    Learned,
    Segment,
    Unreachable,
    code_called,
    packed,
    restored,
)
from stillgraph.core.diagnostics import CaptureError, StillgraphError, refusal
from stillgraph.core.logs import log
from stillgraph.core.parcel import Parcel, opened
from stillgraph.operators import acts
from stillgraph.program.program import Program
from stillgraph.report.plan import PlanExplanation
from stillgraph.runtime.cache import CacheInfo
from stillgraph.runtime.tracebacks import present
from stillgraph.settings import SETTINGS
from stillgraph.source.convert import is_converted
from stillgraph.trace.front_end import FrontEnd
from stillgraph.trace.watch import Watch


def _is_residual(function: Any) -> bool:
    if function is print or isinstance(function, _CACHED) or _is_clock(function):
        return True
    return acts.act_of(function) is not None


def _is_clock(function: Any) -> bool:
    return isinstance(function, BuiltinFunctionType) and function in CLOCKS


_CACHED = type(functools.lru_cache(lambda: None))
"""What a cache keeps, Python has to put there: nothing of a capture."""


class Part(Static):
    """A segment: what is captured is the call from where it begins."""

    def __init__(self, plan: Plan, original: Any, **options: Any) -> None:
        self._plan = plan
        super().__init__(original, **options)

    def _capture_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], watch: Watch | None = None) -> Program:
        while True:
            known = self._plan.breaks.count
            function, _ = function_of(self.original, args)
            root = code_called(args[0] if function is torch.nn.Module.__call__ else function)
            segment = Segment(self._plan.breaks, _is_residual, self._plan.number, root)
            self._front_end = self._plan.front_end(segment)
            try:
                return super()._capture_call(args, kwargs, watch)
            except Learned:
                if self._plan.breaks.count == known:
                    message = "a capture begins anew without having learned anything"
                    raise refusal("SG107", message) from None
            except CaptureError as error:
                if not segment.cut():
                    raise
                log("capture", "cut", f"a segment of {self._name} is cut in two, for {error.message}")
            except Unreachable as error:
                message = f"the program would end inside of code that Python cannot go on in: {error}"
                raise refusal("SG107", message) from None

    def _tell_of(self, failure: Exception) -> None:
        if self._plan.strict:
            raise failure
        super()._tell_of(failure)


class Plan:
    """The segments of a function.

    Attributes:
        breaks: where they end.
        ends: how frames are where they end, and how calls go on there.
        entry: the first segment.
        parts: the others, by the layout that they begin with.
        strict: whether a capture that fails is an error, rather than the call's being made in plain PyTorch.
    """

    def __init__(self, original: Any, strict: bool, options: dict[str, Any]) -> None:
        self.breaks = Breaks()
        self.ends: list[Between] = []
        self.parts: dict[Layout, Part] = {}
        self.strict = strict
        self._numbers: dict[Layout, int] = {}
        self._options = {**options, "input_spec": None}
        self._resumed: dict[int, Callable[[Segment], FunctionType]] = {}
        self._told = False
        self.entry = Part(self, original, **options)

    @property
    def segments(self) -> tuple[Part, ...]:
        """All segments, the first one first."""
        return (self.entry, *self.parts.values())

    def number(self, layout: Layout) -> int:
        """The number of a layout."""
        found = self._numbers.get(layout)
        if found is None:
            found = self._numbers[layout] = len(self.ends)
            self.ends.append(Between(layout, self.breaks))
        return found

    def front_end(self, segment: Segment) -> FrontEnd:
        """The front end of one attempt."""

        def convert(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            resumed = self._resumed.get(id(function))
            return interpret_in(segment, function, watched, tries) if resumed is None else (resumed(segment), ())

        def inside_out(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            return turn_inside_out_in(segment, function, watched, tries)

        return FrontEnd(convert, inside_out, is_converted, SETTINGS.skips)

    def part(self, layout: Layout) -> Part:
        """The segment that begins with a layout."""
        found = self.parts.get(layout)
        if found is None:
            found = self.parts[layout] = Part(self, self._resuming(layout), **self._options)
        return found

    def _resuming(self, layout: Layout) -> FunctionType:
        def in_python(*values: Any) -> Any:
            return run_on(restored(layout, list(map(opened, values))))

        def in_segment(segment: Segment) -> FunctionType:
            def run(*values: Any) -> Any:
                return resume(segment, restored(layout, list(values)))

            return bytecode.resuming(layout[0].code, run, True)

        made = bytecode.resuming(layout[0].code, in_python, False)
        made.__signature__ = signature_of(layout)  # type: ignore[attr-defined]  # as `inspect` looks for it
        self._resumed[id(made)] = in_segment
        return made

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call."""
        part, values = self.entry, args
        while True:
            try:
                result = part(*values, **kwargs)
            except StillgraphError as error:
                if self.strict:
                    raise
                result = self._in_python(part, values, kwargs, error)
            kwargs = {}
            if type(result) is not tuple or not result or result[0] is not SUSPENDED:
                return result if type(result) is not Parcel else result.value
            following = self.ends[result[1]].go(result[2:])
            if following.layout is None:
                return following.result
            part, values = self.part(following.layout), tuple(packed(following.values))

    def explanation(self, name: str) -> PlanExplanation:
        """What is told of the calls so far."""
        parts: list[tuple[Layout | None, Sequence[Program]]] = [(None, self.entry.programs)]
        parts += ((layout, part.programs) for layout, part in self.parts.items())
        return explained(name, self.entry.original, parts, self.ends, self._reason, SUSPENDED)

    def _reason(self, frame: FrameLayout) -> str:
        return self.breaks.residual.get(frame.code, {}).get(frame.index, "only Python can do it")

    def _in_python(self, part: Part, values: tuple[Any, ...], kwargs: dict[str, Any], error: StillgraphError) -> Any:
        """Make the rest of a call in plain PyTorch, and tell of it once."""
        if not self._told:
            self._told = True
            warnings.warn(f"{error}\n  The rest of the call is made in plain PyTorch.", RuntimeWarning, stacklevel=4)
        return part.original(*values, **kwargs)


class Partial(Static):
    """A static function that leaves to Python what cannot be in a program."""

    def __init__(self, original: Any, *, strict: bool, **options: Any) -> None:
        super().__init__(original, **options)
        self.plan = Plan(self.original, strict, options)
        self._strict = strict

    def __reduce__(self) -> Any:
        made = super().__reduce__()
        return made if isinstance(made, str) else (_made, (self._strict, *made[1]))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it like the original."""
        try:
            if self._rolled_back or self._is_capturing():
                return self._function(*args, **kwargs)
            return self.plan(args, kwargs)  # whose segments ask for the global switch
        except BaseException as error:
            present(error)
            raise

    @property
    def programs(self) -> tuple[Program, ...]:
        """The cached programs, segment by segment."""
        return tuple(program for part in self.plan.segments for program in part.programs)

    def cache_info(self) -> CacheInfo:
        """Hits, misses, programs and evictions of all segments together, and the size of each one's cache."""
        found = [part.cache_info() for part in self.plan.segments]
        hits, misses, programs, evictions, _ = map(sum, zip(*found))
        return CacheInfo(hits, misses, programs, evictions, found[0].size)

    @property
    def code(self) -> str:
        """What the calls so far have become: one function in Python, of programs and of the steps between them."""
        return self.plan.explanation(self._name).code

    def explain(self, /, *args: Any, **kwargs: Any) -> Any:
        """Say what has become of the calls so far, or of one call what it would be as a whole.

        Args:
            args, kwargs: of a call, which is captured for this and not run: all of it, so that it is refused for what
                ends a program. Without any: what the calls so far have become, see `report.plan.PlanExplanation`:
                subgraphs, breaks with their reasons, and how they follow.
        """
        if (args and not (len(args) == 1 and self._is_without_call(args, kwargs))) or kwargs:
            return super().explain(*args, **kwargs)
        return self.plan.explanation(self._name)


def _made(strict: bool, *made_with: Any) -> Partial:
    original, input_spec, backend, options, cache_size, check = made_with
    settings = {"input_spec": input_spec, "backend": backend, "options": options}
    return Partial(original, strict=strict, **settings, cache_size=cache_size, check=check)
