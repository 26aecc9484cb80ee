"""What each call makes anew, so that no template holds it: functions, keys, factories that keep values of a call."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.outputs import has_table
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.allocations import is_shared, kept
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.containers import Parts, holds_staged


class MadeAnew:
    """Tells what is made anew.

    Args:
        capture: the capture.
        finder: where objects are found from the call's roots.
    """

    def __init__(self, capture: Recorder, finder: Finder) -> None:
        self._capture = capture
        self._finder = finder

    def require_keys(self, parts: Parts, what: str) -> None:
        """Refuse a dict with a key that each call makes anew: a template holds its keys, not how they are made.

        Raises:
            CaptureError: it has one.
        """
        has_keys = issubclass(parts.type, dict) and not has_table(parts.context)
        for key in parts.context if has_keys else ():
            for each in filter(self._is_made, _within(key)):
                message = f"a dict is {what} with a key that the function makes, {describe(each)}"
                hint = "Make the key outside the static function, or return pairs: [(key, value), ...]."
                raise refuse("SG306", message, hint=hint)

    def require_factory(self, value: Any, what: str) -> None:
        """Refuse a ``defaultdict`` whose factory each call makes anew: a template holds the factory itself.

        Raises:
            CaptureError: it is one.
        """
        factory = value.default_factory if isinstance(value, collections.defaultdict) else None
        if factory is None or self._finder.find(factory) is not None:
            return
        if holds_staged(factory) or self.holds_passed(factory) or not is_shared(factory, self._capture.is_new):
            message = f"a defaultdict is {what} with a factory that the function makes, {describe(factory)}"
            raise refuse("SG306", message, hint="Make the factory outside the static function, or return a plain dict.")

    def _is_made(self, value: Any) -> bool:
        """Whether each call makes anew what nothing stands for in a template's place."""
        if isinstance(value, torch.Tensor):
            return is_fake(value) and self._capture.fakes.real_of(value) is None  # others are there in another attempt
        return self._finder.find(value) is None and (holds_staged(value) or not is_shared(value, self._capture.is_new))

    def holds_passed(self, value: Any) -> bool:
        """Whether a function that the capture has made holds variables that each call makes."""
        cells = value.__closure__ or () if isinstance(value, FunctionType) else ()
        return any(self._finder.find(cell) is not None for cell in cells)

    def described(self, value: Any) -> str:
        """An object that each call makes anew, as messages name it."""
        if isinstance(value, FunctionType):
            names = " and ".join(map(repr, kept(value, self._capture.is_new)))
            what = "a lambda" if value.__name__ == "<lambda>" else f"the function '{value.__name__}'"
            return f"{what} that keeps {names or 'values'} of the call"
        what = f"the class {value.__name__}" if isinstance(value, type) else describe(value)
        return f"{what}, made in the function,"


def _within(key: Any) -> Iterator[Any]:
    """What a key of a dict is made of."""
    if isinstance(key, (tuple, frozenset)):
        for each in key:
            yield from _within(each)
    else:
        yield key
