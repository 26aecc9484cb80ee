"""Segments: a program of a part of a call, which ends where Python itself has to do something.

A capture that cannot go on at an instruction ends there: the frames are handed out as they are, Python carries out the
instruction, and another capture goes on behind it. Where that is, one learns: `Breaks` is kept from capture to capture.
"""

from __future__ import annotations

import collections
import io
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

import torch

from stillgraph.bytecode.decode import Instruction
from stillgraph.bytecode.frame import NULL, Frame, contents
from stillgraph.bytecode.iteration import Iteration
from stillgraph.bytecode.parcels import is_bound, is_opaque, is_plain, read
from stillgraph.bytecode.table import MOVES, taken
from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.core.files import is_our_module
from stillgraph.core.parcel import Parcel, opened
from stillgraph.trace.arrays import StagedArray
from stillgraph.trace.audits import is_users
from stillgraph.trace.frames import here
from stillgraph.trace.journal import MISSING
from stillgraph.trace.numbers import Staged, StagedNumber
from stillgraph.trace.session import session
from stillgraph.trace.sources import is_machinery
from stillgraph.trace.text import StagedText
from stillgraph.trace.unjoined import Unjoined


class Ended(BaseException):
    """A segment ends: Python is to carry out the instruction that the innermost frame is at."""


class Learned(BaseException):
    """A capture begins anew, knowing of a further end."""


@dataclass
class Breaks:
    """Which instructions Python carries out, and why; and which loops are run by their jumps, for there is one inside.

    Attributes:
        residual: by code object and index, the reason.
        plain: by code object, the headers of loops.
    """

    residual: dict[CodeType, dict[int, str]] = field(default_factory=lambda: collections.defaultdict(dict))
    plain: dict[CodeType, set[int]] = field(default_factory=lambda: collections.defaultdict(set))

    @property
    def count(self) -> int:
        """How much is known."""
        return sum(map(len, self.residual.values())) + sum(map(len, self.plain.values()))


@dataclass(eq=False)
class Region:
    """A branch or loop that is being staged, or a loop that an operator runs."""

    frame: Frame
    index: int
    is_loop: bool


