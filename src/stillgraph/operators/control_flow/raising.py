"""``raise`` of an exception that a condition of the run has chosen: each is raised on its own path."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stillgraph.operators import dispatch
from stillgraph.operators.dispatch import call
from stillgraph.program.exceptions import copied
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.values.caught import Caught, Raisable, note_named


@dispatch.raised.defined
def raised(error: Any) -> Any:
    """What a ``raise`` is to raise; where only the run knows that, the program has raised it already.

    Raises:
        Diverged: every path from here on raises in the program.
        CaptureError: one of the exceptions cannot be made in the run, or what stands around it would have to see it.
    """
    capture = session()
    if capture is not None:
        error = _chosen(capture, error, raised)
    if isinstance(error, Caught):
        note_named(error)
    _note(capture, error)
    return error


def caused(error: Any, cause: Any) -> Any:
    """What a ``raise error from cause`` is to raise, its cause being set; otherwise as `raised`."""
    capture = session()
    if capture is not None:
        error = _chosen(capture, error, lambda chosen: caused(chosen, cause))
    if isinstance(error, type) and issubclass(error, BaseException):
        error = call(error)
    if not isinstance(error, BaseException):
        return error
    if isinstance(cause, type) and issubclass(cause, BaseException):
        cause = call(cause)
    cause = known(cause)
    if cause is not None and not isinstance(cause, BaseException):
        raise TypeError("exception causes must derive from BaseException")
    error = raised(error)
    if isinstance(error, BaseException):
        error.__cause__ = cause
    return error


def _chosen(capture: Session, error: Any, raising: Callable[[Any], Any]) -> Any:
    """The exception that is raised on the path being recorded; what was chosen by the run is raised in arms."""
    while True:
        several = error if isinstance(error, Unjoined) else _unjoined_in(error)
        if several is None:
            return error
        swap: Callable[[Any], Any] = functools.partial(_exchanged, error, several)
        flag = alternatives(several).flag
        if flag is None or capture.decided(flag) is None:
            error = several.either(functools.partial(_raise_one, capture, raising, swap))
        else:
            error = swap(several.either(lambda chosen: chosen))


def _raise_one(capture: Session, raising: Callable[[Any], Any], swap: Callable[[Any], Any], chosen: Any) -> Any:
    return _raise(capture, raising(swap(chosen)))


def _unjoined_in(error: Any) -> Unjoined | None:
    """Something in an exception that is another value on each path."""
    if not isinstance(error, BaseException) or isinstance(error, Caught):
        return None
    return next((each for each in (*error.args, *vars(error).values()) if isinstance(each, Unjoined)), None)


def _exchanged(error: Any, several: Unjoined, chosen: Any) -> Any:
    """An exception with one of the values in place of what is several."""
    if error is several:
        return chosen
    fresh = copied(error).with_traceback(error.__traceback__)
    fresh.args = tuple(chosen if each is several else each for each in error.args)
    vars(fresh).update({name: chosen for name, each in vars(error).items() if each is several})
    fresh.__cause__, fresh.__suppress_context__ = error.__cause__, error.__suppress_context__
    return fresh


def _note(capture: Session | None, error: Any) -> None:
    """Remember an exception that has been raised before, as the capture is to leave it."""
    if capture is not None and isinstance(error, BaseException) and not isinstance(error, Caught):
        before = Raisable.of(error)
        if before != Raisable():
            capture.handlers.raising.setdefault(id(error), before)
        if capture.in_arm and capture.was_there(error):
            error.__traceback__ = None  # so that where it is raised can be told from where it has been raised


def known(error: Any) -> Any:
    """The exception behind ``raise … from``, which has to be the same on all paths.

    Raises:
        CaptureError: only the run knows which it is.
    """
    if isinstance(error, Unjoined):
        error.refuse()
    _note(session(), error)
    return error


def _raise(capture: Session, error: Any) -> Any:
    """``raise error``, in an arm of its own."""
    if isinstance(error, type) and issubclass(error, BaseException):
        error = call(error)
        if isinstance(error, Unjoined):
            error.refuse()
    if not isinstance(error, BaseException):
        error = TypeError("exceptions must derive from BaseException")
    if isinstance(error, Caught):
        raise error  # type: ignore[misc]  # `Caught` stands for one
    emit_raise(capture, error)
    raise Diverged
