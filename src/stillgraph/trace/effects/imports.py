"""Modules that are imported for the first time during a capture: they are made for real, for they outlive it.

What a module makes where it begins, such as a tensor, would be a stand-in of the capture's for as long as the process
lives.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from torch.utils._python_dispatch import _disable_current_modes

from stillgraph.trace.graph.current import current, stepping_out
from stillgraph.trace.graph.recorder import Recorder


@contextlib.contextmanager
def made_outside(recorder: Recorder) -> Iterator[None]:
    """In the body, modules that this thread imports for the first time are made outside of a capture."""
    finder = _Finder(recorder)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:  # code of the user's may have put another list there
            sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Finds what the others find, and has it made outside of the capture."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As the first of the finders behind this one that finds the module."""
        if current() is not self._recorder:
            return None
        others = [each for each in sys.meta_path if not isinstance(each, _Finder) and hasattr(each, "find_spec")]
        found = next((spec for each in others if (spec := each.find_spec(name, path, target)) is not None), None)
        if found is not None and hasattr(found.loader, "exec_module"):
            found.loader = _Outside(found.loader, self._recorder)
        return found


class _Outside(Loader):
    """Loads a module as another loader does, which stands in the module as if there were no capture."""

    def __init__(self, loader: Any, recorder: Recorder) -> None:
        self._loader, self._recorder = loader, recorder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other loader, which is the module's from here on."""
        spec.loader = self._loader
        try:
            with stepping_out(self._recorder), _disable_current_modes():
                made: ModuleType | None = self._loader.create_module(spec)
                return made
        finally:
            spec.loader = self

    def exec_module(self, module: ModuleType) -> None:
        """As the other loader."""
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader
        with stepping_out(self._recorder), _disable_current_modes():
            self._loader.exec_module(module)
