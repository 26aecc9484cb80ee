"""One attempt at a capture: the function runs once on fake tensors, and what was recorded becomes a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import fx

from stillgraph.core.collector import waiting_collector
from stillgraph.core.diagnostics import Refusal, Side, refuse
from stillgraph.core.faults import is_own
from stillgraph.core.files import is_torch
from stillgraph.core.lookup import stated
from stillgraph.core.rewritten import resumes
from stillgraph.program.context import current_context, restore
from stillgraph.program.effects import Effect
from stillgraph.program.guards import ModeGuard
from stillgraph.program.outputs import Template
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Global, Source
from stillgraph.trace.capture.assumptions import Assumptions
from stillgraph.trace.capture.followed_functions import FollowedFunctions
from stillgraph.trace.capture.results import Results
from stillgraph.trace.capture.session import Session
from stillgraph.trace.capture.state_before import StateBefore
from stillgraph.trace.capture.unseen import PAIRED, SPEAKING
from stillgraph.trace.capture.written_effects import WrittenEffects
from stillgraph.trace.code.captured import called_function, parameter_names, place_of
from stillgraph.trace.code.chance import CHANCE, CLOCKS, SEEDED
from stillgraph.trace.code.compiled import behind_compiler, original_of
from stillgraph.trace.code.executed_code import Calls
from stillgraph.trace.code.frames import surrounds_with_mode
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.options import Options
from stillgraph.trace.code.random_states import RandomStates
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.code.watch import GUARDS, RECORDING, Watch
from stillgraph.trace.effects import audits, imports
from stillgraph.trace.effects.modules import ModuleTables
from stillgraph.trace.effects.upcoming import Ahead
from stillgraph.trace.fakes.symbolic import under_transform
from stillgraph.trace.fakes.torch_settings import caches_weights
from stillgraph.trace.graph.current import active
from stillgraph.trace.graph.region import erase
from stillgraph.trace.guards.argument_structure import places_in
from stillgraph.trace.guards.facts import mode_guard
from stillgraph.trace.guards.indistinguishable import constants
from stillgraph.trace.guards.inputs import Dims, Inputs
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.guards.promotion import Promotion, may_be_input
from stillgraph.trace.heap.assigned import returned_by, stored_by
from stillgraph.trace.heap.journal import Journal, Write
from stillgraph.trace.heap.places import AttributePlace, GlobalPlace
from stillgraph.trace.sources.memory import Memory
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.torch_rules import tensor_queries
from stillgraph.trace.values.errors import in_eagers_words


class CaptureAttempt:
    """One run of the function on fake tensors."""

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        front_end: FrontEnd,
        symbolic_dims: Dims,
        options: Options,
        knowledge: Knowledge,
        watch: Watch,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        follows = front_end.following if knowledge.follow_methods else None
        self.front_end, self.knowledge, self.watch = follows or front_end, knowledge, watch
        names = parameter_names(original_of(function) or function, args)
        memory = Memory(knowledge.watch_memory, knowledge.may_be_input, knowledge.may_stage_arrays)
        self.finder = Finder(args, kwargs, names, memory)
        if isinstance(function, FunctionType):
            if not resumes(function.__code__):
                self.finder.add_function(function)
        else:
            self.finder.add_root(function)
        self.inputs = Inputs(self.finder, symbolic_dims, knowledge.open_sizes, aliases_matter=knowledge.aliases_matter)
        captured = called_function(function, args)
        self.followed = FollowedFunctions(self.front_end, knowledge, watch, self.finder, captured)
        self.written: set[Any] = set()
        self.session = Session(
            self.followed.convert,
            self.followed.turn_inside_out,
            self.front_end.is_converted,
            self.front_end.skipped,
            self.finder,
            self.inputs.lift,
            self.inputs.gradient,
            knowledge,
            options,
        )
        self.session.locator.beginning = place_of(captured)
        self.inputs.recorder = self.followed.capture = session = self.session
        session.watch = watch
        journal, promoted, grown = session.journal, session.promoted, session.grown
        item = session.iterators.outside.item
        self.promotion = Promotion(self.finder, self.inputs, journal, knowledge, promoted, grown, item)
        self.followed.promotion = self.promotion
        session.unseen.can_follow_methods = front_end.following is not None
        session.for_segments = self.front_end.for_segments
        session.may_end = self.front_end.may_end
        audits.before_capture()
        session.executed.reaching = audits.before_reaching
        session.executed.beginning = session.unseen.before_code
        session.executed.giving = session.unseen.given
        session.executed.hashing = tensor_queries.before_hash
        session.executed.waiting = session.unseen.before_waiting
        told_of = frozenset({*SPEAKING, *CHANCE, *CLOCKS})
        session.executed.calling = Calls(told_of, (*PAIRED, *SEEDED), session.unseen.before_act)

    @property
    def journal(self) -> Journal:
        return self.session.journal

    def run(self, name: str | None, call: Callable[..., Any]) -> Program:
        """The program.

        Whatever happens, the user's objects are left as they were.
        """
        if under_transform():
            message = "no program fits this call, and none can be captured under a transform of torch.func"
            hint = "Make a plain call first, with arguments of these shapes that require gradients where these do."
            raise refuse("SG305", message, hint=hint)
        before, assumptions = self._begin()
        try:
            args, kwargs = self._given_arguments()
            with (
                self.session.elsewhere.watched(),
                active(self.session),
                imports.made_outside(self.session),
                self.session.finalised.watched(),
            ):
                value = self._recorded(call, args, kwargs, before.random)
                self._require_seen(before.random)
                with torch._C.DisableTorchFunction():
                    template, effects, graph = self._closed(value, before)
                    before.require_left()
                    assumptions.require_aliases(graph)
                    with self.watch.phase(GUARDS):
                        program = self._program(name, template, effects, graph, before.modes, assumptions)
                    return replace(program, record=self.watch.record())
        finally:
            restore(before.context)
            try:
                before.put_back()
            finally:
                self._forget(before.tables)

    def _begin(self) -> tuple[StateBefore, Assumptions]:
        """Note how the world is, and what the capture takes for granted."""
        with waiting_collector():
            self.finder.complete()
        context = current_context()
        assumptions = Assumptions(
            self.session,
            self.inputs,
            self.finder,
            self.knowledge,
            self.promotion,
            self.followed.functions,
            self.front_end.is_converted,
            caches_weights(),
        )
        modes = mode_guard()  # before there are modes of the capture's own
        with waiting_collector():
            tables = ModuleTables(list(self.finder.everything()), self.journal.log)
        random = self.session.random = RandomStates([value for value, _ in self.finder.everything()])

        def told(value: Any, source: Source) -> None:
            tables.add(value, source)
            random.meet(value)

        def told_of_code(code: CodeType, namespace: dict[str, Any]) -> None:
            tables.add_code(code, namespace)
            self.followed.watch_cells(code)

        def told_of_package(code: CodeType, namespace: dict[str, Any]) -> None:
            tables.add_package(code, namespace)
            random.meet_globals(code, namespace)
            self.followed.watch_cells(code)

        self.finder.told = told
        unseen = self.session.unseen
        unseen.told_of_code, unseen.told_of_package = told_of_code, told_of_package
        if self.knowledge.watch_modules:
            self.journal.watches.append(tables)
        return StateBefore(self.session, self.promotion, context, modes, tables, random), assumptions

    def _given_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function gets in place of its arguments."""
        with torch._C.DisableTorchFunction():
            self.inputs.as_they_are = self._as_they_are()
            args = tuple(self._argument(value, Argument(i)) for i, value in enumerate(self.args))
            kwargs = {name: self._argument(value, Argument(name)) for name, value in self.kwargs.items()}
            self.promotion.run()
        return args, kwargs

    def _recorded(self, call: Callable[..., Any], args: Any, kwargs: Any, random: RandomStates) -> Any:
        """Run the function; what it returns."""
        session = self.session
        try:
            with (
                self.watch.phase(RECORDING),
                session.executed.watching(),
                session.reads.environment.watched(lambda: session.in_arm),
                self.watch.watching(),
            ):
                return self._call(call, args, kwargs)
        except BaseException as error:
            if is_own(error):
                in_eagers_words(error)
                session.executed.require_none_refused()  # the code's handlers may have made this of that
                random.require_undrawn(self.knowledge.convert_libraries)
            raise
        finally:
            session.iterators.close_generators()
            self.followed.note()

    def _require_seen(self, random: RandomStates) -> None:
        """Refuse what the function has done past the capture."""
        random.require_undrawn(self.knowledge.convert_libraries)
        self.session.finalised.require_none()
        self.session.executed.require_none_refused()
        self.session.require_pairs()
        self.session.hooked.require_unchanged()
        self.session.elsewhere.settle(is_over=False)
        self.session.elsewhere.require_unchanged()

    def _closed(self, value: Any, before: StateBefore) -> tuple[Template, list[Effect], fx.GraphModule]:
        """How the result is rebuilt, what is written, and the graph; what the capture has written is undone."""
        results = Results(self.session, self.finder)
        template = self._returned(results, value)
        written = self.journal.outcome()
        if self.knowledge.watch_modules:
            self._note_unseen(written)
        stored = WrittenEffects(self.session, self.finder, results)
        stored.require_put_back(written)
        effects = self._stored(stored, written)
        self.session.reads.same += stored.relied
        self.session.reads.variables += [*stored.absent, *self.session.relied.variables]
        results.handed_out.refuse_uncertain()
        graph = self.session.root.close(results.outputs).module()
        self.session.side_effects.require_told(graph)
        self.written = set(self.journal.written(0))
        changed = {write.place.key for write in written} | self.journal.midway.settled.keys()
        self.promotion.only_put = self.promotion.put - changed
        self.journal.rollback(0, before.outlives)  # guards are about the world as it was
        return template, effects, graph

    def _forget(self, tables: ModuleTables) -> None:
        """Let go of all that belongs to the call."""
        self.session.symbolic.forget_real_tensors()
        self.args, self.kwargs = (), {}  # what is held here ends with the call, not when Python looks for cycles
        self.finder.forget()
        tables.forget()
        self.session.elsewhere.forget()
        self.session.dictionaries.forget()
        self.session.made_modules.forget()
        self.session.account.forget()
        self.session.iterators.forget()
        self._let_go()

    def _let_go(self) -> None:
        """Part from all that the attempt was made of: its parts know each other, and lead to the user's objects.

        They live as long as something of it does: a tensor of the capture's in an object that it has made, say.
        """
        session = self.session
        session.root.forget()
        for each in (session, self.inputs, self.promotion, self.followed, self):
            vars(each).clear()
        session.ended = True  # for what still asks it

    def _returned(self, results: Results, value: Any) -> Template:
        """The template of what the function returns; what cannot be returned is told of at the line that does."""
        try:
            return results.template(value)
        except Refusal as refusal:
            lines = returned_by(self._code(), self.session.returns)
            if lines:
                sides = (*refusal.error.sides, *(Side("or it is returned here", each) for each in lines[1:]))
                refusal.error = refusal.error.located(lines[0], sides)
            raise

    def _stored(self, stored: WrittenEffects, written: list[Write]) -> list[Effect]:
        """The writes that outlive the call; what cannot be stored is told of at the line that stores it."""
        try:
            return stored.of(written, self.session.outer_cells)
        except Refusal as refusal:
            line = stored_by(self._code(), stored.place)
            refusal.error = refusal.error if line is None else refusal.error.located(line)
            raise

    def _code(self) -> CodeType | None:
        """The code of the captured function; of a module, of its ``forward``."""
        code = getattr(called_function(self.function, self.args), "__code__", None)
        return code if isinstance(code, CodeType) else None

    def _argument(self, value: Any, source: Source) -> Any:
        """What the function gets in place of an argument."""
        if source not in self.knowledge.promote or not may_be_input(value):
            return self.inputs.argument(value, source)
        return self.promotion.argument(value, source)

    def _arguments(self) -> list[tuple[Any, Source]]:
        positional: list[tuple[Any, Source]] = [(value, Argument(i)) for i, value in enumerate(self.args)]
        return [*positional, *((value, Argument(name)) for name, value in self.kwargs.items())]

    def _as_they_are(self) -> frozenset[int]:
        """The ids of the arguments that the code is to get themselves: those it would tell from their copies."""
        passed = (place for value, source in self._arguments() for place in places_in(value, source))
        hashed = {id(v) for v, _ in passed if isinstance(v, torch.Tensor)} if self.knowledge.hashed else frozenset()
        return self.inputs.also_elsewhere(self._arguments()) | self.knowledge.also_elsewhere | hashed

    def _note_unseen(self, written: list[Write]) -> None:
        """Rely on what was there before: code that is not rewritten may have read what it wrote."""
        for write in written:
            place = write.place
            self.session.relied.add(place)
            if isinstance(place, AttributePlace) and not isinstance(place.target, Ahead):
                source = self.finder.find_owner(place.target)
                if source is not None:
                    self.session.number_is_written(Attribute(source, place.name), write.before, place.get())
            elif isinstance(place, GlobalPlace):
                source = Global(place.namespace["__name__"], place.name)
                self.session.number_is_written(source, write.before, place.get())

    def _call(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        plain = isinstance(self.function, FunctionType) and not is_torch(self.function.__code__.co_filename)
        try:
            staged = plain and self.function.__code__ in self.knowledge.recursive
            if plain and not staged and not self.front_end.is_converted(self.function.__code__):
                return self.session.conversion.convert(self.function)(*args, **kwargs)
            if plain or not args or not isinstance(self.function, FunctionType):
                return call(self.function, *args, **kwargs)
            if surrounds_with_mode(self.function.__code__) or behind_compiler(self.function) is not None:
                return call(self.function, *args, **kwargs)
            return call(MethodType(self.function, args[0]), *args[1:], **kwargs)
        except Diverged:
            return None

    def _program(
        self,
        name: str | None,
        template: Template,
        effects: list[Any],
        graph: fx.GraphModule,
        modes: ModeGuard,
        assumptions: Assumptions,
    ) -> Program:
        hidden = self.session.hidden_inputs
        used = [(i, n) for i, n in zip(self.inputs.inputs, self.inputs.nodes) if n.users or n in hidden]
        for node in self.inputs.nodes:
            if not node.users and node not in hidden:
                erase(next(n for n in graph.graph.nodes if n.name == node.name))
        graph.recompile()
        so_far = self.session.account.effects(graph)
        kept = [*constants(graph), template, effects, self.session.midway, so_far]
        with waiting_collector():
            guards = assumptions.guards(graph, kept, modes, self._arguments(), self.written, [i for i, _ in used])
            guards += assumptions.copies_apart(graph)
            guards += self.session.iterators.outside.guards([*effects, *chain(*self.session.midway)])
        shown = original_of(self.function) or self.function
        return Program(
            name or str(stated(shown, "__name__", type(shown).__name__)),
            place_of(shown),
            tuple(i for i, _ in used),
            graph,
            template,
            tuple(effects),
            tuple(guards),
            tuple(self.session.midway),
            tuple(self.session.splits),
            self.session.watched,
            so_far,
            self.session.side_effects.passed_by,
        )
