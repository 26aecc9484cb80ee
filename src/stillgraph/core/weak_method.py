"""A method of an object that it does not keep alive."""

from __future__ import annotations

import weakref
from types import MethodType
from typing import Any


class WeakMethod:
    """Calls a method of an object that is there for as long as somebody else keeps it: a guard asks for it."""

    def __init__(self, method: MethodType) -> None:
        self.__name__, self.__qualname__ = method.__name__, method.__qualname__
        self.__func__ = method.__func__
        self._owner = weakref.ref(method.__self__)

    @property
    def __self__(self) -> Any:
        return self._owner()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self._owner(), *args, **kwargs)


def weak_method(function: Any) -> Any:
    """``function``, as a `WeakMethod` where it is a method of an object."""
    return WeakMethod(function) if isinstance(function, MethodType) else function
