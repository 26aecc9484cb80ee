"""The interpreter: runs a frame, instruction by instruction. What an instruction means is said elsewhere.

Without a capture it does what Python does. In a capture, a jump that only the run can decide becomes a branch of the
program, and a loop is handed to the operator for loops (`regions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from stillgraph.bytecode import regions
from stillgraph.bytecode.frame import NOWHERE, Frame, Stops
from stillgraph.bytecode.table import HANDLERS
from stillgraph.core.diagnostics import StillgraphError
from stillgraph.operators.booleans import is_none
from stillgraph.operators.branches import return_
from stillgraph.operators.protected import is_signal
from stillgraph.operators.truth import truth
from stillgraph.trace.exits import Exit
from stillgraph.trace.session import session


@dataclass(frozen=True)
class Yielded:
    """A generator's frame has given something out, and waits."""

    value: Any


_HANDLED_LESS = object()
"""An exception is no longer being handled, in whose handler the frame was run."""

Outcome = Exit | Yielded | None


def run(frame: Frame) -> Outcome:
    """Run a frame to its ``return``, or to its next ``yield``."""
    return _steps(frame, NOWHERE, 0)  # type: ignore[no-any-return]  # of Any


def run_block(frame: Frame, stops: Stops, started: bool = False) -> Exit | None:
    """Run a frame until it comes to one of ``stops``, or returns; ``started``: the instruction it is at is no stop."""
    depth = frame.depth
    while True:
        found = _steps(frame, stops, len(frame.handled), started)
        if found is not _HANDLED_LESS:
            if found is not None and found.returned is True:  # what the block has put on the stack is not needed
                frame.depth = min(depth, frame.depth)
                frame.clear()
            return found  # type: ignore[no-any-return]  # of Any
        started = False


def _steps(frame: Frame, stops: Stops, level: int, started: bool = False) -> Any:
    """Run a frame as long as so many exceptions are being handled; Python handles them too."""
    instructions = frame.prepared.decoded.instructions
    while True:
        count = len(frame.handled)
        if count != level:
            if count < level:
                return _HANDLED_LESS
            found = _handling(frame.handled[level], lambda: _steps(frame, stops, level + 1))
            if found is not _HANDLED_LESS:
                return found
            continue
        index = frame.next
        if not started:
            stop = stops.get(index)
            if stop is not None:
                return regions.stopped(frame, index, stop)
        each = instructions[index]
        try:
            if session() is not None and not started:
                structure = regions.structure_at(frame, index)
                if structure is not None:
                    done, found = structure(frame, index, stops)
                    if done:
                        return found
                    continue
            started = False
            handler = HANDLERS.get(each.name)
            if handler is not None:
                handler(frame, each.argument)
                frame.next = index + 1
                continue
            left = _WAYS[each.name](frame, each.argument, stops)
        except BaseException as error:
            if not _is_handled(frame, index, error):
                raise
            continue
        if left is not None:
            return left[0]


def _handling(error: BaseException, action: Callable[[], Any]) -> Any:
    """Do something while Python handles an exception, which a bare ``raise`` finds and new ones have for context."""
    trace, before = error.__traceback__, error.__context__
    try:
        raise error
    except BaseException as now:
        if now is not error:
            raise
        error.__traceback__, error.__context__ = trace, before
        return action()


def _is_handled(frame: Frame, index: int, error: BaseException) -> bool:
    """Go to the handler of an exception, if there is one and the exception is one of the user's."""
    decoded = frame.prepared.decoded
    handler = decoded.handler(index)
    if is_signal(error) or (isinstance(error, StillgraphError) and session() is not None):
        while handler is not None and handler.target not in frame.outside:
            if frame.prepared.is_with(handler.target):
                leave = frame.stack[handler.depth - 1].cell_contents
                leave(type(error), error, error.__traceback__)
            handler = decoded.handler(handler.target)
        return False
    if handler is None or handler.target in frame.outside:
        return False
    frame.cut(handler.depth)
    if handler.pushes_place:
        frame.push(index)
    frame.push(error)
    frame.next = handler.target
    return True


# ---- where control goes
_Left = tuple[Any] | None  # how the frame or block was left, if it was


def _jump(frame: Frame, target: int, stops: Stops) -> _Left:
    frame.next = target
    return None


