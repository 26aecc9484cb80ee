"""Torch's functions that cut a tensor into parts, where how many there are depends on a size."""

from __future__ import annotations

from typing import Any


def unbind(input: Any, dim: Any = 0) -> Any:
    """``torch.unbind``."""
    return tuple([input.select(dim, place) for place in range(input.shape[dim])])


def split(tensor: Any, split_size: Any, dim: Any = 0) -> Any:
    """``torch.split`` by one size; an empty tensor has one part, which is empty."""
    size = tensor.shape[dim]
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0:
        if size != 0:
            what = f"dimension size is 0, but got dimension size of {size}"
            raise RuntimeError(f"split_size can only be 0 if {what}")
        split_size = 1
    count = max((size + split_size - 1) // split_size, 1)
    return tuple(
        [
            tensor.narrow(dim, place * split_size, min(split_size, size - place * split_size))
            for place in range(count)
        ]
    )


def chunk(input: Any, chunks: Any, dim: Any = 0) -> Any:
    """``torch.chunk``: an empty tensor has as many parts as are asked for."""
    size = input.shape[dim]
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if size == 0:
        return tuple([input.narrow(dim, 0, 0) for _ in range(chunks)])
    length = (size + chunks - 1) // chunks
    count = (size + length - 1) // length
    return tuple([input.narrow(dim, place * length, min(length, size - place * length)) for place in range(count)])


def tensor_split(input: Any, sections: Any, dim: Any = 0) -> Any:
    """``torch.tensor_split`` into so many parts: the first ones are longer by one where they cannot all be equal."""
    size = input.shape[dim]
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    length, longer = size // sections, size % sections
    parts: Any = []
    for place in range(sections):
        begin = place * length + min(place, longer)
        end = (place + 1) * length + min(place + 1, longer)
        parts.append(input.narrow(dim, begin, end - begin))
    return tuple(parts)
