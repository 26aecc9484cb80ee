"""Cases of messages: a small function as a user might write it, how it is called, and the code it is refused with."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import stillgraph as sg

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Case:
    """A user's function and the code that it is refused with; ``call`` is what makes stillgraph say so."""

    target: Any
    code: str
    call: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.code}_{self.target.__name__}"

    def message(self) -> str:
        """The message as its golden file has it: paths without folders, lines counted from the function's first."""
        lines, first = inspect.getsourcelines(self.target)
        text = self._told()
        text = re.sub(
            r'(File ")([^"]*)(", line )(\d+)',
            lambda m: f"{m[1]}{_shown_file(m[2])}{m[3]}{_shown_line(m[2], int(m[4]), first, len(lines))}",
            text,
        )
        return re.sub(r"0x[0-9a-f]+", "0x...", text).replace(str(ROOT), "")

    def _told(self) -> str:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", RuntimeWarning)
            try:
                self.call()
            except sg.CaptureError as error:
                if error.reason.code == self.code:
                    return str(error)
                raise
        texts = [str(each.message) for each in told if f"reason {self.code}" in str(each.message)]
        assert texts, f"{self} is not refused"
        return texts[0]


def _shown_file(file: str) -> str:
    for folder, name in ((str(Path(torch.__file__).parent), "torch"), (str(Path(inspect.__file__).parent), "python")):
        if file.startswith(folder):
            return f"{name}/{Path(file).name}"
    return Path(file).name


def _shown_line(file: str, line: int, first: int, count: int) -> str:
    if str(ROOT) not in file:
        return "..."
    return str(line - first + 1) if first <= line < first + count else f"{line} of the file"


def cases_of(module: str) -> list[Case]:
    """The cases that a module of this package has registered."""
    return list(_CASES.get(f"{__package__}.{module}", {}).values())


_CASES: dict[str, dict[str, Case]] = {}


def _register(target: Any, code: str, call: Callable[[], Any]) -> Any:
    known = _CASES.setdefault(target.__module__, {})
    case = Case(target, code, call)
    assert str(case) not in known, str(case)
    known[str(case)] = case
    return target


def refused(code: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    """Register a function, or a module's class, that is refused when it is called with these arguments."""

    def register(target: Any) -> Any:
        def call() -> Any:
            torch.manual_seed(0)
            function = target() if isinstance(target, type) else target
            given = [value.clone() if isinstance(value, torch.Tensor) else value for value in args]
            return sg.to_static(function, backend="eager", **options)(*given)

        return _register(target, code, call)

    return register


def refused_for_lanes(code: str, *args: Any) -> Callable[[Any], Any]:
    """Register a function that is refused when it is called for many lanes at once."""

    def register(target: Any) -> Any:
        return _register(target, code, lambda: sg.vmap(target)(*args))

    return register


def not_saved(code: str, suffix: str, *args: Any) -> Callable[[Any], Any]:
    """Register a function that runs, and cannot be saved in the format of a suffix."""

    def register(target: Any) -> Any:
        def call() -> Any:
            function = target() if isinstance(target, type) else target
            sg.to_static(function, backend="eager")(*args)  # the program itself is fine
            sg.save(function, f"not_to_be_made{suffix}", args=args)

        return _register(target, code, call)

    return register


def told(code: str) -> Callable[[Any], Any]:
    """Register a function that makes the refused call itself, as a user's script would."""
    return lambda target: _register(target, code, target)


def mends(refused_one: Any, *args: Any) -> Callable[[Any], Any]:
    """Register a function, or a module's class, that does what the hint for a refused one says."""

    def register(target: Any) -> Any:
        MENDED.append((refused_one, target, args))
        return target

    return register


MENDED: list[tuple[Any, Any, tuple[Any, ...]]] = []
"""What is refused, what is captured, and what both are called with."""
