"""Capture: one call of a function, run on fake tensors, becomes a `Program`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import fx
from torch.optim.lr_scheduler import LRScheduler
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from stillgraph.core.diagnostics import CaptureError, InitialisingCall, InternalError, Refusal, refuse
from stillgraph.core.location import Location, start_of
from stillgraph.program.conclusions import without_lasting_conclusions
from stillgraph.program.context import current_context, restore
from stillgraph.program.effects import Effect
from stillgraph.program.graphs import regions
from stillgraph.program.guards import Argument, Attribute, Guard, ModeGuard, Source
from stillgraph.program.outputs import Constant, Template
from stillgraph.program.program import Program
from stillgraph.program.writes import is_written, writes_in_place, written_arguments
from stillgraph.trace import audits
from stillgraph.trace.arms import emit_raise, raised_by_user
from stillgraph.trace.assigned import returned_by, stored_by
from stillgraph.trace.compiled import original_of
from stillgraph.trace.distributions import property_names
from stillgraph.trace.facts import compares_objects, mode_guard, size_guards
from stillgraph.trace.frames import is_below_torch, is_ours, is_standard_library, is_torch
from stillgraph.trace.inputs import Dims, Inputs, places_in
from stillgraph.trace.journal import AttributePlace, CellPlace, ContentsPlace, Journal, Place, Write
from stillgraph.trace.knowledge import Knowledge, Options
from stillgraph.trace.maybe_none import HIDDEN
from stillgraph.trace.memory import Memory
from stillgraph.trace.met_guards import MetGuards
from stillgraph.trace.modules import ModuleTables, makes_modules
from stillgraph.trace.names import names_of
from stillgraph.trace.promotion import Promotion
from stillgraph.trace.reads import Reads, code_file
from stillgraph.trace.region import erase
from stillgraph.trace.results import Results
from stillgraph.trace.session import Session
from stillgraph.trace.signals import Diverged, Restart
from stillgraph.trace.sources import Finder
from stillgraph.trace.symbolic import is_fake, under_transform, without_dispatch_modes
from stillgraph.trace.told import Told, constants
from stillgraph.trace.torch_settings import caches_weights, uses_parametrizations
from stillgraph.trace.watch import GUARDS, RECORDING, REWRITING, Watch
from stillgraph.trace.world import WorldGuards

_MAX_ATTEMPTS = 64


@dataclass(frozen=True)
class FrontEnd:
    """What a capture asks of its front end.

    Attributes:
        convert: rewrites a function, its ``try`` statements too if the last argument says so; gives the new one and
            the names of the outer variables it assigns.
        turn_inside_out: the same for a generator, as a function that hands out what it yields; gives the name of the
            parameter for that too, or None where it cannot be done.
        is_converted: whether a code object is rewritten code.
        skipped: whether the user wants a function left as it is.
    """

    convert: Callable[[FunctionType, frozenset[str], bool], tuple[FunctionType, tuple[str, ...]]]
    turn_inside_out: Callable[[FunctionType, frozenset[str], bool], tuple[FunctionType, tuple[str, ...], str] | None]
    is_converted: Callable[[CodeType], bool]
    skipped: Callable[[Any], bool]


@without_lasting_conclusions()
@without_dispatch_modes()
def capture(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    front_end: FrontEnd,
    symbolic_dims: Dims,
    options: Options,
    name: str | None,
    call: Callable[..., Any],
    changing: AbstractSet[Source] = frozenset(),
    watch: Watch | None = None,
) -> Program:
    """Capture ``function(*args, **kwargs)``.

    Args:
        function: a plain function (a method's receiver is the first of ``args``) or another callable.
        args, kwargs: of the call; their tensors give dtypes, devices and shapes, their data is not looked at.
        front_end: how functions are rewritten.
        symbolic_dims: which dimensions of an argument stay symbolic.
        options: the user's.
        name: of the program; the function's by default.
        call: the operator that calls anything but a plain function.
        changing: where numbers are that differ from call to call: inputs of the program, unless it depends on them in
            other ways than by value.
        watch: takes down what the capture does; what it holds afterwards also tells of a capture that failed.

    Raises:
        CaptureError: the function cannot become one program.
        Exception: what the function itself raises whatever its tensors hold.
    """
    knowledge = Knowledge(promote=set(changing), changing=set(changing))
    watch = watch or Watch()
    for _ in range(_MAX_ATTEMPTS):
        watch.begin()
        try:
            return _Attempt(function, args, kwargs, front_end, symbolic_dims, options, knowledge, watch).run(name, call)
        except Restart as restart:
            _learn(knowledge, restart)
        except InitialisingCall as error:
            raise _at_start(error, function) from None
        except Exception as error:  # the user's own, too: what the function raises whatever its tensors hold
            if knowledge.keep_constant():
                continue  # any error may come of what code that is not rewritten does with such numbers
            if not isinstance(error, CaptureError):
                raise
            raise _at_start(error, _called(function, args)) from error.__cause__
    raise InternalError(f"the capture of {function.__qualname__} does not settle; please report this program")


def _learn(knowledge: Knowledge, restart: Restart) -> None:
    if restart.kind == "convert":
        codes, names = restart.what
        knowledge.convert |= codes
        knowledge.watch |= names
    elif restart.kind == "convert_libraries":
        knowledge.convert_libraries = True
    elif restart.kind == "list":
        source, element = restart.what
        knowledge.lists[source] = element
    elif restart.kind == "keep":
        del knowledge.lists[restart.what]
        knowledge.keep.add(restart.what)
    elif restart.kind == "watch":
        knowledge.watch_modules = True
    elif restart.kind == "memory":
        knowledge.watch_memory = True
    elif restart.kind == "distributions":
        knowledge.distributions = True
        knowledge.watch |= property_names()
    elif restart.kind == "tries":
        knowledge.tries = True
    elif restart.kind == "recursive":
        knowledge.recursive.add(restart.what)
    elif restart.kind == "cached":
        knowledge.cached.add(restart.what)
    elif restart.kind == "quiet":
        knowledge.quiet.add(restart.what)
    elif restart.kind == "not_tail":
        knowledge.not_tail.add(restart.what)
    elif restart.kind == "constant":
        knowledge.promote -= restart.what
    elif restart.kind == "aliases":
        knowledge.aliases_matter = True
    elif restart.kind == "hashed":
        knowledge.hashed = True
    elif restart.kind == "elsewhere":
        knowledge.also_elsewhere |= restart.what
    else:
        knowledge.promote.add(restart.what)
        knowledge.changing.discard(restart.what)  # it is written: no number that only differs from call to call


class _Attempt:
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
        self.front_end, self.knowledge, self.watch = front_end, knowledge, watch
        names = _parameter_names(original_of(function) or function, args)
        self.finder = Finder(args, kwargs, names, Memory(knowledge.watch_memory))
        if isinstance(function, FunctionType):
            self.finder.add_function(function)
        else:
            self.finder.add_root(function)
        self.inputs = Inputs(self.finder, symbolic_dims, aliases_matter=knowledge.aliases_matter)
        self.functions: list[FunctionType] = []
        self.written: set[Any] = set()
        self.session = Session(
            self._convert,
            self._turn_inside_out,
            front_end.is_converted,
            front_end.skipped,
            self.finder,
            self.inputs.lift,
            self.inputs.gradient,
            knowledge,
            options,
        )
        self.session.locator.beginning = _location(_called(function, args))
        self.inputs.recorder = session = self.session
        session.watch = watch
        journal, changing, grown = session.journal, session.changing, session.grown
        self.promotion = Promotion(self.finder, self.inputs, journal, knowledge, changing, grown)
        self.session.witness.reaching = audits.before_reaching

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
        self.finder.complete()
        context = current_context()
        self.caches_weights = caches_weights()
        modes = mode_guard()  # before there are modes of the capture's own
        tables = ModuleTables(list(self.finder.everything()))
        if self.knowledge.watch_modules:
            self.journal.watch = tables
        try:
            with torch._C.DisableTorchFunction():
                self.inputs.as_they_are = self._as_they_are()
                args = tuple(self._argument(value, Argument(i)) for i, value in enumerate(self.args))
                kwargs = {name: self._argument(value, Argument(name)) for name, value in self.kwargs.items()}
                self.promotion.run()
            with self.session.active():
                try:
                    with (
                        self.watch.phase(RECORDING),
                        self.session.witness.watching(),
                        self.session.reads.environment.watched(),
                        self.watch.watching(),
                    ):
                        value = self._call(call, args, kwargs)
                except BaseException:
                    self.session.give_locks_back()
                    raise
                finally:
                    self.session.close_generators()
                    self._note_functions()
                self.session.hooked.require_unchanged()
                results = Results(self.session, self.finder)
                with torch._C.DisableTorchFunction():
                    template: Template = self._returned(results, value)
                    written = self.journal.outcome()
                    if self.knowledge.watch_modules:
                        self._note_unseen(written)
                    effects = self._stored(results, written)
                    results.refuse_uncertain()
                    graph = self.session.root.close(results.outputs).module()
                    self.written = set(self.journal.written(0))
                    self.journal.rollback(0, self._outlives)  # guards are about the world as it was
                    if current_context() != context:
                        hint = "Switch it for a block: with torch.no_grad(): ..., with torch.autocast(...): ..."
                        raise refuse("SG305", "the function leaves a torch mode switched", hint=hint)
                    self._require_unchanged(tables)
                    self._require_aliases(graph)
                    with self.watch.phase(GUARDS):
                        program = self._program(name, template, effects, graph, self._relevant(modes, graph))
                    return replace(program, record=self.watch.record())
        finally:
            restore(context)
            self.journal.rollback(0, self._outlives)
            self.session.settling.put_back()
            tables.restore()
            self.finder.memory.put_back()
            self.session.symbolic.forget_real_tensors()
            self.finder.forget()

    def _note_functions(self) -> None:
        """Tell the watch which functions ran."""
        for function in self.functions:
            self.watch.ran(function.__code__, function.__module__, rewritten=True)
        for code, namespace in self.session.witness.codes.items():
            if not self.front_end.is_converted(code):
                self.watch.ran(code, namespace.get("__name__"), rewritten=False)

    def _returned(self, results: Results, value: Any) -> Template:
        """The template of what the function returns; what cannot be returned is told of at the line that does."""
        try:
            return results.template(value)
        except Refusal as refusal:
            line = returned_by(self._code())
            refusal.error = refusal.error if line is None else refusal.error.located(line)
            raise

    def _stored(self, results: Results, written: list[Write]) -> list[Effect]:
        """The writes that outlive the call; what cannot be stored is told of at the line that stores it."""
        try:
            return results.effects(written, self.session.outer_cells)
        except Refusal as refusal:
            line = stored_by(self._code(), results.place)
            refusal.error = refusal.error if line is None else refusal.error.located(line)
            raise

    def _code(self) -> CodeType | None:
        """The code of the captured function; of a module, of its ``forward``."""
        code = getattr(_called(self.function, self.args), "__code__", None)
        return code if isinstance(code, CodeType) else None

    def _argument(self, value: Any, source: Source) -> Any:
        """What the function gets in place of an argument."""
        if source not in self.knowledge.promote or type(value) is not float:  # a whole number is a size, or counts
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
            if isinstance(place, AttributePlace):
                self.session.relied.add((id(place.target), place.name))
                source = self.finder.find_owner(place.target)
                if source is not None:
                    self.session.number_is_written(Attribute(source, place.name), write.before, place.get())

    def _reads(self) -> Reads:
        """What the capture has read."""
        reads = self.session.reads
        rewritten = self.front_end.is_converted
        reads.codes.update((c, space) for c, space in self.session.witness.codes.items() if not rewritten(c))
        reads.functions.extend(self.functions)
        reads.hooks = [hook for hook in self.session.hooked.hooks if hook.__code__ not in self.session.witness.codes]
        reals = {id(fake): real for real, fake in self.session.fakes.values()}
        reads.attributes = [(reals.get(id(target), target), name) for target, name in reads.attributes]
        return reads

    def _outlives(self, place: Place) -> bool:
        """Whether a place was there before the capture; what the capture made may keep what was written to it."""
        if not isinstance(place, (AttributePlace, ContentsPlace)):
            return True
        return isinstance(place.target, (torch.nn.Module, type)) or self.finder.holds(place.target)

    def _require_aliases(self, graph: fx.GraphModule) -> None:
        """Begin anew, with an eye on which arguments are one object, if the code can tell the difference."""
        told = any(is_fake(t) and self.session.from_before(t) is not None for t in self.session.witness.hashed)
        if told and not self.knowledge.hashed:
            raise Restart("hashed", None)
        compares = self.session.compared or any(map(compares_objects, self._codes()))
        if not self.knowledge.aliases_matter and (told or compares or writes_in_place(graph)):
            raise Restart("aliases", None)

    def _written_tensors(self, graph: fx.GraphModule) -> list[torch.Tensor]:
        """The tensors from before the capture whose memory the program writes."""
        nodes = (node for region in regions(graph) for node in region.graph.nodes)
        written = [argument.meta["val"] for node in nodes for argument in written_arguments(node)]
        storages = {each.untyped_storage()._cdata for each in written if each.layout is torch.strided}
        pairs = [(r, f) for r, f in self.session.fakes.values() if not is_traceable_wrapper_subclass(r)]
        return [real for real, fake in pairs if is_written(fake, storages)]

    def _codes(self) -> Iterator[CodeType]:
        """The user's and libraries' code that ran."""
        yield from (function.__code__ for function in self.functions)
        for code, namespace in self.session.witness.codes.items():
            file = code_file(code, namespace)
            if not (is_below_torch(file) or is_ours(file) or is_standard_library(file)):
                yield code

    def _require_unchanged(self, tables: ModuleTables) -> None:
        """Whatever was written to a module without the journal's knowledge cannot be repeated by the program."""
        if self.session.left_some_alone:
            tables.accept_containers()  # what such a function does to them is its own affair
            self.finder.memory.accept()
        self.finder.memory.require_unchanged()
        self.finder.memory.require_apart()
        changed = tables.restore(keep_added=True)
        if changed is None:
            return
        if makes_modules(changed.now):
            raise refuse("SG308", f"{changed} is made")
        self.session.before_unseen_write()
        raise refuse("SG305", f"{changed} is changed by code that is not rewritten")

    def _call(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        plain = isinstance(self.function, FunctionType) and not is_torch(self.function.__code__.co_filename)
        try:
            staged = plain and self.function.__code__ in self.knowledge.recursive
            if plain and not staged and not self.front_end.is_converted(self.function.__code__):
                return self.session.convert(self.function)(*args, **kwargs)
            if plain or not isinstance(self.function, FunctionType):
                return call(self.function, *args, **kwargs)
            return call(MethodType(self.function, args[0]), *args[1:], **kwargs)
        except Diverged:
            return None

    @property
    def _watched(self) -> frozenset[str]:
        """The attributes whose reads the operators are told of."""
        return HIDDEN.union(self.knowledge.watch)

    def _convert(self, function: FunctionType) -> FunctionType:
        with self.watch.phase(REWRITING), self.session.witness.paused():
            converted, written_cells = self.front_end.convert(function, self._watched, self.knowledge.tries)
        self._watch(function, written_cells)
        return converted

    def _turn_inside_out(self, function: FunctionType) -> tuple[FunctionType, str] | None:
        with self.watch.phase(REWRITING), self.session.witness.paused():
            turned = self.front_end.turn_inside_out(function, self._watched, self.knowledge.tries)
        if turned is None:
            return None
        self._watch(function, turned[1])
        return turned[0], turned[2]

    def _watch(self, function: FunctionType, written_cells: tuple[str, ...]) -> None:
        self.functions.append(function)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for name in written_cells:
            self._watch_cell(cells[name], name)

    def _watch_cell(self, cell: Any, name: str) -> None:
        """An outer variable that the function assigns: its writes are effects, a number in it is an input."""
        if id(cell) in self.session.outer_cells:
            return
        source = self.finder.cell_source(cell)
        if source is None:
            return
        self.session.outer_cells[id(cell)] = name
        place = CellPlace(cell, name)
        value = place.get()
        if type(value) in (int, float, bool):
            self.promotion.places.add(place.key)
            self.journal.write(place, self.inputs.state(value, source))
        else:
            self.journal.note(place)

    def _relevant(self, modes: ModeGuard, graph: fx.GraphModule) -> ModeGuard:
        """The guard on modes; on torch's switches only if the code asks for them or turns them."""
        contexts = (node.meta.get("context") for region in regions(graph) for node in region.graph.nodes)
        turned = any(c is not None and c.switches != modes.context.switches for c in contexts)
        return replace(modes, switches_matter=turned or self.session.asked_for_switches)

    def _program(
        self, name: str | None, template: Template, effects: list[Any], graph: Any, modes: ModeGuard
    ) -> Program:
        hidden = self.session.hidden_inputs
        used = [(i, n) for i, n in zip(self.inputs.inputs, self.inputs.nodes) if n.users or n in hidden]
        for node in self.inputs.nodes:
            if not node.users and node not in hidden:
                erase(_same_node(graph, node))
        graph.recompile()
        met = MetGuards(self.session, self.inputs, self.finder, self.knowledge, self.promotion.sources)
        lists = met.lists_read([i for i, _ in used])
        world = self._world()
        of_world = world.collect()
        told = self._told([*constants(graph), template, effects, self.session.midway])
        objects = [guard for value, source in self.inputs.objects for guard in told.guards(value, source)]
        arrays = met.arrays_read([*of_world, *objects])
        self.finder.memory.require_not_written(arrays, self._written_tensors(graph) if arrays else ())
        guards: list[Guard] = [
            modes,
            *self.inputs.guards,
            *objects,
            *met.tensors_looked_at(),
            *of_world,
            *met.apart(world, self._arguments(), bool(self.written)),
            *self.inputs.facts(),
            *self.inputs.identities(),
            *size_guards(self.session, self.inputs),
            *met.wrapper_guards(),
        ]
        guards = [*filter(met.is_relied_on, guards), *lists, *met.same_tensors()]
        shown = original_of(self.function) or self.function
        return Program(
            name or str(getattr(shown, "__name__", type(shown).__name__)),
            _location(shown),
            tuple(i for i, _ in used),
            graph,
            template,
            tuple(effects),
            tuple(guards),
            tuple(self.session.midway),
            tuple(self.session.splits),
            self.session.watched,
        )

    def _told(self, kept: list[Any]) -> Told:
        compared = self.session.compared or any(map(compares_objects, self._codes()))
        ids = self.session.witness.hashed
        return Told(self.finder, list(self._codes()), compared or bool(ids), kept)

    def _world(self) -> WorldGuards:
        unseen = LRScheduler.get_last_lr.__code__ in self.session.witness.codes  # called by code not rewritten
        named = any(names_of(f.__code__).attributes & _SCHEDULED for f in self.functions)
        if self.session.schedules and (unseen or named):
            hint = "Step the scheduler, or read its learning rate, outside the static function."
            raise refuse("SG305", "a learning rate is read in a function that steps its scheduler", hint=hint)
        if uses_parametrizations(self.session.witness.codes):
            if self.caches_weights:
                hint = "Make the call outside of the block."
                raise refuse("SG305", "the call is made in a block of parametrize.cached()", hint=hint)
            self.session.reads.settings.append((caches_weights, (), False))
        promoted = frozenset(self.promotion.sources | self.knowledge.lists.keys())
        reads, relied = self._reads(), self.session.relied
        tensors = self.session.fakes.keys() | self.session.sharded.keys()  # the latter come and go with their wrappers
        compares = self.session.compared or any(compares_objects(f.__code__) for f in self.functions)
        return WorldGuards(self.finder, reads, self.promotion.places, relied, promoted, self.written, tensors, compares)


# what shows how far a scheduler is; a program that steps it would show the state before the call
_SCHEDULED = frozenset({"get_lr", "_last_lr", "last_epoch"})


def _same_node(graph: Any, node: Any) -> Any:
    return next(n for n in graph.graph.nodes if n.name == node.name)


def _called(function: Any, args: tuple[Any, ...]) -> Any:
    """The user's own function behind a module's call, or behind one that ``torch.jit.script`` compiled."""
    return args[0].forward if function is torch.nn.Module.__call__ else original_of(function) or function


def _at_start(error: CaptureError, function: Any) -> CaptureError:
    """An error that names no line, at the one where the function starts; that of torch's own, or none, helps nobody."""
    location = _location(function)
    return error if is_torch(location.file) or location == _UNKNOWN else error.located(location)


def _behind_torch(function: Any) -> Any:
    """The user's function behind torch's own decorators: ``@torch.no_grad()``."""
    while isinstance(function, FunctionType) and is_torch(function.__code__.co_filename):
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    return function


def _location(function: Any) -> Location:
    code = getattr(_behind_torch(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return _UNKNOWN
    return start_of(code)


_UNKNOWN = Location("<unknown>", 1)


def _parameter_names(function: Any, args: tuple[Any, ...]) -> dict[int | str, str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {}
    names: dict[int | str, str] = {}
    for position, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.update({i: f"{parameter.name}_{i - position}" for i in range(position, len(args))})
            break
        names[position] = parameter.name
    return names


__all__ = ["Constant", "FrontEnd", "capture", "emit_raise", "raised_by_user"]
