"""A checksum in ONNX files, which have none: a byte that changes in a weight would go unseen.

It is a text among the file's metadata, and is that of the file with zeros in its place. A runtime does not look at it.
Weights in a file of their own have a checksum too, which stands in the model's file beside the name of theirs.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from stillgraph.core.diagnostics import load_error

KEY = "stillgraph.sha256"
WEIGHTS, WEIGHTS_KEY = "stillgraph.weights", "stillgraph.weights.sha256"
BLANK = "0" * 64
"""What stands in the metadata until `seal` puts a checksum there."""


def of_weights_beside(path: Path) -> dict[str, str]:
    """The metadata of a model at a path whose weights are in a file of their own."""
    return {WEIGHTS: weights_beside(path).name, WEIGHTS_KEY: BLANK}


def weights_beside(path: Path) -> Path:
    """Where the weights of a model are saved that are not in its own file."""
    return path.with_name(f"{path.name}.data")


def seal(path: Path) -> None:
    """Put the checksums in their places in a model's file."""
    data = path.read_bytes()
    if (place := _place(WEIGHTS_KEY, data)) is not None:
        data = _with(data, place, _sum_of_file(weights_beside(path)))
    place = _place(KEY, data)
    assert place is not None, "the metadata have a place for the checksum"
    path.write_bytes(_with(data, place, _sum(data, place)))


def check_sum(data: bytes) -> bool:
    """Refuse a file that is not as it was saved.

    Returns:
        Whether the file has a checksum.

    Raises:
        LoadError: it has another.
    """
    place = _place(KEY, data)
    if place is not None and place[1] != _sum(data, place):
        raise changed()
    return place is not None


def path_beside_weights(data: bytes, path: Path) -> Path | None:
    """The path at which a runtime finds the weights of a model; None if they are in the model's own file.

    Args:
        data: what is in the model's file.
        path: of that file, which may be a link to one that the weights lie beside.

    Raises:
        LoadError: the weights are not there, or are not those that were saved.
    """
    place, name = _place(WEIGHTS_KEY, data), _text(WEIGHTS, data)
    if place is None or name is None:
        return None
    places = [each for each in (path, Path(os.path.realpath(path))) if each.with_name(name).is_file()]
    if not places:
        hint = f"Put {name} into the folder of the model; it keeps this name, whatever the model's is."
        raise load_error(f"its weights are in a file of their own, {name}, which is not there", hint)
    if place[1] != _sum_of_file(places[0].with_name(name)):
        hint = "A model that is saved again replaces the weights of the one before. Copy both files to another folder."
        raise load_error(f"{name}, where its weights were, has others now, or is damaged", hint)
    return places[0]


def changed() -> BaseException:
    """The error that says that a file is not as it was saved."""
    hint = "Save the program anew; a file that another tool has changed on purpose runs in onnxruntime alone."
    return load_error("it is damaged, or was changed since it was saved", hint)


def _place(key: str, data: bytes) -> re.Match[bytes] | None:
    return re.search(re.escape(key.encode()) + rb"\x12\x40([0-9a-f]{64})", data)  # a text of 64 bytes behind its key


def _text(key: str, data: bytes) -> str | None:
    """A text of the metadata; protocol buffers have its length in front, seven bits in each byte."""
    found = re.search(re.escape(key.encode()) + rb"\x12([\x80-\xff]*[\x00-\x7f])", data)
    if found is None:
        return None
    length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(found[1]))
    return data[found.end() : found.end() + length].decode()


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
