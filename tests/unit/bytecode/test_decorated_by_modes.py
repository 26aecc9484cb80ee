"""Functions that a mode of torch's decorates (``@torch.no_grad()``): step by step what eager does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.cases.compare import assert_same
from tests.unit.bytecode.segmented import CALLS, Record, X, agrees, reasons, to_partial

W = torch.tensor([2.0, 1.0, 3.0], requires_grad=True)
AUTOCAST = torch.autocast("cpu", dtype=torch.bfloat16)
MODES = {
    "no_grad": torch.no_grad(),
    "no_grad without parentheses": torch.no_grad,
    "enable_grad": torch.enable_grad(),
    "inference_mode": torch.inference_mode(),
    "inference_mode(False)": torch.inference_mode(mode=False),
    "autocast": AUTOCAST,
    "two": lambda function: torch.no_grad()(AUTOCAST(function)),
    "two, the inner one switched back": lambda function: torch.no_grad()(torch.enable_grad()(function)),
}
EACH = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
FEW = {"no_grad", "autocast", "two, the inner one switched back"}
EACH_IN_TIME = pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, id=name, marks=[] if name in FEW else [pytest.mark.slow]) for name, mode in MODES.items()],
)
Mode = Callable[[Any], Any]


def modes() -> tuple[bool, bool, bool]:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")


def breaking(mode: Mode, record: Record) -> Any:
    """A function with three steps for Python, and a branch on a tensor."""

    @mode
    def evaluate(x: Any, *, k: int = 2) -> Any:
        record(modes())
        y = x[None] @ (x * k)[:, None]
        print("product", y.dtype, y.requires_grad, y.sum().item())
        if x.sum() > 0:
            x = x * k
        record(modes())
        return {hash(x.sum().item()): x + 1, "product": y}

    return evaluate


@EACH
def test_as_the_target(mode: Mode) -> None:
    agrees(lambda record: breaking(mode, record), *CALLS)


@EACH_IN_TIME
def test_called_by_the_target(mode: Mode) -> None:
    def make(record: Record) -> Any:
        evaluate = breaking(mode, record)

        def function(x: Any) -> Any:
            first = next(iter(evaluate(x).values()))
            record((modes(), first.requires_grad, first.is_inference()))
            print("between")
            second = evaluate(x * 2, k=3)["product"] + 1
            record(modes())
            return first, second, x * W

        return function

    static = agrees(make, *CALLS)
    assert any("hash" in reason for reason in reasons(static)), "the program ends inside"


def test_the_issue() -> None:
    @torch.no_grad()
    def evaluate(x: Any) -> Any:
        return {x.sum().item(): x + 1}

    static = to_partial(evaluate)
    for x in (X, -X):
        assert_same(evaluate(x), static(x))
        assert_same(evaluate(x=x), static(x=x))


@EACH_IN_TIME
def test_an_exception_that_leaves_it(mode: Mode) -> None:
    def make(record: Record) -> Any:
        @mode
        def check(x: Any) -> Any:
            print("check")
            if x.sum() < 0:
                raise ValueError("negative")
            return x * 2

        def function(x: Any) -> Any:
            try:
                y = check(x)
            except ValueError as error:
                record((str(error), modes()))
                y = x - 1
            print("after")
            return y + 1, check(x.abs() * 2)

        return function

    agrees(make, *CALLS)
    agrees(lambda record: MODES["no_grad"](make(record)), *CALLS)


def test_an_exception_that_nobody_handles() -> None:
    def make(record: Record) -> Any:
        @torch.no_grad()
        def check(x: Any) -> Any:
            print("check", x.sum().item())
            if x.sum() < 0:
                raise ValueError("negative")
            return x * W

        return check

    agrees(make, *CALLS)
    assert torch.is_grad_enabled()


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)

    @torch.no_grad()
    def forward(self, x: Any, *, k: int = 2) -> Any:
        y = self.linear(x)
        print("head", y.sum().item())
        return self.linear(y) * k


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = Head()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return y + self.head(x, k=3)


@pytest.mark.parametrize("kind", [Head, Around])
def test_forward(kind: type[nn.Module]) -> None:
    agrees(lambda record: kind(), *CALLS)


def test_methods() -> None:
    def make(record: Record) -> Any:
        class Scale:
            k = 2

            @torch.no_grad()
            def by(self, x: Any, *rest: Any, **more: Any) -> Any:
                print("by", rest, more)
                return x * W * self.k

            @staticmethod
            @torch.no_grad()
            def apart(x: Any) -> Any:
                print("apart")
                return x * W

            @classmethod
            @torch.no_grad()
            def of_class(cls, x: Any) -> Any:
                print("of the class")
                return x * W * cls.k

        scale = Scale()

        def function(x: Any) -> Any:
            return scale.by(x, 1, b=2), Scale.apart(x), scale.of_class(x), Scale.by(scale, x)

        return function

    agrees(make, *CALLS)


def test_what_it_changes() -> None:
    def make(record: Record) -> Any:
        @torch.no_grad()
        def collect(values: list[Any], **into: Any) -> Any:
            values.append(values[0] * W)
            print(len(values))
            into["out"].append(values[-1] + 1)
            return values

        def function(x: Any) -> Any:
            values: list[Any] = [x]
            out: list[Any] = []
            return collect(values, out=out) is values, values, out

        return function

    agrees(make, *CALLS)


def test_it_calls_itself() -> None:
    def make(record: Record) -> Any:
        @torch.no_grad()
        def down(x: Any, n: int) -> Any:
            print(n, x.sum().item())
            return x * W if n == 0 else down(x + 1, n - 1) * 2

        return lambda x: (down(x, 3), x * W)

    agrees(make, *CALLS)


def test_a_generator_that_prints() -> None:
    def make(record: Record) -> Any:
        @torch.no_grad()
        def each(x: Any) -> Iterator[Any]:
            for index in range(3):
                print("number", index)
                yield x * W * index

        def function(x: Any) -> Any:
            return list(each(x)), x * W

        return function

    agrees(make, *CALLS)


def test_without_a_break_it_is_in_the_program() -> None:
    @torch.no_grad()
    def half(x: Any) -> Any:
        return x * W / 2 if x.sum() > 0 else x

    def function(x: Any) -> Any:
        return half(x) + W

    static = agrees(lambda record: function, *CALLS)
    assert not reasons(static)


@EACH
def test_a_target_is_in_as_many_programs_as_without(mode: Mode) -> None:
    layer = nn.Linear(3, 3)

    def function(x: Any) -> Any:
        y = layer(x).sum().item()
        print(f"{y:.2f}")
        return x * 2, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")

    plain, static = to_partial(function), to_partial(mode(function))
    for number in range(4):
        x = torch.ones(3) + number
        plain(x)
        assert_same(mode(function)(x), static(x))
    assert len(static.programs) == len(plain.programs) == 2
    assert len(static.explain().breaks) == 1
