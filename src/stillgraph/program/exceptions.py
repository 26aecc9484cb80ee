"""Operations on exceptions: raising them, raising them again, and asking which one was caught."""

from __future__ import annotations

import copy
from typing import Any, NoReturn

from stillgraph.core.files import is_ours

Left = tuple[int, list[Any]]
"""What a path did to Python's state before it raised: an index in `Program.midway`, and values for the effects."""

_LEFT = "__stillgraph_left__"


def raise_(
    exception: BaseException,
    left: Left | None = None,
    cause: BaseException | None = None,
    itself: bool = False,
    suppress: bool = False,
    context: BaseException | None = None,
) -> NoReturn:
    """Raise a fresh copy of an exception that a captured path raises, or that exception itself.

    Args:
        exception: as it was in the capture.
        left: what the path did before, see `Program.midway`.
        cause: an exception that the program caught, for ``raise … from``; others are in ``exception`` itself, unless
            that is raised itself.
        itself: whether it was there before the call: then it is this object that is raised, not a copy.
        suppress: whether it is raised ``from None``, if itself.
        context: what the captured path was handling.
    """
    if itself:
        _raise_itself(exception, left, cause, suppress, context)
    fresh = copied(exception)
    fresh.__cause__, fresh.__suppress_context__ = exception.__cause__, exception.__suppress_context__
    try:
        _raise(fresh.with_traceback(None), left, cause, context)
    finally:
        del fresh  # with its traceback it would hold this frame, and so itself and all that the program's frame has


def _raise_itself(
    exception: BaseException,
    left: Left | None,
    cause: BaseException | None,
    suppress: bool,
    context: BaseException | None,
) -> NoReturn:
    take_left(exception)
    trace = exception.__traceback__
    while trace is not None and not is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is not None:  # a program's handler had it: that call's frames are not to be kept for ever
        exception.__traceback__ = None
    if suppress:
        exception.__cause__ = None
    try:
        _raise(exception, left, cause, context)
    finally:
        del exception, cause, trace  # see `raise_`


def copied(exception: BaseException) -> BaseException:
    """A copy: what is raised gets a traceback, and with it everything in the frames that it passes."""
    try:
        fresh: BaseException = copy.copy(exception)
    except Exception:  # its constructor takes other arguments than the exception has
        fresh = type(exception).__new__(type(exception), *exception.args)
        fresh.args = exception.args
        fresh.__dict__.update(vars(exception))
    for kind, name in _BESIDE_ARGS.items():
        if isinstance(exception, kind):
            setattr(fresh, name, getattr(exception, name))
    return fresh


_BESIDE_ARGS = {SystemExit: "code", NameError: "name", AttributeError: "name"}
"""What an exception has that Python does not copy with its arguments."""


def raise_made(
    kind: type[BaseException],
    args: tuple[Any, ...],
    state: dict[str, Any] | None,
    left: Left | None = None,
    cause: BaseException | None = None,
    suppress: bool = False,
    context: BaseException | None = None,
) -> NoReturn:
    """As `raise_`, for an exception that holds what is only known when running.

    Args:
        kind: its type.
        args: its arguments.
        state: its attributes, for a type with a constructor of its own, which ran in the capture; otherwise None.
        left, cause, context: see `raise_`.
        suppress: whether it is raised ``from None``.
    """
    if state is None:
        made = kind(*args)
    else:
        made = kind.__new__(kind, *args)
        made.args = args
        made.__dict__.update(state)
    made.__suppress_context__ = suppress
    try:
        _raise(made, left, cause, context)
    finally:
        del made  # see `raise_`


def _raise(
    exception: BaseException, left: Left | None, cause: BaseException | None, context: BaseException | None
) -> NoReturn:
    try:
        if cause is None:
            raise _leaving(exception, left)
        raise _leaving(exception, left) from cause
    except BaseException as raised:
        if context is not None:
            raised.__context__ = _handled(context, raised.__context__)
        raise
    finally:
        del exception, cause, context  # see `raise_`


def _handled(context: BaseException, outer: BaseException | None) -> BaseException:
    """A copy of what a captured path was handling, inside of what handles now."""
    inner = outer if context.__context__ is None else _handled(context.__context__, outer)
    fresh = copied(context).with_traceback(None)
    fresh.__cause__, fresh.__suppress_context__ = context.__cause__, context.__suppress_context__
    fresh.__context__ = inner
    return fresh


def _leaving(exception: BaseException, left: Left | None) -> BaseException:
    if left is not None:
        exception.__dict__[_LEFT] = left
    return exception


def take_left(exception: BaseException) -> Left | None:
    """What the program that raised an exception had done before; the exception forgets it."""
    left: Left | None = exception.__dict__.pop(_LEFT, None)
    return left


def reraise(
    error: BaseException,
    left: Left | None = None,
    named: bool = False,
    cause: BaseException | None = None,
    outer: bool = False,
    suppress: bool = False,
) -> NoReturn:
    """``raise`` in a handler: the exception goes on.

    Args:
        error: what the program caught.
        left: see `raise_`.
        named: whether it is ``raise error``, of which a traceback shows the line.
        cause: of ``raise error from cause``, a fresh copy of it.
        outer: whether the cause was there before, or has been caught: then it is that object.
        suppress: whether it is raised ``from None``.
    """
    take_left(error)
    if cause is not None:
        raise _leaving(error, left) from (cause if outer else copied(cause))
    if suppress:
        raise _leaving(error, left) from None
    raise _leaving(error, left)


def which(error: BaseException, kinds: tuple[type[BaseException], ...], texts: tuple[str, ...] | None) -> int:
    """Which one of some exceptions the program has caught.

    Args:
        error: what the program caught.
        kinds: the very classes.
        texts: what ``repr`` gives for the arguments of each; None where the classes alone tell them apart.

    Raises:
        BaseException: the exception itself, if it is none of them: something failed that raises nothing as a rule, an
            allocation, say, and the handler has been captured for the others.
    """
    for index, kind in enumerate(kinds):
        if type(error) is kind and (texts is None or repr(error.args) == texts[index]):
            return index
    raise error


def held_by(
    error: BaseException, kinds: tuple[type[BaseException], ...], name: str, position: int | None = None
) -> Any:
    """What a caught exception has under a name; with a position, that of its arguments.

    Args:
        error: what the program caught.
        kinds: the very classes that it may be of.
        name: of the attribute.
        position: in that, which is a tuple then.

    Raises:
        BaseException: the exception itself, as for `which`.
    """
    if type(error) not in kinds:
        raise error
    value = getattr(error, name)
    return value if position is None else value[position]


def message_of(error: BaseException) -> str:
    """The one argument of a caught exception of which nothing is known: a text, as torch and Python mostly raise it.

    Raises:
        RuntimeError: it has other arguments. The handler has been captured for a text.
    """
    try:
        return str.__str__(*error.args)
    except TypeError:
        held = f"a handler reads the arguments of a {type(error).__name__}"
        raise RuntimeError(f"{held}: it was captured for one text, and they are {error.args!r}") from error


def without_traceback(error: BaseException) -> None:
    """``error.with_traceback(None)``."""
    error.__traceback__ = None
