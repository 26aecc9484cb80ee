"""Parts of a plan: a segment of a call as a static function, captured from where it begins."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Hashable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.api.bounds import MOST_ATTEMPTS, MOST_KINDS, MOST_VALUES, is_beyond, kind_of_call, why_beyond
from stillgraph.api.captures import function_of
from stillgraph.api.left_whole import may_pack
from stillgraph.api.passing import Passing, out_of_parcel, unpacking
from stillgraph.api.planned import ending_of
from stillgraph.api.static import Static
from stillgraph.api.varying import Varying
from stillgraph.bytecode.between.resuming import SUSPENDED
from stillgraph.bytecode.segments.breaks import EndedAnyway, Learned, Unreachable, sees_frames
from stillgraph.bytecode.segments.called import code_called
from stillgraph.bytecode.segments.layouts import Layout, left_by_raising, unread, variables
from stillgraph.bytecode.segments.segments import Segment
from stillgraph.core.diagnostics import (
    CaptureError,
    InitialisingCall,
    MisreadError,
    StateLostError,
    StillgraphError,
    refusal,
)
from stillgraph.core.logs import log
from stillgraph.core.parcel import opened, without_parcels
from stillgraph.core.tracebacks import let_go
from stillgraph.operators.outside import acts
from stillgraph.operators.outside.outside import OF_EXCEPTIONS
from stillgraph.passes.lists.repeating import may_repeat, may_repeat_unless_entered, only_tells
from stillgraph.program.program import Program
from stillgraph.trace.code.chance import CLOCKS
from stillgraph.trace.code.watch import Watch

if TYPE_CHECKING:
    from stillgraph.api.plan import Plan


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


def _tells_blocks(program: Program) -> bool:
    """Whether the blocks around what fails in a program are told of it, though its capture took no care of that.

    Python tells them, where it makes the call once more. A program that holds a whole call may have given warnings and
    written to logs by then, in arms: those are told twice.
    """
    if not program.watched:
        return True
    if ending_of(program, SUSPENDED) is not None:
        return may_repeat(program.graph)
    acting = may_repeat_unless_entered(program.graph)
    return acting is not None and only_tells(program.graph, acting)


class Failed(BaseException):
    """An attempt of a plan's at a program has failed.

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

    def __init__(self, plan: Plan, original: Any, layout: Layout | None, **options: Any) -> None:
        self._plan = plan
        self.passing = Passing()
        self.unread = frozenset[int]() if layout is None else unread(layout)
        self._leaving = () if layout is None else left_by_raising(layout) or ()
        self._variables = {} if layout is None else variables(layout)
        super().__init__(original, **options)
        self._is_entry = layout is None
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

    @functools.cached_property
    def _varying(self) -> Varying:
        return Varying(self._options.dynamic, takes_any=True, place_of=out_of_parcel)

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
        self._varying.learn(self._cache.alike(args, kwargs), args, kwargs)
        if not self._is_entry:
            self.passing.learn_to_spread(self._cache.calls, args, self._varying.sizes, self._most() * 2)
            args = tuple(self.passing.spread_out(args))
        numbers, changing = self._varying.inputs(), self._plan.changing
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
        plan, breaks = self._plan, self._plan.breaks
        for _ in range(MOST_ATTEMPTS):
            known, ends = breaks.count, len(plan.ends)
            may_end = plan.may_end or not self._is_entry
            segment = self._segment(args)
            self._front_end = plan.front_end(segment, may_end)
            try:
                program = super()._capture_call(args, kwargs, watch)
                if may_end or _tells_blocks(program):
                    plan.captured(program, ends)
                    return program
                self._take_care("its blocks are not told of what fails in it")
            except Learned as learned:
                let_go(learned, of_all=True)
                if breaks.count == known:
                    message = "a capture begins anew without having learned anything"
                    raise refusal("SG107", message) from None
                log("plan", "restart", f"a segment of {self._name} is captured anew, for {breaks.newest}")
            except EndedAnyway as ended:
                let_go(ended, of_all=True)
                self._take_care("it ends where each path makes a call of its own")
            except (CaptureError, Unreachable) as error:
                self._learn(segment, error)
            finally:
                segment.forget()
                self._front_end = None
        raise refusal("SG107", f"a capture has begun anew {MOST_ATTEMPTS} times")

    def _take_care(self, why: str) -> None:
        """Capture the call anew, with care of what matters where a program may end (`FrontEnd.may_end`)."""
        self._plan.may_end = True
        log("plan", "restart", f"a segment of {self._name} is captured anew, for {why}")

    def _segment(self, args: tuple[Any, ...]) -> Segment:
        function, _ = function_of(self.original, args)
        root = code_called(opened(args[0]) if function is torch.nn.Module.__call__ else function)
        left = frozenset(self.passing.closed), frozenset(self.passing.unread)
        return Segment(self._plan.breaks, _is_residual, self._plan.number, root, *left)

    def _learn(self, segment: Segment, error: CaptureError | Unreachable) -> None:
        """Learn from an attempt that has failed how the next one may not.

        Raises:
            CaptureError: there is nothing to be done.
        """
        if isinstance(error, Unreachable):
            message = f"the program would end inside of code that Python cannot go on in: {error}"
            raise refusal("SG107", message, location=error.place) from None
        if sees_frames(error) or not segment.cut(error):
            raise error
        log("plan", "cut", f"a segment of {self._name} is cut in two, for {error.message}")

    def _tell_of(self, failure: BaseException) -> None:
        if self._plan.strict:
            raise failure
        self._plan.fails(failure)
