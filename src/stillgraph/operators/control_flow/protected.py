"""``try``: Python's own while its exceptions are known, staged where only the run raises them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from stillgraph.core.diagnostics import CaptureError, refuse
from stillgraph.core.faults import ends_capture, is_signal
from stillgraph.operators.conditions.branches import Block, places
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.trials import Trial
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.join_errors import refuse_join
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.protected import Attempt, Handler, StageTry, stage, unbound_behind
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.staging import continue_ as stage_rest
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, Variable
from stillgraph.trace.values.caught import narrowed
from stillgraph.trace.values.errors import in_eagers_words

Kinds = Callable[[], Any]
Handlers = Sequence[tuple[Kinds | None, Handler]]
Named = tuple[Kinds | None, Handler, str]  # with the variable that has the exception in it
_NUMBERS = itertools.count(1)
_CLASSES = "Give the classes names before the try that hold the same classes on all paths."


def try_(
    body: Block,
    handlers: Sequence[tuple[Kinds | None, Handler] | Named],
    orelse: Block | None = None,
    cleanup: Block | None = None,
    *,
    leaves: bool = False,
    keeps: tuple[str, ...] = (),
    drops: tuple[str, ...] = (),
) -> Exit | None:
    """``try: body()``, ``except kinds() as e: handler(e)`` for each of ``handlers``, and so on.

    Args:
        body, handlers, orelse, cleanup: the blocks, each of which returns its exit; a handler comes with the name of
            the variable that it keeps the exception in, if it has one.
        leaves: whether the cleanup has exits of its own, which end an exception that is under way.
        keeps, drops: the variables that the blocks assign, by whether they are live afterwards.

    Returns:
        How the statement was left.
    """
    capture = session()
    unbinding: Handlers = [(kinds, _unbinding(capture, handler, *name)) for kinds, handler, *name in handlers]
    if capture is None:
        return _plain(body, unbinding, orelse, cleanup)
    blocks = (body, *(handler for _, handler, *_ in handlers), orelse, cleanup)
    context = Context(capture, list(places(keeps, *blocks)), list(places(drops, *blocks)))
    if cleanup is None:
        return attempt(context, body, unbinding, orelse)
    return _cleaned_up(context, body, unbinding, orelse, cleanup, leaves)


def _unbinding(capture: Session | None, handler: Handler, name: str = "") -> Handler:
    """A handler at whose end the variable with the exception has no value, whatever the handler has put there."""
    if not name:
        return handler
    (place,) = places((name,), handler)

    def handle(error: BaseException) -> Exit | None:
        with contextlib.nullcontext() if capture is None else unbound_behind(capture, lambda: [place.key]):
            try:
                return handler(error)
            finally:
                place.set(MISSING)

    return handle


def _cleaned_up(
    context: Context, body: Block, handlers: Handlers, orelse: Block | None, cleanup: Block, leaves: bool
) -> Exit | None:
    """A ``try`` with a ``finally``: its block runs where an exception is under way, and otherwise behind the rest."""
    capture = context.session
    done = Variable("whether a finally has ended an exception", False)
    if leaves:
        context = replace(context, keeps=[done, *context.keeps])

    def clean_up_and_go_on(error: BaseException) -> Exit | None:
        def go_on() -> Exit | None:
            raise error

        ended = cleanup()
        if leaves:
            capture.journal.write(done, True)
        return stage_rest(capture, ended, go_on, context.keeps, context.drops)

    def clean_up() -> Exit | None:
        return stage_rest(capture, cleanup(), lambda: left, context.keeps, context.drops)

    inner = body if not handlers else functools.partial(attempt, context, body, handlers, orelse)
    left = attempt(context, inner, ((None, clean_up_and_go_on),), None, only_cleans_up=not leaves)
    if isinstance(done.value, bool):
        return left if done.value else clean_up()
    return branch(capture, done.value, lambda: left, clean_up, context.keeps, context.drops)


def handling() -> None:
    """The beginning of a handler for every exception: those with which a capture ends are not meant.

    A ``finally`` that leaves its block is one too, and would end refusals as well.
    """
    error = sys.exc_info()[1]
    if error is not None:
        if _is_not_for_the_user(error):
            raise error
        if session() is not None:
            in_eagers_words(error)


def _is_not_for_the_user(error: BaseException) -> bool:
    return is_signal(error) or (session() is not None and ends_capture(error))


class Starred:
    """What stands around a ``try`` with ``except*``, of whose handlers Python collects all that they raise.

    That with which a capture ends is not for the group: no handler behind it runs, and it leaves the statement itself.

    Attributes:
        ending: what has ended the capture in a handler.
    """

    def __init__(self) -> None:
        self.ending: BaseException | None = None

    def __enter__(self) -> _StarHandler:
        return _StarHandler(self)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        ending, self.ending = self.ending, None
        if ending is None or ending is error:
            return
        context = ending.__context__
        try:
            raise ending
        finally:
            ending.__context__ = context  # not the group, which has it in it
            del ending, error


class _StarHandler:
    """What stands around the block of each ``except*``, and may be entered again."""

    def __init__(self, statement: Starred) -> None:
        self._statement = statement

    def __enter__(self) -> None:
        handled = sys.exc_info()[1]
        ending = self._statement.ending or next((each for each in _leaves(handled) if _is_not_for_the_user(each)), None)
        self._statement.ending = ending
        if ending is not None:
            raise ending

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None and _is_not_for_the_user(error):
            self._statement.ending = error


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    """The exceptions in a group, and in those in it; one that is no group itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    elif error is not None:
        yield error


