"""Modules that a call imports for the first time: they are as Python makes them, for they outlive the capture."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree

WEIGHTS = """
import torch
from a_module_of_scales import SCALE

WEIGHT = torch.tensor([1.0, 2.0, 3.0])
SHIFT = WEIGHT * SCALE
BIG = SHIFT if SHIFT.sum() > 5 else None


def use(x):
    return x * WEIGHT + SHIFT
"""
SCALES = """
import torch

SCALE = torch.ones(3) * 2
"""
FAILING = """
import torch

WEIGHT = torch.ones(3)
raise ImportError("not here")
"""
FILES = {"a_module_of_weights": WEIGHTS, "a_module_of_scales": SCALES, "a_module_that_fails": FAILING}


def _as_a_statement(x: Tensor) -> Any:
    from a_module_of_weights import use  # type: ignore[import-not-found]  # the fixture makes it

    return use(x)


def _on_one_path(x: Tensor) -> Any:
    if x.sum() > 0:
        import a_module_of_weights

        return a_module_of_weights.use(x)
    return x


def _by_name(x: Tensor) -> Any:
    return importlib.import_module("a_module_of_weights").use(x)


def _where_another_fails(x: Tensor) -> Any:
    try:
        import a_module_that_fails  # type: ignore[import-not-found]  # likewise
    except ImportError:
        from a_module_of_weights import use

        return use(x)
    return a_module_that_fails.WEIGHT


def _under_a_mode(x: Tensor) -> Any:
    with torch.device("cpu"):
        from a_module_of_weights import use
    return use(x)


FUNCTIONS = [_as_a_statement, _on_one_path, _by_name, _where_another_fails, _under_a_mode]


@pytest.fixture(autouse=True, params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Iterator[None]:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


@pytest.fixture(autouse=True, params=["", "site-packages"], ids=["users", "librarys"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules that nobody has imported, of the user's or of a library's."""
    folder = tmp_path / request.param
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)  # type: ignore[no-untyped-call]  # of pytest's
    yield
    for name in FILES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_what_a_module_makes_is_made_for_real(function: Callable[[Tensor], Any]) -> None:
    static = agree_first(function)
    module = sys.modules["a_module_of_weights"]
    assert [type(each) for each in (module.WEIGHT, module.SHIFT, module.BIG)] == [Tensor] * 3
    assert module.SHIFT.tolist() == [2.0, 4.0, 6.0]
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert type(module.__loader__).__module__ == "_frozen_importlib_external"
    assert len(static.programs) == 1
    agree(function, P, N)


def agree_first(function: Callable[[Tensor], Any]) -> Any:
    """The static function, after a call that is made before any in eager PyTorch."""
    static = sg.to_static(function, backend="eager")
    result = static(P)
    torch.testing.assert_close(result, function(P))
    torch.testing.assert_close(static(N), function(N))
    return static


def test_nobody_is_asked_after_the_capture() -> None:
    before = list(sys.meta_path)
    agree_first(_as_a_statement)
    assert sys.meta_path == before
