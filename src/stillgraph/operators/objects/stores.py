"""Stores into objects and containers: every heap write of rewritten code goes through the journal."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, MemberDescriptorType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_torch
from stillgraph.core.lookup import behind_proxy, class_member, is_exactly, of_class, own_attributes
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.methods import binary, by_methods, method_of, set_by_descriptor
from stillgraph.operators.containers import entries, tables
from stillgraph.operators.containers.drawing import listed
from stillgraph.operators.containers.sequences import Range
from stillgraph.operators.containers.watched import Method, before_change
from stillgraph.operators.dispatch import call, known_or_list, taken
from stillgraph.operators.each import Case, of_each
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import as_index, counted, in_tensor
from stillgraph.operators.elements.picking import pick
from stillgraph.operators.objects.globals import set_global
from stillgraph.operators.objects.namespaces import note_name
from stillgraph.operators.objects.strings import text
from stillgraph.operators.outside.hidden_state import refuse_state_of_run
from stillgraph.program.facts.module_tables import past_class
from stillgraph.program.guards import Attribute, Source, item_of
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.both_sides import several_in, several_in_key
from stillgraph.trace.control_flow.maybe_number import change_in_place, may_be_number
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unjoined import Unjoined, alternatives
from stillgraph.trace.control_flow.unset import own_attribute_read
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.identities import AMBIGUOUS
from stillgraph.trace.heap.journal import AttributePlace, ContentsPlace, kind_of_container
from stillgraph.trace.values.arrays import StagedArray, beside_a_tensor, is_array, refuse_numbers
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import Parts, split
from stillgraph.trace.values.entries import find, is_of_run, refuse_operator
from stillgraph.trace.values.errors import BESIDE_IT
from stillgraph.trace.values.numbers import Staged, StagedBool, StagedInt, StagedNumber
from stillgraph.trace.values.operands import require_one_kind, sample
from stillgraph.trace.values.text import StagedText

CONTAINERS = (list, dict, set, collections.deque)
_OF_TENSORS = ("data", "grad", "requires_grad")


@of_each(0, cases=Case.UNJOINED)
def set_attr(target: Any, name: str, value: Any) -> None:
    """``target.name = value``."""
    capture = session()
    if capture is None:
        setattr(target, name, value)
        return
    if isinstance(target, (StagedNumber, StagedComplex, StagedText)):
        _change_sample(capture, target, lambda number: setattr(number, name, value))
        return
    target = behind_proxy(target)
    refuse_state_of_run(target, name)
    descriptor = class_member(type(target), name)
    if isinstance(descriptor, property) and isinstance(descriptor.fset, FunctionType):
        call(descriptor.fset, target, value)
        return
    if isinstance(target, torch.Tensor):
        if name not in _OF_TENSORS:
            raise refuse("SG305", f"the attribute {name} of a tensor is set", location=here(), hint=BESIDE_IT)
        setattr(target, name, value)
        return
    if isinstance(target, ModuleType):
        if hasattr(descriptor, "__set__"):
            message = f"{target.__name__}.{name} is set, which the whole process shares"
            hint = "Set it outside the static function."
            raise refuse("SG305", message, location=here(), hint=hint)
        set_global(vars(target), name, value)
        return
    if set_by_descriptor(target, name, value):
        return
    if name == "__dict__":
        _refuse_to_replace(capture, target, value)
    if not _done_by_class(target, "__setattr__", name, value):
        store: Any = type(target).__setattr__
        set_past_class(store, target, name, value)


def _change_sample(capture: Session, target: Any, change: Callable[[Any], None]) -> None:
    """Raise what Python raises where an attribute of a number or text is set or deleted."""
    if capture.may_be_none(target):
        capture.with_or_without(target, lambda v: change(v if v is None else sample(v)))
        return
    require_one_kind((target,), "gets or loses an attribute")
    change(sample(target))


def _refuse_to_replace(capture: Session, target: Any, value: Any) -> None:
    """Refuse to give an object another dictionary of attributes, unless that is as good as made with it."""
    is_known = capture.is_new(target) is not True or capture.dictionaries.is_noted(target)
    if is_known or (capture.in_arm and value is not target):
        message = f"the __dict__ of a {type(target).__name__} is replaced"
        hint = "Change the attributes one by one, or all with vars(o).clear() and vars(o).update(...)."
        raise refuse("SG305", message, location=here(), hint=hint)


def _done_by_class(target: Any, special: str, name: str, *value: Any) -> bool:
    """Let a class of the user's, if it has a ``__setattr__`` or ``__delattr__`` of its own, do it; whether it has.

    Raises:
        CaptureError: nobody knows what that writes.
    """
    own = class_member(type(target), special)
    python = isinstance(own, FunctionType)
    if own is past_class(target, special) or (python and (is_torch(own.__code__.co_filename) or is_generated(own))):
        return False
    if not python and not (is_method_of_container(own) and isinstance(target, CONTAINERS)):
        kind = type(target).__name__
        raise refuse("SG305", f"the {special} of the class {kind} is no function of Python's", location=here())
    call(own, target, name, *value)
    return True


def is_method_of_container(function: Any) -> bool:
    """Whether a callable is a method of Python's containers without one, like ``dict.__setitem__``."""
    unbound = isinstance(function, (MethodDescriptorType, WrapperDescriptorType))
    return unbound and issubclass(function.__objclass__, CONTAINERS)


