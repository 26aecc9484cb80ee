"""What is worked out once for a code object that is interpreted."""

from __future__ import annotations

import functools
import threading
import weakref
from types import CodeType

from stillgraph.bytecode.copies import without_copies
from stillgraph.bytecode.decode import Decoded, decode
from stillgraph.bytecode.flow import Flow
from stillgraph.bytecode.lines import line


class Prepared:
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
        self._lines: dict[tuple[int, str], CodeType] = {}

    def line(self, index: int, kind: str = "call") -> CodeType:
        """The code of what runs something as an instruction; see `lines`."""
        found = self._lines.get((index, kind))
        if found is None:
            code = self._code()
            assert code is not None
            positions = self.decoded.instructions[index].positions
            found = self._lines[index, kind] = line(code, positions, kind, index in self._in_tries)
        return found

    @functools.cached_property
    def _in_tries(self) -> frozenset[int]:
        """The instructions in the body of a ``try``, not merely of a ``with``."""
        return frozenset(
            index
            for each in self.decoded.handlers
            if self._is_try(each.target)
            for index in range(each.start, each.end)
        )

    def _is_try(self, target: int) -> bool:
        passed: set[int] = set()
        while target not in passed:
            passed.add(target)
            names = [each.name for each in self.decoded.instructions[target : target + 2]]
            if names[:1] == ["PUSH_EXC_INFO"] and "WITH_EXCEPT_START" not in names:
                return True
            outer = self.decoded.handler(target)
            if outer is None:
                return False
            target = outer.target
        return False

    def handlers_around(self, index: int) -> frozenset[int]:
        """The handlers that an instruction stands in the reach of."""
        return frozenset(each.target for each in self.decoded.handlers if each.start <= index < each.end)

    def is_with(self, target: int) -> bool:
        """Whether a handler is that of a ``with`` statement."""
        names = [each.name for each in self.decoded.instructions[target : target + 2]]
        return names == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]


_SPARE = 4  # what decoding adds

_known: dict[int, tuple[weakref.ref[CodeType], Prepared]] = {}
_lock = threading.RLock()


def prepared(code: CodeType) -> Prepared:
    """What is known of a code object, kept for as long as it lives.

    By identity: two code objects are equal if their text and lines are, even if they come from different files.
    """
    known = _known.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    with _lock:
        made = Prepared(code)

        def forget(dead: weakref.ref[CodeType], key: int = id(code)) -> None:
            if _known.get(key, (None,))[0] is dead:
                _known.pop(key, None)

        _known[id(code)] = weakref.ref(code, forget), made
        return made
