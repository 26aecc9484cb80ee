"""A value on its way through a program: what does not open it, does not depend on what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

PREFIX = "stillgraph_held_"
"""With what the names of parcels' attributes begin, and no attribute of the user's does."""

_STEP = re.compile(rf"\.{PREFIX}\w+")


class Parcel:
    """A value in an attribute of a name of its own, so that a guard on it is made where just that is read."""

    def __init__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    @property
    def name(self) -> str:
        """The name of the attribute."""
        (name,) = self.__dict__
        return name

    @property
    def value(self) -> Any:
        """What is in it."""
        (value,) = self.__dict__.values()
        return value


def parcel(key: int | str, value: Any) -> Parcel:
    """A value in a parcel: the one of the position or name ``key`` among those of a call."""
    return Parcel(f"{PREFIX}{key}", value)


def is_parcels(name: str) -> bool:
    """Whether an attribute is that of a parcel."""
    return name.startswith(PREFIX)


def without_parcels(text: str) -> str:
    """A text on where values are, without the parcels around them, which nobody has written."""
    return _STEP.sub("", text)


def opened(value: Any) -> Any:
    """What is in a parcel; anything else as it is."""
    return value.value if type(value) is Parcel else value


def empty(values: Iterable[Any]) -> None:
    """Take out of parcels what is in them: the call that they were made for is past them."""
    for each in values:
        if type(each) is Parcel:
            vars(each)[each.name] = None
