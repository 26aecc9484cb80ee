"""What a numpy array is, in little: enough to tell later whether it has changed."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

_SMALL = 4096  # bytes; more are hashed, so that a guard does not hold a second copy of them


def fingerprint(array: Any) -> tuple[Any, ...]:
    """An array's type, layout and contents; two that are equal are of arrays that no program can tell apart."""
    layout = (type(array), array.dtype, array.shape, array.strides, array.flags.writeable)
    numpy: Any = sys.modules["numpy"]  # the array's; stillgraph does not need it
    return (*layout, _contents(numpy.asarray(array), numpy))


def _contents(array: Any, numpy: Any) -> Any:
    if array.dtype.hasobject:  # whose memory holds addresses
        return tuple([(type(item), item) for item in array.flat])
    if array.nbytes <= _SMALL:
        return array.tobytes()
    return hashlib.blake2b(numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)).digest()
