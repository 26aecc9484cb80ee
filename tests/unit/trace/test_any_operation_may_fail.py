"""What fails in the run alone reaches the handler of the user's ``try``, whatever operation it is."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.failing_operations import OPERATIONS


def _trying(name: str) -> Callable[..., Any]:
    source = f"""def function(x, i, v):
    done = 0
    try:
        r = {OPERATIONS[name]}
        done = 1
    except Exception:
        return x, -1, done
    return x, 1, done
"""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"torch": torch, "tensor": torch.tensor, "F": F}
    exec(compile(source, file, "exec"), space)
    function: Callable[..., Any] = space["function"]
    return function


def _given() -> tuple[Tensor, ...]:
    return torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 2]), torch.tensor(1.0)


def _nothing_escapes(name: str) -> None:
    eager = _trying(name)
    args = _given()
    torch.manual_seed(0)
    expected = eager(*args)
    static = sg.to_static(_trying(name), full_graph=True, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            given = _given()
            torch.manual_seed(0)
            try:
                got = static(*given)
            except sg.CaptureError as refusal:
                if "SG307" in str(refusal):
                    raise
                return
            assert got[1:] == expected[1:]
            if name not in _OF_MEMORY_WITHOUT_CONTENTS:
                assert torch.equal(given[0], args[0])


_OF_MEMORY_WITHOUT_CONTENTS = ("cat out",)  # eager PyTorch makes it larger before it fails
_FAST = ["expandw", "overlapadd_", "no kernel", "cat out"]


@pytest.mark.parametrize("name", _FAST)
def test_the_handler_gets_it(name: str) -> None:
    _nothing_escapes(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in _FAST])
def test_so_with_any_operation(name: str) -> None:
    _nothing_escapes(name)


def test_a_try_of_what_cannot_fail_stays_as_it_is() -> None:
    def function(x: Tensor) -> Tensor:
        try:
            y = torch.cat([x, x]).reshape(-1) * 2
        except RuntimeError:
            y = x
        return y.sum()

    assert "try" not in str(sg.export(function, args=(torch.ones(3),)))


def test_no_argument_has_a_keyword_for_a_name() -> None:
    def function(x: Tensor) -> Tensor:
        drawn = x.clone().random_(**{"from": 2, "to": 9})
        return drawn + x.clone().uniform_(**{"to": 3.0, "from": 2.0})

    static = sg.to_static(function, backend="eager", full_graph=True)
    torch.manual_seed(0)
    got = static(torch.ones(3))
    torch.manual_seed(0)
    assert torch.equal(got, function(torch.ones(3)))
    assert "random_(2, to=9)" in str(sg.export(function, args=(torch.ones(3),)))
