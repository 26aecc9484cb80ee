"""What ``torch.compile`` and ``torch.compiler.disable`` make of a function is followed into that function."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same

P = torch.ones(2)
N = -P
FULL, PARTIAL = {"full_graph": True}, {"full_graph": False, "strict": True}


@torch.compiler.disable(recursive=False)  # type: ignore[untyped-decorator]  # of torch
def without_arguments() -> Tensor:
    return torch.ones(2) + 1


@torch.compiler.disable(recursive=False)  # type: ignore[untyped-decorator]  # as above
def branches(x: Tensor) -> Tensor:
    print("asked")
    return x + 1 if x.sum() > 0 else x - 1


@torch.compiler.disable  # type: ignore[untyped-decorator]  # as above
def by_keyword(*, x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x - 1


@torch.compile(backend="eager")
def compiled(x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x - 1


class Disabled(nn.Module):
    @torch.compiler.disable(recursive=False)  # type: ignore[untyped-decorator]  # as above
    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1


def calls_all(x: Tensor) -> Tensor:
    return without_arguments() + branches(x) * 2 + by_keyword(x=x) + compiled(x) + torch.compiler.disable(torch.sin)(x)


@torch.compiler.allow_in_graph
def allowed(x: Tensor) -> Tensor:
    return x * 2


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # as above
def constant() -> int:
    return 3


def says_so(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling() or torch.compiler.is_dynamo_compiling():
        return x + 100
    return allowed(x) + constant()


def observed(function: Any, *args: Tensor) -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        return function(*args), printed.getvalue()


@pytest.mark.parametrize("options", [FULL, PARTIAL], ids=["full", "partial"])
@pytest.mark.parametrize("make", [lambda: branches, Disabled, lambda: calls_all, lambda: says_so])
def test_it_is_followed(make: Any, options: dict[str, Any]) -> None:
    static, eager = sg.to_static(make(), backend="eager", **options), make()
    for x in (P, N, P):
        assert_same(observed(eager, x), observed(static, x))


@pytest.mark.parametrize("options", [FULL, PARTIAL], ids=["full", "partial"])
@pytest.mark.filterwarnings("error")
def test_a_function_without_arguments(options: dict[str, Any]) -> None:
    assert_same(without_arguments(), sg.to_static(without_arguments, backend="eager", **options)())


def test_a_module_that_the_compiler_leaves_alone_is_captured_once_for_each_mode() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(1.0))
    left_alone = torch.compiler.disable(module)  # type: ignore[no-untyped-call]  # of torch
    static = sg.to_static(lambda x: left_alone(x) * 2, backend="eager")
    for is_training in (True, False, True, False):
        module.train(is_training)
        assert_same(module(P) * 2, static(P))
    assert static.cache_info().programs == 2