@dataclass(eq=False)
class Segment:
    """An attempt at a segment.

    Attributes:
        breaks: what is known.
        is_residual: asked of a function: whether Python is to call it, for it does something outside the program.
        number: gives each layout a number.
        root: the code whose result is that of the whole segment; None where something comes between.
        frames: those that are being run, the outermost first.
        regions: what they are in, the outermost first.
        calling: the frame whose instruction calls, and the code that it calls, whose result is its own.
        made: by the id of an object that cannot outlive a segment, the instruction that made it.
    """

    breaks: Breaks
    is_residual: Callable[[Any], bool]
    number: Callable[[Layout], int]
    root: CodeType | None = None
    frames: list[Frame] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    calling: tuple[Frame, CodeType] | None = None
    made: dict[int, tuple[Any, Frame, int]] = field(default_factory=dict)
    passed: list[tuple[CodeType, int]] = field(default_factory=list)
    culprits: dict[int, tuple[Frame, int]] = field(default_factory=dict)

    # ---- frames
    def begin(self) -> None:
        """Forget an attempt before: a capture may begin anew by itself."""
        self.regions.clear()
        self.made.clear()
        self.passed.clear()
        self.culprits.clear()

    def enter(self, frame: Frame) -> None:
        """A frame begins to run."""
        calling, self.calling = self.calling, None
        capture = session()
        assert capture is not None
        if not self.frames:
            self.begin()
            frame.transparent = frame.code is self.root and frame.code not in capture.knowledge.recursive
            capture.witness.calling = refuse_unseen
        else:
            called = calling is not None and calling[0] is self.frames[-1] and calling[1] is frame.code
            frame.transparent = called and frame.code not in capture.knowledge.recursive
        self.frames.append(frame)

    def leave(self, frame: Frame) -> None:
        """A frame has ended."""
        self.frames.remove(frame)

    def leave_all_above(self, frame: Frame) -> None:
        """What a frame has called has ended."""
        del self.frames[self.frames.index(frame) + 1 :]

    @property
    def can_end(self) -> bool:
        """Whether it may end here."""
        return not self.regions and all(frame.transparent for frame in self.frames)

    # ---- instructions
    def before(self, frame: Frame, index: int) -> None:
        """To be called before an instruction.

        Raises:
            Ended: it is Python's.
            Learned: it is, and what is around it has to be run otherwise.
        """
        each = frame.prepared.decoded.instructions[index]
        reasons = self.breaks.residual.get(frame.code)
        if reasons is not None and index in reasons:
            self.end(frame, index, reasons[index])
        if each.name in MOVES:
            return
        count = taken(each)
        if not self.regions and frame in self.frames and self.can_end:
            self.passed.append((frame.code, index))
        if each.name in _CALLS and self.can_end:
            function = opened(_function(frame, each))
            if self.is_residual(function):
                name = getattr(function, "__name__", type(function).__name__)
                self.end(frame, index, f"{name} does something outside the program")
        operands = frame.stack[frame.depth - count : frame.depth] if count else []
        for cell in operands:
            value = cell.cell_contents
            if type(value) is Parcel:
                if is_opaque(value.value):
                    self.end(frame, index, f"only Python can work with a {type(value.value).__name__}")
                cell.cell_contents = read(value)
        if each.name in _CALLS:
            code = code_called(_function(frame, each))
            self.calling = None if code is None else (frame, code)
        if each.name == "DELETE_DEREF":
            self.end(frame, index, "a variable is deleted that functions share")
        if each.name in _OF_CELLS:
            frame.slots[each.argument].cell_contents = read(frame.slots[each.argument].cell_contents)

    def after(self, frame: Frame, index: int) -> None:
        """To be called behind an instruction that went well, which may have made what cannot leave the segment."""
        each = frame.prepared.decoded.instructions[index]
        if each.name in _MEETING:
            self._meet(frame.peek(2 if each.name == "LOAD_METHOD" else 1))
        if each.name == "MAKE_CELL":
            made = frame.slots[each.argument]
        elif each.name in MOVES or not frame.depth:
            return
        else:
            made = frame.stack[frame.depth - (2 if each.name in _WITH_ANOTHER else 1)]
        if _stays(made.cell_contents):
            self.made.setdefault(id(made.cell_contents), (made.cell_contents, frame, index))

    def has_made(self, value: Any) -> bool:
        """Whether an object that cannot outlive the segment was made in it."""
        return id(value) in self.made

    def _meet(self, value: Any) -> None:
        """Note an object from outside that a capture does not look for: a logger, one of torch's."""
        capture = session()
        if capture is not None and is_bound(value):
            value = value.__self__
        if capture is not None and is_machinery(type(value)) and not isinstance(value, Staged):
            capture.met[id(value)] = value

    def end(self, frame: Frame, index: int, reason: str) -> None:
        """End the segment at an instruction, or find out how the next attempt can.

        Raises:
            Ended: always, unless
            Learned: this attempt cannot end here.
        """
        frame, index = self._seen_by_python(frame, index, reason)
        regions = [each for each in self.regions if each.frame in self.frames[: self.frames.index(frame) + 1]]
        if self.regions or frame is not self.frames[-1]:
            self.breaks.residual[frame.code][index] = reason
            for region in regions:
                self._open(region, reason)
            raise Learned
        self.breaks.residual[frame.code].setdefault(index, reason)
        raise Ended

    def _open(self, region: Region, reason: str) -> None:
        if region.is_loop:
            self.breaks.plain[region.frame.code].add(region.index)
        else:
            self.breaks.residual[region.frame.code].setdefault(region.index, f"in one of its arms {reason}")

    def _seen_by_python(self, frame: Frame, index: int, reason: str) -> tuple[Frame, int]:
        """Where Python sees an instruction: in a frame that something else than a frame has called, at that call."""
        for position, each in enumerate(self.frames):
            if not each.transparent:
                if position == 0:
                    raise Unreachable(reason)
                return self.frames[position - 1], self.frames[position - 1].next
            if each is frame:
                break
        return frame, index

    def failed(self, frame: Frame, index: int, error: BaseException) -> None:
        """To be called with an exception that leaves a frame's instruction, and no handler of the user's gets.

        Raises:
            Learned: Python carries out the instruction in the next attempt.
        """
        told = _told(error)
        if told is None:
            return
        innermost = self.culprits.setdefault(id(told), (frame, index))
        is_users = not isinstance(told, CaptureError)
        if self.regions or (is_users and frame is not self.frames[0]):
            return  # an operator may know another way; a frame below may handle it
        frame, index = innermost if innermost[0] in self.frames else (frame, index)
        frame, index = self._seen_by_python(frame, index, reason_of(told))
        if index in self.breaks.residual.get(frame.code, ()):
            return
        self.breaks.residual[frame.code][index] = reason_of(told)
        raise Learned from None

    def failed_in(self, region: Region, error: BaseException) -> None:
        """To be called with an exception that leaves a branch or loop, which may itself be what has failed.

        Raises:
            Learned: the loop is run by its jumps in the next attempt, or the jump is Python's.
        """
        told = _told(error)
        if told is None:
            return
        if id(told) not in self.culprits and isinstance(told, CaptureError) and not self.regions:
            self._open(region, reason_of(told))
            raise Learned from None
        self.failed(region.frame, region.index, error)

    def before_fork(self, frame: Frame, *ways: int) -> None:
        """To be called before a branch: one that leaves a loop that is run by its jumps would never come to an end.

        Raises:
            Learned: the jump is Python's in the next attempt.
        """
        for header in self.breaks.plain[frame.code]:
            nodes = frame.prepared.flow.loops[header].nodes
            if frame.next in nodes and not nodes.issuperset(ways):
                reason = "it leaves a loop in which Python does something"
                self.breaks.residual[frame.code].setdefault(frame.next, reason)
                for region in self.regions:
                    self._open(region, reason)
                raise Learned

    def cut(self) -> bool:
        """To be called where a segment has been run through, but cannot become a program: what it gives or writes
        cannot leave it. It will end half way; whether there is such a place.
        """
        places = [each for each in self.passed if each[1] not in self.breaks.residual.get(each[0], ())]
        if not places:
            return False
        code, index = places[len(places) // 2]
        self.breaks.residual[code][index] = "what the segment gives or writes could not leave it"
        return True

    def hand_out(self) -> tuple[Layout, list[Any]]:
        """The frames as they are.

        Raises:
            Learned: something among what they hold has to be made by Python.
        """
        layout, values = suspended(self.frames)
        for value in _inside(values):
            known = self.made.get(id(value))
            if known is not None:
                _, frame, index = known
                kind = _KINDS.get(type(value), f"a {type(value).__name__}")
                self.breaks.residual[frame.code].setdefault(index, f"{kind} that is made in it is needed behind it")
                raise Learned
        return layout, values


class Unreachable(BaseException):
    """A segment would have to end where Python cannot go on: the call as a whole is Python's."""


def _told(error: BaseException) -> Exception | None:
    """The exception of the code's or of the capture's that is on its way; None for what ends an attempt."""
    told = error.error if isinstance(error, Refusal) else error
    return told if isinstance(told, Exception) else None


def reason_of(error: BaseException) -> str:
    """Why a segment ends, in a line."""
    if isinstance(error, CaptureError):
        return error.message
    return f"it raises {type(error).__name__}"


def refuse_unseen(frame: FrameType, function: Any) -> None:
    """To be called before code that is not rewritten calls a function of Python's.

    Raises:
        CaptureError: it would do something outside of the program, now, that each call has to do.
    """
    receiver = getattr(function, "__self__", None)
    if function in (print, input) or (isinstance(receiver, io.IOBase) and not isinstance(receiver, io.StringIO)):
        pass
    elif not isinstance(receiver, random.Random) and function not in CLOCKS:
        return
    if not is_our_module(frame.f_globals.get("__name__", "")) and is_users(frame):
        what = f"{function.__name__} is called by code that is not rewritten"
        raise refuse("SG305", what, location=here(), hint="Make the call in the static function itself.")


CLOCKS = frozenset({time.time, time.perf_counter, time.monotonic, time.process_time, time.time_ns})

_OF_CELLS = frozenset({"LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_MEETING = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF"})
_WITH_ANOTHER = frozenset({"BEFORE_WITH", "LOAD_METHOD", "LOAD_SUPER_METHOD"})  # something is above what they make
_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})


