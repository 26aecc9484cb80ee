"""From what a captured function left behind to the program's outputs, result template and effects."""

from __future__ import annotations

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
from stillgraph.core.lookup import instance_state, is_exactly, own_attributes
from stillgraph.core.parcel import Parcel
from stillgraph.program.constants import Known
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
from stillgraph.program.sources import Attribute, Source
from stillgraph.program.types import TableType
from stillgraph.trace.capture.handed_out import HandedOut
from stillgraph.trace.capture.made_anew import MadeAnew
from stillgraph.trace.capture.result_words import (
    ELEMENT,
    ITSELF,
    KINDS,
    SETS,
    leaving,
    made_outside,
    plain_kind,
    values_of,
)
from stillgraph.trace.code.namespaces import is_of_its_module
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, alternatives, entries_of, is_lost
from stillgraph.trace.control_flow.narrowing import may_be_unbound
from stillgraph.trace.control_flow.unset import may_be_unset, require_all, unset_leaf
from stillgraph.trace.effects.elsewhere import FOLLOWED
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.allocations import has_shared_methods, is_plain_object, is_shared
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.places import MISSING, Place
from stillgraph.trace.sources.kinds_of_objects import is_machinery
from stillgraph.trace.sources.memory import overlap
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.torch_rules.fake_execution import has_no_fake
from stillgraph.trace.torch_rules.tensor_classes import refuse_class
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import holds_staged, split
from stillgraph.trace.values.entries import Entry, MaybeKey, table_of
from stillgraph.trace.values.lists import Element, Inner, Leaf, Node, StagedSpread, types
from stillgraph.trace.values.made_in_run import MADE, require_options
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import StagedText


