"""Memory that Python's own containers do not hold: what of it a guard can compare, and what is refused."""

from __future__ import annotations

import ctypes
import io
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.program.sources import Source

BUFFERS = (memoryview, io.StringIO, io.BytesIO, ctypes.Array, ctypes.Structure, ctypes.Union, ctypes.c_long.__mro__[1])
READING = frozenset({"getvalue", "getbuffer", "read", "read1", "readline", "readlines", "tell"})  # of a stream
_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None)})


def buffer_refused(value: Any, source: Source) -> BaseException:
    """The refusal of a buffer that the function's code names: to read it may change it, and nothing guards it."""
    hint = "Pass what it holds: bytes, a string, a list or a tensor."
    return refuse("SG305", f"{source} is a {type(value).__name__}, whose contents no guard follows", hint=hint)


def require_plain_array(value: Any, source: Source) -> Any:
    """A numpy array whose elements, if they are objects, are numbers and texts.

    Raises:
        CaptureError: they are objects that may change.
    """
    if value.dtype.hasobject and not all(type(item) in _PLAIN for item in value.flat):
        raise refuse("SG305", f"{source} is a numpy array of objects", hint="Use a list of them.")
    return value
