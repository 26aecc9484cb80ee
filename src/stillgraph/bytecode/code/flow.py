"""Where control goes in a code object: jumps, loops, where paths meet again, and what is still needed where."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from stillgraph.bytecode.code.decode import JUMPS, Decoded, decode
from stillgraph.bytecode.code.depths import depths, effect, needed
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.core.rewritten import Holder

_CONDITIONAL = frozenset(
    {"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "FOR_ITER", "SEND"}
)
_RAISING = frozenset({"RAISE_VARARGS", "RERAISE"})
_SHOWING = frozenset({"locals", "vars", "dir", "eval", "exec"})  # what may show all variables
_READS = frozenset({"LOAD_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST", "MAKE_CELL"})
_OF_CELLS = frozenset({"LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_EMPTIES = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"})
_WRITES = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "MAKE_CELL"})
_OF_STATEMENTS = frozenset(
    {
        *("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_FAST", "DELETE_DEREF", "DELETE_GLOBAL", "DELETE_ATTR"),
        *("DELETE_SUBSCR", "RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "FOR_ITER", "SEND", "YIELD_VALUE"),
        *("BEFORE_WITH", "PUSH_EXC_INFO", "POP_EXCEPT", "IMPORT_NAME"),
    }
)


@dataclass(frozen=True, slots=True)
class Test:
    """A condition at the head of a loop: where it goes on if the condition holds, and where if it does not."""

    holds: int
    ends: int


@dataclass(frozen=True, slots=True)
class With:
    """A ``with`` statement: its handler, and where its body ends otherwise and ``__exit__`` is called."""

    handler: int
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its instructions, and where it is left for, but by an exception.

    What can only raise belongs to the loop, so that a check in it does not make it one with two ends.
    """

    header: int
    nodes: frozenset[int]
    exits: tuple[int, ...]
    test: Test | None


