"""A `call` operator that follows calls into all functions written in Python, as staging does."""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from stillgraph.core.diagnostics import CaptureError
from stillgraph.source.compiled import is_converted
from stillgraph.source.convert import convert
from tests.unit.source.plain_operators import OPERATORS


class Following:
    """Operators whose `call` rewrites what it calls.

    Attributes:
        followed: the qualified names of the functions that were rewritten.
        refused: those that could not be, and why.
    """

    def __init__(self, modules: tuple[str, ...] | None = None) -> None:
        self.followed: set[str] = set()
        self.refused: dict[str, str] = {}
        self.modules = modules
        self.operators = {**OPERATORS, "call": self.call}

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.rewritten(function)(*args, **kwargs)

    def rewritten(self, function: Any) -> Callable[..., Any]:
        if isinstance(function, types.MethodType):
            return types.MethodType(self.rewritten(function.__func__), function.__self__)
        if not isinstance(function, types.FunctionType) or is_converted(function.__code__):
            return function
        if self.modules is not None and (function.__module__ or "").partition(".")[0] not in self.modules:
            return function
        try:
            made = convert(function, self.operators).function
        except CaptureError as refusal:
            self.refused[function.__qualname__] = refusal.reason.code
            return function
        self.followed.add(function.__qualname__)
        return made
