"""From what a captured function left behind to the program's outputs, result template and effects."""

from __future__ import annotations

import collections
import enum
import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_our_module
from stillgraph.core.lookup import class_member, is_exactly, own_attributes
from stillgraph.core.parcel import Parcel
from stillgraph.program.constants import Known
from stillgraph.program.effects import (
    Advance,
    DeleteAttribute,
    Effect,
    ExtendContents,
    SetAttribute,
    SetCell,
    SetContents,
    SetGlobal,
    SetPersistence,
    SetSlot,
)
from stillgraph.program.facts.module_tables import past_class
from stillgraph.program.outputs import (
    ABSENT,
    BOUND,
    KEYS,
    Choice,
    Constant,
    Container,
    Instance,
    Maybe,
    OneOf,
    Output,
    Repeated,
    Same,
    Shared,
    Template,
    has_table,
)
from stillgraph.program.sources import Attribute, Cell, Global, Source, item_of
from stillgraph.program.types import TableType
from stillgraph.trace.capture.result_words import ELEMENT, ITSELF, KINDS, leaving, made_outside, plain_kind, values_of
from stillgraph.trace.code.namespaces import is_of_its_module
from stillgraph.trace.control_flow.join import same_constant
from stillgraph.trace.control_flow.narrowing import may_be_unbound
from stillgraph.trace.control_flow.tables import is_assigned
from stillgraph.trace.control_flow.unjoined import Picked, Stale, Unjoined, alternatives, describe, is_lost
from stillgraph.trace.control_flow.unset import may_be_unset, require_all, unset_leaf
from stillgraph.trace.effects.context_variables import ContextPlace
from stillgraph.trace.effects.elsewhere import FOLLOWED
from stillgraph.trace.effects.modules import makes_modules
from stillgraph.trace.effects.upcoming import Ahead
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.allocations import has_shared_methods, is_plain_object, is_shared, kept
from stillgraph.trace.guards.inputs import is_constant
from stillgraph.trace.heap.identities import AMBIGUOUS, Origin
from stillgraph.trace.heap.journal import (
    MISSING,
    AttributePlace,
    CellPlace,
    ContentsPlace,
    GlobalPlace,
    PersistencePlace,
    Place,
    Write,
)
from stillgraph.trace.sources.memory import HINT
from stillgraph.trace.sources.sources import Finder, is_machinery
from stillgraph.trace.torch_rules.fake_execution import has_no_fake
from stillgraph.trace.torch_rules.tensor_classes import refuse_class
from stillgraph.trace.values.arrays import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import Parts, holds_staged, split
from stillgraph.trace.values.entries import Entry, MaybeKey, table_of
from stillgraph.trace.values.lists import Element, Inner, Leaf, Node, StagedList, StagedSpread, is_mutable, types
from stillgraph.trace.values.made_in_run import MADE, require_options
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import StagedText


