"""Modules that tests write."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


def loaded(path: Path) -> ModuleType:
    """The module of a file, which nobody else can import."""
    return _run(path, path.stem, lambda module: None)


def imported(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a file, among Python's modules for as long as the test runs."""
    return _run(path, name, lambda module: monkeypatch.setitem(sys.modules, name, module))


def _run(path: Path, name: str, before: Callable[[ModuleType], None]) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before(module)
    spec.loader.exec_module(module)
    return module


def installed(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a package that is installed, as far as its path tells: code of a library's."""
    file = folder / "site-packages" / f"{name}.py"
    file.parent.mkdir()
    file.write_text(textwrap.dedent(text))
    return imported(file, name, monkeypatch)
