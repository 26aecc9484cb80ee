"""A capture session: a recorder, what it may convert, and what it found out about the world."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from types import CodeType, FunctionType
from typing import Any, NoReturn

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from stillgraph.core.diagnostics import refuse
from stillgraph.core.parcel import Parcel, opened
from stillgraph.program import operations
from stillgraph.program.effects import Effect
from stillgraph.program.so_far import SoFar
from stillgraph.program.sources import Source
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.account import Account
from stillgraph.trace.capture.concretization import ask_for_constants, ask_for_conversion, demanded
from stillgraph.trace.capture.conversion import Conversion
from stillgraph.trace.capture.results import Results
from stillgraph.trace.capture.side_effects import SideEffects
from stillgraph.trace.capture.unseen import UnseenCode
from stillgraph.trace.capture.written_effects import WrittenEffects
from stillgraph.trace.code.depth import Depth
from stillgraph.trace.code.finalised import Finalised
from stillgraph.trace.code.frames import here, in_autograd_function, library_waits, location_of
from stillgraph.trace.code.options import Options
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.both_sides import BothSides
from stillgraph.trace.control_flow.protected import hand_to, sees_any
from stillgraph.trace.control_flow.recursion import Pending, Recursion, TailCalls
from stillgraph.trace.control_flow.spreads import as_spread, each, is_spread, torch_call
from stillgraph.trace.control_flow.try_statements import frame_in_try
from stillgraph.trace.effects import context_variables
from stillgraph.trace.effects.attribute_dictionaries import AttributeDictionaries
from stillgraph.trace.effects.elsewhere import Elsewhere
from stillgraph.trace.effects.handed_whole import HandedWhole
from stillgraph.trace.effects.iterators import Iterators
from stillgraph.trace.effects.locks import Locks
from stillgraph.trace.effects.made_modules import MadeModules
from stillgraph.trace.effects.rehearsal import rehearsal
from stillgraph.trace.effects.settling import Settling, callbacks_of_autograd
from stillgraph.trace.fakes import node_naming
from stillgraph.trace.graph.current import CURRENT, current
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import Place
from stillgraph.trace.sources.reads import Reads
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.list_contents import mutable_parts
from stillgraph.trace.values.lists import Leaf, Node, Same, StagedSpread, structure
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
        turn_inside_out: Callable[[FunctionType, bool], tuple[FunctionType, str] | None],
        is_converted: Callable[[CodeType], bool],
        skipped: Callable[[Any], bool],
        finder: Finder,
        lift: Callable[[torch.Tensor], fx.Node],
        entry_gradient: Callable[[torch.Tensor], torch.Tensor | None],
        knowledge: Knowledge,
        options: Options,
    ) -> None:
        super().__init__(lift, self._demand)
        self._is_converted = is_converted
        self.conversion = Conversion(self, convert, turn_inside_out, skipped)
        self._entry_gradient = entry_gradient
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
        self.own_streams: dict[int, Any] = {}  # streams in memory that the function has made
        self.scripting = False  # whether we are in code that TorchScript compiled
        self.catching_warnings: list[int] = []  # the ``catch_warnings`` that we are in, as `watching`
        self.settling = Settling(self)
        self.unseen = UnseenCode(self)
        self.handed = HandedWhole(self)
        self.side_effects = SideEffects(self)
        self.for_segments = self.may_end = False  # as `FrontEnd` has them
        self.cannot_end = False  # for each path makes a call of its own, in a program for which `may_end` is not set
        self.raises = 0  # how many operations have been recorded that may raise in the run
        self.elsewhere = Elsewhere(self.journal, finder, knowledge.written_elsewhere)
        self.dictionaries = AttributeDictionaries(self.journal, finder, self.elsewhere.births)
        self.depth = Depth()
        self.made_modules = MadeModules(self.journal)
        self.returns: dict[tuple[CodeType, int], None] = {}  # the user's ``return``s in blocks that have been run
        self.locks = Locks(self.elsewhere, self.journal)
        self.tokens = context_variables.Tokens()
        self.finalised = Finalised()
        self.iterators = Iterators(self)
        self.recursions: dict[tuple[CodeType, tuple[int, ...]], Recursion | TailCalls] = {}  # by code and closure
        self.calls: collections.Counter[CodeType] = collections.Counter()  # functions being called, inside arms

    def record(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """As `Recorder.record`; code that is not rewritten applies no ``torch.autograd.Function`` of the user's."""
        if self._gradients_wanted and not torch.is_grad_enabled() and in_autograd_function(self.is_rewritten):
            ask_for_conversion(self)  # of a property, say, which Python calls
            self.before_unseen("a torch.autograd.Function is applied by code that is not rewritten")
        if node_naming.is_autograd_function(func):
            self.handed.require_kept([*args, *kwargs.values()], node_naming.name_of(func))
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
            self.knowledge.find_written(source)

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
        seen = certain or (self.may_end and (self.side_effects.acted or self.knowledge.acts))
        handlers = self.handlers
        is_watched = bool(handlers.watching) and (seen or sees_any(handlers.watching, handlers.attempts, kind, left))
        if handlers.swallowing or is_watched:
            self.knowledge.stage_handling()
            self.follow_libraries()  # whose managers are operators then
            whose = "that may end it" if handlers.swallowing else "whose manager would see it"
            message = f"an exception is raised where a tensor decides, inside a with block {whose}"
            raise refuse("SG208", message, location=here(), hint=_CHECK_BEFORE)
        if handlers.watching:
            self.side_effects.pass_by()
        hand_to(handlers.attempts, left, seen, self.side_effects.pass_by)
        frame = frame_in_try(self)
        if frame is None:
            if kind is not None and certain and handlers.answers(kind, left):
                message = f"{kind.__name__} is raised where a tensor decides, and is an answer to Python"
                raise refuse("SG208", message, location=here(), hint=_CHECK_BEFORE)
            return
        if not self.knowledge.tries:
            raise Restart("tries", None)
        message = "an exception is raised where a tensor decides, inside a try block that stays Python"
        raise refuse("SG208", message, location=location_of(frame))

    def require_pairs(self) -> None:
        """To be called in the end: what was taken, set or handed on is to be given back, reset or as it was.

        Raises:
            Restart: it is not, by code that is not rewritten; that has to be, which shows more.
            CaptureError: it is not.
        """
        self.locks.require_given_back()
        self.handed.require_unchanged()
        context_variables.require_put_back(self)

    def unpacked(self, value: Any) -> Any:
        """As `PlainAnswers.unpacked`: what was in a parcel is guarded."""
        if type(value) is Parcel:
            self.reads.attributes.append((value, value.name))
            self.unpacked_ones[id(value)] = value
        return opened(value)

    def follow_libraries(self) -> None:
        """Begin anew with libraries converted, where their code would not see what is of the run."""
        if not self.knowledge.convert_libraries:
            raise Restart("convert_libraries", None)

    def meets_several(self) -> None:
        """As `Recorder.meets_several`: begin anew with libraries converted where one waits for what may be that."""
        super().meets_several()
        if not self.knowledge.convert_libraries and library_waits(self.is_rewritten):
            self.follow_libraries()

    def watch_reads(self, target: Any, name: str) -> None:
        """As `Recorder.watch_reads`."""
        self.dictionaries.require_not_shown(target)
        self.follow_libraries()
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
        self.follow_libraries()
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
            made = WrittenEffects(self, self.finder, results)
            return made.of(written, self.outer_cells), results.outputs

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
        self._require_going_on()
        ask_for_conversion(self)
        self.needs_value(number)
        super().number_meets_array(number)

    def numpy_operation(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """As `Recorder.numpy_operation`; first it is asked whether the numbers can be constants."""
        self._require_going_on()
        ask_for_conversion(self)
        self.needs_value(operands)
        return super().numpy_operation(function, operands)


_CHECK_BEFORE = "Raise it before the with block, or make the manager a class with __enter__ and __exit__."


def session() -> Session | None:
    """The capture going on in this thread, if there is one."""
    recorder = CURRENT.get()  # asked by each operator, so without another call
    return recorder if isinstance(recorder, Session) else None


def capturing() -> Session:
    """The capture going on in this thread: for what only a capture calls."""
    capture = session()
    assert capture is not None
    return capture