def set_past_class(store: Callable[[Any, str, Any], None], target: Any, name: str, value: Any) -> None:
    """``store(target, name, value)``, where that is Python's or torch's ``__setattr__`` and no user's."""
    capture = session()
    assert capture is not None
    source = capture.finder.find_owner(target)
    if isinstance(target, type) and source is None:
        raise refuse("SG305", f"the attribute {name} of a class is written that the call made", location=here())
    refuse_ambiguous(target, name)
    place = AttributePlace(target, name)
    if source is not None:
        _promote_parts(capture, Attribute(source, name), place.get(), value)
    _note_attribute(capture, place)
    store(target, name, value)
    if name == "__dict__":
        capture.dictionaries.shown(target)


def _note_attribute(capture: Session, place: AttributePlace) -> None:
    """To be called before an attribute is written; those of a dict that has itself for its ``__dict__`` are items."""
    if own_attributes(place.target) is place.target:
        note_contents(place.target)
    else:
        capture.journal.note(place)


def is_generated(function: FunctionType) -> bool:
    """Whether a function has no source, as those have not that ``dataclasses`` writes."""
    return function.__code__.co_filename.startswith("<")


def refuse_ambiguous(target: Any, name: str) -> None:
    """Refuse to change an attribute of an object that is another one on each path."""
    capture = session()
    if capture is not None and capture.identities.is_ambiguous(target):
        message = f"{name} is set on an object that is another one on each path"
        raise refuse("SG305", message, location=here(), hint=AMBIGUOUS)


def _promote_parts(capture: Session, source: Source, before: Any, value: Any) -> None:
    """A number that the call reads and writes is an input; so is one in a tuple or dataclass that is made anew."""
    capture.number_is_written(source, before, value)
    found = capture.finder.find(before) if type(before) is type(value) else None
    old, new = (split(before), split(value)) if found is not None and before is not value else (None, None)
    if found is None or old is None or new is None or old.context != new.context:
        return
    for key, child, other in zip(_keys(old), old.children, new.children):
        _promote_parts(capture, Attribute(found, key) if old.attributes else item_of(before, found, key), child, other)


def _keys(parts: Parts) -> Iterable[Any]:
    """By what a container's children are read: their attributes or keys, or their positions."""
    return parts.context if parts.attributes or issubclass(parts.type, dict) else range(len(parts.children))


def promote_item(capture: Session, target: Any, key: Any, value: Any) -> None:
    """To be called before ``target[key] = value``: see `Session.number_is_written`."""
    if isinstance(key, (Staged, torch.Tensor, slice)) or is_fake(key) or is_of_run(key) or lists.is_spread(target):
        return
    source = capture.finder.find(target)
    if source is None:
        return
    try:
        before = dict.get(target, key) if isinstance(target, dict) else target[key]
    except (LookupError, TypeError):
        return  # nothing is there yet, or Python says what is wrong
    capture.number_is_written(item_of(target, source, key), before, value)