@dataclass
class Results:
    """Builds templates; every staged leaf becomes an output of the root graph, each once."""

    session: Recorder
    finder: Finder
    outputs: list[Any] = field(default_factory=list)
    _indices: dict[int, int] = field(default_factory=dict)
    _shared: dict[int, int] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)  # what is among the outputs
    _arrays: list[Any] = field(default_factory=list)  # of numpy's, each of which gets a copy
    _storing: bool = False  # whether what is built outlives the call, returned or not
    _what: str = "returned"  # what becomes of it, as messages say it
    handed_out: HandedOut = field(init=False)
    _anew: MadeAnew = field(init=False)

    def __post_init__(self) -> None:
        self.handed_out = HandedOut(self.session)
        self._anew = MadeAnew(self.session, self.finder)

    def template(self, value: Any) -> Template:
        """The template that rebuilds ``value``.

        Raises:
            CaptureError: there is none.
        """
        made = self._template(value)
        if isinstance(made, Constant) and holds_staged(made.value) and self.session.is_new(made.value) is not False:
            if isinstance(value, torch.Tensor):
                raise refuse_class(type(value), f"is {self._what}")
            raise refuse("SG306", f"{self._anew.described(value)} is {self._what}", hint=values_of(value))
        return made

    def _template(self, value: Any) -> Template:
        is_passed_on = isinstance(value, torch.Tensor) and has_no_fake(value)  # no program has it for a value
        if isinstance(value, StagedArray) and value.read_only:
            message = f"an array of numpy's is {self._what} that nobody may write to"
            raise refuse("SG306", message, hint="Copy it, by array.copy().")
        if isinstance(value, StagedArray) and (place := self.finder.find(value)) is not None:
            return Same(place)
        if isinstance(value, (torch.Tensor, StagedNumber, StagedArray, StagedText)) and not is_passed_on:
            return self._output(value)
        if isinstance(value, StagedComplex):
            index = len(self._shared)
            self._shared[~index] = index  # no id: nobody can tell two of one value apart
            return Container(complex, None, (self.template(value.real), self.template(value.imag)))
        if is_lost(value):
            value.refuse()
        if type(value) is Picked:
            entries = self.session.possible_entries(value.stillgraph_number(), entries_of(value))
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
            self.handed_out.add_given(value)
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

    def _element(self, element: Element | None, count: Iterator[int]) -> Template:
        """The template of one element of a list of unknown length; its outputs are the columns of the list."""
        if isinstance(element, Leaf):
            column = Output(next(count))
            return self._one_of(column, element.type.entries) if isinstance(element.type, TableType) else column
        if isinstance(element, Node):
            parts, children = element.parts, tuple(self._element(child, count) for child in element.children)
            if parts.attributes:
                return Instance(parts.type, tuple(zip(parts.context, children)))
            if issubclass(parts.type, (set, frozenset)) and not has_table(parts.context):
                message = f"a set is an element of a list of unknown length that is {self._what}"
                raise refuse("SG306", message, hint=SETS)
            self._anew.require_keys(parts, self._what)
            return Container(parts.type, parts.context, children)
        if isinstance(element, Inner):
            if element.element is None:
                next(count)
                return Container(element.kind, 0, ())
            columns = tuple(Output(next(count)) for _ in types(element.element))
            return Container(element.kind, 1, (Repeated(columns, self._element(element.element, itertools.count())),))
        return Constant(None) if element is None else self._element_itself(element.value)

    def _element_itself(self, value: Any) -> Template:
        """The template of what all elements of a list of unknown length are.

        Raises:
            CaptureError: the call makes it.
        """
        template = self.template(value)
        if isinstance(template, (Constant, Same)):
            return template
        message = f"{self._anew.described(value)} is an element of a list of unknown length that is {self._what}"
        raise refuse("SG306", message, hint=ELEMENT)

    def _choose_origin(self, origin: Origin) -> Template:
        """The very object from before on the path that left it in its place, else a fresh one."""

        def of(side: Any, number: int) -> Template:
            with self.handed_out.on(origin.on[number]):
                if isinstance(side, Origin):
                    return self._choose_origin(side)
                return self.template(side) if origin.older[number] else self._fresh(origin.joined)

        left, right = of(origin.left, 0), of(origin.right, 1)
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
            return self._bound(value)
        parts = None if is_exactly(value, (set, frozenset)) else split(value)
        if parts is None and isinstance(value, (list, tuple, dict)) and self._is_own_instance(value):
            kind = type(value).__name__
            hint = f"Return a plain {plain_kind(value)}, and make the {kind} of it outside."
            raise refuse("SG306", f"a {kind}, a container of a class of its own, is {self._what}", hint=hint)
        if parts is None and not is_exactly(value, (set, frozenset)) and not self._is_own_instance(value):
            if isinstance(value, torch.nn.Module) and self._storing:
                raise refuse("SG308", f"a {type(value).__name__} is made and {self._what}")
            if isinstance(value, (Iterator, torch.nn.Module)) or holds_staged(value) or self._anew.holds_passed(value):
                raise refuse("SG306", f"{leaving(value)} is {self._what}", hint=values_of(value))
            if is_array(value):
                self._require_own_memory(value)
            if not is_shared(value, self.session.is_new):
                raise refuse("SG306", f"{self._anew.described(value)} is {self._what}", hint=made_outside(value))
            return Constant(value, isinstance(value, BaseException) and self.session.is_new(value) is True)
        if id(value) in self._shared:
            self.handed_out.add_again(value)
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
        self.handed_out.add(value)
        if is_exactly(value, (set, frozenset)):
            table = table_of(value)
            if table is not None:
                return Container(type(value), (KEYS,), (self.template(table.keys),))
            return Container(type(value), None, tuple(map(self._element_of_set, value)))
        if parts is None or parts.attributes:
            state = instance_state(value)
            require_all(self.session, state, type(value).__name__)
            return Instance(type(value), tuple((n, self.template(v)) for n, v in state.items()))
        self._anew.require_keys(parts, self._what)
        self._anew.require_factory(value, self._what)
        return Container(parts.type, parts.context, tuple(self._child(child) for child in parts.children))

    def _require_own_memory(self, array: Any) -> None:
        """Refuse to give copies of arrays that share memory.

        Raises:
            CaptureError: the array shares memory with another one.
            Restart: it shares it with one that is to be an input for this.
        """
        memory = self.session.memory
        memory.become_input(array)
        if memory.overlaps(array) or any(overlap(each, array) for each in self._arrays if each is not array):
            message = f"an array of numpy's is {self._what} that shares the memory of another one"
            raise refuse("SG306", message, hint="Copy it, by array.copy().")
        self._arrays.append(array)

    def _passed(self, value: Any) -> Source | None:
        """The argument that a value is, be it in a parcel that was opened: it is guarded there.

        An exception that the call is handling goes on in its parcel, for nothing looks into it.
        """
        handled = any(value is each for each in self.session.handlers.handled_before)
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

    def _bound(self, method: Any) -> Template:
        """The template of a method: of the object that it is bound to, which another call may have another of."""
        if id(method) in self._shared:
            self.handed_out.add_again(method)
            return Shared(self._shared[id(method)])
        self._shared[id(method)] = len(self._shared)
        self.handed_out.add(method)
        if isinstance(method, MethodType):
            return Container(MethodType, None, (self.template(method.__func__), self.template(method.__self__)))
        owner = self.template(method.__self__)
        if isinstance(owner, Constant) or getattr(method.__self__, method.__name__, None) != method:
            del self._shared[id(method)]  # it has no node
            return Constant(method)
        kind = next(each for each in BOUND if isinstance(method, each))
        return Container(kind, method.__name__, (owner,))

    def _child(self, value: Any) -> Template:
        if isinstance(value, Entry):
            rank = None if value.rank is None else self._number(value.rank)
            return Maybe(self._number(value.present), self.template(value.value), rank)
        if not isinstance(value, StagedSpread):
            return self.template(value)
        self.handed_out.add_spread(value)
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
        return Output(index, may_be_unbound(value))

    def node(self, value: Any) -> Any:
        """What stands among the outputs for a staged value: its node in the open region."""
        return as_argument(self.session, value)

    def to_be_stored(self, place: Place) -> None:
        """From now on templates are of what is stored in a place."""
        self._storing, self._what = True, f"stored in '{place}'"

    def attribute(self, value: Any) -> Template:
        """The template of what an attribute is to be, which an object may have on some paths only."""
        if value is MISSING:
            return ABSENT
        if not self.session.has_unset or not may_be_unset(self.session, value):
            return self.template(value)
        if isinstance(value, Unjoined) and type(value) is not Picked:
            known = alternatives(value)
            sides = self.attribute(known.left), self.attribute(known.right)
            return Choice(self._output(known.flag), *sides, known.failure.sides)
        if type(value) is Picked:
            entries = self.session.possible_entries(value.stillgraph_number(), entries_of(value))
            return self._one_of(self._output(value), entries, self.attribute)
        return Choice(self._output(self.unset_flag(unset_leaf(value))), ABSENT, self.template(value))

    def unset_flag(self, leaf: Any) -> Any:
        """Whether what a leaf is part of is not there, asked in the open region."""
        return self.session.unboundness(leaf)
