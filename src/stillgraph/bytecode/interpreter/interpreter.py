"""The interpreter: runs a frame, instruction by instruction. What an instruction means is said elsewhere.

Without a capture it does what Python does. In a capture, a jump that only the run can decide becomes a branch of the
program, and a loop is handed to the operator for loops (`branches.py`, `loops.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stillgraph.bytecode.interpreter.branches import fork, stopped
from stillgraph.bytecode.interpreter.regions import give_out, leave, prepared
from stillgraph.bytecode.machine import running
from stillgraph.bytecode.machine.frame import NOWHERE, Frame, Stops
from stillgraph.bytecode.machine.iteration import advanced
from stillgraph.bytecode.machine.table import HANDLERS
from stillgraph.bytecode.machine.tracebacks import clean, raise_again
from stillgraph.bytecode.segments.failures import caught, failed
from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import ends_capture, is_signal
from stillgraph.core.parcel import Parcel
from stillgraph.operators.conditions.branches import result_of, return_
from stillgraph.operators.conditions.truth import truth
from stillgraph.operators.objects.identity import is_none
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.values.errors import in_eagers_words


@dataclass(frozen=True)
class Yielded:
    """A generator's frame has given something out, and waits."""

    value: Any


_HANDLED_LESS = object()
"""An exception is no longer being handled, in whose handler the frame was run, or only a part of it is."""

Outcome = Exit | Yielded | None


def run(frame: Frame) -> Outcome:
    """Run a frame to its ``return``, or to its next ``yield``."""
    return _steps(frame, NOWHERE, 0)  # type: ignore[no-any-return]  # of Any


def finished(outcome: Outcome) -> Any:
    """What a frame that has run to its end gives."""
    assert isinstance(outcome, Exit), "a plain function yields nothing"
    return result_of(outcome)


@running.run_block.defined
def run_block(frame: Frame, stops: Stops, started: bool = False) -> Exit | None:
    """Run a frame until it comes to one of ``stops``, or returns; ``started``: the instruction it is at is no stop."""
    depth = frame.depth
    while True:
        found = _steps(frame, stops, len(frame.handled), started)
        if isinstance(found, Yielded):
            capturing().knowledge.stage_handling()  # a manager's function is run around its block then
            message = f"the generator '{frame.code.co_name}', which Python runs, yields on one path of a condition"
            raise refuse("SG301", message, location=here(), hint="Iterate it in a loop, or list it.")
        if found is not _HANDLED_LESS:
            if found is not None and found.returned is True:  # what the block has put on the stack is not needed
                frame.depth = min(depth, frame.depth)
                frame.clear()
            return found  # type: ignore[no-any-return]  # of Any
        started = False


def _steps(frame: Frame, stops: Stops, level: int, started: bool = False) -> Any:
    """Run a frame as long as so many exceptions are being handled; Python handles them too."""
    instructions = frame.prepared.decoded.instructions
    handling = frame.handled[level - 1] if level else None
    while True:
        count = len(frame.handled)
        if count < level or (level and frame.handled[level - 1] is not handling):
            return _HANDLED_LESS
        if count > level:
            found = _handling(frame.handled[level], lambda: _steps(frame, stops, level + 1))
            if found is not _HANDLED_LESS:
                return found
            continue
        index = frame.next
        if not started:
            stop = stops.get(index)
            if stop is not None:
                return stopped(frame, index, stop)
        each = instructions[index]
        place = index
        try:
            structure = prepared(frame, index, started)
            if structure is not None:
                started = False
                run_whole, place = structure
                done, found = run_whole(frame, index, stops)
                if done:
                    return found
                continue
            started = False
            handler = HANDLERS.get(each.name)
            if handler is not None:
                handler(frame, each.argument)
                if frame.segment is not None:
                    frame.segment.after(frame, index)
                frame.next = index + 1
                continue
            left = _WAYS[each.name](frame, each.argument, stops)
            if frame.segment is not None:
                frame.segment.require_none_refused()
        except BaseException as error:
            if not is_handled(frame, place, error):
                if frame.segment is not None:
                    failed(frame.segment, frame, index, error)
                raise
            if frame.segment is not None:
                caught(frame.segment, frame, index, error)
            continue
        if left is not None:
            return left[0]


def run_under(frame: Frame, action: Callable[[], Any], level: int = 0) -> Any:
    """Do something while Python handles the exceptions that a frame is handling, and run the frame on from there."""
    if level == len(frame.handled):
        return action()
    found = _handling(frame.handled[level], lambda: run_under(frame, action, level + 1))
    return _steps(frame, NOWHERE, level) if found is _HANDLED_LESS else found


def under(frame: Frame, action: Callable[[], None], level: int = 0) -> None:
    """Do something while Python handles the exceptions that a frame is handling."""
    if level < len(frame.handled):
        _handling(frame.handled[level], functools.partial(under, frame, action, level + 1))
    else:
        action()


