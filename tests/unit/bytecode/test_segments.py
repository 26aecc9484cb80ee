"""Steps that Python does between segments: calls of all kinds, however deep they stand."""
from __future__ import annotations

import logging
import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import CALLS, Record, X, agrees, count, held, observed, reasons, segments, to_partial


# ---- what Python does
def test_a_number_of_a_tensor_is_printed() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            y = (x * 2).sum()
            print("sum", y.item())
            return x + y

        return f

    agrees(make, *CALLS)


def test_logging(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("segments")

    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            y = x.sum()
            log.warning("sum %s", y.item())
            if y > 0:
                log.error("positive")
                x = x + 1
            try:
                raise ValueError("a")
            except ValueError:
                log.exception("handled")
            return x * y

        return f

    agrees(make, *CALLS)
    lines = [each.getMessage() for each in caplog.records]
    assert lines[::2] == lines[1::2] or len(lines) % 2 == 0


def test_files_are_written_and_read(tmp_path: Path) -> None:
    def make(record: Record) -> Any:
        def f(x: Any, name: str) -> Any:
            with open(name, "w") as file:
                for i in range(2):
                    file.write(f"{x[i].item()}\n")
                    x = x + 1
            with open(name) as file:
                first = file.readline()
                lines = [float(line) for line in file]
            return x * sum(lines), lines, first, file.closed

        return f

    path = str(tmp_path / "numbers")
    agrees(make, (X, path), (-X, path))


def test_random_numbers_and_time() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            begin = time.perf_counter()
            r = random.random()
            if r > 0.5:
                x = x + 1
            noise = torch.rand(3)
            k = random.randint(0, 2)
            x = x * r + noise * k
            y = torch.nn.functional.dropout(x, 0.5)
            assert time.perf_counter() >= begin
            return x, k, y, torch.randn(2)

        return f

    agrees(make, *CALLS)


def test_a_cache_in_a_dict() -> None:
    def make(record: Record) -> Any:
        cache: dict[Any, Any] = {}

        def f(x: Any, key: int) -> Any:
            if key not in cache:
                record(("miss", key))
                cache[key] = x.sum().item()
            return x * cache[key]

        return f

    agrees(make, (X, 1), (X * 2, 1), (X, 2), (X, 1))


def test_numbers_of_tensors_as_python_uses_them() -> None:
    def make(record: Record) -> Any:
        names = {0: "zero", 1: "one", 2: "two"}

        def f(x: Any) -> Any:
            n = int(x.abs().sum()) % 3
            out = []
            for i in range(n):
                record(i)
                out.append(x * i)
            key = names[n]
            word = ["a", "b", "c"][n]
            counted = {n: x}
            return out, key, word, counted, f"{n:d}", f"{x.sum().item():.2f}"

        return f

    agrees(make, *CALLS, (X * 3 + 1,), (X[:1],))


def test_a_float_of_a_tensor_makes_no_program_per_call() -> None:
    def f(x: Any) -> Any:
        loss = x.sum().item()
        print("loss", loss)
        scaled = x * loss
        print("done")
        return scaled + loss

    static = to_partial(f)
    for number in range(3):
        observed(static, (X * number,))
    before = count(static)
    for number in range(3, 12):
        assert_equal(observed(static, (X * number,)), observed(f, (X * number,)))
    assert count(static) == before


def assert_equal(one: Any, other: Any) -> None:
    assert one.printed == other.printed
    assert one.error == other.error
    torch.testing.assert_close(one.value, other.value, rtol=0, atol=0)


def test_where_python_works_it_says_why() -> None:
    def f(x: Any) -> Any:
        print("a")
        return x * int(x.sum())

    static = to_partial(f)
    observed(static, (X,))
    assert segments(static) >= 2
    assert "print does something outside the program" in reasons(static)
    assert held(static).plan.entry.programs


def test_an_exception_with_a_text_of_the_run_is_shown_once() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            try:
                if x.min().item() < 0:
                    raise ValueError(f"negative: {x.min().item():.2f}")
                return x * 2
            except ValueError as error:
                print("refused,", error)
                return None

        return f

    agrees(make, *CALLS)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def test_a_function_with_a_gradient_of_its_own_is_no_break() -> None:
    """What is tried with it puts back the state of random numbers, which nobody has drawn."""
    static = to_partial(lambda x: Doubled.apply(x) + 1)
    x = torch.ones(2, requires_grad=True)
    torch.testing.assert_close(static(x), x * 2 + 1)
    assert not reasons(static)


@pytest.mark.parametrize("use", [lambda t: t.tolist(), lambda t: sorted(t.tolist()), list, lambda t: t[1].item()])
def test_numbers_of_a_tensor_in_a_variable_that_python_has_made(use: Any) -> None:
    """The variable is one of an inner function's as well; the tensor in it is not an argument of the segment."""

    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            print("a")
            return use(x), [x.sum() for _ in range(2)]

        return f

    agrees(make, *CALLS)


class Told(dict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        print("set", key)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        print("deleted", key)
        super().__delitem__(key)


def test_a_dict_with_methods_of_its_own() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            told = Told()
            told["a"] = x.sum().item()
            told["b"] = 1
            del told["b"]
            return told["a"] * x, sorted(told)

        return f

    agrees(make, *CALLS)
