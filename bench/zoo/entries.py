"""What the zoo knows of a program, and the table of all of them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

TOPICS = ("solvers", "text", "layers", "inference", "vision", "structures")
"""The modules with entries."""


@dataclass(frozen=True)
class Made:
    """A program that was just made: nothing has been called yet.

    Attributes:
        function: a function or module that uses the library as its users do.
        calls: makes the arguments of each call anew. The first call is the one that is captured; the others take
            other paths (more steps, another arm, other sizes of a loop), with equal shapes of their arguments.
        trains: whether gradients are compared, of float arguments and of the module's parameters.
        parameters: what is trained where `function` is no module.
        exact: whether results are equal to the last bit; otherwise to six digits.
    """

    function: Callable[..., Any]
    calls: Callable[[], list[tuple[Any, ...]]]
    trains: bool = False
    parameters: tuple[Tensor, ...] = ()
    exact: bool = False


@dataclass(frozen=True)
class Entry:
    """A program by name: the library (its import name) that it shows, and what makes it."""

    name: str
    library: str
    make: Callable[[], Made]

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.library) is not None


def entries() -> dict[str, Entry]:
    """All programs, by name."""
    found: dict[str, Entry] = {}
    for topic in TOPICS:
        for entry in importlib.import_module(f"bench.zoo.{topic}").ENTRIES:
            assert entry.name not in found, entry.name
            found[entry.name] = entry
    return found