def del_attr(target: Any, name: str) -> None:
    """``del target.name``."""
    capture = session()
    if capture is not None and isinstance(target, torch.Tensor) and name not in _OF_TENSORS:
        raise refuse("SG305", f"the attribute {name} of a tensor is deleted", location=here(), hint=BESIDE_IT)
    if capture is None or isinstance(target, torch.Tensor):
        delattr(target, name)
        return
    if isinstance(target, (StagedNumber, StagedComplex, StagedText)):
        _change_sample(capture, target, lambda number: delattr(number, name))
        return
    target = behind_proxy(target)
    descriptor = class_member(type(target), name)
    if isinstance(descriptor, property) and isinstance(descriptor.fdel, FunctionType):
        call(descriptor.fdel, target)
    elif not _done_by_class(target, "__delattr__", name):
        delete: Any = type(target).__delattr__
        del_past_class(delete, target, name)


def del_past_class(delete: Callable[[Any, str], None], target: Any, name: str) -> None:
    """``delete(target, name)``, where that is Python's or torch's ``__delattr__`` and no user's."""
    capture = session()
    assert capture is not None
    refuse_ambiguous(target, name)
    place = AttributePlace(target, name)
    if place.key not in capture.journal.written(0):
        capture.reads.attributes.append((target, name))  # it has to be there when the call begins
    if capture.has_unset:
        own_attribute_read(capture, target, name, place.get(), _words_of_slot(target, name))
    _note_attribute(capture, place)
    delete(target, name)


def _words_of_slot(target: Any, name: str) -> str:
    """What Python says where a slot is deleted that holds nothing; empty for what is no slot."""
    member: Any = class_member(type(target), name)
    try:
        if isinstance(member, MemberDescriptorType):
            member.__delete__(object.__new__(type(target)))
    except (AttributeError, TypeError) as error:
        return str(error) if isinstance(error, AttributeError) else ""
    return ""


_ONE_EACH = (
    "Change each by its own name, in a branch of its own: if ...: a.append(v), else: b.append(v). The keys of a "
    "defaultdict have to be made before the branch or loop: d[key] = []."
)


def note_contents(target: Any, certain: bool = True, method: Method | None = None) -> None:
    """To be called before a container is changed in place, or may be, if that is not ``certain``.

    Args:
        target: what is changed.
        certain: whether it is.
        method: which method does that, with what; None: it only adds to a dict or set, or exchanges elements.
    """
    capture = session()
    if capture is not None and isinstance(target, CONTAINERS):
        if capture.identities.is_ambiguous(target):
            kind = type(target).__name__
            message = f"a {kind} is changed that is another one on each path, or in each iteration"
            raise refuse("SG305", message, location=here(), hint=_ONE_EACH)
        capture.settling.require_current(target)
        before_change(capture, target, method)
        owner = capture.dictionaries.owner_of(target)
        if owner is None:
            capture.journal.note(ContentsPlace(target), certain)
        else:
            refuse_ambiguous(owner, "an attribute")
            capture.dictionaries.note(owner)


