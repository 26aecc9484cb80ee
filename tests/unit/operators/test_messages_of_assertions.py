"""What an assertion says is found out where it fails, and has no effect where it holds. PYTEST_DONT_REWRITE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

LOG: list[int] = []


class Counter:
    n = 0


def described() -> str:
    Counter.n += 1
    return "described"


def an_index(x: Tensor, i: Tensor) -> Tensor:
    assert i < 3, f"{x[i]}"
    return x


def a_write(x: Tensor, i: Tensor) -> Tensor:
    assert x[0] > -3, x.add_(100)
    return x


def an_append(x: Tensor, i: Tensor) -> Tensor:
    assert x[0] > -3, LOG.append(1)
    return x


def an_append_to_its_own(x: Tensor, i: Tensor) -> Any:
    own: list[int] = []
    assert x[0] > -3, own.append(1)
    return x, own


def a_call(x: Tensor, i: Tensor) -> Tensor:
    assert x[0] > -3, described()
    return x


def a_draw(x: Tensor, i: Tensor) -> Tensor:
    assert x[0] > -3, torch.rand(1)
    return x + torch.rand(1)


def a_print(x: Tensor, i: Tensor) -> Tensor:
    print("before")
    assert x[0] > -3, print("said")  # noqa: RUF030 - it is what is tried
    print("behind")
    return x


def a_decomposition(x: Tensor, i: Tensor) -> Tensor:
    assert x[0] > -3, f"{torch.linalg.cholesky(x[:1].reshape(1, 1) - 1).sum()}"
    return x


def a_variable_that_may_be_unset(x: Tensor, i: Tensor) -> Tensor:
    if x.sum() > 0:
        t = x
    assert x[0] > -3, t
    return x


def a_key_that_is_missing(x: Tensor, i: Tensor) -> Tensor:
    known: dict[str, int] = {}
    assert x[0] > -3, known["k"]
    return x


def an_assignment(x: Tensor, i: Tensor) -> Any:
    n = 1
    assert x[0] > -3, (n := 5)  # noqa: RUF018 - it is what is tried
    return x * n


def a_variable_of_a_call(x: Tensor, i: Tensor) -> Any:
    n = 1

    def counted() -> int:
        nonlocal n
        n += 1
        return n

    assert x[0] > -3, counted()
    return x * n


def an_iterator(x: Tensor, i: Tensor) -> Any:
    each = iter([x, x * 2, x * 3])
    assert x[0] > -3, next(each)
    return next(each)


def a_generator(x: Tensor, i: Tensor) -> Any:
    each = (x * n for n in range(3))
    assert x[0] > -3, f"{next(each)}"
    return next(each)


def numbers(x: Tensor, i: Tensor) -> Tensor:
    assert x.max() < 50, f"{x.max():.2f} of {x.mean().item():.3f}"
    return x


FUNCTIONS = [
    *(an_index, a_write, an_append, an_append_to_its_own, a_call, a_draw, a_print, a_decomposition),
    *(a_variable_that_may_be_unset, a_key_that_is_missing, an_assignment, a_variable_of_a_call, numbers),
]
CALLS = [
    *((torch.ones(9), 0), (torch.ones(2), 2), (-torch.ones(9), 1)),
    *((-torch.ones(9) * 5, 5), (torch.ones(3) * 99, 7), (torch.ones(9), 0)),
]


def outcome(function: Callable[..., Any], x: Tensor, index: int, capsys: pytest.CaptureFixture[str]) -> Any:
    torch.manual_seed(0)
    Counter.n, given = 0, x.clone()
    LOG.clear()
    try:
        result = repr(function(given, torch.tensor(index)))
    except Exception as error:  # of any kind: it is compared with that of eager
        result = type(error), str(error)
    return result, given.tolist(), Counter.n, [*LOG], capsys.readouterr().out, torch.rand(1).item()


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_has_effects_where_it_fails(
    function: Callable[..., Any], full_graph: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    static = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager")
    for x, index in CALLS:
        assert outcome(static, x, index, capsys) == outcome(function, x, index, capsys)


@pytest.mark.parametrize("function", [an_iterator, a_generator], ids=lambda function: function.__name__)
def test_an_iterator_is_advanced_where_it_fails(
    function: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x, index in CALLS:
        assert outcome(static, x, index, capsys) == outcome(function, x, index, capsys)
    with pytest.raises(sg.CaptureError, match="an iterator is advanced where only the run decides") as refused:
        sg.export(function, (torch.ones(3), torch.tensor(0)))
    assert refused.value.reason.code == "SG305"


def test_a_text_that_cannot_fail_is_part_of_the_assertion() -> None:
    program = sg.export(numbers, (torch.ones(3), torch.tensor(0)))
    assert " if " not in str(program)
