"""``to_static(..., full_graph=False)``: programs for what can be one, with Python in between for the rest.

A call is a chain of *segments*. Each is a program, cached and guarded like that of a whole function, of the values that
the frames of the call hold where it begins. Where it ends, Python carries out an instruction, and the next one is looked up.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

from stillgraph.api.captures import Specs, capture_call
from stillgraph.api.static import Static
from stillgraph.bytecode import convert as bytecode
from stillgraph.bytecode.frame import Frame
from stillgraph.bytecode.resuming import SUSPENDED, go_by_hand, resume, run_on
from stillgraph.bytecode.segments import Breaks, Layout, Learned, Segment, Unreachable, packed, restored, suspended
from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.parcel import opened
from stillgraph.operators import acts
from stillgraph.operators.calls import assigned_outer_variables
from stillgraph.program.program import Program
from stillgraph.settings import SETTINGS
from stillgraph.source.convert import is_converted
from stillgraph.trace.front_end import FrontEnd
from stillgraph.trace.knowledge import Options
from stillgraph.trace.watch import Watch


def _is_residual(function: Any) -> bool:
    return function is print or acts.act_of(function) is not None


class Part(Static):
    """A segment: what is captured is the call from where it begins."""

    def __init__(self, plan: Plan, original: Any, **options: Any) -> None:
        self._plan = plan
        super().__init__(original, **options)

    def _capture_call(self, args: Any, kwargs: Any, watch: Watch | None = None) -> Program:
        while True:
            segment = Segment(self._plan.breaks, _is_residual, self._plan.number)
            self._front_end = self._plan.front_end(segment)
            try:
                return super()._capture_call(args, kwargs, watch)
            except Learned:
                continue


class Plan:
    """The segments of a function.

    Attributes:
        breaks: where they end.
        layouts: how frames are where they end, by number.
        parts: the segments, by the layout that they begin with.
    """

    def __init__(self, original: Any, options: dict[str, Any]) -> None:
        self.breaks = Breaks()
        self.layouts: list[Layout] = []
        self.parts: dict[Layout, Part] = {}
        self._numbers: dict[Layout, int] = {}
        self._options = options
        self._resumed: dict[int, Callable[[Segment], FunctionType]] = {}
        self.entry = Part(self, original, **options)

    def number(self, layout: Layout) -> int:
        """The number of a layout."""
        found = self._numbers.get(layout)
        if found is None:
            found = self._numbers[layout] = len(self.layouts)
            self.layouts.append(layout)
        return found

    def front_end(self, segment: Segment) -> FrontEnd:
        """The front end of one attempt."""

        def convert(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            resumed = self._resumed.get(id(function))
            if resumed is not None:
                return resumed(segment), ()
            return bytecode.convert(function, segment), assigned_outer_variables(function.__code__)

        def inside_out(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            turned = bytecode.convert_generator(function, segment)
            return None if turned is None else (turned[0], assigned_outer_variables(function.__code__), turned[1])

        return FrontEnd(convert, inside_out, is_converted, SETTINGS.skips)

    def part(self, layout: Layout) -> Part:
        """The segment that begins with a layout."""
        found = self.parts.get(layout)
        if found is None:
            function = self._resuming(layout)
            found = self.parts[layout] = Part(self, function, **{**self._options, "input_spec": None})
        return found

    def _resuming(self, layout: Layout) -> FunctionType:
        def in_python(*values: Any) -> Any:
            return run_on(restored(layout, list(map(opened, values))))

        def in_segment(segment: Segment) -> FunctionType:
            return bytecode.resuming(layout[0].code, lambda *values: resume(segment, restored(layout, list(values))), True)

        made = bytecode.resuming(layout[0].code, in_python, False)
        self._resumed[id(made)] = in_segment
        return made

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call."""
        result = self.entry(*args, **kwargs)
        while type(result) is tuple and result and result[0] is SUSPENDED:
            frames: list[Frame] = restored(self.layouts[result[1]], list(map(opened, result[2:])))
            ended = go_by_hand(frames, self.breaks)
            if ended is not None:
                return ended[0]
            layout, values = suspended(frames)
            result = self.part(layout)(*packed(values))
        return opened(result)


class Partial(Static):
    """A static function that leaves to Python what cannot be in a program."""

    def __init__(self, original: Any, input_spec: Specs | None, backend: Any, options: Options, cache_size: int) -> None:
        super().__init__(original, input_spec, backend, options, cache_size)
        shared = {"input_spec": input_spec, "backend": backend, "options": options, "cache_size": cache_size}
        self.plan = Plan(self.original, shared)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it like the original."""
        return self.plan(args, kwargs)


_ = functools, warnings, CaptureError, Unreachable, capture_call
