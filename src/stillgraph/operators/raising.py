"""``raise`` of an exception that a condition of the run has chosen: each is raised on its own path."""

from __future__ import annotations

from typing import Any

from stillgraph.operators.calls import call
from stillgraph.trace.arms import emit_raise
from stillgraph.trace.caught import Caught, Raisable, note_named
from stillgraph.trace.session import Session, session
from stillgraph.trace.signals import Diverged
from stillgraph.trace.unjoined import Unjoined


def raised(error: Any) -> Any:
    """What a ``raise`` is to raise; where only the run knows that, the program has raised it already.

    Raises:
        Diverged: every path from here on raises in the program.
        CaptureError: one of the exceptions cannot be made in the run, or what stands around it would have to see it.
    """
    capture = session()
    while capture is not None and isinstance(error, Unjoined):
        flag = error.__dict__["flag"]
        if flag is None or capture.decided(flag) is None:
            error = error.either(lambda chosen: _raise(capture, raised(chosen)))
        else:
            error = error.either(lambda chosen: chosen)
    if isinstance(error, Caught):
        note_named(error)
    _note(capture, error)
    return error


def _note(capture: Session | None, error: Any) -> None:
    """Remember an exception that has been raised before, as the capture is to leave it."""
    if capture is not None and isinstance(error, BaseException) and not isinstance(error, Caught):
        before = Raisable.of(error)
        if before != Raisable():
            capture.raising.setdefault(id(error), before)
        if capture.in_arm and capture.was_there(error):
            error.__traceback__ = None  # so that where it is raised can be told from where it has been raised


def known(error: Any) -> Any:
    """The exception behind ``raise … from``, or the one that is to have it, which has to be the same on all paths.

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
