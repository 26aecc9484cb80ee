"""A checksum in ONNX files, which have none: a byte that changes in a weight would go unseen.

It is a text among the file's metadata, and is that of the file with zeros in its place. A runtime does not look at it.
"""

from __future__ import annotations

import hashlib
import re

from stillgraph.core.diagnostics import load_error

KEY = "stillgraph.sha256"
BLANK = "0" * 64
"""What stands in the metadata until `sealed` puts the checksum there."""

_PLACE = re.compile(re.escape(KEY.encode()) + rb"\x12\x40([0-9a-f]{64})")  # a text of 64 bytes behind its key


def sealed(data: bytes) -> bytes:
    """A file with its checksum in the place of `BLANK`."""
    place = _PLACE.search(data)
    assert place is not None, "the metadata have a place for the checksum"
    return data[: place.start(1)] + _sum(data, place) + data[place.end(1) :]


def check_sum(data: bytes) -> bool:
    """Refuse a file that is not as it was saved.

    Returns:
        Whether the file has a checksum.

    Raises:
        LoadError: it has another.
    """
    place = _PLACE.search(data)
    if place is not None and place[1] != _sum(data, place):
        raise changed()
    return place is not None


def changed() -> BaseException:
    """The error that says that a file is not as it was saved."""
    hint = "Save the program anew; a file that another tool has changed on purpose runs in onnxruntime alone."
    return load_error("it is damaged, or was changed since it was saved", hint)


def _sum(data: bytes, place: re.Match[bytes]) -> bytes:
    found = hashlib.sha256(memoryview(data)[: place.start(1)])
    found.update(BLANK.encode())
    found.update(memoryview(data)[place.end(1) :])
    return found.hexdigest().encode()
