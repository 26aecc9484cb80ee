"""Captures by the front end that a test chooses: a test that takes the fixture `bytecode` captures through bytecode."""
from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from stillgraph.api.captures import capture_call
from stillgraph.api.front_ends import BYTECODE, SOURCE
from stillgraph.program.program import Program
from stillgraph.trace.code.front_end import FrontEnd

_CAPTURING = ("stillgraph.api.later", "stillgraph.api.migration")


def _through_bytecode(*args: Any, front_end: FrontEnd = SOURCE, **options: Any) -> Program:
    options["front_end"] = BYTECODE if front_end is SOURCE else front_end
    return capture_call(*args, **options)


@contextlib.contextmanager
def through_bytecode() -> Iterator[None]:
    """Inside, every capture interprets bytecode, be there source or not."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _CAPTURING:
            patch.setattr(importlib.import_module(name), "capture_call", _through_bytecode)
        yield


@pytest.fixture
def bytecode() -> Iterator[None]:
    """Every capture of the test interprets bytecode, be there source or not."""
    with through_bytecode():
        yield
