"""A value on its way through a program: what does not open it, does not depend on what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


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


def opened(value: Any) -> Any:
    """What is in a parcel; anything else as it is."""
    return value.value if type(value) is Parcel else value


def empty(values: Iterable[Any]) -> None:
    """Take out of parcels what is in them: the call that they were made for is past them."""
    for each in values:
        if type(each) is Parcel:
            vars(each)[each.name] = None
