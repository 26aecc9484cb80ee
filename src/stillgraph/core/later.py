"""Names that a module gives away before it has them: what they stand for is imported when it is first asked for."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def imported_when_asked(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module (PEP 562) that has some names from modules that are not imported yet.

    Such a module says the same to type checkers: it imports the names ``if TYPE_CHECKING``.

    Args:
        module: its own name.
        homes: by name, the module that has it.
    """

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(imported(home), name)
        setattr(sys.modules[module], name, value)  # so it is asked for once
        return value

    return __getattr__


def imported(name: str) -> ModuleType:
    """A module. Some packages draw random numbers while they are imported, which must not move the user's generator."""
    if name in sys.modules:
        return importlib.import_module(name)  # waits for another thread that is at it
    state = random.getstate()
    try:
        return importlib.import_module(name)
    finally:
        random.setstate(state)
