"""Captures by the front end that a test chooses: a test that takes the fixture `bytecode` captures through bytecode."""
from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator

import pytest

from stillgraph.api.captures import capture_call
from stillgraph.api.front_ends import BYTECODE

_CAPTURING = ("stillgraph.api", "stillgraph.api.static", "stillgraph.api.migration")


@pytest.fixture
def bytecode() -> Iterator[None]:
    """Every capture of the test interprets bytecode, be there source or not."""
    through_bytecode = functools.partial(capture_call, front_end=BYTECODE)
    with pytest.MonkeyPatch.context() as patch:
        for name in _CAPTURING:
            patch.setattr(importlib.import_module(name), "capture_call", through_bytecode)
        yield
