"""What eager PyTorch says of an operation that fails on a path of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import P, agree, outcome, same_error


def a_product(x: Tensor) -> Tensor:
    return x[None] @ torch.ones(4, 4)


def a_layer(x: Tensor) -> Tensor:
    return torch.nn.functional.linear(x, torch.ones(2, 5))


def an_index(x: Tensor) -> Tensor:
    return x[7]


def joined(x: Tensor) -> Tensor:
    return torch.cat([x[None], x[None, :2]])


@pytest.mark.parametrize("fails", [a_product, a_layer, an_index, joined])
def test_it_is_raised_on_its_path(fails: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return fails(x) if x.sum() < 0 else x

    agree(function, P, -P, P)


def test_it_is_handled() -> None:
    def function(x: Tensor) -> Any:
        try:
            if x.sum() < 0:
                x = x.view(3, 7)
        except RuntimeError as error:
            return x - 1, str(error)
        return x + 1, "fits"

    agree(function, P, -P)


def test_in_a_loop() -> None:
    def function(x: Tensor, n: Tensor) -> Tensor:
        while n.sum() > 0:
            x = x * 2
            if x.sum() > 20:
                x = torch.cat([x, x[None]])
            n = n - 1
        return x

    agree(function, (P, torch.tensor(1)), (P, torch.tensor(0)), (P, torch.tensor(4)))


@pytest.mark.parametrize("fails", [a_product, an_index])
def test_in_files(fails: Any, tmp_path: Path) -> None:
    def function(x: Tensor) -> Tensor:
        return fails(x)[:1] if x.sum() < 0 else x

    sg.save(function, tmp_path / "it.pt2", args=(P,))
    loaded = sg.load(tmp_path / "it.pt2")
    assert torch.equal(loaded(P), P)
    wanted, given = outcome(function, (-P,))["error"], outcome(loaded, (-P,))["error"]
    assert (type(given), str(given)) == (type(wanted), str(wanted))


def test_without_a_full_graph() -> None:
    def function(x: Tensor) -> Tensor:
        return a_product(x) if x.sum() < 0 else x

    static = sg.symbolic_trace(function)
    for x in (P, -P, P):
        wanted, given = outcome(function, (x,)), outcome(static, (x,))
        assert same_error(wanted["error"], given["error"])
        assert_same(wanted["value"], given["value"])


def test_of_sizes_that_are_open_the_capture_says_what_it_can() -> None:
    def function(x: Tensor) -> Tensor:
        return x @ torch.ones(4, 4) if x.sum() < 0 else x

    with pytest.raises(sg.CaptureError, match="the code raises RuntimeError: "):
        sg.to_static(function, input_spec=[sg.InputSpec([None, 3])], backend="eager")(torch.ones(2, 3))


def test_a_draw_that_fails_draws_nothing() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.normal(x[:2], x) if x.sum() < 0 else x

    torch.manual_seed(3)
    before = torch.get_rng_state()
    sg.to_static(function, backend="eager")(P)
    assert torch.equal(torch.get_rng_state(), before)


def text_of_a_sum(x: Tensor, y: Tensor) -> Any:
    try:
        return x + y
    except RuntimeError as error:
        return str(error)


def arguments_of_a_product(x: Tensor, y: Tensor) -> Any:
    try:
        return x @ y
    except RuntimeError as error:
        return error.args


def text_behind_a_step(x: Tensor, y: Tensor) -> Any:
    positive, negative = x[x[:, 0] > 0], x[x[:, 0] < 0]
    print("on")
    try:
        return positive + negative
    except RuntimeError as error:
        return f"{error}"


SIZES = [(3, 3), (4, 4), (5, 4), (6, 4), (6, 5), (4, 7), (5, 5), (7, 3), (2, 3)]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [text_of_a_sum, arguments_of_a_product])
def test_a_handler_gets_it(function: Any, full_graph: bool) -> None:
    options: dict[str, Any] = {} if full_graph else {"strict": True}
    static = sg.to_static(function, full_graph=full_graph, backend="eager", **options)
    for rows, others in SIZES:
        x, y = torch.ones(rows, 2), torch.ones(others, 2)
        assert_same(function(x, y), static(x, y))


def test_a_handler_gets_it_behind_a_step_of_pythons() -> None:
    static = sg.to_static(text_behind_a_step, full_graph=False, strict=True, backend="eager")
    for rows in (4, 5, 6, 7, 3, 2, 1, 8, 9, 5):
        x = torch.arange(2.0 * rows).reshape(rows, 2) - 3
        assert_same(text_behind_a_step(x, x), static(x, x))