@running.carry_out.defined
def carry_out(frame: Frame) -> None:
    """Carry out the instruction that a frame is at, outside of a capture."""
    each = frame.instruction
    handler = HANDLERS.get(each.name)
    if handler is None:
        _WAYS[each.name](frame, each.argument, NOWHERE)
    else:
        handler(frame, each.argument)
        frame.next += 1


def go_on(frame: Frame) -> Any:
    """Run a frame on, for `run_under`."""
    return _steps(frame, NOWHERE, len(frame.handled))


def _handling(error: BaseException, action: Callable[[], Any]) -> Any:
    """Do something while Python handles an exception, which a bare ``raise`` finds and new ones have for context."""
    trace = error.__traceback__
    try:
        raise_again(error)
    except BaseException as now:
        if now is not error:
            raise
        BaseException.with_traceback(error, trace)
        return action()
    finally:
        del error, trace  # its traceback may lead here


@running.is_handled.defined
def is_handled(frame: Frame, index: int, error: BaseException) -> bool:
    """Go to the handler of an exception, if there is one and the exception is one of the user's."""
    decoded = frame.prepared.decoded
    handler = None if error is frame.passing else decoded.handler(index)
    capture = session()
    if is_signal(error) or (capture is not None and (ends_capture(error) or capture.executed.refused is not None)):
        while handler is not None and handler.target not in frame.outside:
            if frame.prepared.is_with(handler.target):
                method = frame.stack[handler.depth - 1].cell_contents
                if type(method) is not Parcel:  # which was entered before this segment, and is left behind it
                    leave(frame, method, error)
            handler = decoded.handler(handler.target)
        return False
    if capture is None:
        clean(error)
    else:
        in_eagers_words(error)
    if handler is None or handler.target in frame.outside or _goes_past(frame, handler.target):
        return False
    if capture is not None and frame.segment is not None:
        frame.segment.before_cut(frame, index, handler.depth)
    frame.cut(handler.depth)
    if handler.pushes_place:
        frame.push(index)
    frame.push(error)
    frame.next = handler.target
    return True


def _goes_past(frame: Frame, target: int) -> bool:
    """Whether an exception that only the run raises leaves the program, rather than go to a handler."""
    capture = session()
    return target in frame.beyond and capture is not None and capture.in_arm


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
    return fork(frame, known, if_true, if_false, stops)


def _for_iter(frame: Frame, target: int, stops: Stops) -> _Left:
    try:
        value = frame.act(advanced, frame.peek())
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
    if frame.thrown is not None:
        return _throw(frame)
    value = frame.pop()
    if frame.emit is not None:
        return give_out(frame, value, stops)
    frame.next += 1
    return (Yielded(value),)


def _send(frame: Frame, target: int, stops: Stops) -> _Left:
    value = frame.pop()
    generator = frame.peek()
    try:
        given = frame.act(_sent, generator, value)
    except StopIteration as ended:
        frame.push(ended.value)
        frame.next = target
        return None
    frame.push(given)
    frame.next += 1
    return None


def _sent(generator: Any, value: Any) -> Any:
    capture = session()
    if capture is not None:
        generator = capture.iterators.to_draw_from(generator)
    return next(generator) if value is None else generator.send(value)


def _throw(frame: Frame) -> _Left:
    """Raise what was thrown into a generator; one that it takes its values from gets it first."""
    held, frame.thrown = [frame.thrown], None
    frame.push(None)  # in the place of what would have been sent
    before = frame.prepared.decoded.instructions[frame.next - 1]
    inner = frame.peek(2) if before.name == "SEND" else None
    if isinstance(held[0], GeneratorExit):
        if hasattr(inner, "close"):
            frame.act(_closed, inner)
    elif hasattr(inner, "throw"):
        try:
            given = frame.act(_throw_into, inner, held)
        except StopIteration as ended:
            frame.pop()
            frame.push(ended.value)
            frame.next = before.argument
            return None
        frame.pop()
        frame.next += 1
        return (Yielded(given),)
    if frame.handled:
        frame.line("raise")(held)
    else:  # what is handled outside of the generator is not its context
        thrown = held.pop()
        assert thrown is not None
        try:
            raise_again(thrown, frame.line("raise"))
        finally:
            del thrown  # its traceback leads here
    return None


def _closed(generator: Any) -> None:
    generator.close()


def _throw_into(generator: Any, held: list[Any]) -> Any:
    return generator.throw(held.pop())


def _cleanup_throw(frame: Frame, _: Any, stops: Stops) -> _Left:
    error = frame.pop()
    frame.take(2)
    if not isinstance(error, StopIteration):
        raise_again(error)
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
def resume(frame: Frame) -> bool:
    """Run the frame of a generator on. Whether it waits in a ``yield`` then; what it gives is in ``frame.given``."""
    if frame.is_over:
        frame.end()
        return False
    try:
        outcome = run(frame)
    except BaseException:
        frame.end()
        raise
    frame.given = None if outcome is None else outcome.value
    if not isinstance(outcome, Yielded):
        frame.maker = None
        return False
    return True