class Flow(Holder):
    """The control flow of a code object, by the indices of its instructions."""

    def __init__(self, decoded: Decoded) -> None:
        self._decoded = decoded
        self._instructions = decoded.instructions
        self.next: tuple[tuple[int, ...], ...] = tuple(map(self._successors, range(len(self._instructions))))

    def _successors(self, index: int) -> tuple[int, ...]:
        each = self._instructions[index]
        if each.name == "RETURN_VALUE" or each.name in _RAISING:
            return ()
        if each.name == "JUMP":
            return (each.argument,)
        if each.name in _CONDITIONAL:
            return (index + 1, each.argument)
        return (index + 1,) if index + 1 < len(self._instructions) else ()

    @cached_property
    def _with_handlers(self) -> tuple[tuple[int, ...], ...]:
        """As `next`, with the ways that exceptions take."""
        ways = []
        for index, after in enumerate(self.next):
            handler = self._decoded.handler(index)
            ways.append(after if handler is None else (*after, handler.target))
        return tuple(ways)

    @cached_property
    def _ending(self) -> frozenset[int]:
        """The instructions from which control may come to a ``return``, or go on for ever."""
        found = {index for index, each in enumerate(self._instructions) if each.name == "RETURN_VALUE"}
        found |= {index for index, after in enumerate(self.next) if any(each <= index for each in after)}
        return frozenset(_closure(found, _reversed(self.next)))

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """By the index of the first instruction of each."""
        return {header: self._loop(header, latches) for header, latches in self._latches.items()}

    @cached_property
    def once(self) -> dict[int, Loop]:
        """As `loops`, the ``for`` loops whose body leaves them in every way: nothing leads back to their beginning."""
        begun = [index for index in self.depth if self._instructions[index].name == "FOR_ITER"]
        return {index: self._once(index) for index in begun if index not in self.loops}

    def _once(self, header: int) -> Loop:
        ends = self._instructions[header].argument
        body, behind = (_closure({start}, self.next, {header}) for start in (header + 1, ends))
        nodes = {header} | (body - behind)
        left = {target for index in nodes for target in self.next[index] if target not in nodes}
        return Loop(header, frozenset(nodes), tuple(sorted(left)), None)

    def loop(self, header: int) -> Loop:
        """The loop that begins at an instruction, in `loops` or in `once`."""
        return self.loops[header] if header in self.loops else self.once[header]

    @cached_property
    def _reached(self) -> set[int]:
        return _closure({0}, self._with_handlers)

    @cached_property
    def _latches(self) -> dict[int, list[int]]:
        """By the first instruction of each loop, those that lead back to it."""
        ways = self._with_handlers
        found: dict[int, list[int]] = {}
        for index in sorted(self._reached):
            if self._instructions[index].name == "SEND":
                continue
            for target in self.next[index]:
                if target <= index and self._instructions[target].name not in ("SEND", "END_SEND"):
                    found.setdefault(target, []).append(index)
        for header, latches in found.items():
            past = _closure({0}, ways, {header}) if header else set()
            latches[:] = [index for index in latches if index not in past]
        return {header: latches for header, latches in found.items() if latches}

    def _loop(self, header: int, latches: Iterable[int]) -> Loop:
        before = _reversed(self._with_handlers)
        nodes = {header}
        queue = [index for index in latches if index != header]
        while queue:
            index = queue.pop()
            if index not in nodes:
                nodes.add(index)
                queue += self._reached.intersection(before[index])  # not the jumps that stood between copies
        left = {target for index in nodes for target in self.next[index] if target not in nodes}
        raising = {target for target in left if target not in self._ending}
        nodes |= _closure(raising, self.next)
        exits = tuple(sorted(left - raising))
        return Loop(header, frozenset(nodes), exits, self._test(header, nodes, exits))

    def _test(self, header: int, nodes: AbstractSet[int], exits: Iterable[int]) -> Test | None:
        """The condition that a loop begins with: the longest expression that leads to its body or an end."""
        found: tuple[int, Test] | None = None
        for ends in exits:
            first = self.reach(header, {ends})
            jumps = [index for index in first if self._instructions[index].name.startswith("POP_JUMP")]
            for holds in {way for index in jumps for way in self.next[index]} - {ends, header}:
                asked = self.reach(header, {ends, holds})
                if self._is_condition(asked, header, holds, ends, nodes) and (found is None or len(asked) > found[0]):
                    found = len(asked), Test(holds, ends)
        return None if found is None else found[1]

    def _is_condition(
        self, asked: AbstractSet[int], header: int, holds: int, ends: int, nodes: AbstractSet[int]
    ) -> bool:
        if not asked <= nodes or len({self.depth.get(index) for index in (header, holds, ends)}) > 1:
            return False  # the first half of a chained comparison leaves a value on the stack for the second
        ways = {way for index in asked for way in self.next[index]}
        if header in ways or not {holds, ends} <= ways:
            return False
        return all(self._is_of_expression(index, {holds, ends}) for index in asked)

    def _is_of_expression(self, index: int, ends: AbstractSet[int]) -> bool:
        """Whether an instruction is part of an expression, rather than the end of a statement."""
        name = self._instructions[index].name
        if name == "POP_TOP":  # the end of a comparison of several values, to which control jumps
            if index > 0 and index in self.next[index - 1] and self._instructions[index - 1].name not in _CONDITIONAL:
                return False  # of a call, say, that is a statement
            return all(way in ends or self._instructions[way].name == "JUMP" for way in self.next[index])
        if name in ("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL"):  # an assignment expression
            return index > 0 and self._instructions[index - 1].name == "COPY"
        return name not in _OF_STATEMENTS

    @cached_property
    def withs(self) -> dict[int, With]:
        """By the instruction that begins each."""
        found = {}
        for index, each in enumerate(self._instructions):
            handler = self._decoded.handler(index + 1) if each.name == "BEFORE_WITH" else None
            if handler is not None:
                inside = frozenset(i for i in range(len(self.next)) if self.is_under(i, handler.target))
                body = _closure({index + 1}, self.next, set(range(len(self.next))) - inside)
                ends = {way for i in body for way in self.next[i] if way not in inside}
                ends = {way for way in ends if way in self._ending}
                found[index] = With(handler.target, tuple(sorted(ends)))
        return found

    def is_under(self, index: int, target: int) -> bool:
        """Whether an exception of an instruction may come to a handler, be it by way of others."""
        passed: set[int] = set()
        while (handler := self._decoded.handler(index)) is not None and handler.target not in passed:
            if handler.target == target:
                return True
            passed.add(handler.target)
            index = handler.target
        return False

    def may_end(self, index: int) -> bool:
        """Whether control may come from an instruction to a ``return``, or go on for ever: it need not raise."""
        return index in self._ending

    def assertion(self, start: int) -> int | None:
        """The end of the message of an ``assert`` that fails by going on at an instruction; None if there is none."""
        if self._instructions[start].name != "LOAD_ASSERTION_ERROR":
            return None
        raised = [index for index in self.reach(start, frozenset()) if self._instructions[index].name in _RAISING]
        if len(raised) != 1 or self._instructions[raised[0]].argument != 1:
            return None
        calls = raised[0] != start + 1 and self._instructions[raised[0] - 1].name == "CALL"
        return raised[0] - calls

    def reach(self, start: int, stops: AbstractSet[int]) -> frozenset[int]:
        """The instructions that control may come to from one on, before it comes to one of ``stops``."""
        if start in stops:
            return frozenset()
        found = {start}
        queue = [start]
        while queue:
            for after in self.next[queue.pop()]:
                if after not in found and after not in stops:
                    found.add(after)
                    queue.append(after)
        return frozenset(found)

    def meetings(
        self, left: Iterable[int], right: Iterable[int], stops: AbstractSet[int]
    ) -> tuple[int, ...]:
        """Where ways from some instructions first come together with ways from others, in the order of control.

        ``a and b`` in a condition has two: the other block, to which both operands lead, and what stands behind both.
        What can only raise, past no handler but those of ``with`` blocks, meets the others where these begin.
        """
        starts = [*left], [*right]
        one, other = (frozenset().union(*(self.reach(each, stops) for each in side)) for side in starts)
        common = self._ending & one & other
        for side, behind in ((one, other), (other, one)):
            if side and side.isdisjoint(self._ending) and all(map(self._is_unhandled, side)):
                common = self._ending & behind
        if not common:
            return ()
        entered = {after for each in (one | other) - common for after in self.next[each] if after in common}
        entered |= {each for side in starts for each in side if each in common}
        return tuple(sorted(entered, key=lambda each: -len(self.reach(each, stops))))

    def _is_unhandled(self, index: int) -> bool:
        """Whether an exception of an instruction comes to no handler but those of ``with`` blocks."""
        handler = self._decoded.handler(index)
        while handler is not None:
            if self._instructions[handler.target + 1].name != "WITH_EXCEPT_START":
                return False
            behind = self._decoded.handler(handler.target)  # which ends the handling, and raises again
            handler = None if behind is None else self._decoded.handler(behind.target)
        return True

    def loop_around(self, starts: Iterable[int], stops: AbstractSet[int]) -> frozenset[int]:
        """The header of the innermost loop that some instructions are in, if it is run by its jumps: ways meet there.

        The header of any other loop that is being run is one of ``stops``.
        """
        inside = set(starts)
        found = [each for each in self.loops.values() if each.header not in stops and inside <= each.nodes]
        return frozenset(each.header for each in sorted(found, key=lambda each: len(each.nodes))[:1])

    def ends(self, starts: Iterable[int], stops: AbstractSet[int]) -> frozenset[int]:
        """Which of ``stops`` control may come to from some instructions."""
        found = {start for start in starts if start in stops}
        for start in starts:
            found |= {way for index in self.reach(start, stops) for way in self.next[index] if way in stops}
        return frozenset(found)

    def leaves(
        self, starts: Iterable[int], meetings: AbstractSet[int], stops: AbstractSet[int], leaving: AbstractSet[str]
    ) -> bool:
        """Whether a way may leave by an instruction of a kind, or come to one of ``stops``, before it meets others."""
        for start in starts:
            if start in stops and start not in meetings:
                return True
            for index in self.reach(start, meetings):
                if index in stops or self._instructions[index].name in leaving:
                    return True
        return False

    @cached_property
    def live(self) -> tuple[frozenset[int], ...]:
        """Of each instruction the slots whose values may be read from there on."""
        count = len(self._instructions)
        if any(each.name == "LOAD_GLOBAL" and each.argument in _SHOWING for each in self._instructions):
            return (frozenset(range(len(self._decoded.slots))),) * count
        always = self._looked_at
        live: list[frozenset[int]] = [always] * count
        before = _reversed(self._with_handlers)
        queue = list(range(count))
        while queue:
            index = queue.pop()
            each = self._instructions[index]
            after = always.union(*(live[way] for way in self._with_handlers[index]))
            if each.name in _EMPTIES:  # which raises nothing, unless the slot is empty already
                after = after - {each.argument} | always
            if each.name in _READS or each.name in _OF_CELLS:
                after |= {each.argument}
            if after != live[index]:
                live[index] = after
                queue += before[index]
        return tuple(live)

    @property
    def _looked_at(self) -> frozenset[int]:
        """The slots that are read by no instruction: ``super()`` looks for its object and its class in the frame."""
        if not any(each.name == "LOAD_GLOBAL" and each.argument == "super" for each in self._instructions):
            return frozenset()
        names = enumerate(self._decoded.slots)
        return frozenset(slot for slot, name in names if slot == 0 or name == "__class__")

    @cached_property
    def depth(self) -> dict[int, int]:
        """How deep the stack is at each instruction that control may come to."""
        return depths(self._decoded, JUMPS)

    @cached_property
    def needed(self) -> dict[int, frozenset[int]]:
        """Of each instruction that control may come to, the places of the stack whose values are used from there on."""
        return needed(self._decoded, JUMPS)

    def written(self, nodes: Iterable[int]) -> tuple[frozenset[int], frozenset[int]]:
        """The slots that instructions assign or empty, and those whose cells they assign."""
        slots, cells = set(), set()
        for each in (self._instructions[index] for index in nodes):
            if each.name in _WRITES:
                slots.add(each.argument)
            elif each.name in ("STORE_DEREF", "DELETE_DEREF"):
                cells.add(each.argument)
        return frozenset(slots), frozenset(cells)

    def lowest(self, nodes: Iterable[int]) -> int:
        """The lowest place of the stack that instructions may write, or take a value away from."""
        reached = ((self.depth[index], self._instructions[index]) for index in nodes if index in self.depth)
        found = (depth - effect(each)[0] for depth, each in reached if each.name != "COPY")
        return min(found, default=sys.maxsize)

    def with_handlers(self, nodes: Iterable[int], stops: AbstractSet[int]) -> frozenset[int]:
        """Instructions, with those that handle their exceptions."""
        return frozenset(_closure(set(nodes), self._with_handlers, stops))


def _reversed(ways: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in ways]
    for index, after in enumerate(ways):
        for each in after:
            before[each].append(index)
    return before


def _closure(found: set[int], ways: Iterable[Iterable[int]], stops: AbstractSet[int] = frozenset()) -> set[int]:
    """What can be reached."""
    ways = list(ways)
    found, queue = set(found), list(found)
    while queue:
        for each in ways[queue.pop()]:
            if each not in found and each not in stops:
                found.add(each)
                queue.append(each)
    return found


@weakly_cached
def flow_of(code: CodeType) -> Flow:
    """The flow of a code object."""
    return Flow(decode(code))


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)
