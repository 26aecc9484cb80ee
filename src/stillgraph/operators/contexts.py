"""``with``."""

from __future__ import annotations

import contextlib
from types import FunctionType, TracebackType
from typing import Any

from stillgraph.operators.calls import call
from stillgraph.trace.frames import is_torch
from stillgraph.trace.session import Session, session


def _is_signal(error: BaseException | None) -> bool:
    """Whether an exception is one with which a capture ends or begins anew, and not for a manager of the user's."""
    return error is not None and not isinstance(error, Exception) and type(error).__module__.startswith("stillgraph.")


class _Converted:
    """A context manager of the user's whose methods are called through `call`.

    A raise that only happens in the run would go past its ``__exit__``, so it is refused inside.
    """

    def __init__(self, manager: Any, capture: Session) -> None:
        self._manager = manager
        self._capture = capture

    def __enter__(self) -> Any:
        self._capture.watching += 1
        return call(type(self._manager).__enter__, self._manager)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self._capture.watching -= 1
        if _is_signal(value):
            return False
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
        return False if _is_signal(error[1]) else self._manager.__exit__(*error)


def context(manager: Any) -> Any:
    """What a ``with`` statement enters."""
    capture = session()
    enter = getattr(type(manager), "__enter__", None)
    if capture is not None and isinstance(manager, contextlib.suppress):
        return _Swallowing(manager, capture)
    if capture is not None and isinstance(enter, FunctionType) and capture.wants_conversion(enter):
        return _Converted(manager, capture)
    if capture is not None and isinstance(manager, contextlib._GeneratorContextManager) and _is_users(manager):
        return _Watched(manager, capture)
    return manager


def _is_users(manager: Any) -> bool:
    return not is_torch(manager.gen.gi_code.co_filename)


class _Watched:
    """A ``@contextmanager`` of the user's, which sees the exceptions of its block."""

    def __init__(self, manager: Any, capture: Session) -> None:
        self._manager = manager
        self._capture = capture

    def __enter__(self) -> Any:
        self._capture.watching += 1
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self._capture.watching -= 1
        return False if _is_signal(error[1]) else self._manager.__exit__(*error)
