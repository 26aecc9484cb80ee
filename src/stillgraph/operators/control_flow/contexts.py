"""``with``."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, TracebackType
from typing import Any

import numpy
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import is_signal
from stillgraph.core.files import is_torch
from stillgraph.core.lookup import class_member, of_class
from stillgraph.operators.conditions.branches import Block, places
from stillgraph.operators.conditions.truth import truth
from stillgraph.operators.containers.tables import raise_unless
from stillgraph.operators.control_flow.inside_out import run_inside_out
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.protected import attempt
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import of_each
from stillgraph.operators.outside.foreign import before_entering
from stillgraph.polyfills.given import no_manager
from stillgraph.program.context import IdleHooks
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.caught_kinds import class_in_run
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import Variable
from stillgraph.trace.values.caught import Caught, CaughtPart


def context(manager: Any) -> Any:
    """What a ``with`` statement enters that stays Python's."""
    capture = session()
    if capture is None:
        return manager
    require_manager(manager)
    if isinstance(manager, contextlib.suppress):
        return _Noted(manager, capture, capture.handlers.swallowing)
    if is_converted(capture, manager):
        return _Converted(manager, capture)
    if isinstance(manager, warnings.catch_warnings):
        return _Noted(manager, capture, capture.catching_warnings)
    if isinstance(manager, saved_tensors_hooks):
        return _saved_tensors(manager)
    if isinstance(manager, contextlib._RedirectStream):
        raise refuse("SG305", "what the program prints cannot be redirected from within", location=here())
    if isinstance(manager, numpy.errstate) and not _LENIENT.issuperset(_reactions(manager)):
        message = "numpy.errstate asks for more than warnings of what numpy computes, and a program computes it"
        raise refuse("SG305", message, location=here(), hint="Look for inf and nan in the result.")
    before_entering(capture, manager)
    return _Noted(manager, capture, capture.handlers.watching) if sees_exceptions(manager) else manager


_LENIENT = frozenset({None, "ignore", "warn"})


def _reactions(manager: numpy.errstate) -> Iterator[Any]:
    """What is to be done at each kind of floating-point error; None where it is what is done already."""
    return (getattr(manager, f"_{name}", None) for name in ("all", "divide", "over", "under", "invalid"))


def _saved_tensors(manager: saved_tensors_hooks) -> IdleHooks:
    """Hooks are called with what the run saves; during a capture they stand idle.

    Raises:
        CaptureError: a hook closes over variables, which may be of one call of the function.
    """
    hooks = (manager.pack_hook, manager.unpack_hook)
    if type(manager) is not save_on_cpu and not all(isinstance(h, FunctionType) and not h.__closure__ for h in hooks):
        message = "a hook for saved tensors closes over variables; use functions of the module"
        raise refuse("SG305", message, location=here())
    return IdleHooks(manager)


def is_converted(capture: Session, manager: Any) -> bool:
    """Whether a manager is one of the user's, whose methods are rewritten."""
    leave = of_class(manager, "__exit__")
    if not isinstance(leave, FunctionType):
        return False
    return capture.is_rewritten(leave.__code__) or capture.conversion.wants(leave)


def sees_exceptions(manager: Any) -> bool:
    """Whether it matters to a manager how its block ends: any but torch's modes, and those that do nothing."""
    if isinstance(manager, contextlib._GeneratorContextManager):
        generator: Any = manager.gen
        return not is_torch(generator.gi_code.co_filename)
    leave = of_class(manager, "__exit__")
    return not isinstance(manager, contextlib.nullcontext) and not (
        isinstance(leave, FunctionType) and is_torch(leave.__code__.co_filename)
    )


def ended_by(manager: Any) -> tuple[type[BaseException], ...] | None:
    """The exceptions that a manager ends of which that is known, and which does nothing else; None for any other."""
    if not isinstance(manager, contextlib.suppress):
        return None
    kinds: tuple[type[BaseException], ...] = manager._exceptions  # type: ignore[attr-defined]  # not in the stubs
    return kinds


