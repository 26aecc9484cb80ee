"""What a written file checks of a call: that the program was made for it."""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import ExportError, refuse
from stillgraph.deploy.description.asked import asks_gradients, handles_errors
from stillgraph.deploy.description.identities import may_be_joined
from stillgraph.deploy.description.signature import written_place
from stillgraph.deploy.description.whereabouts import Marks, Whereabouts
from stillgraph.deploy.python.calls import is_given
from stillgraph.deploy.python.places import Places
from stillgraph.deploy.python.spelling import Spelling, is_literal
from stillgraph.passes.regions.regions import all_regions
from stillgraph.program.effects import DeleteAttribute, Effect
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    ModeGuard,
    NoAttributeGuard,
    SizeGuard,
    TensorGuard,
    TypeGuard,
)
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Item, Slot, Source

_PLAIN = (bool, int, float, str, list, tuple, dict, set)
_ASKS_GRAD_MODE = (
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.enable_grad,
    torch.set_grad_enabled,
    torch.inference_mode,
)


def checks_of(program: Program, places: Places, spelling: Spelling) -> list[str]:
    """Statements that refuse calls which the program was not made for.

    Raises:
        ExportError: the program depends on state that it changes, and the file cannot ask for it.
    """
    receiver = places.call.receiver
    lines = [line for place, value in places.call.fixed for line in _same_object(place, value, spelling)]
    for guard in program.guards:
        source = getattr(guard, "source", None)
        if source is not None and is_given(source, receiver) and _is_plain(source):
            lines += _check(guard, places.text(source), spelling)
    lines += _gradient_checks(program, places, spelling)
    lines += _state_checks(program, places, spelling)
    lines += _dim_checks(program, places, spelling)
    for guard in program.guards:
        if isinstance(guard, SizeGuard) and all(is_given(source, receiver) for _, source, _ in guard.sizes):
            lines += _size_check(guard, places.text)
    lines += [line for guard in program.guards for line in _identity_checks(guard, places, spelling)]
    lines += _grad_mode_check(program, places, spelling)
    return list(dict.fromkeys(lines))


def _check(guard: Guard, place: str, spelling: Spelling) -> list[str]:
    """The statements for one guard on what is found at a place."""
    match guard:
        case TensorGuard(dtype=dtype, shape=shape):
            known = spelling.literal(tuple(shape))
            return [f"{spelling.helper('_expect')}({spelling.literal(place)}, {place}, {dtype}, {known})"]
        case ConstantGuard(value=value) | ContentsGuard(value=value):
            return _same_object(place, value, spelling)
        case IdentityGuard(expected=expected):
            return _same_object(place, expected, spelling)
        case LengthGuard(length=length):
            return [_same(f"len({place})", length, spelling)]
        case KeysGuard(keys=keys) if is_literal(list(keys)):
            return [_same(f"list({place})", list(keys), spelling)]
        case TypeGuard(type=kind) if kind in _PLAIN:
            return [_same(f"type({place}).__name__", kind.__name__, spelling)]
    return []


def _gradient_checks(program: Program, places: Places, spelling: Spelling) -> list[str]:
    """That arguments require gradients as those of the example, where the code may have asked."""
    tensors = [g for g in program.guards if isinstance(g, TensorGuard) and is_given(g.source, places.call.receiver)]
    if not asks_gradients(program):
        tensors = [guard for guard in tensors if guard.requires_grad and handles_errors(program)]
    found = ((f"{places.text(guard.source)}.requires_grad", guard) for guard in tensors if _is_plain(guard.source))
    return [_same(text, guard.requires_grad, spelling) for text, guard in found]


def _dim_checks(program: Program, places: Places, spelling: Spelling) -> list[str]:
    """What the user said of sizes: their ranges, and that those of one name are equal."""
    lines: list[str] = []
    first: dict[str, str] = {}
    for source, dims in program.dims.items():
        if not is_given(source, places.call.receiver) or not _is_plain(source):
            continue
        for axis, dim in enumerate(dims):
            if dim is None:
                continue
            size = f"{places.text(source)}.shape[{axis}]"
            bounds = (f"{dim.min} <= " if dim.min is not None else "", f" <= {dim.max}" if dim.max is not None else "")
            if any(bounds):
                lines += [f"if not {size.join(bounds)}:", _raise(f"the program was made for {size} in {dim}", spelling)]
            known = first.setdefault(dim.name, size)
            if known != size:
                said = f"the program was made for one size of {dim.name!r}: {known} and {size}"
                lines += [f"if {known} != {size}:", _raise(said, spelling)]
    return lines


