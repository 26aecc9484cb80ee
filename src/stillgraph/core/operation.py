"""Functions that one module names and another defines, so that what needs them imports no more than the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from stillgraph.core.later import imported

P = ParamSpec("P")
R = TypeVar("R")


class Operation(Generic[P, R]):
    """A function that is defined in another module than the one that names it.

    Attributes:
        name: of the operation.
        home: the module that defines it, if that is to be imported when the operation is first needed.
        meaning: what it does. The module that has it gives it once, when it is imported.
    """

    __slots__ = ("home", "meaning", "name")

    def __init__(self, name: str, home: str | None = None) -> None:
        self.name = name
        self.home = home
        self.meaning: Callable[..., Any] | None = None

    def defined(self, meaning: Callable[P, R]) -> Callable[P, R]:
        """Say what the operation does: a decorator.

        Raises:
            TypeError: it is defined already.
        """
        if self.meaning is not None:
            raise TypeError(f"the operation {self.name} is defined twice")
        self.meaning = meaning
        return meaning

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.meaning is None and self.home is not None:
            imported(self.home)
        assert self.meaning is not None, f"no module defines the operation {self.name}"
        return self.meaning(*args, **kwargs)  # type: ignore[no-any-return]  # of what it was defined by
