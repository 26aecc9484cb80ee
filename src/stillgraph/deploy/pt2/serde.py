"""torch's writer and reader of programs, without work whose results it drops or has had before.

The adapter to the private parts of ``torch._export.serde``.
"""

from __future__ import annotations

import contextlib
import threading
import types
import typing
from collections.abc import Iterator
from typing import Any

from torch import fx
from torch._export.serde import serialize

_ONE_AT_A_TIME = threading.RLock()  # what is exchanged is the process's


@contextlib.contextmanager
def without_vain_work() -> Iterator[None]:
    """In the body torch writes or reads a program; one thread at a time is inside.

    Writing, torch works out the canonical form of a program only to see that there is one: that takes longer than the
    rest. Reading, it resolves the annotations of a class anew for each node and argument, and makes the Python code of
    a region again for each region around it.
    """
    with _ONE_AT_A_TIME:
        before = [(home, name, getattr(home, name)) for home, name, _ in _EXCHANGED]
        for home, name, ours in _EXCHANGED:
            setattr(home, name, ours)
        try:
            yield
        finally:
            for home, name, theirs in before:
                setattr(home, name, theirs)


def _as_it_is(program: Any, constants: Any = None) -> Any:
    return program


def _none(module: fx.GraphModule) -> list[Any]:
    return []


class _Typing(types.ModuleType):
    """The module ``typing``, with the annotations of a class resolved once."""

    def __init__(self) -> None:
        super().__init__("typing")
        vars(self).update({name: value for name, value in vars(typing).items() if name != "get_type_hints"})
        self._known: dict[type, dict[str, Any]] = {}

    def get_type_hints(self, kind: type, globalns: dict[str, Any] | None = None) -> dict[str, Any]:
        """As `typing.get_type_hints`, of a class of torch's schema."""
        if kind not in self._known:
            self._known[kind] = typing.get_type_hints(kind, globalns=globalns)
        return self._known[kind]


_EXCHANGED: tuple[tuple[Any, str, Any], ...] = (
    (serialize, "canonicalize", _as_it_is),
    (serialize, "typing", _Typing()),
    (fx.GraphModule, "_recompile_submodules", _none),
)
