"""While one thread exports, the others do not see the modes that torch traces it with.

`torch.export` traces before dispatch, and keeps the modes of that (what records operations, what makes them functional)
in a stack of the whole process, where all other modes are a thread's own. A branch that another thread runs meanwhile,
in a capture or in a loaded file, would find them there.

The adapter to that stack.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from torch import _ops


class _OfOneThread:
    """Stands in the stack's place: the thread that made it has one of its own, all others have what was there."""

    def __init__(self, others: Any) -> None:
        self._owner = threading.get_ident()
        self._own, self._others = type(others)(), others

    @property
    def _stack(self) -> Any:
        return self._own if threading.get_ident() == self._owner else self._others

    def set(self, index: int, mode: Any) -> None:
        self._stack.set(index, mode)

    def get(self, index: int) -> Any:
        return self._stack.get(index)

    def count(self) -> int:
        found: int = self._stack.count()
        return found

    @property
    def _schema_check_mode(self) -> Any:
        return self._stack._schema_check_mode

    @_schema_check_mode.setter
    def _schema_check_mode(self, mode: Any) -> None:
        self._stack._schema_check_mode = mode


@contextlib.contextmanager
def modes_apart() -> Iterator[None]:
    """A block in which this thread's export is the business of no other. One thread at a time is inside."""
    others = _ops._mode_stack_state_for_pre_dispatch
    _ops._mode_stack_state_for_pre_dispatch = _OfOneThread(others)  # type: ignore[assignment]  # it is used as one
    try:
        yield
    finally:
        _ops._mode_stack_state_for_pre_dispatch = others
