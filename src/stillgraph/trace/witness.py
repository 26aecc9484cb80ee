"""Which Python code has run during a capture, rewritten or not: what it could have read is guarded."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any


class Witness:
    """Collects the code objects that run in this thread, with the namespaces they run in.

    Attributes:
        codes: by code object, the globals of a function that has it.
        reaching: told before a function that may change what is outside the program is called, and by which frame.
    """

    reaching: Callable[[FrameType], None] | None = None

    def __init__(self) -> None:
        self.codes: dict[CodeType, dict[str, Any]] = {}
        self._watching = False

    @property
    def is_watching(self) -> bool:
        """Whether code of the user's is being run, and nothing of torch's on its account."""
        return self._watching

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Collect in the body. A profiler that is running goes without what happens there."""
        before = sys.getprofile()
        sys.setprofile(self._note)
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            resume = getattr(before, "enable", None)  # cProfile's profiler is no function before Python 3.12
            resume() if resume is not None else sys.setprofile(before)

    def pause(self) -> bool:
        """Collect nothing until `resume`; whether it collected before. Torch's own code makes thousands of calls."""
        if self._watching:
            sys.setprofile(None)
            self._watching = False
            return True
        return False

    def resume(self, watching: bool) -> None:
        """End a `pause`, given what it returned."""
        if watching:
            self._watching = True
            sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if frame.f_code not in self.codes:
                self.codes[frame.f_code] = frame.f_globals
        elif event == "c_call" and self.reaching is not None and argument in _REACHING:
            self.reaching(frame)


_REACHING = frozenset(
    {
        *(open, sys.audit),
        *(
            getattr(os, name)
            for name in (
                *("open", "remove", "unlink", "rename", "replace", "mkdir", "rmdir", "chmod", "chown", "truncate"),
                *("utime", "symlink", "link", "chdir", "putenv", "unsetenv", "kill", "killpg", "system", "execv"),
                *("execve", "fork", "forkpty", "posix_spawn", "posix_spawnp"),
            )
            if hasattr(os, name)
        ),
    }
)
"""Functions of Python's, written in C, that change what is outside; torch's and numpy's own are not among them."""