def _raise(message: str, spelling: Spelling) -> str:
    return f"    raise ValueError({spelling.literal(message)})"


# ---- state that the program was specialised on, and changes
def _state_checks(program: Program, places: Places, spelling: Spelling) -> list[str]:
    """What one call leaves, the next one finds: it must be what the program was made for."""
    state = _State(program, places)
    lines: list[str] = []
    for guard in program.guards:
        source = getattr(guard, "source", None)
        if isinstance(guard, (MissingGuard, NoAttributeGuard)):
            found = [state.own(place) for place in _lacking(guard) if state.is_written(place)]
            lines += [_same(places.text(place), None, spelling) for place in found]
        elif isinstance(guard, AliasGuard) and guard.same and state.is_changed(guard.left, guard.right):
            lines += _one_object(state, (guard.left, guard.right), guard, spelling)
        elif source is not None and state.is_changed(source):
            lines += _state_check(guard, source, state, spelling)
    for pair in may_be_joined(program, state.where):
        lines += _one_object(state, pair, AliasGuard(*pair, same=False), spelling)
    return lines


@dataclass(frozen=True)
class _State:
    """What a call changes of what the next one finds."""

    program: Program
    places: Places

    @functools.cached_property
    def where(self) -> Whereabouts:
        return Whereabouts(self.places.args, self.places.kwargs)

    @functools.cached_property
    def _written(self) -> dict[Source, Marks]:
        effects = [*self.program.effects, *(each for group in self.program.midway for each in group)]
        kept = {_changed(effect): effect for effect in effects}
        receiver = self.places.call.receiver
        return {place: self.where.changed(effect) for place, effect in kept.items() if not is_given(place, receiver)}

    def is_written(self, place: Source) -> bool:
        return any(not marks.isdisjoint(self.where.of(place)) for marks in self._written.values())

    def is_changed(self, *sources: Source) -> bool:
        """Whether a call may change what is found on the ways to some places, or what is held there."""
        ways = self.where.of_contents(sources[0]).union(*map(self.where.way, sources))
        return any(not marks.isdisjoint(ways) for marks in self._written.values())

    def own(self, source: Source) -> Source:
        """A place by the path that the file knows, whatever path the program came to it by."""
        marks = self.where.of(source)
        written = (place for place, known in self._written.items() if not known.isdisjoint(marks))
        return next(written, source)

    def refused(self, guard: Guard) -> BaseException:
        message = f"Python source cannot ask at a call whether {guard}, which the program changes and was made for"
        return refuse("SG402", message, location=self.program.location)


def _state_check(guard: Guard, source: Source, state: _State, spelling: Spelling) -> list[str]:
    if isinstance(guard, TypeGuard) and guard.type not in _PLAIN:
        return []  # of tensors, which have guards of their own, and of objects, which the others speak about
    if isinstance(guard, IdentityGuard) and not state.is_written(source):
        return []  # of an object of which the call changes what it holds
    try:
        is_module = isinstance(guard, IdentityGuard) and isinstance(guard.expected, torch.nn.Module)
        lines = [] if is_module else _check(guard, state.places.text(state.own(source)), spelling)
    except ExportError:
        lines = []
    if lines or isinstance(guard, (ElementsGuard, MembersGuard)):
        return lines
    raise state.refused(guard)


def _one_object(state: _State, pair: tuple[Source, Source], guard: AliasGuard, spelling: Spelling) -> list[str]:
    places = [state.own(source) for source in pair]
    if not all(map(state.places.holds, places)):
        raise state.refused(guard)
    left, right = map(state.places.text, places)
    return _is_one(left, right, guard.same, spelling)


def _is_one(left: str, right: str, same: bool, spelling: Spelling) -> list[str]:
    said = f"the program was made for {left} being {'' if same else 'another object than '}{right}"
    return [f"if {left} is {'not ' if same else ''}{right}:", _raise(said, spelling)] if left != right else []


def _changed(effect: Effect) -> Source:
    place = written_place(effect)
    if place is not None:
        return place
    target: Source = effect.target  # type: ignore[union-attr]  # those without one have a written place
    return Attribute(target, effect.name) if isinstance(effect, DeleteAttribute) else target


def _lacking(guard: MissingGuard | NoAttributeGuard) -> list[Source]:
    """The attributes that an object is to lack."""
    if isinstance(guard, NoAttributeGuard):
        return [Attribute(guard.source, guard.name)]
    if isinstance(guard.source, Attribute) and guard.source.name == "__dict__":
        return [Attribute(guard.source.base, name) for name in guard.names]
    return []