@of_each(0, cases=Case.UNJOINED)
def set_item(target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``."""
    if session() is None:
        target[key] = value
        return
    several = several_in_key(key) if isinstance(target, dict) else several_in(key)
    if several is not None:
        several.either(lambda v: set_item(target, exchanged(key, several, v), value))
        return
    if not _called_by_user(target, "__setitem__", key, value):
        set_item_past_class(target, key, value)


def set_item_past_class(target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``, where the ``__setitem__`` that does it is no user's."""
    note_contents(target)
    _refuse_unknown(target)
    if is_array(target):
        refuse_numbers((key, value))
    if not _set_unknown(target, key, value):
        capture = session()
        if capture is not None and isinstance(key, slice) and isinstance(target, list):
            value = known_or_list(value, listed)
        if capture is not None and isinstance(target, (dict, list, collections.deque)):
            promote_item(capture, target, key, value)
        if capture is not None and tables.is_by_table(target, key):
            tables.put(capture, target, key, value)
        elif isinstance(target, dict) and capture is not None:
            entries.put(capture, target, key, value)
        elif isinstance(target, CONTAINERS):
            kind_of_container(target).__setitem__(target, key, value)
        else:
            target[in_tensor(key) if isinstance(target, torch.Tensor) else key] = value


_KNOWN = (*CONTAINERS, torch.Tensor, StagedArray, torch.nn.Module)


def _refuse_unknown(target: Any) -> None:
    """Refuse to change, in an arm or from outside, an object that the journal cannot put back (a numpy array, say)."""
    capture = session()
    if capture is None or isinstance(target, _KNOWN):
        return
    outer = capture.is_outer(target) or capture.is_new(target) is False
    if capture.in_arm or outer or capture.memory.holds(target):
        raise refuse("SG305", f"an item of a {type(target).__name__} is set", location=here())


def _set_unknown(target: Any, key: Any, value: Any) -> bool:
    """Store into a list at an index, or of a length, that only the run knows; whether this is one."""
    capture = session()
    if capture is None or not isinstance(target, (list, collections.deque)):
        return False
    key = as_index(capture, key)
    if lists.is_spread(target):
        lists.set_at(capture, target, key, value)
        return True
    if isinstance(key, StagedInt) and type(target) is list and target:
        lists.set_known(capture, target, key, value)
        return True
    return False


def del_item(target: Any, key: Any) -> None:
    """``del target[key]``."""
    if session() is None:
        del target[key]
        return
    several = several_in(key)
    if several is not None:
        several.either(lambda v: del_item(target, exchanged(key, several, v)))
        return
    if not _called_by_user(target, "__delitem__", key):
        del_item_past_class(target, key)


def del_item_past_class(target: Any, key: Any) -> None:
    """``del target[key]``, where the ``__delitem__`` that does it is no user's."""
    note_contents(target, method=("__delitem__", (key,)))
    capture = session()
    if capture is not None and isinstance(target, (list, collections.deque)):
        key = as_index(capture, key)
    staged = isinstance(key, StagedInt) or _cut_by_staged(key)
    if capture is not None and (lists.is_spread(target) or (type(target) is list and staged)):
        lists.delete_at(capture, target, key)
        return
    if capture is not None and isinstance(target, dict) and tables.is_by_table(target, key):
        tables.delete(capture, target, key)
        return
    known = find(target, key) if capture is not None and isinstance(target, dict) else None
    if capture is not None and known is not None:
        entries.delete(capture, target, known)
    elif isinstance(target, CONTAINERS):
        kind_of_container(target).__delitem__(target, key)
    else:
        del target[key]


def _called_by_user(target: Any, name: str, *args: Any) -> bool:
    """Call a method that a class of the user's gives an operator, rewritten like any other; whether there is one."""
    method: Any = of_class(target, name)
    borrowed = isinstance(target, CONTAINERS) and is_method_of_container(method) and method.__name__ != name
    python = isinstance(method, FunctionType) and not isinstance(target, torch.Tensor)
    if session() is None or not (python or borrowed):
        return False
    call(method, target, *args)
    return True


@dispatch.item.defined
@of_each(0, cases=Case.UNJOINED)
def item(target: Any, key: Any) -> Any:
    """``target[key]``; a list or tuple may be indexed by a number that only the run knows."""
    several = several_in(key)
    if several is not None:
        return several.either(lambda v: item(target, exchanged(key, several, v)))
    capture = session()
    if capture is not None:
        capture.settling.require_current(target)
        method = method_of(target, "__getitem__")
        if method is not None:
            return call(method, target, key)
    if capture is not None and isinstance(target, torch.Tensor):
        key = in_tensor(key)
    if capture is not None and (isinstance(target, _INDEXED) or is_exactly(target, _LAYERS)):
        key = as_index(capture, key)
        if lists.is_spread(target) or (is_exactly(target, (list, tuple)) and _cut_by_staged(key)):
            return lists.at(capture, target, key)
        if isinstance(key, StagedInt):
            capture.before_risk()
            return _staged_item(capture, target, key)
        if isinstance(target, range) and _cut_by_staged(key) and key.step is None:
            return _cut_range(capture, target, key)
    if isinstance(target, collections.defaultdict):
        note_contents(target, certain=False)  # reading makes what is missing
    if capture is not None and isinstance(target, dict):
        if tables.is_looked_up(target, key):
            return tables.at(capture, target, key)
        if target and entries.is_staged_key(target, key):
            return entries.look_up(capture, target, key)
        known = find(target, key)
        if known is not None:
            return entries.at(capture, target, known)
        note_name(target, key)
        if _is_made_by_factory(target, key):
            set_item(target, key, call(target.default_factory))  # type: ignore[attr-defined]  # of a defaultdict
    return target[key]


def _is_made_by_factory(target: Any, key: Any) -> bool:
    """Whether a ``defaultdict`` calls a function of Python's for what it has by a key."""
    if not isinstance(target, collections.defaultdict) or not isinstance(target.default_factory, FunctionType):
        return False
    return type(target).__missing__ is collections.defaultdict.__missing__ and key not in target


def _cut_by_staged(key: Any) -> bool:
    """Whether a key is a slice with a bound that only the run knows."""
    return isinstance(key, slice) and any(isinstance(b, StagedNumber) for b in (key.start, key.stop, key.step))


def _cut_range(capture: Session, target: range, key: slice) -> Range:
    start, stop = (
        default if bound is None else _clamped(capture, bound, len(target))
        for bound, default in ((key.start, 0), (key.stop, len(target)))
    )
    return Range(target.start + start * target.step, target.start + stop * target.step, target.step)


def _clamped(capture: Session, bound: Any, length: int) -> Any:
    """The bound of a slice as an index from 0 to the length of what is sliced."""
    from_front = bound + length * (bound < 0)
    return capture.number_operation(max, (capture.number_operation(min, (from_front, length)), 0))


def _staged_item(capture: Session, target: Any, key: StagedInt) -> Any:
    elements = list(target)
    if not elements:
        message = "an empty list is indexed by a number that only the run knows"
        raise refuse("SG203", message, location=here(), hint="Put a value into the list before it is indexed.")
    said = next((text for kind, text in _OUT_OF_RANGE.items() if isinstance(target, kind)), None)
    if said is not None:
        _require_in_range(capture, len(elements), key, said)
    return pick(capture, elements, key, list if isinstance(target, list) else tuple)


_INDEXED = (list, tuple, range, collections.deque)
_LAYERS = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList)
_OUT_OF_RANGE: dict[type, Callable[[Any], str]] = {
    collections.deque: lambda index: "deque index out of range",
    range: lambda index: "range object index out of range",
    **{kind: lambda index: text("index {} is out of range", index) for kind in _LAYERS},
}