class _Converted:
    """A context manager of the user's whose methods are called through `call`.

    A raise of the user's that only happens in the run would go past its ``__exit__``, so it is refused inside.
    """

    def __init__(self, manager: Any, capture: Session) -> None:
        self._manager = manager
        self._capture = capture

    def __enter__(self) -> Any:
        self._capture.watched = True
        self._region = self._capture.region
        self._capture.handlers.watching.append(len(self._capture.handlers.attempts))
        return call(type(self._manager).__enter__, self._manager)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Any:
        leave = functools.partial(call, type(self._manager).__exit__, self._manager)
        leave_now = functools.partial(leave, None, None, None)
        _require_same(self._capture, self._region, value, leave_now)
        self._capture.handlers.watching.pop()
        if value is not None and is_signal(value):
            return leave_early(leave_now)
        return leave(kind, value, trace)


class _Noted:
    """A context manager that sees the exceptions of its block.

    Args:
        manager: the user's.
        capture: the session.
        entered: of the session's, for each that was entered the number of attempts that lie around it.
    """

    def __init__(self, manager: Any, capture: Session, entered: list[int]) -> None:
        self._manager = manager
        self._capture = capture
        self._entered = entered

    def __enter__(self) -> Any:
        self._capture.watched = True
        self._region = self._capture.region
        self._entered.append(len(self._capture.handlers.attempts))
        return self._manager.__enter__()

    def __exit__(self, kind: Any, value: BaseException | None, trace: Any) -> Any:
        _require_same(self._capture, self._region, value, self._leave_now)
        self._entered.pop()
        if value is not None and is_signal(value):
            return leave_early(self._leave_now)
        return self._manager.__exit__(kind, value, trace)

    def _leave_now(self) -> None:
        if isinstance(self._manager, contextlib._GeneratorContextManager):
            self._manager.gen.close()
        else:
            self._manager.__exit__(None, None, None)


def _require_same(capture: Session, region: Any, error: BaseException | None, leave: Callable[[], object]) -> None:
    """Refuse to leave a manager in an arm of a branch that began inside of its block: the other arm leaves it, too.

    Args:
        capture: the session.
        region: that in which it was entered.
        error: what leaves the block, if anything does.
        leave: leaves it. That must not wait until Python lets go of it: what it writes would not be undone then.

    Raises:
        Restart: it is such an arm, and an exception leaves it: that is what `with_` is for.
        CaptureError: it is such an arm.
    """
    if capture.region is not region and not (error is not None and is_signal(error)):
        leave_early(leave)
        if error is not None:
            capture.knowledge.stage_handling()
        message = "a with block is left on one path of a condition, by a manager that sees how it is left"
        raise refuse("SG305", message, location=here(), hint="Decide, and return or raise, behind the with block.")


def leave_early(leave: Callable[[], object]) -> bool:
    """Leave a manager because the capture ends here or begins anew, of which it is told nothing.

    It has to be left: it may hold a lock or have switched a mode. What it writes is undone with all the rest, and what
    it raises has no meaning.
    """
    try:
        leave()
    except Exception:  # of any kind, for it is the user's manager
        pass
    except BaseException as error:
        if not is_signal(error):
            raise
    return False


# ---- as an operator
Managers = Sequence[tuple[Callable[..., Any], ...]]


def with_(
    managers: Managers,
    body: Block,
    *,
    keeps: tuple[str, ...] = (),
    drops: tuple[str, ...] = (),
) -> Exit | None:
    """``with manager() as v: body()``, in code some of whose exceptions only the run raises.

    Args:
        managers: for each a function that gives it and, where there is a target, one that assigns to that.
        body, keeps, drops: see `if_`.
    """
    capture = session()
    if capture is None:
        return _plain(managers, body)
    blocks = (body, *(store for _, *stores in managers for store in stores))
    return _enter(Context(capture, list(places(keeps, *blocks)), list(places(drops, *blocks))), managers, body)


def _plain(managers: Managers, body: Block) -> Exit | None:
    (make, *stores), *others = managers
    with make() as value:
        for store in stores:
            store(value)
        return _plain(others, body) if others else body()


def _enter(run: Context, managers: Managers, body: Block) -> Exit | None:
    """Enter the first of some managers, and the others in its block."""
    (make, *stores), *others = managers
    manager = make()
    require_manager(manager)
    inner = Context(run.session, [*run.keeps, *run.drops], [])  # what this one gives is there when the next is made
    inside = functools.partial(_enter, inner, others, body) if others else body

    def store(value: Any) -> None:
        for each in stores:
            each(value)

    if is_converted(run.session, manager):
        return _with_converted(run, manager, inside, store)
    managing = around_block(run.session, manager)
    if managing is not None:

        def block(value: Any) -> Exit | None:
            store(value)
            return inside()

        return with_generator(run, managing, block)
    kinds = ended_by(manager)
    if kinds is not None:
        store(manager.__enter__())
        return attempt(run, inside, ((lambda: kinds, lambda error: None),), None)
    with context(manager) as value:
        store(value)
        return inside()


