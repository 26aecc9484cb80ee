"""A capture session: a recorder, what it may convert, and what it found out about the world."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from types import CodeType, FunctionType
from typing import Any, NoReturn

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from stillgraph.core.dataclasses import has_steps
from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import (
    is_container_class,
    is_distributions,
    is_library,
    is_ours,
    is_polyfill,
    is_standard_library,
    is_torch,
)
from stillgraph.core.parcel import Parcel, opened
from stillgraph.core.rewritten import resumes
from stillgraph.passes.lists.repeating import may_repeat
from stillgraph.program import operations
from stillgraph.program.effects import Effect
from stillgraph.program.so_far import SoFar
from stillgraph.program.sources import Source
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.account import Account
from stillgraph.trace.capture.concretization import ask_for_constants, demanded
from stillgraph.trace.capture.results import Results
from stillgraph.trace.capture.unseen import UnseenCode
from stillgraph.trace.code.depth import Depth
from stillgraph.trace.code.finalised import Finalised
from stillgraph.trace.code.frames import here, in_autograd_function, location_of, surrounds_with_mode, unwrapped
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.arms import frame_in_try
from stillgraph.trace.control_flow.both_sides import BothSides
from stillgraph.trace.control_flow.protected import StageTry, may_handle, sees_any
from stillgraph.trace.control_flow.recursion import Pending, Recursion, TailCalls
from stillgraph.trace.control_flow.spreads import as_spread, each, is_spread, torch_call
from stillgraph.trace.effects import audits, context_variables
from stillgraph.trace.effects.attribute_dictionaries import AttributeDictionaries
from stillgraph.trace.effects.elsewhere import Elsewhere
from stillgraph.trace.effects.iterators import Iterators
from stillgraph.trace.effects.locks import Locks
from stillgraph.trace.effects.made_modules import MadeModules
from stillgraph.trace.effects.rehearsal import rehearsal
from stillgraph.trace.effects.settling import Settling, callbacks_of_autograd
from stillgraph.trace.graph.recorder import current
from stillgraph.trace.guards.knowledge import Knowledge, Options
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.journal import Place
from stillgraph.trace.sources.reads import Reads
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.lists import Leaf, Node, Same, StagedSpread, mutable_parts, structure
from stillgraph.trace.values.numbers import StagedInt, StagedNumber, is_number, kind_of
from stillgraph.trace.values.raised import RAISED_EXACTLY, Raised


class Session(BothSides):
    """The recorder of a capture by the source front end.

    Args:
        convert: rewrites a function; raises `CaptureError` where it cannot.
        turn_inside_out: rewrites a generator as a function that hands out what it yields to a keyword argument, whose
            name it gives too; None where it cannot.
        is_converted: whether a code object is rewritten code.
        finder: where objects are found from the call's roots.
        lift: see `Recorder`.
        entry_gradient: what ``.grad`` of an input holds, as a guarded input of its own.
        knowledge: of earlier attempts.
        options: the user's.
    """

    def __init__(
        self,
        convert: Callable[[FunctionType], FunctionType],
        turn_inside_out: Callable[[FunctionType], tuple[FunctionType, str] | None],
        is_converted: Callable[[CodeType], bool],
        skipped: Callable[[Any], bool],
        finder: Finder,
        lift: Callable[[torch.Tensor], fx.Node],
        entry_gradient: Callable[[torch.Tensor], torch.Tensor | None],
        knowledge: Knowledge,
        options: Options,
    ) -> None:
        super().__init__(lift, self._demand)
        self._entry_gradient = entry_gradient
        self._convert, self._turn_inside_out = convert, turn_inside_out
        self._is_converted, self.skipped = is_converted, skipped
        self.finder, self.memory = finder, finder.memory
        self._gradients_wanted = torch.is_grad_enabled()
        self.schedules = False  # whether the program steps a learning rate scheduler
        self.knowledge, self.options, self.for_calls = knowledge, options, options.for_calls
        self.promoted: dict[str, Source] = {}  # by input: where numbers are that the call writes, or that differ
        self.outer_cells: dict[int, str] = {}  # closure cells from before the capture
        self.wrapped: dict[int, torch.nn.Module] = {}  # modules of whose wrappers the program has steps
        self.sharded: dict[int, str] = {}  # their parameters, each only a part unless its module is being called
        self.sharding = 0  # how many sharded modules' calls we are in
        self.without_sync: frozenset[int] = frozenset()  # those in whose ``no_sync()`` we are
        self.midway: list[tuple[Effect, ...]] = []
        self.account = Account(self)
        self.reads = Reads()  # of the world, besides what the code says
        self.cached_calls: list[Any] = []  # functions with a cache that are being called
        self.own_streams: dict[int, Any] = {}  # streams in memory that the function has made
        self.scripting = False  # whether we are in code that TorchScript compiled
        self.catching_warnings: list[int] = []  # the ``catch_warnings`` that we are in, as `watching`
        self.settling = Settling(self)
        self.unseen = UnseenCode(self)
        self.for_segments = False  # as `FrontEnd.for_segments`
        self.acted = False  # a step has been recorded that does something outside, which the code could read there
        self.raises = 0  # how many operations have been recorded that may raise in the run
        self.passed_by = False  # an exception of the run goes past a block that would be told of it, in eager PyTorch
        self.elsewhere = Elsewhere(self.journal, finder, knowledge.written_elsewhere)
        self.dictionaries = AttributeDictionaries(self.journal, finder, self.elsewhere.births)
        self.depth = Depth()
        self.made_modules = MadeModules(self.journal)
        self.generators: dict[FunctionType, tuple[FunctionType, str]] = {}  # of rewritten code, with their twins
        self.made_functions: weakref.WeakSet[FunctionType] = weakref.WeakSet()  # by the code that is captured
        self.made_and_run: set[CodeType] = set()  # the code of those of them that were called, not only by autograd
        self.returns: dict[tuple[CodeType, int], None] = {}  # the user's ``return``s in blocks that have been run
        self.begun: list[Any] = []  # sequences of ours that were begun; those can
        self.locks = Locks(self.elsewhere, self.journal)
        self.tokens = context_variables.Tokens()
        self.finalised = Finalised()
        self.iterators = Iterators(self)
        self.recursions: dict[tuple[CodeType, tuple[int, ...]], Recursion | TailCalls] = {}  # by code and closure
        self.calls: collections.Counter[CodeType] = collections.Counter()  # functions being called, inside arms

    def record(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """As `Recorder.record`; code that is not rewritten applies no ``torch.autograd.Function`` of the user's."""
        if self._gradients_wanted and not torch.is_grad_enabled() and in_autograd_function(self.is_rewritten):
            self.before_unseen("a torch.autograd.Function is applied by code that is not rewritten")
        return super().record(func, args, kwargs)

    def run_function(self, apply: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """As `Recorder.run_function`; what ``forward`` names is where its tensors are found."""
        function, given = apply.__self__, (*args, *kwargs.values())
        if isinstance(function.forward, FunctionType):
            self.finder.add_function(function.forward)
        calling = self.calling_python([(function, *given)], f"{function.__name__}.apply")
        with calling, self.settling.shown(), rehearsal(function, given):
            return super().run_function(apply, args, kwargs)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if args and is_spread(args[0]):
            return torch_call(self, func, args, kwargs or {})
        with self.depth.raised():  # code that is not followed may call it
            return super().__torch_function__(func, types, args, kwargs)

    def repeated(self, items: Any, count: Any) -> Any:
        """As `Recorder.repeated`: a list whose length only the run knows."""
        if not items or not isinstance(count, StagedInt):
            return super().repeated(items, count) if items else type(items)()
        spread = as_spread(self, items)
        if any(True for item in items if type(item) is not StagedSpread for _ in mutable_parts(spread.element, item)):
            message = "a list of one and the same object is made, as often as the run says"
            raise refuse("SG210", message, location=here())
        return type(items)([each(self, spread, operations.repeated, count)])

    def number_is_written(self, source: Source, before: Any, value: Any) -> None:
        """A number that the call reads and writes becomes an input of the program instead of a guard."""
        plain_before = is_number(before) and not isinstance(before, StagedNumber)
        known = source in self.knowledge.promote or source in self.knowledge.keep
        if plain_before and is_number(value) and not known:
            raise Restart("promote", source)

    def list_grows(self, target: list[Any], value: Any) -> None:
        """A list from before the call that gets one more element becomes an input of unknown length."""
        source = self.finder.find(target)
        known = source in self.knowledge.keep or source in self.knowledge.lists
        if source is None or known or is_spread(target) or not self.options.for_calls:
            return
        kinds = {type(item) for item in target} | {kind_of(value) if is_number(value) else type(value)}
        try:
            element = structure([*target, value], self.type_of) if len(kinds) == 1 else None
        except JoinFailure:
            element = None
        raise Restart("list", (source, element if isinstance(element, (Leaf, Node)) else Same(None)))

    @property
    def in_arm(self) -> bool:
        """Whether a staged branch or loop is being recorded."""
        return self.region.parent is not None

    def is_rewritten(self, code: CodeType) -> bool:
        """Whether a code object is rewritten code."""
        return self._is_converted(code)

    def before_raise(
        self, kind: type[BaseException] | None, certain: bool = False, raised: tuple[Raised, ...] = ()
    ) -> None:
        """As `Recorder.before_raise`: a ``try`` around that catches the exception has to be staged.

        Raises:
            StageTry: it is not yet.
            CaptureError: it cannot be.
        """
        self.iterators.before_raise(kind)
        self.raises += 1
        left = raised or (Raised(kind, kind in RAISED_EXACTLY),)
        seen = certain or (self.for_segments and (self.acted or self.knowledge.acts))
        is_watched = bool(self.watching) and (seen or sees_any(self.watching, self.attempts, kind, left))
        if not self.knowledge.tries and (self.swallowing or is_watched):
            raise Restart("tries", None)
        if self.swallowing or is_watched:
            whose = "that may end it" if self.swallowing else "whose manager would see it"
            message = f"an exception is raised where a tensor decides, inside a with block {whose}"
            raise refuse("SG208", message, location=here(), hint=_CHECK_BEFORE)
        if self.watching:
            self._pass_by()
        for around, attempt in reversed([*enumerate(self.attempts)]):
            arrives = any(each.may_be(attempt.kinds) for each in left)
            passes = attempt.only_cleans_up and not seen and not may_handle(self.attempts[:around], left)
            if not attempt.staged and arrives and not passes:
                raise StageTry(attempt)
            if passes:
                self._pass_by()
            if attempt.staged:
                attempt.raised += left
                left = tuple(each for each in left if not each.is_surely(attempt.kinds))
        frame = frame_in_try(self)
        if frame is None:
            return
        if not self.knowledge.tries:
            raise Restart("tries", None)
        message = "an exception is raised where a tensor decides, inside a try block that stays Python"
        raise refuse("SG208", message, location=location_of(frame))

    def _pass_by(self) -> None:
        """An exception of the run goes past a block that eager PyTorch tells of it."""
        self.passed_by = True
        self.watched = True  # what the block does may be a step of Python's, behind the program

    def require_pairs(self) -> None:
        """To be called in the end: what was taken or set is to be given back or reset.

        Raises:
            Restart: it is not, by code that is not rewritten; that has to be, which shows more.
            CaptureError: it is not.
        """
        self.locks.require_given_back()
        context_variables.require_put_back(self)

    def before_act(self) -> None:
        """To be called before a step that does something outside: in a function with a cache, the cache decides."""
        if self.cached_calls:
            raise Restart("cached", self.cached_calls[0])
        if self.for_segments and self.passed_by and not self.knowledge.acts:
            raise Restart("acts", None)
        self.acted = True

    def require_told(self, graph: fx.GraphModule) -> None:
        """To be called in the end: where the run fails, blocks are told of it, or else the call is made once more.

        Raises:
            Restart: the program leaves something behind, so that no call is made twice, and a block is passed by.
        """
        if self.for_segments and self.passed_by and not self.knowledge.acts and not may_repeat(graph):
            raise Restart("acts", None)

    def unpacked(self, value: Any) -> Any:
        """As `PlainAnswers.unpacked`: what was in a parcel is guarded."""
        if type(value) is Parcel:
            self.reads.attributes.append((value, value.name))
            self.unpacked_ones[id(value)] = value
        return opened(value)

    def before_unknown_length(self) -> None:
        """Begin anew with libraries converted: code that is not would take such a list for one of known length."""
        if not self.knowledge.convert_libraries:
            raise Restart("convert_libraries", None)

    def watch_reads(self, target: Any, name: str) -> None:
        """As `Recorder.watch_reads`."""
        self.dictionaries.require_not_shown(target)
        self.before_unknown_length()
        if name not in self.knowledge.watch:
            raise Restart("convert", (set(), {name}))

    def before_unseen_write(self) -> None:
        """Begin anew with an eye on what such code writes."""
        self.unseen.before_method()
        if not self.knowledge.convert_libraries:
            raise Restart("convert_libraries", None)
        if not self.knowledge.watch_modules:
            raise Restart("watch", None)

    def entry_gradient(self, fake: torch.Tensor) -> torch.Tensor | None:
        """As `Recorder.entry_gradient`."""
        return self._entry_gradient(fake)

    def before_unseen(self, what: str) -> None:
        """Begin anew with libraries converted: something is done there that only rewritten code may do."""
        self.before_unknown_length()
        raise refuse("SG305", what, location=here())

    def so_far(self) -> SoFar | None:
        """As `Recorder.so_far`."""
        return self.account.now() if self.for_calls else None

    def left_behind(self) -> tuple[int, list[Any]] | None:
        """As `Recorder.left_behind`; the values are nodes of the open region."""
        effects, values = self.effects_so_far()
        if effects:
            self.midway.append(tuple(effects))
        return (len(self.midway) - 1, values) if effects else None

    def effects_so_far(self, keys: set[Hashable] | None = None) -> tuple[list[Effect], list[Any]]:
        """The effects of what was written until now, and the nodes of the open region for their values.

        Args:
            keys: of the places that matter; None for all.
        """
        with torch._C.DisableTorchFunction():
            results = Results(self, self.finder)
            written = [write for write in self.journal.outcome() if keys is None or write.place.key in keys]
            return results.effects(written, self.outer_cells), results.outputs

    def calling_python(
        self, handed: Iterable[Any], what: str, changed: Iterable[Place] = ()
    ) -> AbstractContextManager[None]:
        """As `Recorder.calling_python`."""
        return self.settling.around(handed, what, changed)

    def has_callbacks(self) -> bool:
        """As `Recorder.has_callbacks`."""
        return bool(callbacks_of_autograd(self))

    def may_change(self, place: Place) -> bool:
        """As `Recorder.may_change`."""
        return place.key in self.settling.changed

    def calling_autograd(self, what: str) -> AbstractContextManager[None]:
        """As `Recorder.calling_autograd`."""
        return self.settling.around(callbacks_of_autograd(self), what, ())

    def tail_call(self, value: Pending) -> Exit:
        """The exit of a block that returns what a recursive call gives."""
        for recursion in self.recursions.values():
            if isinstance(recursion, TailCalls) and any(value is each for each in recursion.pending):
                return recursion.returned(value)
        return value._use()

    def is_outer(self, value: Any) -> bool:
        """Whether an object was there before the capture."""
        return self.finder.holds(value)

    def is_from_before(self, value: Any) -> bool:
        """As `Recorder.is_from_before`."""
        return self.elsewhere.is_from_before(value)

    @property
    def is_recursing(self) -> bool:
        """Whether a function is inside itself, under conditions that only the run knows."""
        return any(count > 1 for count in self.calls.values())

    def is_new(self, value: Any) -> bool | None:
        """As `Recorder.is_new`."""
        return self.elsewhere.births.is_new(value)

    def attributes_of(self, value: Any) -> Source | None:
        """As `Recorder.attributes_of`."""
        return self.elsewhere.attributes_of(value)

    def was_there(self, value: Any) -> bool:
        """As `Recorder.was_there`."""
        return self.finder.was_there(value)

    def is_found(self, value: Any) -> bool:
        """As `Recorder.is_found`."""
        return self.finder.find(value) is not None

    def original(self, value: Any) -> Any:
        """As `Recorder.original`."""
        return self.finder.original(value)

    def convert(self, function: FunctionType) -> FunctionType:
        """The rewritten form of a function."""
        code = function.__code__
        if function not in self.made_functions and not resumes(code) and not is_polyfill(code.co_filename):
            self._find_from(function)
        return self._convert(function)

    def _find_from(self, function: FunctionType) -> None:
        """Walk from a function that is about to run; the walk is not watched: it may be a long one."""
        with self.executed.paused():
            self.finder.add_function(function)

    def resumes(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """To be called before a function is gone on with in its midst: what its code mentions it may read.

        Its own variables, and those of functions around it, are among the arguments.
        """
        with self.executed.paused():
            self.finder.add_code(code, namespace)
            self.finder.complete()
        self.executed.codes[code] = namespace

    def turn_inside_out(self, generator: FunctionType) -> tuple[FunctionType, str] | None:
        """A generator as a function that hands out what it yields, and its parameter for that; None if it has none."""
        if generator not in self.made_functions:
            self._find_from(generator)
        return self._turn_inside_out(generator)

    def is_wanted(self, method: Any) -> bool:
        """Whether a method has to be converted although it is torch's."""
        return getattr(getattr(method, "__func__", method), "__code__", None) in self.knowledge.convert

    def wants_conversion(self, function: FunctionType) -> bool:
        """Whether a function is rewritten before it is called: always user code, a library's only where needed."""
        code = function.__code__
        file = code.co_filename
        if self.is_rewritten(code) or is_ours(file):
            return False
        if self.skipped(function):
            return False
        if code in self.knowledge.convert or has_steps(code) or is_polyfill(file):
            return True
        if is_distributions(file):
            return self.knowledge.distributions
        if self.for_segments and surrounds_with_mode(code):
            inner = unwrapped(function)
            return inner is function or not is_library(inner.__code__.co_filename)  # `generate` is one call
        if is_torch(file) or (is_standard_library(file) and not is_container_class(file)):
            return False
        if self.in_arm or self.knowledge.convert_libraries or not is_library(file):
            return True
        return self.for_segments and audits.is_of_users_project(code, function.__globals__)  # from a prompt, say

    def before_distribution(self) -> None:
        """To be called before code of `torch.distributions` runs: begin anew with that converted."""
        if not self.knowledge.distributions:
            raise Restart("distributions", None)

    def _demand(self, value: Any, what: str) -> Any:
        """Python demands a value that only the run knows."""
        return demanded(self, value, what)

    def needs_value(self, given: Any) -> None:
        """As `Recorder.needs_value`; it is asked whether the numbers can be constants: an axis, say."""
        for number in tree_leaves(given) if current() is self else ():
            if isinstance(number, StagedNumber):
                ask_for_constants(self, number)

    def number_meets_array(self, number: Any) -> NoReturn:
        """As `Recorder.number_meets_array`; first it is asked whether the number can be a constant."""
        self.needs_value(number)
        super().number_meets_array(number)


_CHECK_BEFORE = "Raise it before the with block, or make the manager a class with __enter__ and __exit__."


def session() -> Session | None:
    """The capture going on in this thread, if there is one."""
    recorder = current()
    return recorder if isinstance(recorder, Session) else None
