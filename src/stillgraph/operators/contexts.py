"""``with``."""

from __future__ import annotations

import contextlib
from types import FunctionType, TracebackType
from typing import Any

from stillgraph.operators.calls import call
from stillgraph.trace.session import Session, session


class _Converted:
    """A context manager of the user's whose methods are called through `call`."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        return call(type(self._manager).__enter__, self._manager)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return call(type(self._manager).__exit__, self._manager, kind, value, trace)


class _Swallowing:
    """A context manager that may end an exception: a raise that only happens in the run is refused inside it."""

    def __init__(self, manager: Any, capture: Session) -> None:
        self._manager = manager
        self._capture = capture

    def __enter__(self) -> Any:
        self._capture.swallowing += 1
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self._capture.swallowing -= 1
        return self._manager.__exit__(*error)


def context(manager: Any) -> Any:
    """What a ``with`` statement enters."""
    capture = session()
    enter = getattr(type(manager), "__enter__", None)
    if capture is not None and isinstance(manager, contextlib.suppress):
        return _Swallowing(manager, capture)
    if capture is not None and isinstance(enter, FunctionType) and capture.wants_conversion(enter):
        return _Converted(manager)
    return manager
