"""Statements that are run as a whole: loops, ``with``, and generators that are turned inside out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stillgraph.bytecode.interpreter.branches import Left, arrive, places
from stillgraph.bytecode.interpreter.loops import behind, loop
from stillgraph.bytecode.interpreter.protected import is_told, staged_try, staged_with
from stillgraph.bytecode.machine.frame import Frame, Stop, Stops
from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.bytecode.machine.running import is_handled, run_block
from stillgraph.bytecode.machine.table import HANDLERS
from stillgraph.core.faults import ends_capture
from stillgraph.operators.calls.calls import call
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.sequences import StagedEntries
from stillgraph.operators.control_flow.generators import Delegated, Produced
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.loops import capture_for
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.control_flow.staging import continue_
from stillgraph.trace.heap.exits import Exit, Return
from stillgraph.trace.heap.places import MISSING, Variable

Structure = Callable[[Frame, int, Stops], tuple[bool, "Exit | None"]]


def prepared(frame: Frame, index: int, started: bool) -> tuple[Structure, int] | None:
    """What is done before an instruction, none of which is the user's; the structure that begins there, if one does."""
    capture = session()
    if capture is None:
        if frame.segment is not None:
            frame.segment.before(frame, index)
        return None
    with capture.executed.paused():
        if frame.segment is not None:
            frame.segment.before(frame, index)
        capture.watch.passed(frame.code, frame.prepared.decoded.instructions[index].positions)
        return structure_at(frame, index, started)


def structure_at(frame: Frame, index: int, started: bool = False) -> tuple[Structure, int] | None:
    """What runs the statement that begins at an instruction as a whole, rather than by its jumps.

    Args:
        frame: of the function.
        index: of the instruction.
        started: a loop that begins there is being run already.

    Returns:
        It, and an instruction that is protected by what is around the statement.
    """
    if frame.is_generator:
        return None
    prepared = frame.prepared
    if frame.emit is not None and index in prepared.delegations:
        return delegate, index
    tries = prepared.tries.get(index, ())
    loop_here = prepared.flow.loops.get(index)
    if loop_here is None and prepared.decoded.instructions[index].name == "FOR_ITER" and _is_of_the_run(frame):
        loop_here = prepared.flow.once.get(index)
    segment = frame.segment
    inner = [each for each in tries if loop_here is not None and not loop_here.nodes <= each.nodes]
    if segment is not None and loop_here is not None and index in segment.breaks.plain[frame.code]:
        loop_here = None
    if started or any(each.handler.target in frame.staged for each in inner):
        loop_here = None  # it is being run
    if tries and _are_operators(frame, index):
        found = next((each for each in tries if each.handler.target not in frame.staged), None)
        if found is not None and (loop_here is None or found not in inner):
            return functools.partial(staged_try, found=found), found.outer
    if loop_here is not None:
        is_for = prepared.decoded.instructions[index].name == "FOR_ITER"
        is_begun = is_for and not (isinstance(frame.peek(), Iteration) and not frame.peek().begun)
        place = inner[0].outer if inner else index  # a ``try`` that its body begins with is not around it
        return None if is_begun else (functools.partial(loop, place=place), place)
    if started or prepared.decoded.instructions[index].name != "BEFORE_WITH":
        return None
    protected = prepared.withs[index]
    if protected is not None and _are_operators(frame, index) and is_told(frame.peek()):
        return functools.partial(staged_with, found=protected), index
    if segment is not None:
        return None  # a segment may end inside of a ``with``
    return (with_, index) if index in prepared.flow.withs else None


def _is_of_the_run(frame: Frame) -> bool:
    """Whether nothing can be drawn from what a loop runs over: a generator, or a number of elements of the run."""
    iteration = frame.peek()
    if not isinstance(iteration, Iteration) or isinstance(iteration.values, Produced):
        return isinstance(iteration, Iteration)
    sequence = None if iteration.begun else as_sequence(iteration.values)
    return sequence is not None and not isinstance(sequence, StagedEntries) and not sequence.is_known


def _are_operators(frame: Frame, index: int) -> bool:
    """Whether statements that handle exceptions are operators, as they are where the run raises some."""
    segment = frame.segment
    return capturing().knowledge.tries and (segment is None or index not in segment.breaks.unstaged[frame.code])


# ---- with
def with_(frame: Frame, index: int, stops: Stops) -> tuple[bool, Exit | None]:
    """Run a ``with``: its manager is left once, whichever way the run takes out of its body.

    An exception on one of those ways alone is the program's; one that leaves the body for certain comes to the handler.
    """
    found, line = frame.prepared.flow.withs[index], frame.line("call")
    HANDLERS["BEFORE_WITH"](frame, None)
    frame.next = index + 1
    manager = frame.stack[frame.depth - 2]
    flags = {end: Variable(f"whether it goes on at {end}", False) for end in found.ends}
    before, outside = frame.outside, frozenset({found.handler}) | frame.prepared.handlers_around(index)
    frame.outside = before | outside
    try:
        exit = run_block(frame, {end: Stop(None, flag) for end, flag in flags.items()})
    except BaseException as error:
        frame.outside = before
        if ends_capture(error):  # the capture ends here, or begins anew
            leave(frame, manager.cell_contents, error)
        if not is_handled(frame, index + 1, error):
            raise
        return False, None
    frame.outside = before
    assert exit is None, "a body ends where its manager is left"
    if not any(flag.value is True for flag in flags.values()):
        line(call, (manager.cell_contents, None, None, None), {})
        manager.cell_contents = _left_before
    left = arrive(frame, list(flags.items()), stops, index)
    return (False, None) if left is None else (True, left[0])


def leave(frame: Frame, method: Any, error: BaseException) -> None:
    """Leave a manager because the capture ends, or begins anew, unless it has been left for that already."""
    if not any(method is each for each in frame.left):
        frame.left.append(method)
        method(type(error), error, error.__traceback__)


def _left_before(*_: Any) -> None:
    """Stands for the ``__exit__`` of a manager that has been left already."""


# ---- generators turned inside out
def give_out(frame: Frame, value: Any, stops: Stops) -> Left:
    """Hand out what a generator yields. It ends where the loop over it was left."""
    left = _given(frame, value)
    frame.next += 1
    if frame.manages:
        left = False  # the block's exit is taken behind the manager's end
    if left is True:
        return (Return(MISSING),)
    frame.push(None)
    if left is False:
        return None
    state, index = frame.state, frame.next

    def rest() -> Exit | None:
        frame.go(index, state)
        return run_block(frame, stops)

    nodes = frame.prepared.flow.reach(index, stops.keys())
    keeps, drops = places(frame, nodes, frozenset(stops), (), stops)
    return (continue_(capturing(), Exit(returned=left), rest, keeps, drops),)


def _given(frame: Frame, value: Any) -> Any:
    """Whether the loop over a generator is left when it has been run for a value."""
    assert frame.emit is not None
    try:
        return frame.act(frame.emit, value)
    except BaseException as error:
        if not frame.manages:
            frame.passing = error
        raise


def delegate(frame: Frame, index: int, stops: Stops) -> tuple[bool, Exit | None]:
    """Hand out all that a ``yield from`` runs over, as a loop does whose body is a ``yield``."""

    def body(item: Any) -> Exit | None:
        left = _given(frame, item)
        return None if left is False else Exit(returned=left)

    given: Delegated = frame.act(Delegated, frame.pop())
    exit = frame.act(capture_for, Context(capturing(), [], []), given.items, body)
    frame.push(given.value)
    end = frame.prepared.delegations[index]
    frame.states[end] = frame.state
    return behind(frame, exit, [(end, None)], stops, index)
