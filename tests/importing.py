"""Modules that tests write."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def imported(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a file, among Python's modules for as long as the test runs."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module
