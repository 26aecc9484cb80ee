"""Settings of the process: what is left as it is, what is logged and written, and what was covered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from stillgraph.core.logs import set_level
from stillgraph.report import later
from stillgraph.report.coverage import Coverage
from stillgraph.report.coverage import coverage as summed_up
from stillgraph.settings import SETTINGS, mark_skipped


def coverage(*, reset: bool = False) -> Coverage:
    """Which arms and loops the calls so far have gone through, of all static functions alive in the process.

    Args:
        reset: whether to count from zero again, after this.
    """
    functions = [*SETTINGS.static_functions]
    result = summed_up(None, ((p, v) for each in functions for p, v in zip(each.programs, each.visits, strict=True)))
    if reset:
        for each in functions:
            each.forget_visits()
    return result


def not_to_static(fn: Any) -> Any:
    """Leave a function as it is: the capture calls it, and does not rewrite it. Usable as a decorator.

    The program goes on with what the function gave, and repeats what it has changed. It relies on the state that the
    function could read: on another one, the call is captured anew.
    """
    if not callable(fn):
        raise TypeError(f"not_to_static takes a function, not {fn!r}")
    mark_skipped(fn)
    return fn


def ignore_modules(modules: Sequence[ModuleType]) -> None:
    """Never rewrite functions of these Python modules."""
    listed: list[Any] = list(modules) if isinstance(modules, (list, tuple)) else [modules]
    for module in listed:
        if not isinstance(module, ModuleType):
            raise TypeError(f"ignore_modules takes Python modules, not {module!r}")
    SETTINGS.ignore(listed)


def set_verbosity(level: int) -> None:
    """How much is shown on stderr: 0 warnings, 1 captures and what is refused, 2 also the cache and how programs run,
    3 and more everything. For single topics, see ``STILLGRAPH_LOG``.

    Raises:
        TypeError: the level is no integer.
    """
    set_level(level)


def set_artefacts(directory: str | os.PathLike[str] | None) -> None:
    """Write what each capture makes to files, from now on.

    Args:
        directory: it gets ``code/`` with each rewritten function, and a numbered folder for each program with its text,
            driver, guards and explanation, or with the text of a refusal. None writes no more.

    Raises:
        OSError: the directory cannot be made.
    """
    SETTINGS.logbook.keep_artefacts(None if directory is None else later.Artefacts(Path(directory)))


def set_code_level(level: int) -> None:
    """Print each function to stderr, once, after the first ``level`` rewrite steps; 100 prints the final code too.

    Raises:
        TypeError: the level is no integer.
    """
    SETTINGS.logbook.print_code(level)
