"""The ``try`` statements of a code object, found again in its table of handlers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stillgraph.bytecode.code.decode import Decoded, Handler
from stillgraph.bytecode.code.flow import Flow
from stillgraph.trace.control_flow.try_statements import collects


@dataclass(frozen=True, slots=True)
class Clause:
    """An ``except``, or a ``finally`` for exceptions.

    Attributes:
        kinds: where the expression of what it is for begins, and the instruction that asks for that; None: for all.
        body: where its block begins, behind that.
    """

    kinds: tuple[int, int] | None
    body: int


@dataclass(frozen=True, slots=True)
class Try:
    """A ``try``, or the block of a ``with``: instructions whose exceptions come to one handler.

    Attributes:
        start: the first of them.
        handler: theirs.
        nodes: all of them.
        clauses: what the handler does.
        ends: where control comes to from the body, and behind the handler.
        outer: an instruction that is protected by what is around the statement.
        only_cleans_up: whether the handler passes each exception on.
    """

    start: int
    handler: Handler
    nodes: frozenset[int]
    clauses: tuple[Clause, ...]
    ends: frozenset[int]
    outer: int
    only_cleans_up: bool


def tries_of(decoded: Decoded, flow: Flow) -> dict[int, tuple[Try, ...]]:
    """By the first instruction of their bodies, the outermost first; those that are entered in one place."""
    found: dict[int, list[Try]] = {}
    for target in dict.fromkeys(each.target for each in decoded.handlers):
        if is_try(decoded, target):
            clauses = tuple(_clauses(decoded, flow, target))
            made = _protected(decoded, flow, target, clauses) if clauses else None
            if made is not None:
                found.setdefault(made.start, []).append(made)
    return {start: tuple(sorted(some, key=lambda each: -len(each.nodes))) for start, some in found.items()}


def try_of_with(decoded: Decoded, flow: Flow, index: int) -> Try | None:
    """The block of the ``with`` that an instruction begins, with its handler."""
    handler = decoded.handler(index + 1)
    if handler is None or not is_with(decoded, handler.target):
        return None
    return _protected(decoded, flow, handler.target, (Clause(None, handler.target + 1),))


def is_try(decoded: Decoded, target: int) -> bool:
    """Whether a handler is that of a ``try`` statement."""
    return decoded.instructions[target].name == "PUSH_EXC_INFO" and not is_with(decoded, target)


def is_starred(decoded: Decoded, target: int) -> bool:
    """Whether a handler is what gets what the block of an ``except*`` raises."""
    return collects([each.name for each in decoded.instructions[target : target + 4]])


def is_with(decoded: Decoded, target: int) -> bool:
    """Whether a handler is that of a ``with`` statement."""
    names = [each.name for each in decoded.instructions[target : target + 2]]
    return names == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]


def only_reraises(decoded: Decoded, target: int) -> bool:
    """Whether a handler is what the compiler puts behind each: it ends the handling, and raises again."""
    return [each.name for each in decoded.instructions[target : target + 2]] == _CLEANS


def _clauses(decoded: Decoded, flow: Flow, target: int) -> Iterator[Clause]:
    """What a handler does; nothing, if that is an ``except*``."""
    names = [each.name for each in decoded.instructions]
    checks = frozenset(index for index, name in enumerate(names) if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"))
    start = target + 1
    while names[start] != "RERAISE":
        asked = flow.ends([start], checks)
        if names[start] == "POP_TOP" or not asked:
            yield Clause(None, start)
            return
        check = min(asked)
        if names[check : check + 2] != ["CHECK_EXC_MATCH", "POP_JUMP_IF_FALSE"] or len(asked) > 1:
            return
        yield Clause((start, check), check + 2)
        start = decoded.past_jumps(decoded.instructions[check + 1].argument)


def _protected(decoded: Decoded, flow: Flow, target: int, clauses: tuple[Clause, ...]) -> Try | None:
    nodes = frozenset(index for index in range(len(flow.next)) if flow.is_under(index, target))
    nodes |= _jumps_within(decoded, flow, nodes)
    entered = {way for index in flow.depth if index not in nodes for way in flow.next[index] if way in nodes}
    entered |= {0} & nodes
    if len(entered) != 1:
        return None
    start = entered.pop()
    handler = next(each for each in decoded.handlers if each.target == target)
    ends = {way for index in nodes for way in flow.next[index] if way not in nodes}
    loop = flow.loops.get(start)
    if loop is not None and not loop.nodes <= nodes and any(start in flow.next[index] for index in nodes):
        ends.add(start)  # a loop around it goes on from within
    outer = decoded.handler(target)
    for clause in clauses:
        ends |= _behind(decoded, flow, clause.body, target if outer is None else outer.target)
    ends = _without_jumps(decoded, ends)
    cleans = outer is not None and only_reraises(decoded, outer.target)
    return Try(
        start,
        handler,
        nodes,
        clauses,
        frozenset(ends),
        outer.target if outer is not None and cleans else target,
        not flow.may_end(target),
    )


def _without_jumps(decoded: Decoded, ends: set[int]) -> set[int]:
    """The ends of a statement, of which several may be mere jumps to one place."""
    places = [decoded.past_jumps(way) for way in ends]
    return {place if places.count(place) > 1 else way for way, place in zip(ends, places)}


_JUMPS = frozenset({"JUMP", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"})


def _jumps_within(decoded: Decoded, flow: Flow, nodes: frozenset[int]) -> frozenset[int]:
    """The jumps between instructions of a statement that the table of handlers leaves out: they raise nothing."""
    before: dict[int, set[int]] = {}
    for index in flow.depth:
        for way in flow.next[index]:
            before.setdefault(way, set()).add(index)
    jumps = frozenset(index for index in flow.depth if decoded.instructions[index].name in _JUMPS) - nodes
    while True:  # one may lead to another
        within = nodes | jumps
        kept = frozenset(index for index in jumps if before.get(index, {-1}) <= within >= set(flow.next[index]))
        if kept == jumps:
            return jumps
        jumps = kept


_CLEANS = ["COPY", "POP_EXCEPT"]


def _behind(decoded: Decoded, flow: Flow, body: int, outer: int) -> set[int]:
    """Where a handler's block has ended: its exception is not being handled any more.

    Args:
        decoded: the instructions.
        flow: theirs.
        body: where the block begins.
        outer: what gets an exception that the block raises: that is not followed.
    """
    found: set[int] = set()
    passed, queue = {body, outer}, [(body, 1)]
    while queue:
        index, level = queue.pop()
        name = decoded.instructions[index].name
        level += (name == "PUSH_EXC_INFO") - (name == "POP_EXCEPT")
        if not level:
            found |= {way for way in flow.next[index] if flow.may_end(way)}
            continue
        handler = decoded.handler(index)
        ways = {*flow.next[index], *([] if handler is None else [handler.target])} - passed
        passed |= ways
        queue += [(way, level) for way in ways]
    return found
