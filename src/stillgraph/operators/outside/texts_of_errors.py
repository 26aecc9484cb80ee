"""What exceptions say that the call has made itself, and that have values of the run for arguments."""

from __future__ import annotations

from typing import Any

from stillgraph.core.lookup import class_member
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.values.caught import Caught
from stillgraph.trace.values.containers import holds_staged

_BY_ARGUMENTS = vars(BaseException)


def template_of(error: Any, name: str) -> tuple[str, tuple[Any, ...]] | None:
    """What an exception's ``__str__`` or ``__repr__`` makes its text of: a template, and what is filled in.

    None for what holds no values of the run, and for an exception whose class says otherwise what its text is.
    """
    if not isinstance(error, BaseException) or isinstance(error, (Caught, Unjoined)) or not holds_staged(error.args):
        return None
    method, args = class_member(type(error), name), error.args
    if method is vars(KeyError)["__str__"]:
        return ("{!r}" if len(args) == 1 else "{!s}"), (args[0] if len(args) == 1 else args,)
    if method is not _BY_ARGUMENTS[name]:
        return None
    if name == "__str__":
        return "{!s}", (args[0] if len(args) == 1 else args,)
    kind = type(error).__name__
    return (kind + "({!r})", args) if len(args) == 1 else (kind + "{!r}", (args,))
