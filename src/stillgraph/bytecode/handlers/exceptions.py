"""``raise``, ``except`` and ``with``."""

from __future__ import annotations

import sys
from typing import Any

from stillgraph.bytecode.machine.frame import Frame, Handler
from stillgraph.bytecode.machine.tracebacks import raise_again
from stillgraph.core.lookup import class_member
from stillgraph.operators.calls.calls import call
from stillgraph.operators.control_flow.contexts import context, require_manager, seen
from stillgraph.operators.control_flow.protected import handled
from stillgraph.operators.control_flow.raising import caused, raised
from stillgraph.trace.capture.session import session


# ---- raise
def _raise(frame: Frame, count: int) -> None:
    """Raise. No frame of ours is to hold the exception then: through its traceback, that would keep itself alive."""
    if count == 0:
        if sys.exc_info()[1] is not None:
            raise  # which is not raised at another line then
        frame.line("raise")([RuntimeError("No active exception to reraise")])
    held = frame.take(count)[::-1]
    if session() is None:
        frame.line("raise" if count == 1 else "raise from")(held)
    error = frame.act(raised, held[0]) if count == 1 else frame.act(caused, held[1], held[0])
    frame.line("raise")([error])


def _reraise(frame: Frame, position: int) -> None:
    raise_again(frame.pop())


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


def kinds_of(kinds: Any) -> Any:
    """What an ``except`` is for.

    Raises:
        TypeError: there is something else among it than classes of exceptions.
        CaptureError: only the run knows which class it is.
    """
    kinds = handled(kinds)
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(_PLAIN)
    return kinds


def _matches(error: BaseException, kinds: Any) -> bool:
    kinds = kinds_of(kinds)
    return isinstance(error, kinds) if session() is not None else _is_one(error, kinds)


def _is_one(error: BaseException, kinds: Any) -> bool:
    """As Python asks it of what was raised: by the bases alone, whatever ``__instancecheck__`` says."""
    bases = type(error).__mro__
    return any(kind is base for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) for base in bases)


def _check_eg_match(frame: Frame, _: Any) -> None:
    kinds, group = frame.pop(), frame.pop()
    rest, match = frame.act(_split, group, kinds)
    frame.push(rest)
    frame.push(match)
    if match is not None:
        frame.handled[-1] = match


def _split(group: BaseException | None, kinds: Any) -> tuple[Any, Any]:
    """The part of a group that is not of some kinds, and the part that is; a lone exception becomes a group."""
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(_PLAIN)
        if issubclass(kind, BaseExceptionGroup):
            raise TypeError(_GROUPS)
    if group is None:
        return None, None
    if _is_one(group, kinds):
        return None, group if isinstance(group, BaseExceptionGroup) else BaseExceptionGroup("", (group,))
    if not isinstance(group, BaseExceptionGroup):
        return group, None
    match, rest = group.split(kinds)
    return rest, match


_GROUPS = "catching ExceptionGroup with except* is not allowed. Use except instead."


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
    leaving = [*new, *([] if rest is None else [rest])]
    return BaseExceptionGroup("", leaving) if len(leaving) > 1 else leaving[0]


def _is_part(error: BaseException, group: BaseException) -> bool:
    """Whether it is what ``split`` has made of the group: that has all but the exceptions in common with it."""
    names = ("__notes__", "__traceback__", "__cause__", "__context__")
    same = all(getattr(error, name, None) is getattr(group, name, None) for name in names)
    return isinstance(error, BaseExceptionGroup) and same


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
    require_manager(manager)
    entered: Any = context(manager)
    enter, leave = _special(entered, "__enter__"), _special(entered, "__exit__")
    return leave, call(enter)


def _special(value: Any, name: str) -> Any:
    """A method as Python looks it up for a statement: in the class, past what the object itself has."""
    found = class_member(type(value), name)
    bind = getattr(type(found), "__get__", None)
    return found if bind is None else bind(found, value, type(value))


def _with_except_start(frame: Frame, _: Any) -> None:
    error, leave = frame.peek(), frame.peek(4)
    frame.push(frame.act(leave, *seen(error)))


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
