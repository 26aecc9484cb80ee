"""What ``collections.Counter`` has in C."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any


def count_elements(mapping: Any, iterable: Any, /) -> None:
    """Count each element of an iterable."""
    for element in iterable:
        mapping[element] = mapping.get(element, 0) + 1


POLYFILLS: dict[Any, Callable[..., Any]] = {collections._count_elements: count_elements}  # type: ignore[attr-defined]  # typeshed lacks it
"""By Python's own function."""
