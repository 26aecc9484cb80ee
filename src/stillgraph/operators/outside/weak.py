"""Weak references in a capture, which holds what it has made for longer than the code would."""

from __future__ import annotations

import weakref
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.parcel import Parcel
from stillgraph.operators.outside.hidden_state import ATOMS, WEAK
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.heap import is_held_by, locals_of_users
from stillgraph.trace.fakes.symbolic import is_fake


def before_weak_call(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """To be called before a weak reference is made, or asked for its object.

    Raises:
        CaptureError: only the run can tell whether the object is still there, or something is done when it is gone.
    """
    if isinstance(function, weakref.ref):
        referent = function()
        if referent is not None and _may_be_gone(capture, referent):
            what = f"a weak reference is asked for a {_kind(referent)} that may be gone by now"
            raise refuse("SG305", what, location=here(), hint=_HINT)
    elif isinstance(function, type) and issubclass(function, WEAK) and args and _holds_new(capture, args[0]):
        what = f"a {function.__name__} is made of objects that the function makes, and may be gone when it is used"
        raise refuse("SG305", what, location=here(), hint=_HINT)
    elif args and (function is weakref.ref or function is weakref.proxy or function is weakref.WeakMethod):
        name, kind = _NAMES.get(function, function.__name__), _kind(args[0])
        if any(each is not None for each in (*args[1:], *kwargs.values())):
            what = f"{name} is given what is to be called when a {kind} is gone"
            raise refuse("SG305", what, location=here(), hint=_HINT)
        if function is weakref.proxy and capture.is_new(args[0]) is not False:
            what = f"a {name} is made of a {kind} that the function makes, and may be gone when it is used"
            raise refuse("SG305", what, location=here(), hint=_HINT)


_NAMES: dict[Any, str] = {weakref.ref: "weakref.ref"}
_HINT = "Keep a plain reference, or do this outside the static function."


def _holds_new(capture: Session, given: Any) -> bool:
    """Whether what a weak container is filled with may be the capture's own; of an iterator, nobody can tell."""
    if not isinstance(given, (list, tuple, set, frozenset, dict)):
        return True
    held = [*given, *given.values()] if isinstance(given, dict) else [*given]
    return any(not isinstance(each, ATOMS) and capture.is_new(each) is not False for each in held)


def _kind(value: Any) -> str:
    return "Tensor" if is_fake(value) else type(value).__name__


def _may_be_gone(capture: Session, referent: Any) -> bool:
    """Whether a capture may be all that holds an object: what it has made, and what the code has let go of."""
    with capture.executed.paused():
        if is_held_by(locals_of_users(capture), referent):
            return False
        if capture.is_new(referent) is not False:
            return True
        gone = [write.before for write in capture.journal.written(0).values()]
        given = (value for value, _ in capture.finder.arguments)
        passed = [value for value in given if type(value) is Parcel]  # the caller holds all others
        return is_held_by([*gone, *passed], referent)
