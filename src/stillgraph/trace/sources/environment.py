"""Environment variables: which of them a capture reads and writes, one by one."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_below_torch, is_ours, is_standard_library
from stillgraph.program.guards import EnvironmentGuard
from stillgraph.trace.code.frames import here

_ENVIRON = type(os.environ)


class Environment:
    """What a capture's code, and the libraries it calls but for torch, did with ``os.environ``."""

    def __init__(self) -> None:
        self._read: dict[bytes, bytes | None] = {}
        self._written: dict[bytes, None] = {}
        self._whole = False
        self._thread = 0
        self._in_arm: Callable[[], bool] = lambda: False

    @contextlib.contextmanager
    def watched(self, in_arm: Callable[[], bool]) -> Iterator[None]:
        """Note what happens to ``os.environ`` in the body; ``in_arm`` tells whether that is in an arm."""
        self._in_arm = in_arm
        self._thread = threading.get_ident()
        if type(os.environ) is not _ENVIRON:  # the user has put something else there
            self._whole = True
            yield
            return
        both: tuple[Any, ...] = (os.environ, os.environb)
        data = both[0]._data
        _keep_in(both, _Watched(data, self))
        try:
            yield
        finally:
            _keep_in(both, data)

    def guards(self) -> Iterator[EnvironmentGuard]:
        """That the variables are as they are at the end of the capture: to write the same again changes nothing."""
        if self._whole:
            yield EnvironmentGuard(None, dict(os.environ))
            return
        for key in dict.fromkeys((*self._read, *self._written)):
            name = os.fsdecode(key)
            yield EnvironmentGuard(name, os.environ.get(name))

    def reads(self, key: bytes, value: bytes | None) -> None:
        """A variable is read; ``value`` is None if it is not there."""
        if self._is_noted():
            self._read.setdefault(key, value)

    def reads_all(self) -> None:
        """The variables are listed or counted."""
        self._whole = self._whole or self._is_noted()

    def writes(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        """A variable is set, or deleted.

        Raises:
            CaptureError: only the run knows whether it is done, or the new value may be made of the old one, so that to
                write it again is something else.
        """
        if old == new or not self._is_noted():
            return
        name = os.fsdecode(key)
        if self._in_arm():
            self._refuse_write(key, old, f"the environment variable {name} is changed on one path only")
        if self._whole or (old is not None and self._read.get(key) is not None):
            self._refuse_write(key, old, f"the environment variable {name} is read and then changed")
        self._written[key] = None

    def _refuse_write(self, key: bytes, old: bytes | None, message: str) -> NoReturn:
        """Python has told the process already."""
        os.unsetenv(key) if old is None else os.putenv(key, old)
        raise refuse("SG305", message, location=here())

    def _is_noted(self) -> bool:
        """Whether it is the user's code that asks, or a library's for it: no other thread, and not torch for itself."""
        if threading.get_ident() != self._thread:
            return False
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and _is_between(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None and not is_below_torch(frame.f_code.co_filename)


def _is_between(file: str) -> bool:
    return is_ours(file) or is_standard_library(file)


def _keep_in(environments: tuple[Any, ...], data: Any) -> None:
    for environment in environments:
        environment._data = data


class _Watched:
    """What ``os.environ`` keeps its variables in, during a capture."""

    def __init__(self, data: dict[bytes, bytes], environment: Environment) -> None:
        self._data = data
        self._environment = environment

    def __getitem__(self, key: bytes) -> bytes:
        self._environment.reads(key, self._data.get(key))
        return self._data[key]

    def __contains__(self, key: bytes) -> bool:
        self._environment.reads(key, self._data.get(key))
        return key in self._data

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._environment.writes(key, self._data.get(key), value)
        self._data[key] = value

    def __delitem__(self, key: bytes) -> None:
        self._environment.writes(key, self._data.get(key), None)
        del self._data[key]

    def __iter__(self) -> Iterator[bytes]:
        self._environment.reads_all()
        return iter(self._data)

    def __len__(self) -> int:
        self._environment.reads_all()
        return len(self._data)

    def __getattr__(self, name: str) -> Any:  # ``items``, ``copy`` …
        self._environment.reads_all()
        return getattr(self._data, name)
