"""Where an operation fails after something was done to the outside, Python's state is left as eager leaves it."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.so_far import LINES
from stillgraph.trace.capture import account
from tests.cases.compare import assert_same
from tests.unit.runtime.raising import as_it_stands


class Notes:
    """State that functions change before they fail."""

    def __init__(self) -> None:
        self.n, self.log, self.table = 0, [7], {"a": [1]}
        self.buffer = torch.zeros(3)
        self.last: Any = None

    def state(self) -> Any:
        return self.n, [*self.log], {key: [*value] for key, value in self.table.items()}, self.buffer.clone(), self.last


def appended(notes: Notes, x: Tensor) -> Any:
    notes.log.append(1)
    print("step")
    return 1 // int(x[0])


def behind_is_not_done(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    print("step")
    y = 1 // int(x[0])
    notes.n += 10
    notes.log.append(2)
    print("done")
    return y


def written_twice(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    print(notes.n)
    y = 1 // int(x[0])
    notes.n += 10
    z = 1 // int(x[1])
    notes.n += 100
    return y + z + 1 // int(x[2])


def of_values_of_the_run(notes: Notes, x: Tensor) -> Any:
    notes.n = x.sum().item()
    notes.last = x * 2
    print("step")
    y = 1 // int(x[0])
    notes.last = x * 3
    notes.n = y
    return y + 1 // int(x[1])


def put_back(notes: Notes, x: Tensor) -> Any:
    before = notes.n
    notes.n = 9
    print("step")
    y = 1 // int(x[0])
    notes.n = before
    return y + 1 // int(x[1])


def in_containers(notes: Notes, x: Tensor) -> Any:
    notes.table["b"] = [2]
    notes.table["a"].append(3)
    notes.log[0] = 4
    x.add_(1)
    y = 1 // int(x[0])
    notes.log.pop()
    del notes.table["b"]
    notes.table["a"].insert(0, 5)
    return y + 1 // int(x[1])


def copied(notes: Notes, x: Tensor) -> Any:
    notes.log.append(1)
    notes.last = list(notes.log)
    notes.log.append(2)
    print("step")
    return 1 // int(x[0])


def in_a_loop(notes: Notes, x: Tensor) -> Any:
    total = 0
    for value in x:
        notes.n += 1
        print("at", notes.n)
        total = total + 1 // int(value)
        notes.log.append(notes.n)
    return total


def in_a_loop_of_the_run(notes: Notes, x: Tensor) -> Any:
    k = 0
    while k < x.abs().sum().int():
        notes.n += 1
        print("at", notes.n)
        k = k + 1 + 0 * (1 // int(x[k]))
        notes.buffer = notes.buffer + k
    return k


def in_a_branch(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    print("before")
    if x.sum() > 1:
        notes.n += 10
        y = 1 // int(x[0])
        notes.n += 100
    else:
        notes.log.append(3)
        y = 2 // int(x[1])
    notes.last = y
    return y + 1 // int(x[2])


def on_one_path(notes: Notes, x: Tensor) -> Any:
    print("before")
    if x.sum() > 1:
        notes.n += 10
    y = 1 // int(x[0])
    return y


def within_another(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    return helper(notes, x) + 1


def helper(notes: Notes, x: Tensor) -> Any:
    warnings.warn("step", stacklevel=2)
    notes.log.append(int(x[1]))
    return 1 // int(x[0])


def drawn(notes: Notes, x: Tensor) -> Any:
    notes.last = torch.rand(2)
    notes.n += 1
    return x[int(x[0] * 7)]


def handled(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    print("before")
    try:
        notes.n += 10
        y = 1 // int(x[0])
        notes.n += 100
    except ZeroDivisionError:
        notes.log.append(8)
        y = 2 // int(x[1])
    return y + 1 // int(x[2])


def raised(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    print("step")
    if x[0] == 0:
        raise ZeroDivisionError("by hand")
    notes.n += 1
    return 1 // int(x[1])


def recursive(notes: Notes, x: Tensor) -> Any:
    notes.n += 1
    print("step")
    return down(x, torch.tensor(2)) + 1


def down(x: Tensor, depth: Tensor) -> Any:
    if depth > 0:
        return down(x, depth - 1) + 1
    return 1 // int(x[0])


def under_a_mode(notes: Notes, x: Tensor) -> Any:
    with torch.no_grad():
        notes.last = x + 1
        print("step")
        y = 1 // int(x[0])
        notes.n += 1
    return y + 1 // int(x[1])


FUNCTIONS = [
    appended, behind_is_not_done, written_twice, of_values_of_the_run, put_back, in_containers, copied, in_a_loop,
    in_a_loop_of_the_run, in_a_branch, on_one_path, within_another, drawn, handled, raised, recursive, under_a_mode,
]  # fmt: skip
XS = [(1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 1, 1), (0, 0, 0), (0, 2, 1), (1, 1, 1)]


def told(function: Callable[..., Any]) -> list[Any]:
    """All that calls in a row give, print, warn of, and leave."""
    torch.manual_seed(0)
    notes, found = Notes(), list[Any]()
    for values in XS:
        x, printed = torch.tensor(values, dtype=torch.float32), io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result = function(notes, x)
            except (ZeroDivisionError, IndexError) as error:
                result = type(error), str(error), traceback.extract_tb(error.__traceback__)[-1].lineno
        found.append((result, notes.state(), x, printed.getvalue(), [str(each.message) for each in warned]))
    return found


@pytest.mark.parametrize("backend", ["eager", as_it_stands])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Callable[..., Any], backend: Any) -> None:
    static = sg.to_static(function, backend=backend)
    for expected, actual in zip(told(function), told(static), strict=True):
        assert_same(expected, actual)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_check_finds_no_difference(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", check=9)
    assert_same(told(function), told(static))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        self.seen += 1
        return 1 // int(x[0])


def test_of_a_module_with_a_buffer() -> None:
    eager, counted = Counter(), Counter()
    static = sg.to_static(counted, backend="eager")
    for first in (1.0, 0.0, 2.0, 0.0):
        x = torch.tensor([first])
        for module in (eager, static):
            with contextlib.suppress(ZeroDivisionError):
                module(x)
        assert (counted.calls, counted.seen) == (eager.calls, eager.seen)
    assert (counted.calls, counted.seen.item()) == (4, 4)


KEYS = [f"key {number}" for number in range(300)]


def beside_a_tensor_of_a_dict(x: Tensor, buffer: Tensor, table: dict[str, Any]) -> None:
    buffer.add_(x)
    table["new"] = x + 1
    torch.linalg.cholesky(0 * x.sum() - torch.eye(3))


def beside_tensors_of_a_list(x: Tensor, buffer: Tensor, table: list[Any]) -> Any:
    buffer.add_(x)
    table[0] = x + 1
    table.append(table[1])
    return x[int(x.sum()) * 30]


def after_many_writes(x: Tensor, buffer: Tensor, table: list[Any]) -> Any:
    for key in KEYS:
        table.append(key)
        buffer.add_(x)
    return x[int(x.sum()) * 30]


FAILING: list[tuple[Callable[..., Any], Callable[[], Any]]] = [
    (beside_a_tensor_of_a_dict, lambda: {"there": torch.ones(3)}),
    (beside_tensors_of_a_list, lambda: [torch.ones(1), torch.zeros(2), torch.zeros(3)]),
    (after_many_writes, list),
]


def left(function: Callable[..., Any], make: Callable[[], Any]) -> tuple[Any, ...]:
    buffer, table = torch.zeros(3), make()
    kept = table["there"] if isinstance(table, dict) else table[1] if table else None
    with pytest.raises((RuntimeError, IndexError)):
        function(torch.ones(3), buffer, table)
    found = table.get("there") if isinstance(table, dict) else table[1] if kept is not None else None
    return buffer, table, found is kept


@pytest.mark.parametrize(("function", "make"), FAILING)
@pytest.mark.parametrize("full_graph", [True, False])
def test_of_what_is_there_already(function: Callable[..., Any], make: Callable[[], Any], full_graph: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for _ in range(2):
        assert_same(left(function, make), left(static, make))


def test_what_no_account_is_kept_of_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_MOST", 100)
    static = sg.to_static(after_many_writes, backend="eager")
    with pytest.warns(RuntimeWarning, match="not all is there that it had written") as told:
        left(static, list)
    assert [each.filename for each in told] == [__file__]


class Interrupting(io.StringIO):
    def write(self, text: str) -> int:
        raise KeyboardInterrupt


def test_of_an_interrupted_call() -> None:
    static = sg.to_static(behind_is_not_done, backend="eager")
    for function in (behind_is_not_done, static):
        notes = Notes()
        function(notes, torch.ones(2))
        with pytest.raises(KeyboardInterrupt), contextlib.redirect_stdout(Interrupting()):
            function(notes, torch.ones(2))
        assert (notes.n, notes.log) == (12, [7, 2])


def test_a_warm_call_pays_nothing() -> None:
    """The driver has no handler and no step for it: all is read from its frame."""
    static = sg.to_static(written_twice, backend="eager")
    notes = Notes()
    static(notes, torch.ones(3))
    driver = lower(static.programs[0], None)
    assert "try" not in driver.code
    assert set(driver.run.__globals__[LINES])