@of_each(0)
def require_manager(value: Any) -> None:
    """Raise what Python does where a value is no context manager, before it does anything.

    Raises:
        TypeError: the class of what the value stands for has no such methods.
    """
    missing = [name for name in ("__enter__", "__exit__") if class_member(type(value), name) is None]
    if missing:
        raise TypeError(no_manager(call(type, value), missing))


def _with_converted(run: Context, manager: Any, body: Block, store: Callable[[Any], None]) -> Exit | None:
    """The manager is told of an exception in a handler, and of a block that came to its end behind it."""
    kind = type(manager)
    run.session.watched = True
    store(call(kind.__enter__, manager))
    ended = Variable("whether a with block came to its end", False)

    def to_the_end() -> Exit | None:
        exit = body()
        run.session.journal.write(ended, True)
        return exit

    def leave() -> None:
        call(kind.__exit__, manager, None, None, None)

    def tell(error: BaseException) -> Exit | None:
        known = truth(run.session, call(kind.__exit__, manager, *seen(error)))

        def go_on() -> Exit | None:
            raise error

        if isinstance(known, bool):
            return None if known else go_on()
        return branch(run.session, known, lambda: None, go_on, run.keeps, run.drops)

    run = Context(run.session, [*run.keeps, ended], run.drops)
    try:
        exit = attempt(run, to_the_end, ((None, tell),), None, only_cleans_up=True)
    except BaseException as error:
        if is_signal(error):
            leave_early(leave)
        raise
    if ended.value is True:
        leave()
    elif ended.value is not False:
        branch(run.session, ended.value, leave, lambda: None, (), ())
    return exit


Managing = Callable[[Callable[[Any], Any]], Any]
"""The function of a context manager, turned inside out: it calls the block where it yields."""


def around_block(capture: Session, manager: Any) -> Managing | None:
    """The function of a manager of `contextlib.contextmanager` that the capture has made.

    None for any other, and for one that takes its values from another generator.
    """
    if not capture.knowledge.managers or type(manager) is not contextlib._GeneratorContextManager:
        return None
    if not hasattr(manager, "func"):
        return None  # it has been entered
    function = capture.conversion.managers.get(manager)
    turned = None if function is None else capture.conversion.turn_inside_out(function, manages=True)
    if turned is None:
        return None
    inside_out, name = turned

    def managing(emit: Callable[[Any], Any]) -> None:
        args, kwargs = manager.args, manager.kwds
        del manager.func, manager.args, manager.kwds  # as Python does: it cannot be entered again
        inside_out(*args, **kwargs, **{name: emit})

    return managing


def with_generator(run: Context, managing: Managing, body: Callable[[Any], Exit | None]) -> Exit | None:
    """Run the function of a manager, and its block where it yields: what the block raises is raised there.

    Args:
        run: the statement.
        managing: the function.
        body: the block, given what is yielded.
    """
    capture = run.session
    capture.watched = True
    entered = Variable("whether a with block was entered", False)
    outside, around, certain = capture.region, len(capture.handlers.attempts), False

    def block(item: Any) -> Exit | None:
        nonlocal certain
        if entered.value is not False:
            raise refuse("SG305", "a context manager's function yields twice", location=here())
        capture.journal.write(entered, True)
        tries = sum(attempt.staged for attempt in capture.handlers.attempts[around:])
        certain = capture.region.is_inside(outside, tries)  # and in no branch or loop
        return body(item)

    def to_the_end(emit: Callable[[Any], Any]) -> None:
        def handed_out(item: Any) -> None:
            emit(item)

        managing(handed_out)

    exit = run_inside_out(run, to_the_end, block, repeats=False)
    raise_unless(capture, certain or entered.value, lambda: RuntimeError("generator didn't yield"))
    return exit


def seen(error: BaseException) -> tuple[Any, BaseException, Any]:
    """What ``__exit__`` is given of an exception."""
    capture = session()
    if isinstance(error, Caught) and capture is not None:
        return class_in_run(capture, error), error, CaughtPart(error, "traceback")
    return type(error), error, error.__traceback__
