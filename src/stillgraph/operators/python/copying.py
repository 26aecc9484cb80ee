"""``copy.copy`` and ``copy.deepcopy``: Python copies, and finds in its memo what it could not copy itself."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import own_attributes, slot_value, slots
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import of_each
from stillgraph.operators.objects.changes import CONTAINERS
from stillgraph.program.types import ListType, NumberType, ObjectType, TableType, TensorType
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives, is_leaf, is_lost
from stillgraph.trace.control_flow.unset import may_be_unset
from stillgraph.trace.graph.typed_values import define
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.sources.kinds_of_objects import is_machinery
from stillgraph.trace.torch_rules.deep_copies import copied_list, copying_of, may_share, refuse_shared, shallow
from stillgraph.trace.values.entries import MaybeKey, Table
from stillgraph.trace.values.lists import Element, Inner, Node, Same, StagedSpread, types
from stillgraph.trace.values.numbers import Staged, StagedNumber

Memo = dict[Any, Any]


def _copy(value: Any) -> Any:
    """``copy.copy(value)``."""
    capture = capturing()
    method = method_of(value, "__copy__")
    if method is not None:
        return call(method, value)
    if type(value) is torch.Tensor or isinstance(value, torch._subclasses.FakeTensor):
        return shallow(capture, value)
    _read_whole(capture, value)
    return copy.copy(value)


def _deep_copy(value: Any, memo: Memo | None = None) -> Any:
    """``copy.deepcopy(value, memo)``."""
    capture = capturing()
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    _read_whole(capture, value)
    _prepare(capture, value, memo)
    with capture.depth.as_eager():
        made = copy.deepcopy(value, memo)
    memo.setdefault(id(memo), []).append(value)  # as long as the memo is there, nothing else has its id
    if capture.for_segments and may_share(copying_of(memo)):
        raise refuse_shared(here())  # Python copies them: what the next program has of them, this one does not know
    return made


def _read_whole(capture: Session, value: Any) -> None:
    if not isinstance(value, (torch.Tensor, torch.nn.Module, Staged, str, int, float, type(None))):
        capture.reads.whole[id(value)] = value


# ---- what Python cannot copy
def _prepare(capture: Session, value: Any, memo: Memo) -> None:
    """Put copies into the memo of what stands for values that only the run knows, wherever that is in a value."""
    kinds: collections.Counter[type] = collections.Counter()
    doubtful: list[Any] = []
    for each, present in [*_parts(value, memo)]:
        if present is True and capture.has_unset and may_be_unset(capture, each):
            raise refuse("SG204", "an object is copied that has an attribute on some paths only", location=here())
        kinds[type(each)] += 1
        if capture.identities.is_ambiguous(each):
            doubtful.append(each)
        made = _made(capture, each, memo) if present is True else _made_if_there(capture, each, present, memo)
        if made is not MISSING:
            memo[id(each)] = made
    twice = next((each for each in doubtful if kinds[type(each)] > 1), None)
    if twice is not None:
        name = type(twice).__name__
        message = f"copy.deepcopy is given a {name} that may be another {name} which it is given too"
        raise refuse("SG305", message, location=here(), hint="Copy them one by one.")


def _made_if_there(capture: Session, value: Any, present: Any, memo: Memo) -> Any:
    """The copy of what a dict has by a key that is there on some paths only; on the others there is none."""
    if isinstance(value, _PLAIN):
        return MISSING
    if not is_leaf(value):
        message = "copy.deepcopy is given a dict with an object by a key that is there on some paths only"
        raise refuse("SG211", message, location=here())
    return select(capture, present, lambda: _apart(value, memo), lambda: MISSING)


def _made(capture: Session, value: Any, memo: Memo) -> Any:
    """A copy of what Python cannot copy; `MISSING` for anything else."""
    if type(value) is StagedSpread:
        return _copied_elements(capture, value, memo)
    if type(value) is MaybeKey:
        return value
    if type(value) is Table:
        values = None if value.values is None else [_deep_copy(each, memo) for each in value.values]
        return Table(list(value.keys), values)
    if isinstance(value, Unjoined):
        sides = [*_sides(value)]
        if all(isinstance(side, _PLAIN) for side in sides):
            return value
        _require_leaves(sides)
        return value.either(lambda one: _apart(one, memo))
    if isinstance(value, torch.Tensor) and capture.may_be_none(value):
        return capture.with_or_without(value, lambda one: _apart(one, memo))
    method = method_of(value, "__deepcopy__")
    return MISSING if method is None else call(method, value, memo)


def _apart(value: Any, memo: Memo) -> Any:
    """The copy of a leaf in an arm, of which nothing outside of it may take the copy for its own."""
    copying_of(memo)  # is in what the arm has for a memo
    return copy.deepcopy(value, {**memo})


def _sides(value: Unjoined) -> Iterator[Any]:
    """What a value may be."""
    if is_lost(value):
        value.refuse()
    for side in (alternatives(value).left, alternatives(value).right):
        yield from _sides(side) if isinstance(side, Unjoined) else (side,)


def _require_leaves(sides: list[Any]) -> None:
    """Refuse objects that are one or another, by the path: of what both lead to, there is to be one copy."""
    for side in sides:
        if not is_leaf(side) and not isinstance(side, _PLAIN):
            kind = type(side).__name__
            message = f"copy.deepcopy comes to a {kind} that is something else on another path"
            raise refuse("SG203", message, location=here(), hint="Copy it in the branch that makes it.")


def _copied_elements(capture: Session, spread: StagedSpread, memo: Memo) -> StagedSpread:
    """The elements of a list of unknown length, each copied: numbers are as good as copies of them."""
    kinds = types(spread.element)
    tensors = [kind for kind in kinds if isinstance(kind, TensorType)]
    unlike = any(not isinstance(kind, (TensorType, NumberType, ObjectType, TableType)) for kind in kinds)
    unlike = unlike or _holds_objects(spread.element)
    if len(tensors) > 1 or unlike or any(kind.requires_grad or kind.grad_differs for kind in tensors):
        message = "copy.deepcopy is given a list of unknown length of records, or of tensors that require gradients"
        raise refuse("SG210", message, location=here(), hint="Copy its elements in a loop.")
    columns = [
        define(capture, ListType(kind), copied_list(capture, column, memo)) if isinstance(kind, TensorType) else column
        for column, kind in zip(spread.columns, kinds, strict=True)
    ]
    return StagedSpread(spread.element, tuple(columns))


def _holds_objects(element: Element | None) -> bool:
    """Whether all elements of a list have an object in common, which is copied, too."""
    if isinstance(element, Node):
        return any(map(_holds_objects, element.children))
    return isinstance(element, Inner) or (isinstance(element, Same) and not isinstance(element.value, _PLAIN))


# ---- what a deep copy comes to
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, FunctionType, StagedNumber)


def _parts(value: Any, memo: Memo, present: Any = True, seen: Memo | None = None) -> Iterator[tuple[Any, Any]]:
    """Everything that a deep copy of a value comes to, in its order, and whether it is there.

    What has a method of the user's for that, copies by itself what it holds.
    """
    seen = {} if seen is None else seen
    if (isinstance(value, _PLAIN) and present is True) or id(value) in seen or id(value) in memo:
        return
    seen[id(value)] = value
    yield value, present
    if isinstance(value, (Unjoined, torch.Tensor, Staged)) or method_of(value, "__deepcopy__") is not None:
        return
    if isinstance(value, MethodType):
        yield from _parts(value.__self__, memo, present, seen)
    elif not is_machinery(type(value)) or isinstance(value, torch.nn.Module):
        for each, is_there in _held(value):
            yield from _parts(each, memo, is_there, seen)


def _held(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        for key, held in dict.items(value):
            yield key, True
            yield held, key.present if type(key) is MaybeKey else True
    elif isinstance(value, (*CONTAINERS, tuple, frozenset)):
        yield from ((each, True) for each in value)
    held = [slot_value(value, name, MISSING) for name in slots(type(value))]
    yield from ((each, True) for each in (*(own_attributes(value) or {}).values(), *held) if each is not MISSING)


def _of_a_value(function: Callable[..., Any]) -> Callable[..., Any]:
    applied = of_each(0)(function)

    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        return applied(x, *args, *kwargs.values())

    return called


MEANINGS: dict[Any, Callable[..., Any]] = {copy.copy: _of_a_value(_copy), copy.deepcopy: _of_a_value(_deep_copy)}
"""What they mean."""