def handled(kinds: Any) -> Any:
    """What a handler is for, which has to be the same on all paths.

    Raises:
        CaptureError: only the run knows which class it is.
    """
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if isinstance(kind, Unjoined):
            kind.refuse()
    return kinds


def _plain(body: Block, handlers: Handlers, orelse: Block | None, cleanup: Block | None) -> Exit | None:
    if cleanup is not None:
        try:
            exit = _plain(body, handlers, orelse, None)
        except BaseException:
            left = cleanup()
            if left is not None:
                return left
            raise
        left = cleanup()
        return exit if left is None else left
    try:
        exit = body()
    except BaseException as error:
        handler = _find(handlers, error)
        if handler is None:
            raise
        return handler(error)
    return orelse() if exit is None and orelse is not None else exit


def _find(handlers: Handlers, error: BaseException) -> Handler | None:
    return next((handler for kinds, handler in handlers if kinds is None or isinstance(error, kinds())), None)


def attempt(
    context: Context, body: Block, handlers: Handlers, orelse: Block | None, only_cleans_up: bool = False
) -> Exit | None:
    """A body with handlers: Python's own, until something in the body turns out to raise in the run."""
    capture = context.session
    start = context.checkpoint()
    kinds = _kinds(context, handlers)
    if kinds is None:
        start.rollback()
        kinds, start = (BaseException,), context.checkpoint()
    mine = Attempt(capture, "", kinds, staged=False, only_cleans_up=only_cleans_up)
    capture.handlers.attempts.append(mine)
    try:
        try:
            exit = body()
        finally:
            capture.handlers.attempts.remove(mine)
    except StageTry as signal:
        if signal.attempt is not mine:
            raise
    except BaseException as error:
        if ends_capture(error):
            raise
        in_eagers_words(error)
        handler = _find(handlers, error)
        if handler is None:
            raise
        return handler(error)
    else:
        return exit if orelse is None else stage_rest(capture, exit, orelse, context.keeps, context.drops)
    start.rollback()  # here, where no exception is being handled that an exception of the user's had for its context
    return _staged(context, body, handlers, orelse, only_cleans_up)


def _kinds(context: Context, handlers: Handlers) -> tuple[type[BaseException], ...] | None:
    """What some handlers catch; None where that cannot be said before there is an exception."""
    try:
        return tuple(kind for kinds, _ in handlers for kind in _foreseen(context, kinds))
    except CaptureError:
        return None


def _foreseen(context: Context, kinds: Kinds | None) -> tuple[type[BaseException], ...]:
    """What a handler is for, asked before there is an exception; Python asks only then.

    Raises:
        CaptureError: what is asked fails, or does more than to give classes.
    """
    if kinds is None:
        return (BaseException,)
    capture = context.session
    trial, outer = Trial(context), capture.foreseeing
    capture.foreseeing = True
    try:
        found = _flat(kinds())
    except Exception as error:  # whatever the user's expression raises
        if ends_capture(error):
            raise
        raise _not_foreseen(f"fails with {type(error).__name__}") from error
    finally:
        capture.foreseeing = outer
    if trial.has_done_something():
        raise _not_foreseen("does something")
    return found


def _not_foreseen(what: str) -> BaseException:
    return refuse("SG208", f"what an 'except' is for {what} where it is evaluated", location=here(), hint=_CLASSES)


def _staged(
    context: Context, body: Block, handlers: Handlers, orelse: Block | None, only_cleans_up: bool
) -> Exit | None:
    capture = context.session
    known = [(_foreseen(context, kinds), handler) for kinds, handler in handlers]
    kinds = tuple(kind for fitting, _ in known for kind in fitting)
    attempt = Attempt(capture, f"try_{next(_NUMBERS)}", kinds, staged=True, only_cleans_up=only_cleans_up)
    completed = Variable("whether the body of a try came to its end", False)

    def to_the_end() -> Exit | None:
        exit = body()
        capture.journal.write(completed, True)
        return exit

    handle = functools.partial(_dispatch, context, known)
    try:
        exit = stage(capture, attempt, to_the_end, handle, [completed, *context.keeps], context.drops)
    except JoinFailure as failure:
        raise refuse_join("the body of a try", failure) from failure
    if orelse is None:
        return exit
    return stage_rest(capture, exit, lambda: _if_completed(context, completed, orelse), context.keeps, context.drops)


def _flat(kinds: Any) -> tuple[type[BaseException], ...]:
    if isinstance(kinds, tuple):
        return tuple(kind for inner in kinds for kind in _flat(inner))
    return (kinds,)


def _dispatch(
    context: Context, handlers: Sequence[tuple[tuple[type[BaseException], ...], Handler]], error: BaseException
) -> Exit | None:
    """The first handler whose types fit; the last fits if no other does."""
    (kinds, handler), *others = handlers
    if not others:
        with narrowed(error, lambda each: each.is_expected(kinds)):
            return handler(error)
    capture = context.session
    fits = capture.fresh_result(bool, capture.emit("call_function", isinstance, (error, kinds), {}))

    def handled() -> Exit | None:
        with narrowed(error, lambda each: each.is_expected(kinds)):
            return handler(error)

    def rest() -> Exit | None:
        with narrowed(error, lambda each: not each.is_surely(kinds)):
            return _dispatch(context, others, error)

    return branch(capture, fits, handled, rest, context.keeps, context.drops)


def _if_completed(context: Context, completed: Variable, orelse: Block) -> Exit | None:
    if isinstance(completed.value, bool):
        return orelse() if completed.value else None
    capture: Session = context.session
    return branch(capture, completed.value, orelse, lambda: None, context.keeps, context.drops)
