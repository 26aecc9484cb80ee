"""A checksum in ONNX files, which have none: a byte that changes in a weight would go unseen.

It is a text among the file's metadata, and is that of the file with zeros in its place. A runtime does not look at it.
Weights in a file of their own have a checksum too, which stands in the model's file.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from stillgraph.core.diagnostics import load_error

KEY = "stillgraph.sha256"
WEIGHTS = "stillgraph.weights.sha256"
BLANK = "0" * 64
"""What stands in the metadata until `seal` puts a checksum there."""


def weights_beside(path: Path) -> Path:
    """The file of the weights that are not in a model's own file."""
    return path.with_name(f"{path.name}.data")


def seal(path: Path) -> None:
    """Put the checksums in their places in a model's file."""
    data = path.read_bytes()
    if (place := _place(WEIGHTS, data)) is not None:
        data = _with(data, place, _sum_of_file(weights_beside(path)))
    place = _place(KEY, data)
    assert place is not None, "the metadata have a place for the checksum"
    path.write_bytes(_with(data, place, _sum(data, place)))


def check_sum(data: bytes, path: Path) -> bool:
    """Refuse a file that is not as it was saved.

    Args:
        data: what is in the file.
        path: of the file.

    Returns:
        Whether the file has a checksum.

    Raises:
        LoadError: it has another, or its weights have.
    """
    place = _place(KEY, data)
    if place is not None and place[1] != _sum(data, place):
        raise changed()
    weights = _place(WEIGHTS, data)
    if weights is not None:
        beside = weights_beside(path)
        if not beside.is_file():
            hint = f"Put {beside.name} into the same folder; both files keep the names that they were saved with."
            raise load_error(f"its weights are in a file of their own, {beside.name}, which is not there", hint)
        if weights[1] != _sum_of_file(beside):
            raise changed()
    return place is not None


def has_weights_beside(data: bytes) -> bool:
    """Whether a model's weights are in a file of their own."""
    return _place(WEIGHTS, data) is not None


def changed() -> BaseException:
    """The error that says that a file is not as it was saved."""
    hint = "Save the program anew; a file that another tool has changed on purpose runs in onnxruntime alone."
    return load_error("it is damaged, or was changed since it was saved", hint)


def _place(key: str, data: bytes) -> re.Match[bytes] | None:
    return re.search(re.escape(key.encode()) + rb"\x12\x40([0-9a-f]{64})", data)  # a text of 64 bytes behind its key


def _with(data: bytes, place: re.Match[bytes], text: bytes) -> bytes:
    return data[: place.start(1)] + text + data[place.end(1) :]


def _sum_of_file(path: Path) -> bytes:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest().encode()


def _sum(data: bytes, place: re.Match[bytes]) -> bytes:
    found = hashlib.sha256(memoryview(data)[: place.start(1)])
    found.update(BLANK.encode())
    found.update(memoryview(data)[place.end(1) :])
    return found.hexdigest().encode()