# ---- what is one object, and what is not
def _identity_checks(guard: Guard, places: Places, spelling: Spelling) -> list[str]:
    if isinstance(guard, AliasGuard):
        pairs = [(guard.left, guard.right)]
        same = guard.same
    elif isinstance(guard, ApartGuard):
        pairs = [(left, right) for i, left in enumerate(guard.sources) for right in guard.sources[i + 1 :]]
        same = False
    else:
        return []
    lines: list[str] = []
    for pair in pairs:
        if not any(is_given(source, places.call.receiver) for source in pair) or not all(map(_is_plain, pair)):
            continue
        if all(map(places.holds, pair)):  # otherwise nobody can pass it
            left, right = map(places.text, pair)
            lines += _is_one(left, right, same, spelling)
    return lines


# ---- grad mode
def _grad_mode_check(program: Program, places: Places, spelling: Spelling) -> list[str]:
    """Grad mode must be the save's where the code asked for it, or sets it for a part.

    What only turns it off for a part, and was saved with it on, is the same in both modes.
    """
    mode = next((guard.context for guard in program.guards if isinstance(guard, ModeGuard)), None)
    if mode is None:
        return []
    asking = _ASKS_GRAD_MODE if mode.grad else (*_ASKS_GRAD_MODE, torch.no_grad)
    asked = any(any(value is each for each in asking) for value in _objects(program.guards, places))
    contexts = {node.meta.get("context") for module in all_regions(program.graph) for node in module.graph.nodes}
    known = {(context.grad, context.inference) for context in contexts if context is not None}
    if not asked and known <= {(mode.grad, mode.inference), (False, mode.inference)}:
        return []
    check = spelling.helper("_expect_value")
    return [f'{check}("grad mode", torch.is_grad_enabled(), {mode.grad})']


def _objects(guards: Iterable[Guard], places: Places) -> Iterator[Any]:
    """The objects that a program was specialised on by their identity, and the classes of torch's decorators."""
    for guard in guards:
        match guard:
            case MembersGuard(members=members):
                yield from (value for _, value in members)
            case IdentityGuard(expected=expected):
                yield expected
            case FunctionGuard(source=Attribute(base=method, name="__func__")):
                with contextlib.suppress(Exception):  # of what is not there in every call
                    yield type(getattr(places.read(method), "__self__", None))


# ---- single checks
def _same_object(place: str, value: Any, spelling: Spelling) -> list[str]:
    """A check of what is plain data; of other things by what they are called: a file cannot name all there is."""
    if is_literal(value):
        return [_same(place, value, spelling)]
    if isinstance(value, enum.Enum):  # its class may say otherwise how it is shown
        kind = _same(f"type({place}).__name__", type(value).__name__, spelling)
        return [kind, _same(f'getattr({place}, "_name_", None)', value._name_, spelling, place)]
    if isinstance(value, (torch.nn.Module, type(None))):
        return [_same(f"type({place}).__name__", type(value).__name__, spelling)]
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return [_same(f'getattr({place}, "__qualname__", None)', name, spelling)]
    return [] if "0x" in repr(value) else [_same(f"repr({place})", repr(value), spelling)]


def size_condition(guard: SizeGuard, text: Any) -> str | None:
    """A condition on sizes as Python, None where it is more than arithmetic."""
    condition = guard.expression
    for name, source, dim in guard.sizes:
        condition = re.sub(rf"\b{re.escape(name)}\b", f"{text(source)}.shape[{dim}]", condition)
    try:
        calls = any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(condition, mode="eval")))
    except SyntaxError:
        return None
    return None if calls else condition


def _size_check(guard: SizeGuard, text: Any) -> list[str]:
    condition = size_condition(guard, text)
    if condition is None:
        return []
    said = condition.replace('"', "'")
    return [f"if not ({condition}):", f'    raise ValueError("the program was made for {said}")']


def _is_plain(source: Source) -> bool:
    """Whether a source is read without looking behind the scenes: what is asked of classes is not checked."""
    while isinstance(source, (Item, Attribute, Slot)):
        if isinstance(source, Attribute) and source.name.startswith("__"):
            return False
        if isinstance(source, Slot) and source.table == "__dict__" and source.name.startswith("_"):
            return False
        source = source.base
    return isinstance(source, Argument)


def _same(place: str, value: Any, spelling: Spelling, said: str | None = None) -> str:
    name = place if said is None else said
    name = name.replace('"', "'")
    return f"{spelling.helper('_expect_value')}({spelling.literal(name)}, {place}, {spelling.literal(value)})"
