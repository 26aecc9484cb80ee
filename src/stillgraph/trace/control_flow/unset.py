"""Variables and attributes that some paths do not set: whether one has a value, and what is read of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member, name_in_errors
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, alternatives, is_leaf, is_lost
from stillgraph.trace.control_flow.narrowing import Narrowing, may_be_unbound
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import Exit, Return
from stillgraph.trace.heap.places import MISSING, AttributePlace
from stillgraph.trace.values.containers import split
from stillgraph.trace.values.lists import StagedSpread


def may_be_unset(recorder: Recorder, value: Any) -> bool:
    """Whether a variable with this value has one on some paths only, as far as is known where we are."""
    if isinstance(value, Unjoined):
        return not is_lost(value) and any(side is MISSING or may_be_unset(recorder, side) for side in _sides(value))
    leaf = unset_leaf(value)
    return leaf is not None and recorder.known_unboundness(leaf) is not False


def value_read(recorder: Narrowing, value: Any, fail: Callable[[], NoReturn]) -> Any:
    """What a variable holds behind a read of it, where it has a value.

    Args:
        recorder: the capture.
        value: what it holds, be that on some paths only.
        fail: raises what Python raises where it has none.
    """
    if not may_be_unset(recorder, value):
        return value
    _require(recorder, fail, value)
    return _set_side(value)


def attribute_read(recorder: Narrowing, target: Any, name: str, value: Any) -> Any:
    """What an object has by a name, or else its class or a base; where none has anything, the program raises."""
    if not may_be_unset(recorder, value):
        return value
    behind = _behind(target, name, value)
    if not behind:
        return own_attribute_read(recorder, target, name, value)
    fail = functools.partial(_fail, recorder, target, name)
    read = functools.partial(_in_turn, recorder, (value, *behind), lambda found: found, fail)
    if isinstance(value, Unjoined) or recorder.known_unboundness(value) is not None:
        return read()
    key = id(value), name, tuple(map(id, behind))
    known = recorder.read_with_default.get(key)
    if known is None or not recorder.region.holds(known[1]):
        known = recorder.read_with_default[key] = (value, behind), read()
    return known[1]


def attribute_or(
    recorder: Narrowing, target: Any, name: str, value: Any, read: Callable[[Any], Any], otherwise: Callable[[], Any]
) -> Any:
    """``read`` of what an object, its class or a base has by a name; what ``otherwise`` gives where none has anything.

    Args:
        recorder: the capture.
        target: the object.
        name: of the attribute.
        value: what is found first, be that on some paths only.
        read: of what is found.
        otherwise: for the paths on which nothing is.
    """
    return _in_turn(recorder, (value, *_behind(target, name, value)), read, otherwise)


def _behind(target: Any, name: str, value: Any) -> tuple[Any, ...]:
    """What Python finds by a name where it does not find a value that it finds now; nothing behind what is there."""
    turn = AttributePlace(target, name).in_turn()
    found = next((place for place, each in enumerate(turn) if each is value), len(turn))
    return tuple(turn[found + 1 :])


def _in_turn(
    recorder: Narrowing, values: tuple[Any, ...], read: Callable[[Any], Any], otherwise: Callable[[], Any]
) -> Any:
    """``read`` of the first of some values that there is; ``otherwise`` where there is none."""
    if not values:
        return otherwise()
    rest = functools.partial(_in_turn, recorder, values[1:], read, otherwise)
    return with_or_without_value(recorder, values[0], lambda value: rest() if value is MISSING else read(value))


def _fail(recorder: Recorder, target: Any, name: str) -> NoReturn:
    """Let the program raise what Python raises where an object has no attribute of a name."""
    kind = target if isinstance(target, type) else type(target)
    answering = class_member(kind, "__getattr__")
    if answering is not None and answering is not torch.nn.Module.__getattr__:
        message = f"{kind.__name__}.__getattr__ may be asked for '{name}', which the class has on some paths only"
        raise refuse("SG204", message, location=here())
    owner = f"type object '{target.__name__}'" if kind is target else f"'{name_in_errors(kind)}' object"
    emit_raise(recorder, AttributeError(f"{owner} has no attribute '{name}'", name=name))
    raise Diverged


def own_attribute_read(recorder: Narrowing, target: Any, name: str, value: Any, words: str = "") -> Any:
    """As `value_read`, of an attribute of an object: where it has none, the program raises an AttributeError.

    Args:
        recorder: the capture.
        target: the object.
        name: of the attribute.
        value: what it holds, be that on some paths only.
        words: of the error, if not the usual ones.
    """

    def fail() -> NoReturn:
        if not words:
            _fail(recorder, target, name)
        emit_raise(recorder, AttributeError(words))
        raise Diverged

    return value_read(recorder, value, fail)


def with_or_without_value(recorder: Narrowing, value: Any, read: Callable[[Any], Any]) -> Any:
    """``read(value)`` where there is one, ``read(MISSING)`` on the paths that have none; what they give is joined."""
    if value is MISSING or not may_be_unset(recorder, value):
        return read(value)
    if isinstance(value, Unjoined):
        flag, sides = alternatives(value).flag, _sides(value)
    else:
        leaf = unset_leaf(value)
        flag, sides = recorder.unboundness(leaf), (MISSING, value)
    then, orelse = (functools.partial(_given, recorder, side, read) for side in sides)
    known = flag if isinstance(flag, bool) else recorder.decided(flag)
    exit = branch(recorder, flag, then, orelse, (), ()) if known is None else (then if known else orelse)()
    assert exit is not None
    return exit.value


def _given(recorder: Narrowing, value: Any, read: Callable[[Any], Any]) -> Exit:
    return Return(with_or_without_value(recorder, value, read))


def require_all(recorder: Recorder, attributes: Mapping[str, Any], kind: str) -> None:
    """To be called before all attributes of an object of a class are looked at, or leave the function with it.

    Raises:
        CaptureError: it has one of them on some paths only.
    """
    if not recorder.has_unset:
        return
    for name, value in attributes.items():
        if may_be_unset(recorder, value):
            hint = f"Set '{name}' before the branch or loop, to None for instance."
            message = f"an object of {kind} has '{name}' on some paths only, and all that it has is looked at"
            raise refuse("SG204", message, location=here(), hint=hint)


def unset_leaf(value: Any) -> Any:
    """The first leaf of a value that tells whether there is one, as all of them do; None if there is one anyway."""
    return next(_telling(value, ()), None)


def _require(recorder: Narrowing, fail: Callable[[], NoReturn], value: Any) -> None:
    """Let the program raise where a variable with this value has none."""
    if value is MISSING:
        fail()
    if isinstance(value, Unjoined):
        if may_be_unset(recorder, value):
            requires = (functools.partial(_require, recorder, fail, side) for side in _sides(value))
            _on_each_side(recorder, alternatives(value).flag, *requires)
        return
    leaf = unset_leaf(value)
    if leaf is not None:
        _on_each_side(recorder, recorder.unboundness(leaf), fail, _go_on)


def _on_each_side(recorder: Narrowing, flag: Any, then: Callable[[], None], orelse: Callable[[], None]) -> None:
    known = flag if isinstance(flag, bool) else recorder.decided(flag)
    if known is None:
        branch(recorder, flag, then, orelse, (), ())
    elif known:
        then()
    else:
        orelse()


def _go_on() -> None:
    return None


def _set_side(value: Any) -> Any:
    """A value without the paths on which there is none."""
    if not isinstance(value, Unjoined) or is_lost(value):
        return value
    if isinstance(value, Picked):
        return value.without(MISSING)
    left, right = (MISSING if side is MISSING else _set_side(side) for side in _sides(value))
    if left is MISSING or right is MISSING:
        return right if left is MISSING else left
    known = alternatives(value)
    same = left is known.left and right is known.right
    return value if same else Unjoined(known.flag, left, right, known.place, known.failure)


def _sides(value: Unjoined) -> tuple[Any, Any]:
    return alternatives(value).left, alternatives(value).right


def _telling(value: Any, inside: tuple[int, ...]) -> Iterator[Any]:
    """The leaves of a value that are nothing where its variable has no value: elements tell that of their list."""
    if isinstance(value, StagedSpread):
        value = value.columns[0]
    if is_leaf(value):
        if may_be_unbound(value):
            yield value
    elif isinstance(value, (list, tuple, dict, set)) and id(value) not in inside:
        parts = split(value)
        for child in () if parts is None else parts.children:
            yield from _telling(child, (*inside, id(value)))
