"""What the user switched for the whole process: the one place with state that outlives a call."""

from __future__ import annotations

import os
import warnings
import weakref
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from stillgraph.core.logs import configure
from stillgraph.report import later
from stillgraph.report.logbook import Logbook

_SKIP = "__stillgraph_not_to_static__"


class Settings:
    """Process-wide switches."""

    def __init__(self) -> None:
        self.enabled = True
        self.progress = False  # whether a terminal shows what captures and saves are doing
        self.ignored: frozenset[str] = frozenset()
        self.logbook = Logbook()
        self.static_functions: weakref.WeakSet[Any] = weakref.WeakSet()  # those alive, for `coverage`

    def ignore(self, modules: list[ModuleType]) -> None:
        """Never rewrite functions of these modules."""
        self.ignored |= {module.__name__ for module in modules}

    def skips(self, function: Any) -> bool:
        """Whether the user wants a function left as it is."""
        if getattr(function, _SKIP, False):
            return True
        module = getattr(function, "__module__", None) or ""
        return any(module == name or module.startswith(name + ".") for name in self.ignored)


def _from_environment() -> Settings:
    """The switches as the process begins. A mistake in a variable must not keep a program from running."""
    settings = Settings()
    if os.environ.get("STILLGRAPH_LOG"):
        try:
            settings.progress = configure(os.environ["STILLGRAPH_LOG"])
        except ValueError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
    if os.environ.get("STILLGRAPH_ARTEFACTS"):
        try:
            settings.logbook.keep_artefacts(later.Artefacts(Path(os.environ["STILLGRAPH_ARTEFACTS"])))
        except (ValueError, OSError) as error:
            warnings.warn(f"STILLGRAPH_ARTEFACTS: no files are written: {error}", RuntimeWarning, stacklevel=2)
    return settings


SETTINGS = _from_environment()


def mark_skipped(function: Any) -> None:
    """Have `Settings.skips` answer yes for a function."""
    setattr(function, _SKIP, True)


class enable_to_static:
    """Switch capturing on or off: ``enable_to_static(False)``, or ``with enable_to_static(False):`` for a block."""

    def __init__(self, flag: bool) -> None:
        if not isinstance(flag, bool):
            raise TypeError(f"enable_to_static takes True or False, not {flag!r}")
        self._before = SETTINGS.enabled
        SETTINGS.enabled = flag

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        SETTINGS.enabled = self._before
