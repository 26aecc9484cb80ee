"""Where control goes in a code object: jumps, loops, where paths meet again, and what is still needed where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from stillgraph.bytecode.decode import Decoded, decode
from stillgraph.core.weak_cache import weakly_cached

_CONDITIONAL = frozenset(
    {"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "FOR_ITER", "SEND"}
)
_RAISING = frozenset({"RAISE_VARARGS", "RERAISE"})
_READS = frozenset({"LOAD_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST", "MAKE_CELL"})
_OF_CELLS = frozenset({"LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_EMPTIES = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"})
_WRITES = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "MAKE_CELL"})


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its instructions, and where it is left for, but by an exception.

    What can only raise belongs to the loop, so that a check in it does not make it one with two ends.
    """

    header: int
    nodes: frozenset[int]
    exits: tuple[int, ...]


class Flow:
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
        return {header: self._loop(header) for header in self._headers}

    @cached_property
    def _headers(self) -> frozenset[int]:
        return frozenset(
            target
            for index, after in enumerate(self.next)
            for target in after
            if target <= index and self._instructions[target].name not in ("SEND", "END_SEND")
            and self._instructions[index].name != "SEND"
        )

    def _loop(self, header: int) -> Loop:
        before = _reversed(self._with_handlers)
        latches = [index for index in range(header, len(self.next)) if header in self.next[index] and index >= header]
        nodes = {header}
        queue = [index for index in latches if index != header]
        while queue:
            index = queue.pop()
            if index not in nodes:
                nodes.add(index)
                queue += before[index]
        left = {target for index in nodes for target in self.next[index] if target not in nodes}
        raising = {target for target in left if target not in self._ending}
        nodes |= _closure(raising, self.next)
        return Loop(header, frozenset(nodes), tuple(sorted(left - raising)))

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
        """
        starts = [*left], [*right]
        one, other = (frozenset().union(*(self.reach(each, stops) for each in side)) for side in starts)
        common = {each for each in one & other if each in self._ending}
        if not common:
            return ()
        entered = {after for each in (one | other) - common for after in self.next[each] if after in common}
        entered |= {each for side in starts for each in side if each in common}
        return tuple(sorted(entered, key=lambda each: -len(self.reach(each, stops))))

    def leaves(self, starts: Iterable[int], meetings: AbstractSet[int], stops: AbstractSet[int]) -> bool:
        """Whether a way may leave by a ``return``, or come to one of ``stops``, before it comes to a meeting."""
        for start in starts:
            if start in stops and start not in meetings:
                return True
            for index in self.reach(start, meetings):
                if index in stops or self._instructions[index].name == "RETURN_VALUE":
                    return True
        return False

    @cached_property
    def live(self) -> tuple[frozenset[int], ...]:
        """Of each instruction the slots whose values may be read from there on."""
        count = len(self._instructions)
        live: list[frozenset[int]] = [frozenset()] * count
        before = _reversed(self._with_handlers)
        queue = list(range(count))
        while queue:
            index = queue.pop()
            each = self._instructions[index]
            after = frozenset().union(*(live[way] for way in self._with_handlers[index]))
            if each.name in _EMPTIES and self._decoded.handler(index) is None:
                after -= {each.argument}
            if each.name in _READS or each.name in _OF_CELLS:
                after |= {each.argument}
            if after != live[index]:
                live[index] = after
                queue += before[index]
        return tuple(live)

    def written(self, nodes: Iterable[int]) -> tuple[frozenset[int], frozenset[int]]:
        """The slots that instructions assign or empty, and those whose cells they assign."""
        slots, cells = set(), set()
        for each in (self._instructions[index] for index in nodes):
            if each.name in _WRITES:
                slots.add(each.argument)
            elif each.name in ("STORE_DEREF", "DELETE_DEREF"):
                cells.add(each.argument)
        return frozenset(slots), frozenset(cells)

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