def _require_in_range(capture: Session, count: int, key: StagedInt, said: Callable[[Any], str]) -> None:
    """Let the program raise what Python says of an index that is out of range; the program itself has a tuple there."""
    outside = (key >= count) | (key < -count)

    def fail() -> NoReturn:
        raise IndexError(said(key))

    if isinstance(outside, StagedBool):
        branch(capture, outside, fail, lambda: None, (), ())
    elif outside:
        fail()


_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "@": operator.imatmul,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
    "<<": operator.ilshift,
    ">>": operator.irshift,
}


_BINARY = {symbol: binary(symbol, plain) for symbol, plain in _INPLACE.items()}


def _take_all(left: Any, symbol: str, right: Any) -> bool:
    return taken(left, f"__{_INPLACE[symbol].__name__}__", (right,))


_ATOMS = (int, float, complex, str, bytes, tuple, frozenset)


def inplace(symbol: str, left: Any, right: Any) -> Any:
    """``left += right`` and its kin, as an expression."""
    if isinstance(left, Unjoined):
        if any(isinstance(side, CONTAINERS) for side in (alternatives(left).left, alternatives(left).right)):
            left.refuse()
        return left.either(lambda v: inplace(symbol, v, right))
    method = of_class(left, f"__{_INPLACE[symbol].__name__}__")
    if session() is not None and isinstance(method, FunctionType) and not isinstance(left, torch.Tensor):
        result = call(method, left, right)
        return _BINARY[symbol](left, right) if result is NotImplemented else result
    if session() is not None and by_methods(symbol, left, right, in_place=method is not None):
        return _BINARY[symbol](left, right)
    note_contents(left, method=(f"__{_INPLACE[symbol].__name__}__", (right,)))
    capture = session()
    if symbol == "*" and capture is not None:
        left, right = counted(capture, left, right)
    if symbol == "*" and type(left) is list and isinstance(right, StagedNumber):
        left[:] = left * right
        return left
    if capture is not None:
        right = capture.iterators.to_draw_from(right)
        if isinstance(left, CONTAINERS) and _take_all(left, symbol, right):
            return left
        refuse_operator(symbol, left, right)
    if capture is not None and may_be_number(left):
        return change_in_place(capture, _INPLACE[symbol], left, right)
    if is_array(left):
        refuse_numbers(right)
    if isinstance(left, torch.Tensor) and isinstance(right, StagedArray):
        right = beside_a_tensor(right)
    if hasattr(type(left), f"__{_INPLACE[symbol].__name__}__") and not isinstance(left, (Staged, *_ATOMS)):
        _refuse_unknown(left)
    return _INPLACE[symbol](left, right)
