"""Steps that Python does between segments: calls of all kinds, however deep they stand."""
from __future__ import annotations

import collections
import contextlib
import functools
import logging
import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

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


# ---- however deep it stands
class Scale:
    def __init__(self, factor: Any, record: Record) -> None:
        print("made", factor.sum().item())
        self.factor = factor * 2
        self.record = record

    @property
    def twice(self) -> Any:
        print("twice")
        return self.factor * 2

    def __call__(self, x: Any) -> Any:
        self.record(x.sum().item())
        return x * self.factor

    def __add__(self, other: Any) -> Any:
        print("add")
        return self.factor + other

    def __getitem__(self, index: int) -> Any:
        print("item", index)
        return self.factor[index]

    def __len__(self) -> int:
        print("len")
        return 3

    def __iter__(self) -> Any:
        print("iter")
        return iter([self.factor, self.factor * 2])

    def __contains__(self, x: Any) -> bool:
        print("in")
        return True

    def __bool__(self) -> bool:
        print("bool")
        return True

    def __eq__(self, other: object) -> bool:
        print("eq")
        return True

    def __hash__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Any:
        print("getattr", name)
        return self.factor


def test_three_deep() -> None:
    def make(record: Record) -> Any:
        def third(x: Any, n: int) -> Any:
            y = x * n
            record(y.sum().item())
            if y.sum() > 0:
                y = y + 1
                print("positive")
            return y * 2

        def second(x: Any, *rest: Any, key: Any = None) -> Any:
            a = x + 1
            b = third(a, len(rest)) + a
            return third(b, 2) * (0 if key is None else key)

        def f(x: Any) -> Any:
            y = x - 1
            z = second(y, 1, 2, key=3)
            w = second(*(z, 1), key=x)
            return x + y + z + w

        return f

    agrees(make, *CALLS)


@pytest.mark.xfail(strict=True, reason="methods for operators run out of order where they are not followed")
def test_objects() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            made = Scale(x, record)
            y = made(x) + made.twice
            z = made + y
            if x in made:
                z = z + made[0]
            if made:
                z = z + len(made)
            for each in made:
                z = z + each
            if made == 3:
                z = z - 1
            return z + made.missing

        return f

    agrees(make, *CALLS)


class Inner(nn.Module):
    def __init__(self, record: Record) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0
        self.record = record

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.seen += x.sum()
        y = self.linear(x)
        print(f"mean {y.mean().item():.4f}", self.calls)
        if self.seen > 5:
            y = y * 2
        self.seen = self.seen + 1
        self.calls += 1
        return y.relu()


