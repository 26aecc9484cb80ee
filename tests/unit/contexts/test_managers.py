"""Context managers of the user's and the standard library's around staged control flow."""

from __future__ import annotations

import contextlib
import gc
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

import stillgraph as sg
from tests.sampling import few
from tests.unit.contexts.modes import DOWN, MATRICES, UP, VECTORS, agree_in
from tests.unit.trace.agreement import refusal


class Replaced:
    """Replaces an entry of a dict for a while."""

    def __init__(self, table: dict[str, float], value: float) -> None:
        self.table, self.value = table, value

    def __enter__(self) -> Replaced:
        self.before = self.table["factor"]
        self.table["factor"] = self.value
        return self

    def __exit__(self, *error: object) -> None:
        self.table["factor"] = self.before


class NoGrad:
    def __enter__(self) -> None:
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, *error: object) -> None:
        torch.set_grad_enabled(self.before)


@contextlib.contextmanager
def noted(stack: list[str], name: str) -> Iterator[str]:
    stack.append(name)
    try:
        yield stack[-1]
    finally:
        stack.pop()


@contextlib.contextmanager
def without_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def replaced(x: Tensor) -> Any:
    table = {"factor": 1.0}
    with Replaced(table, 3.0) as manager:
        if x.sum() > 0:
            y = x * table["factor"] * manager.value
        else:
            y = x + table["factor"]
    return y * table["factor"], table


def scopes(x: Tensor) -> Any:
    stack: list[str] = []
    depths = []
    with noted(stack, "outer"):
        for value in x:
            with noted(stack, "inner"):
                depths.append(len(stack) if value > 0 else 0)
    return depths, stack


def mode_of_a_class(x: Tensor) -> Any:
    with NoGrad():
        while x.sum() > 1:
            x = x * 0.5
            if x[0] < 0.2:
                break
    return x * 2


def mode_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        with NoGrad():
            return x * 2
    with without_grad():
        x = x + 1
    return x * 3


@without_grad()
def decorated(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x * 3


def chosen(x: Tensor) -> Tensor:
    with torch.no_grad() if x.shape[0] == 3 else contextlib.nullcontext():
        if x.sum() > 0:
            return x * 2
    return x * 3


@torch.profiler.record_function("decorated")
def recorded(x: Tensor) -> Tensor:
    with torch.profiler.record_function("inside"):
        if x.sum() > 0:
            return x * 2
    return x


def with_warnings(x: Tensor) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("seen", stacklevel=1)
        if x.sum() > 0:
            x = x * 2
    return x, len(caught)


FUNCTIONS = [
    replaced,
    scopes,
    mode_of_a_class,
    mode_in_an_arm,
    decorated,
    chosen,
    recorded,
    with_warnings,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_inside_a_function(function: Any) -> None:
    agree_in(lambda: function, *VECTORS)


class Symmetric(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight.triu() + weight.triu(1).T


class Parametrized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        parametrize.register_parametrization(self.layer, "weight", Symmetric())

    def forward(self, x: Tensor) -> Tensor:
        with parametrize.cached():
            h = self.layer(x)
            return self.layer(h) if h.sum() > 0 else h - self.layer(x)


def test_cached_parametrizations() -> None:
    agree_in(Parametrized, *MATRICES)


def test_a_call_in_a_block_of_cached_parametrizations_is_refused() -> None:
    static = sg.to_static(Parametrized(), backend="eager")
    with parametrize.cached(), pytest.raises(sg.CaptureError, match=r"in a block of parametrize.cached\(\)"):
        static(MATRICES[0][0] if isinstance(MATRICES[0], tuple) else MATRICES[0])


class Averaged(nn.Module):
    """Runs with other weights, and in evaluation, for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(3, 3), nn.Dropout(0.5)
        self.shadow = [parameter.detach() * 0.5 for parameter in self.layer.parameters()]

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        before, was_training = [p.detach().clone() for p in self.layer.parameters()], self.training
        self.eval()
        with torch.no_grad():
            for parameter, value in zip(self.layer.parameters(), self.shadow):
                parameter.copy_(value)
        try:
            yield
        finally:
            self.train(was_training)
            with torch.no_grad():
                for parameter, value in zip(self.layer.parameters(), before):
                    parameter.copy_(value)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad(), self.averaged():
            target = self.dropout(self.layer(x))
        y = self.dropout(self.layer(x))
        return y - target if y.sum() > target.sum() else target - y


def test_a_module_changed_for_a_while() -> None:
    agree_in(Averaged, *MATRICES)


# ---- a capture that ends early, or begins anew
STACK = ["bottom"]
LOCK = threading.Lock()


def entries() -> Iterator[int]:
    STACK.append("generator")
    try:
        yield 1
        yield 2
    finally:
        STACK.pop()


class Locked:
    def __enter__(self) -> None:
        LOCK.acquire()
        STACK.append("locked")

    def __exit__(self, *error: object) -> None:
        STACK.pop()
        LOCK.release()


def reduced(x: Tensor, n: int) -> Tensor:
    if x.sum() > n:
        return reduced(x * 0.5, n) + 1  # known as a recursion only to the second attempt at a capture
    return x


def in_a_manager(x: Tensor) -> Tensor:
    with noted(STACK, "manager"):
        x = reduced(x, 1)
        torch.set_grad_enabled(False)
    return x


def in_a_generator(x: Tensor) -> Tensor:
    for factor in entries():
        x = reduced(x, 1) * factor
        torch.set_grad_enabled(False)
    return x


def in_a_begun_generator(x: Tensor) -> Tensor:
    generator = entries()
    x = reduced(x, 1) * next(generator)
    torch.set_grad_enabled(False)
    return x


def in_a_finally(x: Tensor) -> Tensor:
    STACK.append("try")
    try:
        x = reduced(x, 1)
        torch.set_grad_enabled(False)
    finally:
        STACK.pop()
    return x


def in_a_lock(x: Tensor) -> Tensor:
    with LOCK:
        x = reduced(x, 1)
        torch.set_grad_enabled(False)
    return x


def in_a_manager_with_a_lock(x: Tensor) -> Tensor:
    with Locked():
        x = reduced(x, 1)
        torch.set_grad_enabled(False)
    return x


LEFT = [in_a_manager, in_a_generator, in_a_begun_generator, in_a_finally, in_a_lock, in_a_manager_with_a_lock]


@pytest.mark.parametrize("function", few(LEFT, slow=(in_a_manager, in_a_generator, in_a_lock)))
def test_what_was_entered_is_left(function: Any) -> None:
    assert "leaves a torch mode switched" in str(refusal(function, UP))
    gc.collect()  # a generator would clean up now
    assert STACK == ["bottom"]
    assert not LOCK.locked()
    assert torch.is_grad_enabled()


def test_a_capture_that_succeeds_in_the_end_cleans_up_once() -> None:
    def function(x: Tensor) -> Tensor:
        for factor in entries():
            x = reduced(x, 1) * factor
        return x

    agree_in(lambda: function, UP, DOWN)
    gc.collect()
    assert STACK == ["bottom"]


def test_a_lock_taken_on_one_path_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            LOCK.acquire()
            x = x * 2
            LOCK.release()
        return x

    assert refusal(function, UP).reason.code == "SG305"
    assert not LOCK.locked()


def test_containers_that_library_code_changes_are_put_back() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1)
    groups = list(optimizer.param_groups)

    def function(x: Tensor) -> Tensor:
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
        return x

    static = sg.to_static(function, backend="eager")
    with contextlib.suppress(sg.CaptureError):
        static.get_program(UP)
    assert optimizer.param_groups == groups
