"""Plans: a call is a chain of *segments*.

Each is a program, cached and guarded like that of a whole function, of the values that the frames of the call hold
where it begins. Where it ends, Python carries out an instruction, and goes on by hand up to one that the next segment
can begin with.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Hashable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import torch

from stillgraph.api.bounds import (
    MOST_ATTEMPTS,
    MOST_FAILURES,
    MOST_KINDS,
    MOST_PARTS,
    MOST_VALUES,
    is_beyond,
    kind_of_call,
    why_beyond,
)
from stillgraph.api.captures import function_of
from stillgraph.api.front_ends import SOURCE, interpret_in, turn_inside_out_in
from stillgraph.api.left_whole import may_pack, why_left
from stillgraph.api.passing import Passing, learn_to_open, only_sizes_differ, unpacking
from stillgraph.api.planned import ending_of, explained, signature_of
from stillgraph.api.static import Static
from stillgraph.bytecode.between.between import Between
from stillgraph.bytecode.between.resuming import SUSPENDED, resume, run_on
from stillgraph.bytecode.entry import convert as bytecode
from stillgraph.bytecode.segments.breaks import Breaks, Learned, Unreachable, place_of, reason_of, sees_frames
from stillgraph.bytecode.segments.called import code_called
from stillgraph.bytecode.segments.layouts import (
    FrameLayout,
    Layout,
    left_by_raising,
    packed,
    restored,
    unread,
    variables,
)
from stillgraph.bytecode.segments.segments import Segment
from stillgraph.bytecode.segments.whys import Why, why_of
from stillgraph.core import faults
from stillgraph.core.diagnostics import (
    CaptureError,
    InitialisingCall,
    MisreadError,
    StateLostError,
    StillgraphError,
    refusal,
)
from stillgraph.core.logs import log
from stillgraph.core.parcel import empty, opened, without_parcels
from stillgraph.core.tracebacks import let_go
from stillgraph.core.warning import warn
from stillgraph.operators.outside import acts
from stillgraph.operators.outside.outside import OF_EXCEPTIONS
from stillgraph.program.context import dispatch_mode_depth
from stillgraph.program.program import Program
from stillgraph.report.plan import PlanExplanation
from stillgraph.settings import SETTINGS
from stillgraph.source.convert import is_converted
from stillgraph.trace.code.chance import CLOCKS
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.watch import Watch
from stillgraph.trace.fakes import torch_modes


def _is_residual(function: Any) -> bool:
    if function is warnings.warn:
        return False  # a program knows which line it is about, whatever the ``stacklevel``
    if function is print or _is_clock(function):
        return True
    if function is contextlib.ExitStack:
        return True  # what it calls in the end may do anything, and nobody looks on
    if isinstance(function, FunctionType) and function in OF_EXCEPTIONS:
        return True  # of one that Python has raised, they tell what they tell in eager
    return acts.act_of(function) is not None and not acts.is_silent(function)


def _is_clock(function: Any) -> bool:
    return isinstance(function, BuiltinFunctionType) and function in CLOCKS


def _beside() -> tuple[int, int]:
    """What a call shares its effects with when it begins: threads, and dispatch modes around it."""
    return threading.active_count(), dispatch_mode_depth()


def _is_joined(beside: tuple[int, int]) -> bool:
    """Whether a step has begun what no capture may go on beside.

    What a thread of the call's writes cannot be undone, and modes see what a capture does, too.
    """
    threads, modes = beside
    return threading.active_count() > threads or dispatch_mode_depth() > modes or torch_modes.in_function_mode()


class Failed(BaseException):
    """An attempt of this plan's at a program has failed.

    No `Exception`, so that nothing that is called on the way takes it for one of its own.

    Attributes:
        error: how.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Part(Static):
    """A segment: what is captured is the call from where it begins.

    Attributes:
        passing: how it takes its values.
        unread: the positions of those that no code reads any more.
    """

    takes_whole = True  # what needs one as it is asks for it, or is Python's

    def __init__(self, plan: Plan, original: Any, layout: Layout | None, **options: Any) -> None:
        self._plan = plan
        self.passing = Passing()
        self.unread = frozenset[int]() if layout is None else unread(layout)
        self._leaving = () if layout is None else left_by_raising(layout) or ()
        self._variables = {} if layout is None else variables(layout)
        super().__init__(original, **options)
        self._is_entry = layout is None  # whose arguments have the sizes that `input_spec` leaves open
        self._opens = True
        self._size = self._cache.size
        self._kinds = set[Hashable]()  # of the calls that no program fitted
        self._cache.be_quiet()  # of what keeps changing, the plan tells
        self._original = self._function
        self._packs = layout is None and not options["input_spec"] and may_pack(self._original)
        if self._packs:
            self._function = unpacking(self._original)

    @property
    def original(self) -> Any:
        """What is captured."""
        return self._original

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str | None:
        """Say why a call would be captured anew."""
        with self.captures.exclusive():
            args, kwargs = self.passing.packed(args, kwargs)
            why = super().explain_miss(*args, **kwargs)
        return None if why is None else without_parcels(why)

    def plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the rest of a call in plain PyTorch."""
        return self._function(*args, **kwargs)

    def _run(
        self, call: Any, inputs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], original: Any = None
    ) -> Any:
        """As `StaticFunction._run`; what the program raises leaves the blocks that it began in."""
        if not self._leaving:
            return super()._run(call, inputs, args, kwargs, original)
        plain = False

        def plainly(*args: Any, **kwargs: Any) -> Any:
            nonlocal plain
            plain = True
            return (original or self._function)(*args, **kwargs)

        try:
            return super()._run(call, inputs, args, kwargs, plainly)
        except BaseException as error:
            if not plain:
                self.leave(args, error)
            raise

    def leave(self, args: Sequence[Any], error: BaseException) -> None:
        """Leave the blocks that the segment begins in, for an exception that no handler gets.

        Args:
            args: those that the segment was called with.
            error: the exception.
        """
        for position in self._leaving:
            opened(args[position])(type(error), error, error.__traceback__)

    def _first_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            with self.captures.exclusive():  # another thread's capture has values of its own in the user's objects
                self._make_room(args, kwargs)
                args, kwargs = self._learned(args, kwargs)
        except Exception as error:  # of any kind: nothing of the user's has been called yet
            raise Failed(error) from None
        result = super()._first_call(args, kwargs)
        if is_beyond(self._cache):
            self._plan.give_up(why_beyond(self._cache, self._plan.entry is self))
        return result

    def _make_room(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Have room for a program more where a call is of a kind that was not there before: kinds come again."""
        most = self._size * MOST_KINDS
        if len(self._kinds) < most:
            self._kinds.add(kind_of_call(args, kwargs))
        self._cache.size = min(self._size + len(self._kinds) - 1, most)

    def _learned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call that no program fits, as it is passed from now on."""
        if self._packs:
            self.passing.learn_to_pack(self._cache.calls, args, kwargs, self._size)
            args, kwargs = self.passing.packed(args, kwargs)
        if self._opens:
            learn_to_open(self._cache.calls, args, kwargs, self._open_sizes, of_arguments=not self._is_entry)
            if self._open_sizes:
                aside = functools.partial(only_sizes_differ, open_sizes=self._open_sizes)
                self._changing |= self._cache.changed_numbers(args, kwargs, aside)
            if not self._is_entry:
                self.passing.learn_to_spread(self._cache.calls, args, self._open_sizes, self._most() * 2)
                args = tuple(self.passing.spread_out(args))
        numbers, changing = self._changing - self._constant, self._plan.changing
        known = {name for name, place in self._variables.items() if place in changing}
        if self.passing.learn_to_close(self._cache.calls, args, kwargs, self._most(), numbers, known):
            changing |= {place for name, place in self._variables.items() if name in self.passing.closed}
            self._cache.clear()  # of programs that each were for another value
            log("plan", "closed", f"a segment of {self._name} leaves to Python what takes a value that keeps changing")
        return args, kwargs

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return super()._captured(args, kwargs)
        except (InitialisingCall, MisreadError, StateLostError):
            raise  # with the first two, the call is made in plain PyTorch, and tells whether it fails there
        except StillgraphError as error:
            raise Failed(error) from None

    def _most(self) -> int:
        """How many programs may be made for values that differ: fewer where a call is under way."""
        is_under_way = not self._packs or bool(self.passing.packs)
        return min(MOST_VALUES, self._size) if is_under_way else self._size

    def _capture_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], watch: Watch | None = None) -> Program:
        breaks = self._plan.breaks
        for _ in range(MOST_ATTEMPTS):
            known, ends = breaks.count, len(self._plan.ends)
            function, _ = function_of(self.original, args)
            root = code_called(opened(args[0]) if function is torch.nn.Module.__call__ else function)
            left = frozenset(self.passing.closed), frozenset(self.passing.unread)
            segment = Segment(breaks, _is_residual, self._plan.number, root, *left)
            self._front_end = self._plan.front_end(segment)
            try:
                program = super()._capture_call(args, kwargs, watch)
                self._plan.captured(program, ends)
                return program
            except Learned as learned:
                let_go(learned, of_all=True)
                if breaks.count == known:
                    message = "a capture begins anew without having learned anything"
                    raise refusal("SG107", message) from None
                log("plan", "restart", f"a segment of {self._name} is captured anew, for {breaks.newest}")
            except (CaptureError, Unreachable) as error:
                self._learn(segment, error)
            finally:
                segment.forget()
                self._front_end = SOURCE
        raise refusal("SG107", f"a capture has begun anew {MOST_ATTEMPTS} times")

    def _learn(self, segment: Segment, error: CaptureError | Unreachable) -> None:
        """Learn from an attempt that has failed how the next one may not.

        Raises:
            CaptureError: there is nothing to be done.
        """
        if self._open_sizes:
            self._opens = False  # what goes on from here depends on the sizes
            self._open_sizes.clear()
            self.passing.spread.clear()
            log("plan", "restart", f"a segment of {self._name} is captured anew, for these sizes alone, for {error}")
        elif isinstance(error, Unreachable):
            message = f"the program would end inside of code that Python cannot go on in: {error}"
            raise refusal("SG107", message, location=error.place) from None
        elif sees_frames(error) or not segment.cut(error):
            raise error
        else:
            log("plan", "cut", f"a segment of {self._name} is cut in two, for {error.message}")

    def _tell_of(self, failure: BaseException) -> None:
        if self._plan.strict:
            raise failure
        self._plan.fails(failure)


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
    """

    def __init__(self, name: str, original: Any, strict: bool, options: dict[str, Any]) -> None:
        self.breaks = Breaks()
        self.ends: list[Between] = []
        self.parts: dict[Layout, Part] = {}
        self.strict = strict
        self.gave_up: str | None = None
        self.changing: set[tuple[CodeType, int]] = set()
        self.left = why_left(original)
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

    def front_end(self, segment: Segment) -> FrontEnd:
        """The front end of one attempt."""

        def convert(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            resumed = self._resumed.get(id(function))
            return interpret_in(segment, function) if resumed is None else (resumed(segment), ())

        def inside_out(function: FunctionType, watched: frozenset[str], tries: bool) -> Any:
            return turn_inside_out_in(segment, function)

        return FrontEnd(convert, inside_out, is_converted, SETTINGS.skips, for_segments=True)

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
            what = f"the capture of {self._name} raises {type(error).__name__}: {error}, but eager PyTorch does not"
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
