"""What one thread prints, warns of and logs, kept from everybody else; what other threads tell goes where it went."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from stillgraph.core.files import is_dependency, is_written_by_us

_COMPILERS = ("torch", "stillgraph")  # what they log of is how a program is run


@contextlib.contextmanager
def heard() -> Iterator[dict[str, str]]:
    """A block whose texts go into a dict, which is complete when the block ends, and to nobody else.

    Only the thread that runs the block is heard.
    """
    texts: dict[str, str] = {}
    with _stream("stdout") as out, _stream("stderr") as err, _logged() as logged, _warned() as warned:
        yield texts
    texts |= {"what is printed": out.getvalue(), "what goes to stderr": err.getvalue()}
    texts |= {"the warnings": "".join(warned), "what is logged": "".join(logged)}


class _Stream:
    """A stream that keeps what the threads write that are heard, and is the one it stands for to all others."""

    def __init__(self) -> None:
        self.around: Any = None
        self.kept: dict[int, io.StringIO] = {}  # by thread

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept.get(threading.get_ident(), self.around), name)


_STREAMS = {"stdout": _Stream(), "stderr": _Stream()}
"""One of each for good: `print` in another thread holds no reference to the stream it has found."""


@contextlib.contextmanager
def _stream(name: str) -> Iterator[io.StringIO]:
    around, stream, thread = getattr(sys, name), _STREAMS[name], threading.get_ident()
    before, kept = stream.kept.get(thread), io.StringIO()
    if around is not stream:  # as it is where another thread kept it, and put it back
        stream.around = around
    stream.kept[thread] = kept
    setattr(sys, name, stream)
    try:
        yield kept
    finally:
        if before is None:
            del stream.kept[thread]
        else:
            stream.kept[thread] = before
        # Where other threads run, what stands there by now may be theirs.
        if getattr(sys, name) is stream or threading.active_count() == 1:
            setattr(sys, name, around)


@contextlib.contextmanager
def _logged() -> Iterator[list[str]]:
    handle, thread = logging.Logger.handle, threading.get_ident()
    logged: list[str] = []

    def keep(self: logging.Logger, record: logging.LogRecord) -> None:
        if threading.get_ident() != thread:
            handle(self, record)
        elif record.name.partition(".")[0] not in _COMPILERS:
            logged.append(f"{record.levelname} {record.name}: {record.getMessage()}\n")

    logging.Logger.handle = keep  # type: ignore[method-assign]  # for this block
    try:
        yield logged
    finally:
        logging.Logger.handle = handle  # type: ignore[method-assign]


@contextlib.contextmanager
def _warned() -> Iterator[list[str]]:
    """Filters are those of the process: while they let all through, another thread's warnings may come once more."""
    thread, warned = threading.get_ident(), list[str]()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def keep(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
            if threading.get_ident() != thread:
                show(message, category, filename, lineno, file, line)
            elif _is_the_users(str(message), filename):
                warned.append(f"{category.__name__}: {message}\n")

        warnings.showwarning = keep
        warnings.simplefilter("always")
        yield warned


def _is_the_users(message: str, filename: str) -> bool:
    """Whether a warning is of the function's: neither of a compiler's, nor one that torch's kernels give once."""
    inside = is_dependency(filename) and not is_written_by_us(filename)
    return not inside and "Triggered internally" not in message
