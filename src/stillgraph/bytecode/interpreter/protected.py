"""``try`` and ``with`` as operators, where the run raises what they handle: their blocks become blocks of the program.

What the compiler has made of such a statement is its body, whose instructions lead to a handler where they raise, and
the ways on behind both. A ``finally`` is written once more on each way out of the body, so it only cleans up here.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

from stillgraph.bytecode.code.tries import Clause, Try
from stillgraph.bytecode.handlers.exceptions import kinds_of
from stillgraph.bytecode.interpreter.branches import Targets, arrive, inside, places
from stillgraph.bytecode.machine.frame import Frame, State, Stop, Stops
from stillgraph.bytecode.machine.running import carry_out, run_block
from stillgraph.bytecode.machine.table import HANDLERS
from stillgraph.core.faults import ends_capture
from stillgraph.core.rewritten import Holder
from stillgraph.operators.calls.calls import call
from stillgraph.operators.conditions.branches import Block
from stillgraph.operators.control_flow.contexts import (
    Managing,
    around_block,
    ended_by,
    is_converted,
    leave_early,
    with_generator,
)
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.protected import Handlers, attempt
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.control_flow.protected import unbound_behind
from stillgraph.trace.control_flow.staging import branch, continue_
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import CellPlace, Variable
from stillgraph.trace.values.callables import contents


def staged_try(frame: Frame, index: int, stops: Stops, found: Try) -> tuple[bool, Exit | None]:
    """Run a ``try``; whether the block was left in it, and how."""
    with inside(frame, index, is_try=True):
        run = _Statement(frame, found, stops)
        handlers = [(run.kinds(clause), run.handler(clause)) for clause in found.clauses]
        return run.behind(run.attempt(run.body, handlers, found.only_cleans_up))


_STORES = ("POP_TOP", "STORE_FAST", "STORE_DEREF")  # of what a manager gives; what else it may be, is in the block


def is_told(manager: Any) -> bool:
    """Whether exceptions of the run can be told to a context manager."""
    capture = capturing()
    known = ended_by(manager) is not None or is_converted(capture, manager)
    return known or around_block(capture, manager) is not None


def staged_with(frame: Frame, index: int, stops: Stops, found: Try) -> tuple[bool, Exit | None]:
    """Run a ``with`` for whose manager `is_told` holds; see `staged_try`."""
    capture, manager = capturing(), frame.peek()
    kinds, managing = ended_by(manager), around_block(capture, manager)
    with inside(frame, index, is_try=True):
        if managing is not None:
            frame.pop()
            frame.push(_is_left)
            frame.push(None)  # what is yielded, once it is
            frame.next = index + 1
            return _surrounded(_Statement(frame, found, stops), managing)
        if kinds is not None:
            entered, leave = frame.act(manager.__enter__), _swallows
        else:
            capture.watched = True
            leave = functools.partial(call, type(manager).__exit__, manager)
            entered = frame.act(call, type(manager).__enter__, manager)
        frame.pop()
        frame.push(leave)
        frame.push(entered)
        frame.next = index + 1
        if frame.instruction.name in _STORES:
            carry_out(frame)
        run = _Statement(frame, found, stops)
        if kinds is not None:
            return run.behind(run.attempt(run.body, [(lambda: kinds, run.handler(found.clauses[0]))], False))
        return _told(run, leave)


def _swallows(*_: Any) -> bool:
    """Stands for the ``__exit__`` of a manager that ends each exception it is told of."""
    return True


def _is_left(*_: Any) -> None:
    """Stands for the ``__exit__`` of a manager that has been left already."""


def _told(run: _Statement, leave: Callable[..., Any]) -> tuple[bool, Exit | None]:
    """Run a block whose manager is told of an exception by the handler, and of any other end behind it."""
    frame, capture = run.frame, capturing()
    cell, line = frame.stack[run.found.handler.depth - 1], frame.line("call")
    ended = Variable("whether a with block came to its end", False)
    run.keeps.append(ended)

    def to_the_end() -> Exit | None:
        exit = run.body()
        capture.journal.write(ended, True)
        return exit

    def leave_it() -> None:
        line(leave, (None, None, None), {})

    try:
        exit = run.attempt(to_the_end, [(None, run.handler(run.found.clauses[0]))], True)
    except BaseException as error:
        if ends_capture(error):
            leave_early(leave_it)
        raise
    if ended.value is True:
        leave_it()
    elif ended.value is not False:
        branch(capture, ended.value, leave_it, lambda: None, (), ())
    cell.cell_contents = _is_left
    return run.behind(exit)


def _surrounded(run: _Statement, managing: Managing) -> tuple[bool, Exit | None]:
    """Run a block within the function of its manager. Where that ends an exception, the handler leads behind it."""
    frame, capture = run.frame, capturing()
    leave, given = frame.stack[frame.depth - 2], frame.stack[frame.depth - 1]
    ended = Variable("whether a with block came to its end", False)
    run.keeps.append(ended)

    def body(value: Any) -> Exit | None:
        given.cell_contents = value
        exit = run.body()
        capture.journal.write(ended, True)
        return exit

    def go_on() -> Exit | None:
        leave.cell_contents = _swallows
        try:
            return run.handler(run.found.clauses[0])(RuntimeError())
        finally:
            leave.cell_contents = _is_left

    exit: Exit | None = frame.line("call")(with_generator, (run.context, managing, body), {})
    if ended.value is False:
        exit = go_on()
    elif ended.value is not True:
        exit = branch(capture, ended.value, lambda: exit, go_on, run.keeps, run.drops)
    return run.behind(exit)


class _Statement(Holder):
    """A statement that is being run.

    Attributes:
        keeps, drops: what its blocks may write: places that are needed behind it, and others.

    It begins where the frame is: in a ``with``, behind what stores what its manager gives.
    """

    def __init__(self, frame: Frame, found: Try, stops: Stops) -> None:
        self.frame, self.found, self.stops = frame, found, stops
        self._start, self._before, self._states = frame.next, frame.state, frame.states
        flow = frame.prepared.flow
        starts = [self._start, *(clause.body for clause in found.clauses)]
        ends = found.ends | stops.keys()
        nodes = frozenset().union(*(flow.reach(index, ends) for index in starts)) | found.nodes
        reached = {way for index in nodes for way in flow.next[index] if way in ends}
        plain = sorted(index for index in reached if index not in stops or stops[index].exit is None)
        self._targets: Targets = [
            (index, Variable(f"whether it goes on at {index}", False) if number < len(plain) - 1 else None)
            for number, index in enumerate(plain)
        ]
        self._inner = {index: replace(stop, answers=False) for index, stop in stops.items()}
        self._inner.update({index: Stop(None, flag) for index, flag in self._targets})
        around = frame.prepared.handlers_around(found.outer)
        self.keeps, self.drops = places(frame, nodes, self._inner.keys() | around, plain, stops)
        self.keeps += [flag for _, flag in self._targets if flag is not None]

    @property
    def context(self) -> Context:
        """The statement, for an operator."""
        return Context(capturing(), self.keeps, self.drops)

    def held(self) -> list[Any]:
        """What its frame holds."""
        return [self.frame]

    def attempt(self, body: Block, handlers: Handlers, only_cleans_up: bool) -> Exit | None:
        """Run the body, and where something in it raises, a handler."""
        prepared = self.frame.prepared
        begun = prepared.tries_around(self._start) - prepared.tries_around(self.found.outer)
        with self._around(frozenset(), begun):
            line = self.frame.line("call")  # of what stands where the statement does
        exit: Exit | None = line(attempt, (self.context, body, handlers, None, only_cleans_up), {})
        return exit

    def body(self) -> Exit | None:
        """Run the body."""
        target = self.found.handler.target
        with self._around(frozenset({target}), frozenset({target})), unbound_behind(capturing(), self._unbound):
            self.frame.go(self._start, self._before)
            return self._run(self._start in self._inner)

    def _unbound(self) -> list[Hashable]:
        """The variables that handlers in its body keep their exceptions in, of those that are at work."""
        frame = self.frame
        found = frame.prepared.unbound_behind(frame.next, self.found.handler.target)
        cells = [frame.slots[slot] if by == "DELETE_FAST" else contents(frame.slots[slot]) for by, slot in found]
        return [CellPlace(cell, "").key for cell in cells]

    def kinds(self, clause: Clause) -> Callable[[], Any] | None:
        """What an ``except`` is for; None for a ``finally``, and for one that is for all."""
        if clause.kinds is None:
            return None
        start, check = clause.kinds

        def ask() -> Any:
            frame = self.frame
            with self._around(frame.prepared.handlers_around(start), frozenset()):
                self._go_to_handler(None)
                frame.push(None)  # what is being handled, and the exception
                frame.next = start
                run_block(frame, {check: Stop()})
                frame.go(check)
                return frame.act(kinds_of, frame.pop())

        return ask

    def handler(self, clause: Clause) -> Callable[[BaseException], Exit | None]:
        """The block of an ``except`` or ``finally``, for an exception that Python is handling."""
        def handle(error: BaseException) -> Exit | None:
            around = self.frame.prepared.decoded.handler(self.found.outer)
            with self._around(frozenset() if around is None else frozenset({around.target}), frozenset()):
                self._go_to_handler(error)
                HANDLERS["PUSH_EXC_INFO"](self.frame, None)
                self.frame.next = clause.body
                return self._run()

        return handle

    def _go_to_handler(self, error: BaseException | None) -> None:
        frame, handler = self.frame, self.found.handler
        frame.go(self._start, State(handler.depth, self._before.handled))
        if handler.pushes_place:
            frame.push(self._start)
        frame.push(error)

    def _run(self, started: bool = False) -> Exit | None:
        self.frame.states = dict(self._states)
        exit = run_block(self.frame, self._inner, started)
        self._states.update({at: state for at, state in self.frame.states.items() if at in self._inner})
        return exit

    @contextlib.contextmanager
    def _around(self, outside: frozenset[int], staged: frozenset[int]) -> Iterator[None]:
        frame = self.frame
        before = frame.outside, frame.staged
        frame.outside, frame.staged = before[0] | outside, before[1] | staged
        try:
            yield
        finally:
            frame.outside, frame.staged = before

    def behind(self, exit: Exit | None) -> tuple[bool, Exit | None]:
        """Go on behind the statement, unless it was left by what leaves the block around it as well."""
        frame, stops, targets = self.frame, self.stops, self._targets
        frame.states = self._states
        if exit is None:
            left = arrive(frame, targets, stops, self.found.outer)
            return (False, None) if left is None else (True, left[0])
        if exit.certain:
            return True, exit

        def rest() -> Exit | None:
            left = arrive(frame, targets, stops, self.found.outer)
            return run_block(frame, stops) if left is None else left[0]

        nodes = frozenset().union(*(frame.prepared.flow.reach(index, stops.keys()) for index, _ in targets))
        keeps, drops = places(frame, nodes, frozenset(stops), (), stops)
        return True, continue_(capturing(), exit, rest, keeps, drops)
