"""Files for torch's writers of archives, which end the process where the disk is full."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import IO, Any


class _Patient(io.RawIOBase):
    """A file that keeps an error of writing to itself: torch's writer ends the process where one gets through to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        return place

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self.error = error
        return len(data)


@contextlib.contextmanager
def patient(file: IO[bytes]) -> Iterator[Any]:
    """While torch writes to a file; an error is raised when it has done.

    Raises:
        OSError: something could not be written.
    """
    writing = _Patient(file)
    yield writing
    if writing.error is not None:
        raise writing.error
    file.flush()
