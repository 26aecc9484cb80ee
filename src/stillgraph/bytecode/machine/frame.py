"""A frame: a call of a function that is interpreted, all of whose state can be looked at, left and taken up again."""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from stillgraph.bytecode.code.decode import KEEPS_NAMESPACE, Instruction
from stillgraph.bytecode.code.prepared import Prepared, prepared
from stillgraph.core.rewritten import Holder
from stillgraph.operators.objects.variables import require_set
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, Variable
from stillgraph.trace.values.callables import contents

if TYPE_CHECKING:
    from stillgraph.bytecode.segments.segments import Segment

_GENERATOR = 0x20  # CO_GENERATOR


class _Null:
    """What `PUSH_NULL` pushes, and what an empty slot gives to a comprehension."""

    def __repr__(self) -> str:
        return "<null>"


NULL = _Null()


Handler = Callable[["Frame", Any], None]
"""Carries out an instruction in a frame, given its argument."""


@dataclass(frozen=True)
class Stop:
    """Where a block ends: what its exit is there, and a variable that is set to tell that it was there.

    ``answers``: the block is a condition, and ends here for one of its two answers.
    """

    exit: Exit | None = None
    flag: Variable | None = None
    answers: bool = False


Stops = Mapping[int, Stop]
NOWHERE: Stops = {}


@dataclass(frozen=True)
class State:
    """How deep the stack is at an instruction, and which exceptions are being handled."""

    depth: int
    handled: tuple[BaseException, ...]


