"""Functions that are tried, with the arguments they are tried on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Cases:
    """The functions of a file, each with several calls' arguments."""

    def __init__(self) -> None:
        self.all: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def __call__(self, *calls: Any) -> Callable[[Any], Any]:
        """Try a function on each of these; a tuple is several arguments. On nothing if there are none."""

        def put(function: Any) -> Any:
            for args in calls or ((),):
                self.all.append((function, args if isinstance(args, tuple) else (args,)))
            return function

        return put


def caller() -> Any:
    """Where it is called from."""
    frame = sys._getframe(1)
    return frame.f_code.co_name, frame.f_lineno, frame.f_globals["__name__"], frame.f_code.co_filename
