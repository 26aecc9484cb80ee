"""Where Python does something in functions, methods and modules that are called, however deep, it does just that."""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import io
import linecache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg
from stillgraph.bytecode.code.prepared import prepared
from tests.cases.compare import assert_same
from tests.unit.bytecode.segmented import CALLS, Record, X, agrees, count, reasons, to_partial


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


@pytest.mark.xfail(strict=True, reason="an object that each call makes is guarded by which one it is")
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

    agrees(make, *CALLS, times=4)


def test_a_method_of_a_class_that_each_call_makes_settles_in_the_first_round() -> None:
    def make(_: Record) -> Any:
        def f(x: Any) -> Any:
            class Held:
                def __init__(self, value: Any) -> None:
                    self.value = value

                def twice(self) -> Any:
                    return self.value * 2

            held = Held(x + 1)
            print("made")
            return held.twice()

        return f

    static = agrees(make, *CALLS, settled=1)
    assert (count(static), static.cache_info().misses) == (4, 8)


# ---- variables that have a value on some paths only
def set_in_one_arm(x: Any) -> Any:
    if x.sum() > 0:
        doubled = x * 2
    print(x.sum().item())
    return doubled if x.sum() > 0 else x


def set_to_a_number_in_one_arm(x: Any) -> Any:
    if x.sum() > 0:
        number = 3
    print(x.sum().item())
    try:
        return x * number
    except UnboundLocalError as error:
        return str(error)


@pytest.mark.parametrize("function", [set_in_one_arm, set_to_a_number_in_one_arm])
def test_variables_that_have_a_value_on_one_path_only(function: Any) -> None:
    agrees(lambda _: function, (X,), (-X,))


# ---- what stands behind the stars of a decorator
def _written(file: Any, x: Any, *rest: Any, **options: Any) -> Any:
    file.write(str(x.sum().item()))
    if options["config"].mode == "bad":
        raise ValueError(f"unknown mode {options['config'].mode!r}")
    return x * 2, len(rest), next(options["numbers"])


@functools.wraps(_written)
def decorated(*args: Any, **options: Any) -> Any:
    first, again = args[0], [*args]
    result = _written(*again, **options)
    print(first.getvalue(), options["config"].mode)
    return result



def test_arguments_that_each_call_makes_go_through_stars() -> None:
    def call(function: Any, number: int) -> Any:
        file, config = io.StringIO(), argparse.Namespace(mode="good" if number % 3 else "bad")
        try:
            result = function(file, X * number, 1, 2, numbers=iter([number]), config=config)
        except ValueError as error:
            return str(error), file.getvalue()
        return result, file.getvalue()

    static = to_partial(decorated)
    for number in range(8):
        assert_same(call(decorated, number), call(static, number))


# ---- super() behind a step of Python's
class Scaled:
    def __init__(self) -> None:
        self.factor = 3

    def inner(self, x: Any) -> Any:
        return x * self.factor


class Logged(Scaled):
    def inner(self, x: Any) -> Any:
        print(x.sum().item())
        y = x + 1
        return super().inner(y)


def test_super_finds_its_object_behind_a_break() -> None:
    def make(record: Record) -> Any:
        logged = Logged()

        def f(x: Any) -> Any:
            return logged.inner(x)

        return f

    agrees(make, *CALLS)


def test_what_super_looks_at_is_needed_throughout() -> None:
    flow = prepared(Logged.inner.__code__).flow
    if any(each.name == "LOAD_GLOBAL" and each.argument == "super" for each in flow._instructions):  # before 3.12
        assert all(0 in slots for slots in flow.live)


# ---- what calls a function, and gives what it gives
def keyed(x: Any, scale: int = 2) -> Any:
    print("keyed")
    y = x * scale
    return {y.sum().item(): y + 1}


class Keyed:
    def __call__(self, x: Any) -> Any:
        return keyed(x, scale=3)


class Twice:
    def __init__(self) -> None:
        self.parts = [Keyed(), functools.partial(functools.partial(keyed, scale=4))]

    def __call__(self, x: Any) -> Any:
        first, second = (next(iter(part(x).values())) for part in self.parts)
        return first, self.parts[0](second)


@pytest.mark.parametrize("make", [Keyed, Twice, lambda: functools.partial(keyed, scale=3)])
def test_objects_that_are_called(make: Any) -> None:
    assert count(agrees(lambda record: make(), *CALLS)) > 1


def test_a_program_that_cannot_end_says_where() -> None:
    class Keyed(nn.Module):
        def forward(self, x: Any) -> Any:
            return {hash(x.sum().item()): x + 1}

    with pytest.raises(sg.CaptureError, match="SG107") as caught:
        to_partial(nn.Sequential(Keyed()))(X)
    assert caught.value.location is not None
    assert (caught.value.location.source_line() or "").strip().startswith("return {hash(x.sum()")


# ---- files that nobody has read before
READ_LATE = """
def keys_of(x, config):
    keys = {f"output_{key}": config.get(key, 1) for key in config}
    return {key: x * value for key, value in keys.items()}
"""


def test_reading_a_source_file_is_no_step_of_the_code(tmp_path: Path) -> None:
    path = tmp_path / "read_late.py"
    path.write_text(READ_LATE)
    namespace: dict[str, Any] = {}
    exec(compile(READ_LATE, str(path), "exec"), namespace)
    static = to_partial(lambda x: namespace["keys_of"](x, {"a": 1, "b": 2}))
    linecache.clearcache()
    assert_same(namespace["keys_of"](X, {"a": 1, "b": 2}), static(X))
    assert not reasons(static)
