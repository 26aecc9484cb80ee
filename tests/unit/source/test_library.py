"""Code that was not written for us: the standard library, converted and run."""
from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import Any

import pytest

from stillgraph.source import convert as module
from tests.unit.source import library


def test_whole_modules_are_converted() -> None:
    assert library.convert_all() > 800


def test_rewritten_functions_do_the_same() -> None:
    assert library.check_calls() > 120


def test_a_file_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Path(argparse.__file__).read_text(encoding="utf-8")
    parsed: list[str] = []
    parse = ast.parse

    def counted(text: str, *rest: Any, **how: Any) -> ast.AST:
        parsed.append(text)
        return parse(text, *rest, **how)

    monkeypatch.setattr(ast, "parse", counted)
    module._analyses.clear()
    assert library.convert_all(("argparse",)) > 100
    assert parsed.count(whole) <= 1
    assert sum(map(len, parsed)) < 3 * len(whole)  # and each function by itself
