"""Displays, and calls with a star: what they take from iterables."""

from __future__ import annotations

from typing import Any

from stillgraph.operators.consumers.consumers import known_or_list
from stillgraph.operators.containers.drawing import listed
from stillgraph.operators.dispatch import call
from stillgraph.trace.capture.session import session


def drawn_all(iterable: Any) -> Any:
    """What a display of a set takes behind a star."""
    return iterable if session() is None else known_or_list(iterable)


def displayed(iterable: Any) -> Any:
    """What a display or a call takes behind a star: as for a function that makes a list of it."""
    return iterable if session() is None else known_or_list(iterable, listed)


def set_display(*elements: Any) -> Any:
    """``{a, b}``."""
    return call(set, elements)


def dict_display(*pairs: tuple[Any, Any]) -> Any:
    """``{k: v}``."""
    return call(dict, list(pairs))
