"""Settings of torch's for the whole process: default dtype and device, precision, determinism, attention, anomalies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import stillgraph as sg
from stillgraph.program.context import SWITCHES
from tests.unit.contexts.modes import DOWN, MATRICES, UP, VECTORS, agree_in, default_dtype, square
from tests.unit.trace.agreement import program_of, refusal


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = [switch.read() for switch in SWITCHES]
    yield
    for switch, value in zip(SWITCHES, before):
        switch.write(value)
    torch.set_default_device(None)


# ---- default dtype
def switched(x: Tensor) -> Any:
    torch.set_default_dtype(torch.float64)
    y = torch.zeros(3)
    torch.set_default_dtype(torch.float32)
    return y, torch.zeros(3), x


def switched_in_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        torch.set_default_dtype(torch.float64)
        y = torch.zeros(3) + 1.5
        torch.set_default_dtype(torch.float32)
    else:
        y = torch.ones(3, dtype=torch.float64)
    return y, torch.tensor(1.5), torch.arange(0, 1, 0.5)


def of_all_kinds(x: Tensor) -> Any:
    with default_dtype(torch.float64):
        y = torch.ones(3)
        if x.sum() > 0:
            z = torch.tensor(2.5) * y
        else:
            z = torch.tensor([1.5, 2, 3])
        n = x.sum().item()
        made = torch.tensor(n), torch.tensor([n, 2.0]), torch.ones(3, dtype=torch.int64) / 2
        return y, z, *made, torch.ones(2, dtype=torch.int64) * n


def in_a_loop(x: Tensor) -> Any:
    trips = 0
    total = torch.zeros(3, dtype=torch.bfloat16)
    while trips < x.sum():
        with default_dtype(torch.bfloat16):
            total = total + torch.ones(3)
        trips += 1
    return total, trips, torch.ones(1)


@pytest.mark.parametrize("function", [switched, switched_in_an_arm, of_all_kinds, in_a_loop])
def test_the_default_dtype_inside(function: Any) -> None:
    agree_in(lambda: function, UP, DOWN)


def test_the_default_dtype_inside_is_not_exported(tmp_path: Any) -> None:
    with pytest.raises(sg.CaptureError, match="the program changes the default dtype"):
        sg.save(of_all_kinds, tmp_path / "program.pt2", args=(UP,))


def test_the_default_dtype_around() -> None:
    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            factor = 1.5
        else:
            factor = 2.5
        return torch.tensor(factor), torch.ones(2, dtype=torch.int64) * factor, torch.full((2,), factor)

    def double() -> Any:
        return default_dtype(torch.float64)

    around = (contextlib.nullcontext, double, double, contextlib.nullcontext)
    assert agree_in(lambda: function, UP, UP, DOWN, DOWN, around=around).cache_info().programs == 2


@pytest.mark.slow
def test_the_default_dtype_inside_with_inductor() -> None:
    static = sg.to_static(of_all_kinds, backend="inductor")
    for x in (UP, DOWN, UP):
        torch.testing.assert_close(static(x), of_all_kinds(x))


# ---- the others
def precise(x: Tensor) -> Any:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    y = x @ x if x.sum() > 0 else x
    torch.set_float32_matmul_precision(before)
    return y


def deterministic(x: Tensor) -> Any:
    if x.sum() > 0:
        torch.use_deterministic_algorithms(True)
        x = x + 1
        torch.use_deterministic_algorithms(False)
    return x


def anomalies(x: Tensor) -> Tensor:
    with torch.autograd.set_detect_anomaly(True):
        y = x * x
        if y.sum() > 2:
            y = torch.sqrt(y)
    return y


@pytest.mark.parametrize("function", [precise, deterministic, anomalies])
def test_switched_for_a_while(function: Any) -> None:
    agree_in(lambda: function, *MATRICES)


def _switch(name: str) -> Callable[[], Any]:
    return next(switch.read for switch in SWITCHES if switch.name == name)


def _seen_in_the_run(read: Callable[[], Any]) -> tuple[list[Any], type[torch.autograd.Function]]:
    """What a setting is when the operation runs, and not only when it is captured."""
    seen: list[Any] = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            seen.append(read())
            return x.clone()

    return seen, Look


def test_operations_run_under_what_was_switched() -> None:
    precision, look_precision = _seen_in_the_run(torch.get_float32_matmul_precision)
    kernels, look_kernels = _seen_in_the_run(_switch("the kernels for attention"))

    def function(x: Tensor) -> Tensor:
        torch.set_float32_matmul_precision("medium")
        x = look_precision.apply(x)
        torch.set_float32_matmul_precision("highest")
        with sdpa_kernel(SDPBackend.MATH):
            return look_kernels.apply(x)

    static = sg.to_static(function, backend="eager")
    static(UP)
    precision.clear()
    kernels.clear()
    static(UP)
    assert {*precision} == {"medium"}  # the capture looks too, for the lists have changed
    assert {*kernels} == {(False, False, True, False)}
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_torch_answers_is_guarded() -> None:
    def function(x: Tensor) -> Tensor:
        if torch.get_float32_matmul_precision() == "highest":
            x = x * 2
        return x * 3 if torch.are_deterministic_algorithms_enabled() else x

    static = sg.to_static(function, backend="eager")
    for _ in range(2):
        assert torch.equal(static(UP), UP * 2)
        torch.use_deterministic_algorithms(True)
        assert torch.equal(static(UP), UP * 6)
        torch.set_float32_matmul_precision("high")
        assert torch.equal(static(UP), UP * 3)
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
    assert static.cache_info().programs == 3


def test_a_setting_that_is_not_asked_for_makes_no_program() -> None:
    static = sg.to_static(lambda x: x * 2 if x.sum() > 0 else x, backend="eager")
    static(UP)
    torch.set_float32_matmul_precision("high")
    static(UP)
    assert static.cache_info().programs == 1


def test_attention() -> None:
    def function(query: Tensor) -> Tensor:
        if query.sum() > 0:
            with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
                return F.scaled_dot_product_attention(query, query, query)
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(query, query, query, is_causal=True)

    query = torch.rand(1, 2, 4, 8)
    agree_in(lambda: function, query, -query, query.clone().requires_grad_())


def dtype_left(x: Tensor) -> Tensor:
    torch.set_default_dtype(torch.float64)
    return x if x.sum() > 0 else x * 2


def precision_left(x: Tensor) -> Tensor:
    torch.set_float32_matmul_precision("medium")
    return x


def determinism_left_by_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        torch.use_deterministic_algorithms(True)
    return x


@pytest.mark.parametrize("function", [dtype_left, precision_left, determinism_left_by_an_arm])
def test_left_switched_is_refused_and_put_back(function: Any) -> None:
    before = [switch.read() for switch in SWITCHES]
    assert "leaves a torch mode switched" in str(refusal(function, UP))
    assert [switch.read() for switch in SWITCHES] == before


# ---- devices
def made(x: Tensor) -> Any:
    if x.sum() > 0:
        return torch.zeros(3), torch.tensor(1.5), torch.arange(3)
    return torch.ones(3), torch.tensor(2.5), torch.ones(3).long()


def test_a_default_device() -> None:
    @contextlib.contextmanager
    def set_to_cpu() -> Iterator[None]:
        torch.set_default_device("cpu")
        try:
            yield
        finally:
            torch.set_default_device(None)

    around = (contextlib.nullcontext, set_to_cpu, lambda: torch.device("cpu"))
    agree_in(lambda: made, UP, UP, DOWN, around=around)


def test_the_capture_makes_tensors_on_the_default_device() -> None:
    def function(x: Tensor) -> Any:
        y = torch.zeros(3)
        return y if y.device.type == "meta" else y + 1

    static = sg.to_static(function, backend="eager")
    for _ in range(2):
        with torch.device("meta"):
            assert static(UP).device.type == "meta"
        assert torch.equal(static(UP), torch.ones(3))
    assert static.cache_info()[:3] == (2, 2, 2)


def test_a_device_inside() -> None:
    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            with torch.device("cpu"):
                y = torch.zeros(3)
        else:
            y = torch.ones(3)
        with torch.device("meta"):
            z = torch.zeros(2)
        return y, z.device, z.shape

    agree_in(lambda: function, UP, DOWN)


# ---- modes of the user's own
class Added(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result + 1 if func is torch.relu else result


def relu(x: Tensor) -> Tensor:
    y = torch.relu(x)
    return y * 2 if y.sum() > 0 else y


def test_function_modes() -> None:
    def function(x: Tensor) -> Tensor:
        with Added():
            y = torch.relu(x)
        return y * 2 if x.sum() > 0 else y

    agree_in(lambda: function, *VECTORS)
    agree_in(lambda: relu, *VECTORS, around=Added)


def test_dispatch_modes_see_no_capture() -> None:
    class Counted(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            Counted.calls += 1
            return func(*args, **(kwargs or {}))

    agree_in(lambda: relu, *VECTORS, around=Counted)
    static = sg.to_static(relu, backend="eager")
    counts = []
    for function in (static, static, relu):
        Counted.calls = 0
        with Counted():
            function(UP)
        counts.append(Counted.calls)
    assert counts == [counts[-1]] * 3


def test_operations_are_counted_once() -> None:
    static = sg.to_static(lambda x: x @ x if x.sum() > 0 else x, backend="eager")
    for _ in range(2):
        with FlopCounterMode(display=False) as counter:
            static(square())
        assert counter.get_total_flops() == 54


def test_nothing_of_this_is_printed() -> None:
    assert "highest" not in str(program_of(precise, square()))
