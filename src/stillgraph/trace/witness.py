"""Which Python code has run during a capture, rewritten or not: what it could have read is guarded."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from stillgraph.trace.frames import is_torch


class Witness:
    """Collects the code objects that run in this thread, with the namespaces they run in.

    Attributes:
        codes: by code object, the globals of a function that has it.
        hashed: the tensors that were keys, elements of a set, or asked for their ids: told by identity, that is.
    """

    def __init__(self) -> None:
        self.codes: dict[CodeType, dict[str, Any]] = {}
        self.hashed: list[torch.Tensor] = []
        self._watching = False

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
        if event != "call":
            return
        if frame.f_code is _HASH:
            if frame.f_back is not None and not is_torch(frame.f_back.f_code.co_filename):
                self.hashed.append(frame.f_locals["self"])
        elif frame.f_code not in self.codes:
            self.codes[frame.f_code] = frame.f_globals


_HASH = torch.Tensor.__hash__.__code__