@dataclass
class Results:
    """Builds templates; every staged leaf becomes an output of the root graph, each once."""

    session: Recorder
    finder: Finder
    outputs: list[Any] = field(default_factory=list)
    relied: list[tuple[Source, Any]] = field(default_factory=list)  # what is left as it is, as it has to be found
    absent: list[tuple[dict[str, Any], str]] = field(default_factory=list)  # the globals that are left unset, likewise
    _indices: dict[int, int] = field(default_factory=dict)
    _shared: dict[int, int] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)
    _spreads: list[StagedSpread] = field(default_factory=list)  # the elements of lists of unknown length
    _given: set[int] = field(default_factory=set)  # objects of the caller's
    _storing: bool = False  # whether what is built outlives the call, returned or not
    place: Place | None = None  # what is being stored
    _what: str = "returned"  # what becomes of it, as messages say it

    def template(self, value: Any) -> Template:
        """The template that rebuilds ``value``.

        Raises:
            CaptureError: there is none.
        """
        made = self._template(value)
        if isinstance(made, Constant) and holds_staged(made.value) and self.session.is_new(made.value) is not False:
            if isinstance(value, torch.Tensor):
                raise refuse_class(type(value), f"is {self._what}")
            raise refuse("SG306", f"{self._made(value)} is {self._what}", hint=values_of(value))
        return made

    def _template(self, value: Any) -> Template:
        is_passed_on = isinstance(value, torch.Tensor) and has_no_fake(value)  # no program has it for a value
        if isinstance(value, (torch.Tensor, StagedNumber, StagedArray, StagedText)) and not is_passed_on:
            return self._output(value)
        if isinstance(value, StagedComplex):
            index = len(self._shared)
            self._shared[~index] = index  # no id: nobody can tell two of one value apart
            return Container(complex, None, (self.template(value.real), self.template(value.imag)))
        if is_lost(value):
            value.refuse()
        if isinstance(value, Picked):
            entries = self.session.possible_entries(value.stillgraph_number(), value.stillgraph_known())
            return self._one_of(self._output(value), entries)
        if isinstance(value, Unjoined):
            known = alternatives(value)
            flag = self._output(known.flag)
            return Choice(flag, self.template(known.left), self.template(known.right), known.failure.sides)
        if isinstance(value, MaybeKey):
            value._refuse()
        if value is MISSING:
            raise refuse("SG204", f"a variable that some path does not assign is {self._what}")
        if isinstance(value, StagedSpread):
            raise refuse("SG210", f"the elements of a list are {self._what} as one value")
        if isinstance(value, MADE) and self.session.root.holds(value):
            require_options(self.session.root.node_of(value), value)
            return self._output(value)
        if isinstance(value, enum.Enum):
            return Constant(value)  # there is one of it, and what was read of it is guarded
        source = self.finder.find(value)
        if source is not None:
            self._given.add(id(value))
            return Same(source)
        origin = self.session.identities.origins.get(id(value))
        if origin is not None and isinstance(origin.flag, StagedNumber):
            return self._choose_origin(origin)
        return self._fresh(value)

    def _one_of(
        self, number: Output, entries: tuple[Known, ...], of: Callable[[Any], Template] | None = None
    ) -> OneOf:
        """One of the entries of a table, each with the template that ``of`` gives."""
        of = of or self.template
        return OneOf(number, tuple((self.session.entry_number(each), of(each.value)) for each in entries))

    def refuse_uncertain(self) -> None:
        """Refuse two containers of which only the run knows whether they are one; to be called at the end.

        Raises:
            CaptureError: there are such.
        """
        identities = self.session.identities
        handed_out = self._shared.keys() | self._given | {id(spread) for spread in self._spreads}
        found = identities.uncertain(handed_out)
        if found is None:
            several = collections.Counter(id(each) for each in self._spreads if is_mutable(each.element))
            twice = identities.repeated.keys() | {key for key, count in several.items() if count > 1}
            found = next((each for each in self._spreads if id(each) in twice), None)
        outer = None if found is not None else next(filter(self._copies_outer, self._spreads), None)
        if found is None and outer is None:
            return
        identities.before_refusal(outer if found is None else found)
        if outer is not None:
            message = "a result is a list of unknown length, which has a copy of an object from before the call"
        elif id(found) in identities.repeated:
            message = "a result is a list of unknown length, in which one object may be twice"
        elif isinstance(found, StagedSpread):
            message = "two results hold one object, of which a list of unknown length has a copy"
        else:
            message = f"whether two results are one {type(found).__name__}, only the run knows: a loop"
            message = f"{message}, branch or handler makes one of them anew"
        raise refuse("SG305", message, hint=AMBIGUOUS)

    def _copies_outer(self, spread: StagedSpread) -> bool:
        """Whether some elements stand for containers from before the call, which others may hold too."""
        return any(self.session.is_new(each) is False for each in self.session.identities.originals(spread))

    def _element(self, element: Element | None, count: Iterator[int]) -> Template:
        """The template of one element of a list of unknown length; its outputs are the columns of the list."""
        if isinstance(element, Leaf):
            column = Output(next(count))
            return self._one_of(column, element.type.entries) if isinstance(element.type, TableType) else column
        if isinstance(element, Node):
            parts, children = element.parts, tuple(self._element(child, count) for child in element.children)
            if parts.attributes:
                return Instance(parts.type, tuple(zip(parts.context, children)))
            self._require_keys(parts)
            return Container(parts.type, parts.context, children)
        if isinstance(element, Inner):
            if element.element is None:
                next(count)
                return Container(list, 0, ())
            columns = tuple(Output(next(count)) for _ in types(element.element))
            return Container(list, 1, (Repeated(columns, self._element(element.element, itertools.count())),))
        return Constant(None) if element is None else self._element_itself(element.value)

    def _element_itself(self, value: Any) -> Template:
        """The template of what all elements of a list of unknown length are.

        Raises:
            CaptureError: the call makes it.
        """
        template = self.template(value)
        if isinstance(template, (Constant, Same)):
            return template
        message = f"{self._made(value)} is an element of a list of unknown length that is {self._what}"
        raise refuse("SG306", message, hint=ELEMENT)

    def _choose_origin(self, origin: Origin) -> Template:
        """The very object from before on the path that left it in its place, else a fresh one."""

        def of(side: Any, older: bool) -> Template:
            if isinstance(side, Origin):
                return self._choose_origin(side)
            return self.template(side) if older else self._fresh(origin.joined)

        left, right = of(origin.left, origin.older[0]), of(origin.right, origin.older[1])
        return Choice(self._output(origin.flag), left, right)

    def _fresh(self, value: Any) -> Template:
        """The template of an object that the capture made, or that it does not look for (see `is_machinery`)."""
        by_itself = is_machinery(type(value)) or isinstance(value, BaseException)
        passed = self._passed(value) if by_itself else None
        if passed is not None:
            return Same(passed)
        if id(value) in self.session.met or is_of_its_module(value) or self._is_outer(value):
            return Constant(value)
        if is_our_module(type(value).__module__):  # what stands for a range, say
            kind = KINDS.get(type(value).__name__, type(value).__name__.lower())
            raise refuse("SG306", f"a {kind} over values that only the run knows is {self._what}", hint=ITSELF)
        if isinstance(value, BOUND) and not (value.__self__ is None or isinstance(value.__self__, (type, ModuleType))):
            return Shared(self._shared[id(value)]) if id(value) in self._shared else self._bound(value)
        parts = None if is_exactly(value, (set, frozenset)) else split(value)
        if parts is None and isinstance(value, (list, tuple, dict)) and self._is_own_instance(value):
            kind = type(value).__name__
            hint = f"Return a plain {plain_kind(value)}, and make the {kind} of it outside."
            raise refuse("SG306", f"a {kind}, a container of a class of its own, is {self._what}", hint=hint)
        if parts is None and not is_exactly(value, (set, frozenset)) and not self._is_own_instance(value):
            if isinstance(value, torch.nn.Module) and self._storing:
                raise refuse("SG308", f"a {type(value).__name__} is made and {self._what}")
            if isinstance(value, (Iterator, torch.nn.Module)) or holds_staged(value) or self._holds_passed(value):
                raise refuse("SG306", f"{leaving(value)} is {self._what}", hint=values_of(value))
            if not is_shared(value, self.session.is_new):
                raise refuse("SG306", f"{self._made(value)} is {self._what}", hint=made_outside(value))
            return Constant(value, isinstance(value, BaseException) and self.session.is_new(value) is True)
        if id(value) in self._shared:
            return Shared(self._shared[id(value)])
        attributes = self.session.attributes_of(value)
        if attributes is not None:
            return Same(attributes)
        if not isinstance(value, tuple) and self.session.is_from_before(value):
            kind = type(value).__name__
            message = f"a {kind} is {self._what} that was there before the call, where the capture does not look"
            raise refuse("SG305", message, hint=FOLLOWED)
        if not has_shared_methods(type(value), self.session.is_new):
            message = f"{describe(value)} is {self._what}, whose class keeps variables of the function"
            raise refuse("SG306", message, hint=f"Make the class {type(value).__name__} outside the static function.")
        self._shared[id(value)] = len(self._shared)
        self._alive.append(value)
        if is_exactly(value, (set, frozenset)):
            table = table_of(value)
            if table is not None:
                return Container(type(value), (KEYS,), (self.template(table.keys),))
            return Container(type(value), None, tuple(map(self._element_of_set, value)))
        if parts is None or parts.attributes:
            require_all(self.session, vars(value), type(value).__name__)
            return Instance(type(value), tuple((n, self.template(v)) for n, v in vars(value).items()))
        self._require_keys(parts)
        self._require_factory(value)
        return Container(parts.type, parts.context, tuple(self._child(child) for child in parts.children))

    def _passed(self, value: Any) -> Source | None:
        """The argument that a value is, be it in a parcel that was opened: it is guarded there.

        An exception that the call is handling goes on in its parcel, for nothing looks into it.
        """
        handled = any(value is each for each in self.session.handled_before)
        for argument, source in self.finder.arguments:
            if argument is value:
                return source
            if type(argument) is not Parcel or argument.value is not value:
                continue
            if handled:
                return source
            if id(argument) in self.session.unpacked_ones:
                return Attribute(source, argument.name)
        return None

    def _is_outer(self, value: Any) -> bool:
        """Whether it is a variable of a function from before, which is itself: what is written to it is an effect."""
        known = type(value) is CellType and self.finder.cell_source(value) is not None
        return known and self.session.is_new(value) is False

    def _require_keys(self, parts: Parts) -> None:
        """Refuse a dict with a key that each call makes anew: a template holds its keys, not how they are made.

        Raises:
            CaptureError: it has one.
        """
        has_keys = issubclass(parts.type, dict) and not has_table(parts.context)
        for key in parts.context if has_keys else ():
            for each in filter(self._is_made, _within(key)):
                what = f"a dict is {self._what} with a key that the function makes, {describe(each)}"
                hint = "Make the key outside the static function, or return pairs: [(key, value), ...]."
                raise refuse("SG306", what, hint=hint)

    def _require_factory(self, value: Any) -> None:
        """Refuse a ``defaultdict`` whose factory each call makes anew: a template holds the factory itself.

        Raises:
            CaptureError: it is one.
        """
        factory = value.default_factory if isinstance(value, collections.defaultdict) else None
        if factory is None or self.finder.find(factory) is not None:
            return
        if holds_staged(factory) or self._holds_passed(factory) or not is_shared(factory, self.session.is_new):
            what = f"a defaultdict is {self._what} with a factory that the function makes, {describe(factory)}"
            raise refuse("SG306", what, hint="Make the factory outside the static function, or return a plain dict.")

    def _is_made(self, value: Any) -> bool:
        """Whether each call makes anew what nothing stands for in a template's place."""
        if isinstance(value, torch.Tensor):
            return is_fake(value) and self.session.from_before(value) is None  # others are there in another attempt
        return self.finder.find(value) is None and (holds_staged(value) or not is_shared(value, self.session.is_new))

    def _bound(self, method: Any) -> Template:
        """The template of a method: of the object that it is bound to, which another call may have another of."""
        self._shared[id(method)] = len(self._shared)
        self._alive.append(method)
        if isinstance(method, MethodType):
            return Container(MethodType, None, (self.template(method.__func__), self.template(method.__self__)))
        owner = self.template(method.__self__)
        if isinstance(owner, Constant) or getattr(method.__self__, method.__name__, None) != method:
            del self._shared[id(method)]  # it has no node
            return Constant(method)
        kind = next(each for each in BOUND if isinstance(method, each))
        return Container(kind, method.__name__, (owner,))

    def _holds_passed(self, value: Any) -> bool:
        """Whether a function that the capture has made holds variables that each call makes."""
        cells = value.__closure__ or () if isinstance(value, FunctionType) else ()
        return any(self.finder.find(cell) is not None for cell in cells)

    def _made(self, value: Any) -> str:
        """An object that each call makes anew, as messages name it."""
        if isinstance(value, FunctionType):
            names = " and ".join(map(repr, kept(value, self.session.is_new)))
            what = "a lambda" if value.__name__ == "<lambda>" else f"the function '{value.__name__}'"
            return f"{what} that keeps {names or 'values'} of the call"
        what = f"the class {value.__name__}" if isinstance(value, type) else describe(value)
        return f"{what}, made in the function,"

    def _child(self, value: Any) -> Template:
        if isinstance(value, Entry):
            rank = None if value.rank is None else self._number(value.rank)
            return Maybe(self._number(value.present), self.template(value.value), rank)
        if not isinstance(value, StagedSpread):
            return self.template(value)
        self._spreads.append(value)
        return Repeated(tuple(map(self._output, value.columns)), self._element(value.element, itertools.count()))

    def _element_of_set(self, value: Any) -> Template:
        if isinstance(value, MaybeKey):
            return Maybe(self._number(value.present), self.template(value.key))
        return self.template(value)

    def _number(self, value: Any) -> Output | Constant:
        return self._output(value) if isinstance(value, StagedNumber) else Constant(value)

    def _is_own_instance(self, value: Any) -> bool:
        """Whether it is an object that each call makes anew; one of a library's container classes is told later."""
        if isinstance(value, (list, tuple, dict)):
            return isinstance(own_attributes(value), dict)
        return is_plain_object(value) and not isinstance(value, (FunctionType, functools.partial))

    def _output(self, value: Any) -> Output:
        index = self._indices.get(id(value))
        if index is None:
            index = self._indices[id(value)] = len(self.outputs)
            self.outputs.append(self.node(value))
            self._alive.append(value)
        is_list = isinstance(value, StagedList)  # whose type does not tell whether it is there on all paths
        return Output(index, self.session.has_unset if is_list else may_be_unbound(value))

    def node(self, value: Any) -> Any:
        """What stands among the outputs for a staged value: its node in the open region."""
        return as_argument(self.session, value)

    def effects(self, written: list[Write], outer_cells: dict[int, str]) -> list[Effect]:
        """The writes that outlive the call."""
        self._storing = True
        result: list[Effect] = []
        for write in written:
            after = write.place.get()
            settled = self._changes_elsewhere(write.place)
            gone = after is MISSING and isinstance(write.place, AttributePlace)  # it may be there in another call
            unchanged = same_constant(write.before, after) and not isinstance(write.place, ContentsPlace)
            unchanged = unchanged and not self.session.journal.is_input(write.place)
            if isinstance(write.place, AttributePlace):
                unchanged = unchanged and write.place.table == write.table
            if self.session.values_compared:
                unchanged = unchanged and write.before is after  # an equal one is another one
            if isinstance(after, Stale):
                continue
            if unchanged and not settled and not gone:
                self._rely_on(write)
                continue
            if isinstance(write.place, ContextPlace):
                continue  # nothing of it is left in the end: `require_put_back`
            self.place, self._what = write.place, f"stored in '{write.place}'"
            effect = self._effect(write, after, outer_cells)
            if effect is not None:
                result.append(effect)
        return result

    def _rely_on(self, write: Write) -> None:
        """Take down that nothing is to be written where another call might find something else."""
        if isinstance(write.place, GlobalPlace) and write.before is MISSING:
            self.absent.append((write.place.namespace, write.place.name))
        if isinstance(write.place, PersistencePlace):
            self.session.rely_on(write.place)
        source = self._source(write.place)
        if source is not None and is_constant(write.before):
            self.relied.append((source, write.before))

    def _rely_on_contents(self, place: Place, target: Source) -> None:
        """The same, of a list that was changed into what it had been."""
        container = place.target if isinstance(place, ContentsPlace) else None
        if isinstance(container, (list, collections.deque)):
            kept = [(item_of(container, target, index), each) for index, each in enumerate(container)]
            itself = [(source, found) for found, source in self.finder.everything() if source == target]
            self.relied += [*itself, *(each for each in kept if is_constant(each[1]))]

    def _source(self, place: Place) -> Source | None:
        """Where a program finds a place; None where it does not, or the place is made anew by each call."""
        if isinstance(place, GlobalPlace):
            return Global(place.namespace["__name__"], place.name)
        if isinstance(place, CellPlace):
            return self.finder.cell_source(place.cell)
        if isinstance(place, AttributePlace) and isinstance(place.target, Ahead):
            return None
        owner = self.finder.find_owner(place.target) if isinstance(place, AttributePlace) else None
        return Attribute(owner, place.name) if owner is not None and isinstance(place, AttributePlace) else None

    def require_put_back(self, written: list[Write]) -> None:
        """Refuse a context variable that the code leaves set: a program does not set any.

        Raises:
            CaptureError: there is one.
        """
        for place in (write.place for write in written if write.place.get() is not write.before):
            if isinstance(place, ContextPlace):
                location = self.session.memory.set_at(place.variable)
                raise refuse("SG305", f"{place} is left set", location=location, hint=HINT)

    def _changes_elsewhere(self, place: Place) -> bool:
        """Whether the program writes a place midway, or code that it calls may change it."""
        return place.key in self.session.journal.midway.settled or self.session.may_change(place)

    def _effect(self, write: Write, after: Any, outer_cells: dict[int, str]) -> Effect | None:
        place = write.place
        if isinstance(place, GlobalPlace):
            return SetGlobal(place.namespace["__name__"], place.name, self.template(after))
        if isinstance(place, CellPlace):
            owner = self.finder.find(place.cell)  # where it is an object that the call is given
            if owner is not None:
                return SetAttribute(owner, "cell_contents", self.template(after))
            if id(place.cell) not in outer_cells:
                return None
            if after is not MISSING:
                return SetCell(Cell(place.name, place.cell), self.template(after))
            if write.before is not MISSING:
                hint = f"Set it to None instead: {place.name} = None."
                raise refuse("SG305", f"'{place.name}', a variable of a function around, is left unset", hint=hint)
            return None
        if not isinstance(place, (AttributePlace, ContentsPlace, PersistencePlace)):
            return None
        target = self.finder.find_owner(place.target)
        if target is None:
            return None
        if isinstance(place, PersistencePlace):
            return SetPersistence(target, place.name, self.template(after))
        if isinstance(place, AttributePlace):
            return self._attribute_effect(write, place, target, after)
        if (
            not self._changes_elsewhere(place)
            and not self.session.journal.is_input(place)
            and not isinstance(after, dict)
            and len(after) == len(write.before)
            and all(a is b for a, b in zip(after, write.before))
        ):
            self._rely_on_contents(place, target)
            return None
        return self._contents_effect(place, target, after)

    def _contents_effect(self, place: Place, target: Source, after: Any) -> Effect | None:
        grown = self.session.grown.get(id(getattr(place, "target", None)))
        if grown is None or not after or after[0] is not grown or any(type(item) is StagedSpread for item in after[1:]):
            return SetContents(target, self.template(after))
        done = len(self.session.journal.midway.settled.get(place.key, (grown,)))
        return ExtendContents(target, self.template(after[done:])) if len(after) > done else None

    def _attribute_effect(self, write: Write, place: AttributePlace, target: Source, after: Any) -> Effect:
        owner, name = place.target, place.name
        if isinstance(owner, Ahead):
            return Advance(target, self.template(owner.left_to_draw(after, self.session.journal)))
        if after is MISSING:
            return DeleteAttribute(target, name, self._goes_past(owner, "__delattr__"))
        if isinstance(owner, torch.nn.Module) and self.finder.find(after) is None and makes_modules(after):
            raise refuse("SG308", f"{place} is made")
        value = self._set_on_some_paths(after)
        table = place.table
        if isinstance(owner, torch.nn.Module):
            own = type(owner).__setattr__ is not torch.nn.Module.__setattr__
            if is_assigned(self.session.journal, place, after):
                return SetAttribute(target, name, value, past=own)
            hidden = table == "__dict__" and isinstance(after, (torch.nn.Module, torch.nn.Parameter))
            if own or hidden or table != (write.table or "__dict__"):
                return SetSlot(target, str(table), name, value)
            return SetAttribute(target, name, value)
        return SetAttribute(target, name, value, self._goes_past(owner, "__setattr__"))

    def _set_on_some_paths(self, value: Any) -> Template:
        """The template of what an attribute is to be, which an object may have on some paths only."""
        if value is MISSING:
            return ABSENT
        if not self.session.has_unset or not may_be_unset(self.session, value):
            return self.template(value)
        if isinstance(value, Unjoined) and not isinstance(value, Picked):
            known = alternatives(value)
            sides = self._set_on_some_paths(known.left), self._set_on_some_paths(known.right)
            return Choice(self._output(known.flag), *sides, known.failure.sides)
        if isinstance(value, Picked):
            entries = self.session.possible_entries(value.stillgraph_number(), value.stillgraph_known())
            return self._one_of(self._output(value), entries, self._set_on_some_paths)
        return Choice(self._output(self.unset_flag(unset_leaf(value))), ABSENT, self.template(value))

    def unset_flag(self, leaf: Any) -> Any:
        """Whether what a leaf is part of is not there, asked in the open region."""
        return self.session.unboundness(leaf)

    @staticmethod
    def _goes_past(owner: Any, special: str) -> bool:
        """Whether a class has a ``__setattr__`` or ``__delattr__`` of its own, which ran during the capture."""
        return class_member(type(owner), special) is not past_class(owner, special)


def _within(key: Any) -> Iterator[Any]:
    """What a key of a dict is made of."""
    if isinstance(key, (tuple, frozenset)):
        for each in key:
            yield from _within(each)
    else:
        yield key
