"""What a capture does, taken down for its report: which functions and lines run, and what Python decides."""

from __future__ import annotations

import contextlib
import dis
import linecache
import sys
import time
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from stillgraph.core.files import is_below_torch, is_users
from stillgraph.core.location import Location
from stillgraph.program.record import START_UP, Decision, MetadataRead, Phase, RanFunction, Record, SizeRead
from stillgraph.trace.code.frames import line_of

EARLIER = "earlier attempts"
REWRITING, RECORDING, GUARDS = "rewriting", "recording", "guards"


class Watch:
    """What one capture does. An attempt that is given up leaves nothing but the time it took.

    Args:
        lines: whether to take down the lines that run. That slows a capture down, and is left out where a debugger or
            a coverage tool already traces this thread.

    Attributes:
        decisions: for each construct that Python decided: its kind, code, offset and outcome.
        sizes: the shape that was last read on a line.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self._wanted = lines
        self._seconds: dict[str, float] = {}
        self._attempts = 0
        self._begun = 0.0
        self._started = 0.0  # seconds of torch's start-up in this attempt
        self._inner = 0.0  # seconds of phases inside the one that is under way
        self._clear()

    def _clear(self) -> None:
        self.decisions: list[tuple[str, CodeType, int, bool | int]] = []
        self.sizes: dict[Location, tuple[int, ...]] = {}
        self._metadata: dict[tuple[Location, str], dict[str, None]] = {}
        self._recorded: dict[Location, None] = {}
        self._staged: dict[tuple[CodeType, int], None] = {}
        self._functions: dict[CodeType, RanFunction] = {}
        self._lines: dict[str, set[int]] = {}
        self._shown: dict[str, bool] = {}

    # ---- attempts and phases
    def begin(self) -> None:
        """An attempt begins."""
        now = time.perf_counter()
        if self._attempts:
            kept = {name: self._seconds[name] for name in (START_UP, EARLIER) if name in self._seconds}
            self._seconds = {**kept, EARLIER: kept.get(EARLIER, 0.0) + now - self._begun - self._started}
        self._attempts += 1
        self._begun = now
        self._started = 0.0
        self._clear()

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the body to a phase, and not to the one around it."""
        begin, outer = time.perf_counter(), self._inner
        self._inner = 0.0
        try:
            yield
        finally:
            seconds = time.perf_counter() - begin
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds - self._inner
            if name == START_UP:
                self._started += seconds
            self._inner = outer + seconds

    # ---- what runs
    def decided(self, kind: str, frame: FrameType, outcome: bool | int) -> None:
        """Python decided a construct.

        Args:
            kind: of the construct.
            frame: of the rewritten code that it stands in.
            outcome: the condition's truth value, or how many iterations a loop was unrolled into.
        """
        self.decisions.append((kind, frame.f_code, frame.f_lasti, outcome))

    def staged(self, frame: FrameType) -> None:
        """A condition, in a frame of the rewritten code, is being made a branch of the program."""
        if self._wanted:
            self._staged[frame.f_code, frame.f_lasti] = None

    def recorded(self, location: Location | None) -> None:
        """An operation of a line was recorded."""
        if self._wanted and location is not None:
            self._recorded[location] = None

    def forget(self, decided: int) -> None:
        """Drop all decisions but the first ones: what followed is going to be recorded anew."""
        del self.decisions[decided:]

    def size_read(self, location: Location | None, shape: Iterable[Any]) -> None:
        """A line read a shape; where a dimension is only known in the run, nothing is fixed by that."""
        if location is None:
            return
        known = tuple(shape)
        if all(type(each) is int for each in known):
            self.sizes[location] = known
        else:
            self.sizes.pop(location, None)

    def metadata_read(self, location: Location | None, name: str, value: Any) -> None:
        """A line asked a tensor for something besides its contents and sizes, and got a value of Python's."""
        if location is not None:
            values = self._metadata.setdefault((location, name), {})
            if isinstance(value, _SHORT) and len(values) < _MOST_VALUES:
                values[repr(value)] = None

    def ran(self, code: CodeType, module: Any, *, rewritten: bool) -> None:
        """A function ran."""
        if code in self._functions or code.co_name in _NO_FUNCTIONS or not _is_shown(code.co_filename):
            return
        self._functions[code] = RanFunction(
            code.co_filename, code.co_firstlineno, code.co_qualname, str(module or ""), code.co_freevars, rewritten
        )

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take down the lines that run in the body, if that is wanted."""
        if not self._wanted or sys.gettrace() is not None:
            yield
            return
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def passed(self, code: CodeType, positions: dis.Positions | None) -> None:
        """An instruction is carried out of code that Python itself does not run."""
        if self._wanted and positions is not None and positions.lineno is not None:
            self._lines.setdefault(code.co_filename, set()).add(positions.lineno)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        shown = self._shown.get(file)
        if shown is None:
            shown = self._shown[file] = _is_shown(file)
        if not shown:
            return None
        lines = self._lines.setdefault(file, set())

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line

    def record(self) -> Record:
        """All of it, as data."""
        files = {function.file for function in self._functions.values()}
        return Record(
            tuple(self._functions.values()),
            tuple((file, tuple(sorted(lines))) for file, lines in sorted(self._lines.items()) if file in files),
            self._decisions(),
            tuple(SizeRead(location, shape) for location, shape in self.sizes.items()),
            tuple(Phase(name, self._seconds[name]) for name in sorted(self._seconds, key=START_UP.__ne__)),
            max(self._attempts, 1),
            tuple(self._recorded),
            tuple((code.co_filename, line_of(code, offset)) for code, offset in self._staged),
            tuple(MetadataRead(location, name, tuple(each)) for (location, name), each in self._metadata.items()),
        )

    def _decisions(self) -> tuple[Decision, ...]:
        found: dict[tuple[str, str, int], set[bool | int]] = {}
        for kind, code, offset, outcome in dict.fromkeys(self.decisions):
            if _is_shown(code.co_filename):
                found.setdefault((kind, code.co_filename, line_of(code, offset)), set()).add(outcome)
        return tuple(
            Decision(*where, iterations=tuple(sorted(each)))
            if where[0] in _LOOPS
            else Decision(*where, outcomes=tuple(bool(one) for one in sorted(each)))
            for where, each in found.items()
        )


def _is_shown(file: str) -> bool:
    """Whether people can read a file: the user's own, a library's, a cell of a notebook, but not generated code."""
    return (not file.startswith("<") or bool(linecache.getlines(file))) and is_users(file) and not is_below_torch(file)


_SHORT = (bool, int, float, torch.dtype, torch.device, torch.layout)
_MOST_VALUES = 4
_LOOPS = ("for", "while")
_NO_FUNCTIONS = frozenset({"<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"})
