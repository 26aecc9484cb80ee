"""What is worked out once for a code object that is interpreted."""

from __future__ import annotations

import functools
import weakref
from types import CodeType

from stillgraph.bytecode.code.copies import without_copies
from stillgraph.bytecode.code.decode import Decoded, decode
from stillgraph.bytecode.code.flow import Flow
from stillgraph.bytecode.code.lines import line
from stillgraph.bytecode.code.tries import Try, is_starred, is_try, is_with, tries_of, try_of_with
from stillgraph.core.identity_cache import IdentityCache
from stillgraph.core.rewritten import Holder

_NONE: frozenset[int] = frozenset()


class Prepared(Holder):
    """A code object, decoded, with its flow and the lines that stand for it in Python's stack.

    Attributes:
        decoded: its instructions.
        flow: where control goes in it.
        depth: how many values it has on its stack at most.
    """

    def __init__(self, code: CodeType) -> None:
        self._code = weakref.ref(code)
        self.decoded: Decoded = without_copies(decode.__wrapped__(code))
        self.flow = Flow(self.decoded)
        self.depth = code.co_stacksize + _SPARE
        self._lines: dict[tuple[int, str, bool], CodeType] = {}

    def line(
        self, index: int, kind: str = "call", staged: frozenset[int] = _NONE, entered: frozenset[int] = _NONE
    ) -> CodeType:
        """The code of what runs something as an instruction; see `lines`.

        Args:
            index: of the instruction.
            kind: what it does with its arguments.
            staged: the handlers of ``try`` statements that are operators: no line stands in these.
            entered: the handlers of ``with`` statements that are Python's: lines in these stand as in a ``try``.
        """
        in_try = index in self._in_tries and not self._in_tries[index] <= staged
        if entered and not in_try:
            in_try = not entered.isdisjoint(self.around(index))
        found = self._lines.get((index, kind, in_try))
        if found is None:
            code = self._code()
            assert code is not None
            positions = self.decoded.instructions[index].positions
            found = self._lines[index, kind, in_try] = line(code, positions, kind, in_try)
        return found

    @functools.cached_property
    def tries(self) -> dict[int, tuple[Try, ...]]:
        """By the first instruction of their bodies, the ``try`` statements, the outermost first."""
        return tries_of(self.decoded, self.flow)

    @functools.cached_property
    def withs(self) -> dict[int, Try | None]:
        """By the instruction that begins each, the blocks of ``with`` statements."""
        begun = [index for index, each in enumerate(self.decoded.instructions) if each.name == "BEFORE_WITH"]
        return {index: try_of_with(self.decoded, self.flow, index) for index in begun}

    @functools.cached_property
    def delegations(self) -> dict[int, int]:
        """By the instruction that asks for the iterator of each ``yield from``: where it ends, with a value."""
        names = [each.name for each in self.decoded.instructions]
        return {i: i + len(_DELEGATES) for i in range(len(names)) if names[i : i + len(_DELEGATES)] == _DELEGATES}

    @functools.cached_property
    def _in_tries(self) -> dict[int, frozenset[int]]:
        """The handlers of the instructions in the body of a ``try``, not merely of a ``with``, or in an ``except*``."""
        covered = sorted({index for each in self.decoded.handlers for index in range(each.start, each.end)})
        found = {index: self.tries_around(index) | self._stars_around(index) for index in covered}
        return {index: targets for index, targets in found.items() if targets}

    def _stars_around(self, index: int) -> frozenset[int]:
        """What gets what the blocks of ``except*`` raise that an instruction stands in: it may only be Python's."""
        return frozenset(target for target in self.around(index) if is_starred(self.decoded, target))

    def tries_around(self, index: int) -> frozenset[int]:
        """The handlers of the ``try`` statements in whose bodies an instruction stands."""
        return frozenset(target for target in self.around(index) if is_try(self.decoded, target))

    def around(self, index: int) -> set[int]:
        """The handlers that an exception of an instruction may come to, one after the other."""
        passed: set[int] = set()
        while (handler := self.decoded.handler(index)) is not None and handler.target not in passed:
            index = handler.target
            passed.add(index)
        return passed

    def unbound_behind(self, index: int, outer: int) -> list[tuple[str, int]]:
        """What has no value any more where an exception of an instruction comes to a handler around it.

        Args:
            index: of the instruction.
            outer: the handler.

        Returns:
            The instruction that deletes each variable, and its slot.
        """
        found = []
        for target in self.around(index) - self.around(outer):
            names, slots = zip(*((each.name, each.argument) for each in self.decoded.instructions[target : target + 4]))
            if names in _UNBINDS and slots[1] == slots[2]:
                found.append((names[2], slots[2]))
        return found

    def handlers_around(self, index: int) -> frozenset[int]:
        """The handlers that an instruction stands in the reach of."""
        return frozenset(each.target for each in self.decoded.handlers if each.start <= index < each.end)

    def is_with(self, target: int) -> bool:
        """Whether a handler is that of a ``with`` statement."""
        return is_with(self.decoded, target)


_UNBINDS = [("LOAD_CONST", f"STORE_{kind}", f"DELETE_{kind}", "RERAISE") for kind in ("FAST", "DEREF")]
_DELEGATES = ["GET_YIELD_FROM_ITER", "LOAD_CONST", "SEND", "YIELD_VALUE", "JUMP", "END_SEND"]
_SPARE = 4  # what decoding adds

_known: IdentityCache[CodeType, Prepared] = IdentityCache()


def prepared(code: CodeType) -> Prepared:
    """What is known of a code object, kept for as long as it lives."""
    return _known.get(code, lambda: Prepared(code))
