"""Modes that the user has written see the calls of the function, and those alone."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import stillgraph as sg

SEEN: list[str] = []
P = torch.tensor([0.5, 0.25])


class Functions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(func.__name__)
        return func(*args, **(kwargs or {}))


class DoubledFunctions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.sin else result


class Kernels(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


class DoubledKernels(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.sin.default else result


MODES = [Functions, DoubledFunctions, Kernels, DoubledKernels]


def around(x: Tensor, mode: Any) -> Any:
    y = torch.sin(x)
    sys.stdout.flush()
    return y + 1 if y.sum() > 0 else y - 1


def with_a_step(x: Tensor, mode: Any) -> Any:
    with mode():
        y = torch.sin(x)
        sys.stdout.flush()
        z = torch.sin(y) + 1
    return torch.sin(z)


def behind_a_step(x: Tensor, mode: Any) -> Any:
    sys.stdout.flush()
    with mode():
        y = torch.sin(x)
        z = torch.sin(y) + 1 if y.sum() > 0 else y - 1
    return torch.sin(z)


def entered_by_hand(x: Tensor, mode: Any) -> Any:
    entered = mode()
    entered.__enter__()
    try:
        sys.stdout.flush()
        return torch.sin(x) * 2
    finally:
        entered.__exit__(None, None, None)


def called(function: Callable[..., Any], x: Tensor, mode: Any) -> Any:
    SEEN.clear()
    with mode() if function is around or function.__name__ == "static_around" else nullcontext():
        result = function(x, mode)
    return result.tolist(), list(SEEN)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [around, with_a_step, behind_a_step, entered_by_hand])
def test_a_mode_sees_the_calls_of_the_function_alone(function: Any, mode: Any) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")

    def static_around(x: Tensor, mode: Any) -> Any:
        return static(x, mode)

    calls = static_around if function is around else static
    for x in (P, P, -P, P):
        assert called(calls, x, mode) == called(function, x, mode)
    if function is around:  # and what was captured or not in a mode serves without it, and the other way round
        for made in (nullcontext, mode):
            for x in (P, -P):
                with made():
                    ours = static(x, made)
                with made():
                    assert ours.tolist() == function(x, made).tolist()


def doubled_inside(x: Tensor) -> Tensor:
    y = torch.sin(x)
    with DoubledKernels():
        y = torch.sin(y)
    return y


def test_a_full_graph_has_no_dispatch_mode_inside() -> None:
    static = sg.to_static(doubled_inside, backend="eager")
    with pytest.raises(sg.CaptureError, match=r"a dispatch mode \(DoubledKernels\) is entered inside") as caught:
        static(P)
    assert caught.value.reason.code == "SG304"


def inner(x: Tensor) -> Tensor:
    return torch.sin(x) + 1


def test_a_full_graph_runs_in_a_dispatch_mode() -> None:
    static = sg.to_static(inner, backend="eager")
    for _ in range(2):
        with DoubledKernels():
            result = static(P)
        assert torch.equal(result, 2 * torch.sin(P) + 1)
