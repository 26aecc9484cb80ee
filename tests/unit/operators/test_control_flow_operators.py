"""``torch.cond``, ``while_loop``, ``map``, ``scan``, ``associative_scan`` are staged like Python's own statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from functorch.experimental.control_flow import cond as cond_of_functorch
from functorch.experimental.control_flow import map as map_
from torch import Tensor
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, outcome, same_error

P = torch.arange(6.0).reshape(3, 2)
N = -P


def chosen(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def chosen_of_closures(x: Tensor) -> Any:
    return cond_of_functorch(x.sum() > 0, lambda: x + 1, lambda: x - 1)


def chosen_by_constants(x: Tensor) -> Any:
    y = torch.cond(x.shape[0] > 2, lambda x: x + 1, lambda x: x - 1, (x,))
    return torch.cond(torch.tensor(True), lambda y: y * 2, lambda y: y * 3, [y])


def chosen_of_trees(x: Tensor) -> Any:
    up = lambda d: {"a": d["a"] + 1, "b": [d["b"][0] * 2]}  # noqa: E731
    down = lambda d: {"a": d["a"] - 1, "b": [d["b"][0] * 3]}  # noqa: E731
    return torch.cond(x.sum() > 0, up, down, ({"a": x, "b": (x + 1,)},))


def repeated(x: Tensor) -> Any:
    return while_loop(lambda x: x.sum() < 10, lambda x: (x + 3,), (x,))


def counted(x: Tensor) -> Any:
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))


def repeated_with_trees(x: Tensor) -> Any:
    def going(i: Tensor, d: dict[str, Tensor]) -> Tensor:
        return i < d["n"].sum()

    def body(i: Tensor, d: dict[str, Tensor]) -> Any:
        return i + 4, {"n": d["n"].clone(), "y": d["y"] * 2}

    return while_loop(going, body, (torch.tensor(0), {"n": x, "y": x}))


def mapped(x: Tensor) -> Any:
    return map_(lambda row, k, z: {"p": row["a"] * k + z, "q": row["b"].sum()}, {"a": x, "b": x + 1}, x[0] + 0, 3)


def scanned(x: Tensor) -> Any:
    return scan(lambda c, y: ({"s": c["s"] + y}, (c["s"] * 1, y * 2)), {"s": torch.zeros(2)}, x, reverse=True)


def scanned_along(x: Tensor) -> Any:
    return scan(lambda c, y: (c + y, c * 1), torch.zeros(3), x, dim=1)


def combined(x: Tensor) -> Any:
    return associative_scan(lambda a, b: a + b, x.exp(), 0, combine_mode="generic")


def combined_backwards(x: Tensor) -> Any:
    both = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])  # noqa: E731
    return associative_scan(both, (x.cos(), x + 0.3), 1, reverse=True, combine_mode="generic")


def nested(x: Tensor) -> Any:
    def inner(x: Tensor) -> Any:
        return torch.cond(x.sum() > 16, lambda x: x * 2, lambda x: x * 3, (x,))

    def loop(x: Tensor) -> Any:
        return while_loop(lambda x: x.sum() < 3, lambda x: (x + 1,), (x,))[0]

    return torch.cond(x.sum() > 0, inner, loop, (x,))


def among_statements(x: Tensor) -> Any:
    for i in range(2):
        if x.sum() > 0:
            x = torch.cond(x.sum() > 3, lambda a: a + i, lambda a: a - i, (x,))  # noqa: B023  # called at once
        else:
            x = x + 1
    return x


def no_tensors(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (3,))


def several_elements(x: Tensor) -> Any:
    return torch.cond(x > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def on_another_device(x: Tensor) -> Any:
    return associative_scan(lambda a, b: a + b, x, 0)


FUNCTIONS = [
    *(chosen, chosen_of_closures, chosen_by_constants, chosen_of_trees, repeated, counted, repeated_with_trees, mapped),
    *(scanned, scanned_along, combined, combined_backwards, nested, among_statements),
]
QUICK = [chosen, repeated_with_trees, scanned, nested]
_slow = pytest.mark.slow
PARAMETERS = [f if f in QUICK else pytest.param(f, marks=_slow) for f in FUNCTIONS]


def expected(function: Any, x: Tensor) -> Any:
    with torch.no_grad():
        return function(x)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_they_give(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for x in (P, N, P + 9):
        assert_same(function(x), static(x))
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", PARAMETERS, ids=lambda function: function.__name__)
def test_without_a_full_graph(function: Any) -> None:
    static = sg.symbolic_trace(function)
    for x in (P, N, P + 9):
        assert_same(function(x), static(x))


@pytest.mark.parametrize("function", PARAMETERS, ids=lambda function: function.__name__)
def test_in_files(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "it.pt2", args=(P,))
    loaded = sg.load(tmp_path / "it.pt2")
    for x in (P, N):
        assert_same(function(x), loaded(x))


def test_in_onnx(tmp_path: Path) -> None:
    sg.save(chosen, tmp_path / "it.onnx", args=(P,))
    loaded = sg.load(tmp_path / "it.onnx")
    for x in (P, N):
        assert_same(chosen(x), loaded(x))


def test_their_gradients() -> None:
    """Those of the same statements of Python's: torch gives none for a loop."""

    def plain(x: Tensor) -> Tensor:
        while x.sum() < 10:
            x = x * 2 + 1
        return x.exp() if x.sum() > 30 else x

    def staged(x: Tensor) -> Any:
        x = while_loop(lambda x: x.sum() < 10, lambda x: (x * 2 + 1,), (x,))[0]
        return torch.cond(x.sum() > 30, lambda x: x.exp(), lambda x: x * 1, (x,))

    static = sg.to_static(staged, backend="eager")
    for x in (P, N, P + 9):
        given, wanted = outcome(static, (x.clone().requires_grad_(),)), outcome(plain, (x.clone().requires_grad_(),))
        assert_same(wanted["value"], given["value"])
        assert_same(wanted["gradients"], given["gradients"])


@pytest.mark.parametrize("function", [no_tensors, several_elements, on_another_device])
def test_what_torch_refuses(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    assert same_error(outcome(function, (P,))["error"], outcome(static, (P,))["error"])


def test_operators_themselves() -> None:
    operators: Any = torch.ops.higher_order

    def direct(x: Tensor) -> Any:
        x = operators.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        return operators.while_loop(lambda x: x.sum() < 10, lambda x: (x + 3,), (x,), ())

    agree(direct, P, N)
