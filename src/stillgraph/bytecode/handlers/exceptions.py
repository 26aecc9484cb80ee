"""``raise``, ``except`` and ``with``."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from stillgraph.bytecode.frame import Frame, Handler
from stillgraph.core.lookup import class_member
from stillgraph.operators.calls import call
from stillgraph.operators.contexts import context
from stillgraph.operators.protected import handled
from stillgraph.operators.raising import caused, raised


# ---- raise
def _raise(frame: Frame, count: int) -> None:
    error: Any
    if count == 0:
        error = sys.exc_info()[1]
        if error is None:
            error = RuntimeError("No active exception to reraise")
    elif count == 1:
        error = frame.act(raised, frame.pop())
    else:
        cause = frame.pop()
        error = frame.act(caused, frame.pop(), cause)
    frame.prepared.line(frame.next, "raise")(error)


def _reraise(frame: Frame, position: int) -> None:
    error: BaseException = frame.pop()
    raise error


def _load_assertion_error(frame: Frame, _: Any) -> None:
    frame.push(AssertionError)


# ---- except
def _push_exc_info(frame: Frame, _: Any) -> None:
    error = frame.pop()
    frame.push(frame.handled[-1] if frame.handled else None)
    frame.push(error)
    frame.handled.append(error)


def _pop_except(frame: Frame, _: Any) -> None:
    frame.pop()
    frame.handled.pop()


_PLAIN = "catching classes that do not inherit from BaseException is not allowed"


def _check_exc_match(frame: Frame, _: Any) -> None:
    kinds = frame.pop()
    frame.push(frame.act(_matches, frame.peek(), kinds))


def _matches(error: BaseException, kinds: Any) -> bool:
    kinds = handled(kinds)
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(_PLAIN)
    return isinstance(error, kinds)


def _check_eg_match(frame: Frame, _: Any) -> None:
    kinds, group = frame.pop(), frame.pop()
    rest, match = frame.act(_split, group, kinds)
    frame.push(rest)
    frame.push(match)
    if match is not None:
        frame.handled[-1] = match


def _split(group: BaseException | None, kinds: Any) -> tuple[Any, Any]:
    """The part of a group that is not of some kinds, and the part that is; a lone exception becomes a group."""
    if group is None:
        return None, None
    if not isinstance(group, BaseExceptionGroup):
        if not isinstance(group, kinds):
            return group, None
        kind = ExceptionGroup if isinstance(group, Exception) else BaseExceptionGroup
        wrapped = kind("", [group])
        wrapped.__traceback__ = group.__traceback__
        return None, wrapped
    match, rest = group.split(kinds)
    return rest, match


def _prep_reraise_star(frame: Frame, _: Any) -> None:
    raised_here, group = frame.pop(), frame.pop()
    frame.push(frame.act(_to_be_raised, group, raised_here))


def _to_be_raised(group: BaseException, errors: list[BaseException | None]) -> BaseException | None:
    """What leaves an ``except*``: what its handlers raised, and the rest of the group that no handler took."""
    found = [each for each in errors if each is not None]
    if not found:
        return None
    if not isinstance(group, BaseExceptionGroup):
        return found[0]
    again = [each for each in found if _is_part(each, group)]
    new = [each for each in found if not _is_part(each, group)]
    leaves = {id(leaf) for each in again for leaf in _leaves(each)}
    rest = group.subgroup(lambda leaf: id(leaf) in leaves) if leaves else None
    if not new:
        return rest
    return BaseExceptionGroup("", [*new, *([] if rest is None else [rest])])


def _is_part(error: BaseException, group: BaseException) -> bool:
    return isinstance(error, BaseExceptionGroup) and {id(each) for each in _leaves(error)} <= {
        id(each) for each in _leaves(group)
    }


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]


# ---- with
def _before_with(frame: Frame, _: Any) -> None:
    leave, entered = frame.act(_enter, frame.pop())
    frame.push(leave)
    frame.push(entered)


def _enter(manager: Any) -> tuple[Any, Any]:
    """The method that leaves a context manager, and what entering it gives."""
    for name in ("__enter__", "__exit__"):
        if class_member(type(manager), name) is None:
            kind = f"'{type(manager).__module__}.{type(manager).__qualname__}'"
            kind = kind.replace("'builtins.", "'")
            missing = "" if name == "__enter__" else " (missed __exit__ method)"
            raise TypeError(f"{kind} object does not support the context manager protocol{missing}")
    entered: Any = context(manager)
    leave = type(entered).__exit__.__get__(entered)
    return leave, call(type(entered).__enter__, entered)


def _with_except_start(frame: Frame, _: Any) -> None:
    error, leave = frame.peek(), frame.peek(4)
    frame.push(frame.act(leave, type(error), error, _trace_of(error)))


def _trace_of(error: BaseException) -> TracebackType | None:
    return error.__traceback__


HANDLERS: dict[str, Handler] = {
    "RAISE_VARARGS": _raise,
    "RERAISE": _reraise,
    "LOAD_ASSERTION_ERROR": _load_assertion_error,
    "PUSH_EXC_INFO": _push_exc_info,
    "POP_EXCEPT": _pop_except,
    "CHECK_EXC_MATCH": _check_exc_match,
    "CHECK_EG_MATCH": _check_eg_match,
    "PREP_RERAISE_STAR": _prep_reraise_star,
    "BEFORE_WITH": _before_with,
    "WITH_EXCEPT_START": _with_except_start,
}