def _if(wanted: bool) -> Callable[[Frame, int, Stops], _Left]:
    def jump(frame: Frame, target: int, stops: Stops) -> _Left:
        known = frame.act(_truth, frame.pop())
        ways = (target, frame.next + 1) if wanted else (frame.next + 1, target)
        return _either(frame, known, *ways, stops)

    return jump


def _if_none(wanted: bool) -> Callable[[Frame, int, Stops], _Left]:
    def jump(frame: Frame, target: int, stops: Stops) -> _Left:
        known = frame.act(_is_none, frame.pop())
        ways = (target, frame.next + 1) if wanted else (frame.next + 1, target)
        return _either(frame, known, *ways, stops)

    return jump


def _truth(value: Any) -> Any:
    capture = session()
    return bool(value) if capture is None else truth(capture, value)


def _is_none(value: Any) -> Any:
    capture = session()
    return value is None if capture is None else truth(capture, is_none(value))


def _either(frame: Frame, known: Any, if_true: int, if_false: int, stops: Stops) -> _Left:
    if isinstance(known, bool):
        frame.next = if_true if known else if_false
        return None
    return regions.fork(frame, known, if_true, if_false, stops)


def _for_iter(frame: Frame, target: int, stops: Stops) -> _Left:
    try:
        value = frame.act(next, frame.peek())
    except StopIteration:
        frame.pop()
        frame.next = target
        return None
    frame.push(value)
    frame.next += 1
    return None


def _return_value(frame: Frame, _: Any, stops: Stops) -> _Left:
    return (frame.act(return_, frame.pop()),)


def _yield_value(frame: Frame, _: Any, stops: Stops) -> _Left:
    value = frame.pop()
    if frame.emit is not None:
        return regions.give_out(frame, frame.emit, value, stops)
    frame.next += 1
    return (Yielded(value),)


def _send(frame: Frame, target: int, stops: Stops) -> _Left:
    value = frame.pop()
    generator = frame.peek()
    try:
        given = frame.act(next, generator) if value is None else frame.act(generator.send, value)
    except StopIteration as ended:
        frame.push(ended.value)
        frame.next = target
        return None
    frame.push(given)
    frame.next += 1
    return None


def _cleanup_throw(frame: Frame, _: Any, stops: Stops) -> _Left:
    error = frame.pop()
    frame.take(2)
    if not isinstance(error, StopIteration):
        raise error
    frame.push(None)
    frame.push(error.value)
    frame.next += 1
    return None


_WAYS: dict[str, Callable[[Frame, Any, Stops], _Left]] = {
    "JUMP": _jump,
    "POP_JUMP_IF_TRUE": _if(True),
    "POP_JUMP_IF_FALSE": _if(False),
    "POP_JUMP_IF_NONE": _if_none(True),
    "POP_JUMP_IF_NOT_NONE": _if_none(False),
    "FOR_ITER": _for_iter,
    "RETURN_VALUE": _return_value,
    "YIELD_VALUE": _yield_value,
    "SEND": _send,
    "CLEANUP_THROW": _cleanup_throw,
}


# ---- generators
def generate(frame: Frame) -> Generator[Any, Any, Any]:
    """The generator that a frame is the body of."""
    outcome = run(frame)
    while isinstance(outcome, Yielded):
        try:
            sent = yield outcome.value
        except BaseException as error:
            outcome = _thrown(frame, error)
        else:
            frame.push(sent)
            outcome = run(frame)
    return None if outcome is None else outcome.value


def _thrown(frame: Frame, error: BaseException) -> Outcome:
    """Go on with an exception that was thrown into a generator; one that it takes its values from gets it first."""
    instructions = frame.prepared.decoded.instructions
    if instructions[frame.next - 2].name == "SEND":
        inner, target = frame.peek(), instructions[frame.next - 2].argument
        try:
            given = _throw_into(inner, error)
        except StopIteration as ended:
            frame.push(ended.value)
            frame.next = target
            return run(frame)
        except BaseException as raised:
            error = raised
        else:
            return Yielded(given)
    frame.push(None)  # in the place of what would have been sent
    if not _is_handled(frame, frame.next - 1, error):
        raise error
    return run(frame)


def _throw_into(inner: Any, error: BaseException) -> Any:
    if isinstance(error, GeneratorExit):
        if hasattr(inner, "close"):
            inner.close()
        raise error
    if not hasattr(inner, "throw"):
        raise error
    return inner.throw(error)
