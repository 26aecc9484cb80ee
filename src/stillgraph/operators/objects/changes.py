"""Changes of containers and objects: what the journal notes before one, and what else changes with one."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.containers.watched import Method, before_change
from stillgraph.operators.elements.references import reference_of, write_through
from stillgraph.program.constants import is_constant
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.staging import Block, branch
from stillgraph.trace.heap.contents import kind_of_container
from stillgraph.trace.heap.identities import AMBIGUOUS
from stillgraph.trace.heap.places import ContentsPlace
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.list_contents import is_mutable
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import StagedText

Args = tuple[Any, ...]
R = TypeVar("R")

CONTAINERS = (list, dict, set, collections.deque)


def refuse_ambiguous(target: Any, name: str) -> None:
    """Refuse to change an attribute of an object that is another one on each path."""
    capture = session()
    if capture is not None and capture.identities.is_ambiguous(target):
        message = f"{name} is set on, or deleted from, an object that is another one on each path"
        raise refuse("SG305", message, location=here(), hint=AMBIGUOUS)


_ONE_EACH = (
    "Change each by its own name, in a branch of its own: if ...: a.append(v), else: b.append(v). "
    "What a dict holds by a key is not changed but exchanged: d[key] = d.get(key, []) + [v]."
)


def _refuse_changed(target: Any) -> NoReturn:
    if not isinstance(target, CONTAINERS):
        message = f"an attribute is set on a {type(target).__name__} that is another one on each path"
        raise refuse("SG305", message, location=here(), hint=AMBIGUOUS)
    refuse_ambiguous_container(target)


def refuse_ambiguous_container(target: Any) -> NoReturn:
    """Refuse to change a container that is another one on each path."""
    message = f"a {type(target).__name__} is changed that is another one on each path, or in each iteration"
    raise refuse("SG305", message, location=here(), hint=_ONE_EACH)


def refuse_copy(capture: Session, value: Any, other: Any) -> bool:
    """Refuse to compare a copy; whether another object is what no flag tells of: it is not."""
    if id(value) not in capture.identities.frozen or type(value) is not type(other):
        return False
    message = f"a {type(value).__name__} is one of several copies of one: 'is' has no answer"
    raise refuse("SG305", message, location=here())


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
            refuse_ambiguous_container(target)
        capture.settling.require_current(target)
        before_change(capture, target, method)
        owner = capture.dictionaries.owner_of(target)
        if owner is None:
            capture.journal.note(ContentsPlace(target), certain)
        else:
            refuse_ambiguous(owner, "an attribute")
            capture.dictionaries.note(owner)


def change(target: Any, name: str, args: Args, done: Callable[[], R]) -> R:
    """Change a container, and after it what it may be.

    A join of two paths makes one container of theirs, and keeps a flag that tells for which of them it stands. Where
    the flag holds the two are one object for the user, so both get the same contents.

    Args:
        target: what ``done`` changes; anything that is no container, or only itself, is changed and no more.
        name, args: the method that does it, and what it is given.
        done: the change.

    Raises:
        CaptureError: the container holds objects. Those of one path are not those of the other. (SG305)
    """
    capture = session()
    if capture is None or not needs_counterparts(capture, target, name, args):
        return done()
    if not capture.identities.may_be_others(target):
        reference = reference_of(capture, target)
        assert reference is not None
        return write_through(capture, reference, target, done)
    with capture.identities.changing(target):
        result = done()
    if not _is_flat(target):
        refuse_ambiguous_container(target)
    _follow(capture, target, (target,), {}, functools.partial(_exchange, target))
    return result


def set_attribute(capture: Session, target: Any, done: Callable[[Any], None]) -> None:
    """Set an attribute of an object, and then of each other object that it may be, as `change` does.

    Args:
        capture: the session.
        target: the object.
        done: sets it, on the object that it is given.

    Raises:
        CaptureError: the object is one of several copies of an object. (SG305)
    """
    if capture.identities.is_changing(target) or not capture.identities.may_be_others(target):
        reference = None if capture.identities.is_changing(target) else reference_of(capture, target)
        if reference is None:
            done(target)
        else:
            write_through(capture, reference, target, functools.partial(done, target))
        return
    with capture.identities.changing(target):
        done(target)
    _follow(capture, target, (target,), {}, done)


def needs_counterparts(capture: Session, target: Any, name: str, args: Args) -> bool:
    """Whether a container may be others that `change` changes with it, or is an element of a list of unknown length."""
    if not isinstance(target, CONTAINERS) or capture.identities.is_changing(target):
        return False
    if not capture.identities.may_be_others(target) and reference_of(capture, target) is None:
        return False
    return _is_at_once(name, args)


def _follow(
    capture: Session, changed: Any, known: tuple[Any, ...], told: dict[int, bool], done: Callable[[Any], None]
) -> None:
    """Change what a changed object may be.

    Args:
        capture: the session.
        changed: the object.
        known: those that have been changed already.
        told: what the flags are, by their ids, where this is done; the origins keep the flags.
        done: changes the object that it is given.
    """
    for conditions, other in [*capture.identities.counterparts(changed)]:
        if not all(isinstance(flag, StagedNumber) for flag, _ in conditions):
            _refuse_changed(changed)  # an arm that nothing follows has no flag
        if not all(capture.region.holds(flag) for flag, _ in conditions):
            continue  # joined in an arm that has ended, behind which others stand for it
        left = [(flag, holds) for flag, holds in conditions if told.get(id(flag)) is not holds]
        if any(other is each for each in known) or any(id(flag) in told for flag, _ in left):
            continue
        inside = told | {id(flag): holds for flag, holds in left}
        _where(capture, left, functools.partial(_change_too, capture, other, changed, (*known, other), inside, done))


def _where(capture: Session, conditions: Iterable[tuple[Any, bool]], then: Block) -> None:
    """Stage ``then`` where each of the flags is as given."""
    for flag, wanted in conditions:
        first, second = (then, _nothing) if wanted else (_nothing, then)
        then = functools.partial(branch, capture, flag, first, second, (), ())
    then()


def _nothing() -> None:
    """The other arm."""


def _change_too(
    capture: Session,
    target: Any,
    because: Any,
    known: tuple[Any, ...],
    told: dict[int, bool],
    done: Callable[[Any], None],
) -> None:
    with capture.identities.changing(target, because):
        done(target)
    _follow(capture, target, known, told, done)


def _exchange(changed: Any, target: Any) -> None:
    """Give a container what the changed one holds."""
    kind = kind_of_container(target)
    note_contents(target, method=("clear", ()))
    kind.clear(target)
    (kind.update if issubclass(kind, (dict, set)) else kind.extend)(target, changed)


def _is_flat(container: Any) -> bool:
    """Whether a container holds but tensors, numbers, constants and tuples of such, which paths share."""
    if container_of(container) is not None:
        return False
    return all(map(_is_leaf, container.values() if isinstance(container, dict) else container))


def _is_leaf(value: Any) -> bool:
    if isinstance(value, StagedSpread):
        return not is_mutable(value.element)
    if is_exactly(value, (tuple,)):
        return all(map(_is_leaf, value))
    return isinstance(value, (torch.Tensor, StagedNumber, StagedText)) or is_constant(value)


_AT_ONCE = frozenset(
    ("append", "appendleft", "insert", "pop", "popleft", "clear", "reverse", "extend", "extendleft", "rotate", "add")
) | {"discard", "update", "setdefault", "popitem", "__setitem__", "__delitem__", "__iadd__", "__imul__"}
_KEYED = (dict, set, frozenset)  # what is in them can be a key
_FIXED = (*_KEYED, list, tuple, collections.deque, slice)


def _is_at_once(name: str, args: Args) -> bool:
    """Whether a method does not end halfway, nor runs code of the user's, which could look at the others before."""
    fixed = _KEYED if name in ("update", "setdefault") else _FIXED
    return name in _AT_ONCE and all(_is_leaf(each) or type(each) in fixed for each in args)