def _stays(value: Any) -> bool:
    """Whether an object cannot leave the segment that made it."""
    if isinstance(value, FunctionType):
        return bool(value.__closure__)
    if isinstance(value, Iteration):
        return not value.can_wait
    if isinstance(value, CellType) or is_opaque(value):
        return True
    if is_bound(value):
        capture = session()
        return isinstance(value.__self__, torch.Tensor) or capture is None or not capture.is_outer(value.__self__)
    return is_our_module(type(value).__module__) and not isinstance(value, _LEAVING)


_LEAVING = (StagedNumber, StagedArray, Unjoined, Parcel, Iteration)


_KINDS = {StagedText: "a text", CellType: "a variable of inner functions"}


def _inside(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and what is in those that are plain containers."""
    for value in values:
        yield value
        if type(value) in (list, tuple):
            yield from _inside(value)
        elif type(value) is dict:
            yield from _inside(value.values())


def _function(frame: Frame, each: Instruction) -> Any:
    """What an instruction calls."""
    position: int = each.argument + (2 if each.name == "CALL" else 3)  # below the arguments, and names or dict
    first, second = frame.peek(position), frame.peek(position - 1)
    return second if first is NULL else first


def code_called(function: Any) -> CodeType | None:
    """The code of the frame whose result is that of a call; None where something may come between."""
    if isinstance(function, MethodType):
        function = function.__func__
    if isinstance(function, torch.nn.Module) and type(function).__call__ is torch.nn.Module.__call__:
        hooks = (function._forward_hooks, function._forward_pre_hooks, function._backward_hooks)
        if any(hooks) or function._backward_pre_hooks:
            return None
        function = getattr(function.forward, "__func__", function.forward)
    return function.__code__ if isinstance(function, FunctionType) else None


# ---- what frames hold
@dataclass(frozen=True)
class FrameLayout:
    """Where a frame is, and where its values come among those of a layout.

    Attributes:
        code: of the function.
        index: of the instruction that is to be run; in an outer frame, of the call that is going on.
        slots: those that hold something which is needed from there on.
        stack: of each place on the stack, what kind of value is there.
        handled: how many exceptions are being handled.
    """

    code: CodeType
    index: int
    slots: tuple[int, ...]
    stack: tuple[str, ...]
    handled: int


Layout = tuple[FrameLayout, ...]


def suspended(frames: list[Frame]) -> tuple[Layout, list[Any]]:
    """The layout of frames, and their values in its order."""
    values: list[Any] = []
    parts = []
    for frame in frames:
        live = frame.prepared.flow.live[frame.next]
        slots = tuple(slot for slot, cell in enumerate(frame.slots) if slot in live and contents(cell) is not MISSING)
        values.append(frame.function)
        values += (frame.slots[slot].cell_contents for slot in slots)
        kinds = []
        for cell in frame.stack[: frame.depth]:
            value = cell.cell_contents
            kind = "null" if value is NULL else "iteration" if _waits(value) else "value"
            kinds.append(kind)
            if kind == "value":
                values.append(value)
            elif kind == "iteration":
                values += (opened(value).values, opened(value).index)
        values += frame.handled
        parts.append(FrameLayout(frame.code, frame.next, slots, tuple(kinds), len(frame.handled)))
    return tuple(parts), values


def _waits(value: Any) -> bool:
    """Whether a loop's place on the stack can be handed out; in a segment that begins in the loop, it is in parcels."""
    value = opened(value)
    return isinstance(value, Iteration) and (value.can_wait or type(value.values) is Parcel)


def restored(layout: Layout, values: list[Any]) -> list[Frame]:
    """The frames of a layout."""
    given = iter(values)
    frames = []
    for each in layout:
        function = next(given)
        frame = Frame(opened(function), next=each.index)
        for slot in each.slots:
            frame.slots[slot].cell_contents = next(given)
        for kind in each.stack:
            if kind == "null":
                frame.push(NULL)
            elif kind == "iteration":
                iteration = Iteration(next(given), next(given))
                frame.push(iteration if iteration.can_wait else Parcel("iteration", iteration))
            else:
                frame.push(next(given))
        frame.handled = [opened(next(given)) for _ in range(each.handled)]
        frames.append(frame)
    return frames


def packed(values: Sequence[Any]) -> list[Any]:
    """Values as a segment takes them: tensors as they are, anything else so that it is guarded where it is read."""
    known: dict[int, Parcel] = {}
    return [
        value if is_plain(value) else known.setdefault(id(value), Parcel(f"held_{number}", value))
        for number, value in enumerate(values)
    ]