class Outer(nn.Module):
    def __init__(self, record: Record, hooked: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([Inner(record), Inner(record)])
        self.head = nn.Sequential(nn.Linear(3, 2), Inner2(record))
        self.history: list[float] = []
        if hooked:
            for each in self.layers:
                each.register_forward_hook(lambda m, i, o: print("hook", o.sum().item()))
                each.register_forward_pre_hook(lambda m, i: (i[0] + 1,))

    def forward(self, x: Any) -> Any:
        for each in self.layers:
            x = each(x)
            self.history.append(float(x.sum()))
        return self.head(x), len(self.history), self.layers[0].calls


class Inner2(nn.Module):
    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record

    def forward(self, x: Any) -> Any:
        self.record(x.sum().item())
        return x + 1


@pytest.mark.parametrize("hooked", [False, True])
def test_modules(hooked: bool) -> None:
    static = agrees(lambda record: Outer(record, hooked), *CALLS)
    assert len(static.history) == 18


@pytest.mark.xfail(strict=True, reason="an object that each call makes is guarded by which one it is")
def test_methods_properties_and_supers() -> None:
    def make(record: Record) -> Any:
        class Base:
            def __init__(self) -> None:
                self.total = 0.0

            def step(self, x: Any) -> Any:
                self.total += x.sum().item()
                record(self.total)
                return x + 1

            @classmethod
            def build(cls) -> Any:
                print("build", cls.__name__)
                return cls()

            @staticmethod
            def show(x: Any) -> Any:
                print("show", x.sum().item())
                return x

        class Derived(Base):
            def step(self, x: Any) -> Any:
                y = super().step(x) * 2
                print(self.total)
                return self.show(y)

        def f(x: Any) -> Any:
            made = Derived.build()
            x = made.step(x)
            x = made.step(x)
            return x, made.total

        return f

    agrees(make, *CALLS)


def test_decorated_functions() -> None:
    def make(record: Record) -> Any:
        def logged(function: Any) -> Any:
            @functools.wraps(function)
            def inner(*args: Any, **kwargs: Any) -> Any:
                record(("before", function.__name__))
                result = function(*args, **kwargs)
                print("after", result.sum().item())
                return result

            return inner

        @logged
        def g(x: Any, y: Any = 1) -> Any:
            print("g")
            return x * y

        @functools.lru_cache
        def cached(n: int) -> int:
            record(("cached", n))
            return n + 1

        def f(x: Any) -> Any:
            a = g(x, y=2) + cached(3)
            return g(a) + functools.partial(g, y=3)(x) + cached(len(x))

        return f

    agrees(make, *CALLS)


def test_callbacks() -> None:
    def make(record: Record) -> Any:
        def show(x: Any) -> Any:
            print("show", x.item())
            return x * 2

        def add(x: Any, y: Any) -> Any:
            record((x.item(), y.item()))
            return x + y

        def f(x: Any) -> Any:
            rows = [x[i] for i in range(3)]
            ordered = sorted(rows, key=lambda t: -t.item())
            mapped = list(map(show, ordered))
            total = functools.reduce(add, mapped)
            kept = list(filter(lambda t: t.item() > 2, mapped))
            best = max(rows, key=lambda t: t.item())
            rows.sort(key=lambda t: t.item(), reverse=True)
            grouped = collections.defaultdict(list)
            for each in rows:
                grouped[int(each) % 2].append(each)
            return ordered, mapped, total, kept, best, rows, dict(grouped), any(t.item() > 2 for t in rows)

        return f

    agrees(make, *CALLS)


def test_context_managers_of_functions() -> None:
    def make(record: Record) -> Any:
        @contextlib.contextmanager
        def block(name: str) -> Any:
            record(("enter", name))
            try:
                yield name + "!"
            except ValueError as error:
                record(("error", str(error)))
            finally:
                record(("leave", name))

        class Manager:
            def __enter__(self) -> Any:
                record("in")
                return 3

            def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
                record(("out", None if kind is None else kind.__name__))
                return kind is KeyError

        def f(x: Any) -> Any:
            with block("a") as name:
                x = x * 2
                print(name, x.sum().item())
                if x.sum() > 0:
                    x = x + 1
                with Manager() as n:
                    x = x * n
                    if x.sum().item() < 0:
                        raise KeyError("negative")
                    x = x + 1
                if x.sum().item() > 50:
                    raise ValueError("large")
                x = x - 1
            return x * 3

        return f

    agrees(make, *CALLS)


def test_modes_of_torch() -> None:
    def make(record: Record) -> Any:
        def f(x: Any, w: Any) -> Any:
            with torch.no_grad():
                y = x * w
                print(y.sum().item(), torch.is_grad_enabled())
                y = y + 1
                record(y.requires_grad)
                z = y * w
                record(z.requires_grad)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                a = x[None] @ w[:, None]
                print(a.sum().item())
                b = x[None] @ w[:, None]
                record(b.dtype)
            with torch.enable_grad():
                record(torch.is_grad_enabled())
                c = x @ w
            print(torch.is_grad_enabled())
            return y, z, a, b, c, x * w

        return f

    agrees(make, (X, torch.ones(3, requires_grad=True)), (-X, torch.full((3,), 2.0, requires_grad=True)))


def test_recursion() -> None:
    def make(record: Record) -> Any:
        def down(x: Any, n: int) -> Any:
            print("at", n, x.sum().item())
            if n == 0:
                return x
            y = down(x + n, n - 1)
            record(n)
            return y * 2

        def halved(x: Any) -> Any:
            record(x.sum().item())
            return x if x.sum() < 1 else halved(x / 2) + 1

        def f(x: Any) -> Any:
            return down(x, 3), halved(x)

        return f

    agrees(make, *CALLS)


@pytest.mark.xfail(strict=True, reason="a function with cells that each call makes is guarded by which one it is")
def test_functions_and_classes_defined_inside() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            count = 0

            def step(t: Any) -> Any:
                nonlocal count
                count += 1
                print("step", count)
                return t * count

            class Pair:
                def __init__(self, a: Any, b: Any) -> None:
                    self.a, self.b = a, b

            x = step(x)
            record(x.sum().item())
            pair = Pair(x, step(x))
            print("pair")
            y = pair.a + pair.b
            later = lambda t: t + count + y  # noqa: E731
            count += 5
            print("later")
            return later(x), count, step(pair.b)

        return f

    agrees(make, *CALLS)


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
