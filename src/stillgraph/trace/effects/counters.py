"""``next`` of an `itertools.count` that the capture has made, in a branch or loop that began after it.

How far it was advanced is a variable like any other then, which arms put back and loops carry.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from stillgraph.trace.heap.places import Variable

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session


class Counters:
    """The counters of one capture.

    Args:
        session: the capture.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._advanced: dict[int, tuple[itertools.count[Any], Variable]] = {}  # by id of the counter
        self._begun: dict[int, tuple[int, int]] = {}  # ... where it stood, and its step, from when the variable counts

    def made(self, counter: Any) -> None:
        """Told of an iterator that the code has made."""
        if type(counter) is itertools.count:
            self._advanced[id(counter)] = counter, Variable("how far an itertools.count was advanced", 0)

    def is_counted(self, counter: Any) -> bool:
        """Whether a variable says how far an iterator was advanced."""
        return id(counter) in self._begun

    def begin(self, counter: Any) -> bool:
        """Let a variable say from now on how far an iterator is advanced; whether it can."""
        if self.is_counted(counter):
            return True
        shown = repr(counter) if id(counter) in self._advanced else ""
        numbers = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", shown)
        if numbers is None:
            return False
        self._begun[id(counter)] = int(numbers[1]), int(numbers[2] or 1)
        return True

    def advance(self, counter: Any) -> Any:
        """What such an iterator gives next."""
        _, variable = self._advanced[id(counter)]
        drawn = variable.get()
        self._session.journal.write(variable, drawn + 1)
        start, step = self._begun[id(counter)]
        return start + drawn * step

    def forget(self) -> None:
        """Let go of the iterators."""
        self._advanced.clear()
        self._begun.clear()