@dataclass(eq=False)
class Frame(Holder):
    """A call of a function.

    Attributes:
        function: the user's.
        slots: a cell for each variable; see `decode`.
        stack: a cell for each place of the stack, of which the first ``depth`` are in use.
        next: the instruction that is to be run.
        handled: the exceptions that its ``except`` blocks are handling, the outermost first.
        states: of places where blocks have stopped, how it is there.
        outside: handlers that stand around the loop or ``with`` that is being run, and not in it: what is run there
            leaves exceptions for them to its caller.
        staged: the handlers of the ``try`` statements whose bodies are being run as operators.
        entered: the handlers of the ``with`` statements that Python had entered when the segment began: it leaves them.
        beyond: those among them that an exception of the run goes past; see `layouts.left_by_raising`.
        emit: of a generator turned inside out, what takes what it yields.
        manages: whether that is the function of a context manager, which sees what its block raises.
        segment: what it is run for, if Python may take over in between.
        transparent: whether what it returns is what the instruction gives that has called it, so that Python can.
        left: the methods that have left context managers because the capture ends, or begins anew.
        given: what a generator yields or returns, until it is taken.
        passing: an exception of the loop over a generator that is turned inside out, which the generator does not see.
        thrown: what has been thrown into a generator, for the ``yield`` that is next to raise.
        made_in: the capture that has made a generator.
        maker: the code and the instruction that have made a generator of a segment's, as long as that has not ended.
    """

    function: FunctionType
    slots: list[CellType] = field(default_factory=list)
    stack: list[CellType] = field(default_factory=list)
    depth: int = 0
    next: int = 0
    handled: list[BaseException] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    outside: frozenset[int] = frozenset()
    staged: frozenset[int] = frozenset()
    entered: frozenset[int] = frozenset()
    beyond: frozenset[int] = frozenset()
    emit: Callable[[Any], Any] | None = None
    manages: bool = False
    segment: Segment | None = None
    transparent: bool = False
    left: list[Any] = field(default_factory=list)
    passing: BaseException | None = None
    thrown: BaseException | None = None
    given: Any = None
    made_in: weakref.ref[Session] | None = None
    maker: tuple[CodeType, int] | None = None

    def __post_init__(self) -> None:
        self.code: CodeType = self.function.__code__
        self.prepared: Prepared = prepared(self.code)
        self.globals: dict[str, Any] = self.function.__globals__
        self.builtins = builtins_of(self.globals)
        self._namespace: dict[str, Any] = {}
        self.slots = self.slots or [CellType() for _ in self.prepared.decoded.slots]
        self.stack = self.stack or [CellType() for _ in range(self.prepared.depth)]

    @property
    def is_generator(self) -> bool:
        """Whether Python draws from it, so that it may wait anywhere."""
        return self.emit is None and bool(self.code.co_flags & _GENERATOR)

    @property
    def waits_in_block(self) -> bool:
        """As `Holder.waits_in_block`."""
        decoded = self.prepared.decoded
        handler = decoded.handler(self.next - 1)
        while handler is not None and decoded.instructions[handler.target].name == "CLEANUP_THROW":
            handler = decoded.handler(handler.target)  # a generator that this one delegates to waits for itself
        return handler is not None and decoded.instructions[handler.target].name != "STOPITERATION_ERROR"

    # ---- the stack
    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack[self.depth].cell_contents = value
        self.depth += 1

    def pop(self) -> Any:
        """Take the value on top."""
        self.depth -= 1
        cell = self.stack[self.depth]
        value = cell.cell_contents
        del cell.cell_contents
        return value

    def take(self, count: int) -> list[Any]:
        """Take so many values, the topmost last."""
        values = [self.pop() for _ in range(count)]
        values.reverse()
        return values

    def peek(self, position: int = 1) -> Any:
        """The value that is so far from the top; 1 is the top itself."""
        return self.stack[self.depth - position].cell_contents

    def cut(self, depth: int) -> None:
        """Drop what is above a depth."""
        while self.depth > depth:
            self.pop()

    # ---- generators
    @property
    def is_over(self) -> bool:
        """Whether the capture that has made a generator is: what it would do now is to be undone with all the rest."""
        if self.made_in is None:
            return False
        capture = self.made_in()
        return capture is None or capture is not session()

    def end(self) -> None:
        """Let go of what it holds: it is not run on, and exceptions that it was handling lead to it."""
        self.handled.clear()
        self.thrown = self.passing = self.given = self.maker = None
        self.depth = 0
        self.clear()

    def give(self) -> Any:
        """Take what the generator gives."""
        given, self.given = self.given, None
        return given

    def throw(self, error: BaseException) -> None:
        """The ``yield`` that the generator waits in is the next to be run, and is to raise this."""
        if isinstance(error, GeneratorExit) and self.segment is not None and not self.is_over:
            self.segment.closes(self)
        trace = error.__traceback__
        self.thrown = BaseException.with_traceback(error, None if trace is None else trace.tb_next)
        self.next -= 1

    # ---- where it is
    @property
    def state(self) -> State:
        """How it is now."""
        return State(self.depth, tuple(self.handled))

    def go(self, index: int, state: State | None = None) -> None:
        """Go on at an instruction, as it is there or as blocks that stopped there have left it."""
        found = state or self.states[index]
        self.next, self.depth, self.handled = index, found.depth, list(found.handled)
        for cell in self.stack[: self.depth]:
            if contents(cell) is MISSING:
                cell.cell_contents = NULL  # a loop's iterator, say, that is only taken away
        self.clear()

    def clear(self) -> None:
        """Empty the stack's places that are not in use: they are joined like all others."""
        for cell in self.stack[self.depth :]:
            if contents(cell) is not MISSING:
                del cell.cell_contents

    @property
    def instruction(self) -> Instruction:
        """The one that is to be run."""
        return self.prepared.decoded.instructions[self.next]

    def act(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call something at the user's line."""
        return self.line("call")(function, args, kwargs)

    def line(self, kind: str, index: int | None = None) -> Callable[..., Any]:
        """What does something at the user's line, and in the user's module; see `lines`."""
        code = self.prepared.line(self.next if index is None else index, kind, self.staged, self.entered)
        return FunctionType(code, self.globals)

    # ---- variables
    def name(self, slot: int) -> str:
        """The name of a variable."""
        return self.prepared.decoded.slots[slot]

    def variables(self) -> dict[str, Any]:
        """The values of its variables, by name."""
        found = {}
        for name, cell in zip(self.prepared.decoded.slots, self.slots):
            value = contents(cell)
            value = contents(value) if isinstance(value, CellType) and name not in self.code.co_varnames else value
            if isinstance(value, CellType) and name in self.code.co_cellvars:
                value = contents(value)
            if value is not MISSING:
                found[name] = value
        return found

    def namespace(self) -> dict[str, Any]:
        """What ``locals()`` gives: before Python 3.13 one and the same dict, with what has been put into it."""
        found = self.variables()
        require_set(found)
        if not KEEPS_NAMESPACE:
            return found
        for name in self.prepared.decoded.slots:
            self._namespace.pop(name, None)
        self._namespace.update(found)
        return self._namespace

    def values(self, slots: Container[int]) -> list[Any]:
        """The values in some of its variables, and those on its stack."""
        cells = (cell for slot, cell in enumerate(self.slots) if slot in slots)
        values = map(contents, (*cells, *self.stack[: self.depth]))
        return [each for each in values if each is not MISSING]

    def held(self) -> list[Any]:
        """All values that it holds, those on its stack and exceptions included; and the cells that hold them."""
        values = self.values(range(len(self.slots)))
        return [*values, *self.handled, *self.slots, *self.stack]

    def let_go(self) -> None:
        """Empty its variables, one after the other, as Python does where a call has ended."""
        for cell in self.slots:
            if contents(cell) is not MISSING:
                del cell.cell_contents


def builtins_of(globals: dict[str, Any]) -> dict[str, Any]:
    """The built-in names that code with these globals sees."""
    found: Any = globals.get("__builtins__", builtins)
    return found if isinstance(found, dict) else vars(found)

