"""Functions of ``contextlib.contextmanager`` around a block in which the run raises, returns or leaves a loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import agree, agree_fresh, refusal

CALLS = [torch.tensor(values) for values in ([1.0, 2, 3], [-3.0, 0, 0], [0.5, -1.5, 0.5], [-0.9, -0.9, -0.9])]


@contextlib.contextmanager
def plain() -> Iterator[None]:
    yield


@contextlib.contextmanager
def logged(log: list[str], name: str) -> Iterator[str]:
    log.append(f"enter {name}")
    try:
        yield name
    finally:
        log.append(f"leave {name}")


@contextlib.contextmanager
def swallowing(log: list[str], *kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        log.append(str(error))
    else:
        log.append("nothing")


@contextlib.contextmanager
def translating() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise KeyError("other") from error


@contextlib.contextmanager
def without_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@contextlib.contextmanager
def chosen(x: Tensor, log: list[str]) -> Iterator[str]:
    if x[0] > 0:
        log.append("up")
        yield "up"
    else:
        yield "down"
    log.append("behind")


@contextlib.contextmanager
def on_some_path(x: Tensor) -> Iterator[None]:
    if x[0] > 0:
        yield


@contextlib.contextmanager
def swallowing_on_some_path(x: Tensor) -> Iterator[int]:
    if x[0] > -0.95:
        with swallowing([], ValueError):
            yield 1
    else:
        yield 2


@contextlib.contextmanager
def counted() -> Iterator[int]:
    try:
        yield 2
    finally:
        print("left")


@contextlib.contextmanager
def twice() -> Iterator[None]:
    yield
    yield


@contextlib.contextmanager
def never(say: bool = False) -> Iterator[None]:
    if say:
        yield


@contextlib.contextmanager
def pair(x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    y = yield x, x * 2
    assert y is None


def check(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("positive")
    return x - 1


def raised(x: Tensor) -> Tensor:
    with plain():
        return check(x)


def cleaned_up(x: Tensor) -> Any:
    log: list[str] = []
    try:
        with logged(log, "a") as name, logged(log, name + "b"):
            x = x * 2
            x = check(x)
    except ValueError as error:
        return x, str(error), log
    return x, "none", log


def swallowed(x: Tensor) -> Any:
    log: list[str] = []
    y = x
    with swallowing(log, ValueError, KeyError):
        y = x * 2
        check(x)
        y = x * 3
    return x + y, log


def another_kind(x: Tensor) -> Any:
    log: list[str] = []
    with swallowing(log, KeyError):
        check(x)
    return x, log


def translated(x: Tensor) -> Tensor:
    with translating():
        return check(x) * 2


def in_a_loop(x: Tensor) -> Any:
    steps = 0
    for index in range(3):
        with counted() as count, swallowing([], ValueError):
            steps += count
            if x[index] > 1:
                break
            if x[index] > 0:
                raise ValueError("some")
            if x[index] < -2:
                return x * 7, steps
            if x[index] < -1:
                continue
            x = x + 1
    else:
        x = x * 10
    return x - 1, steps


def in_a_loop_of_the_run(x: Tensor) -> Any:
    steps = 0
    while x.sum() < 9:
        with swallowing([], ValueError):
            x = x * 2 + 3
            steps += 1
            if x[0] > 4:
                raise ValueError("too much")
            x = x + 1
    return x, steps


def differentiated(x: Tensor) -> Tensor:
    w = torch.ones(3, requires_grad=True)
    with without_grad():
        scale = (w * x).sum()
        if x.sum() > 5:
            raise ValueError("much")
    y = (w * x).sum() * scale
    return torch.autograd.grad(y, w)[0]


def unpacked(x: Tensor) -> Any:
    with pair(x) as (a, b):
        if x.sum() > 0:
            raise ValueError("positive")
        return a + b


def chosen_by_the_run(x: Tensor) -> Any:
    log: list[str] = []
    with chosen(x, log) as way:
        if x[1] > 1:
            raise ValueError(f"never {way}")
    return x, log


def never_yields(x: Tensor) -> Tensor:
    with never():
        return check(x)


def yields_on_some_path(x: Tensor) -> Any:
    with swallowing_on_some_path(x) as given, on_some_path(x):
        x = x + given
        check(x)
    return x


def outer_variables(x: Tensor) -> Any:
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1
        check(x)

    with contextlib.suppress(ValueError), logged([], "a"):
        counted()
        count += 10
    return count


class Holder:
    scale = 3.0


HOLDER = Holder()


@contextlib.contextmanager
def scaled(holder: Any, factor: float) -> Iterator[float]:
    before = holder.scale
    holder.scale = holder.scale * factor
    try:
        yield holder.scale
    finally:
        holder.scale = before


@contextlib.contextmanager
def changed_behind(x: Tensor, box: dict[str, int]) -> Iterator[None]:
    box["n"] = 1
    yield
    box["n"] = box["n"] + 1
    x.mul_(2)


@contextlib.contextmanager
def returning() -> Iterator[None]:
    try:
        yield
    finally:
        return  # noqa: B012 (it ends what the block raises)


@contextlib.contextmanager
def replacing() -> Iterator[None]:
    try:
        yield
    except ValueError:
        raise RuntimeError("new")  # noqa: B904 (with what was being handled as its context)
    except IndexError as error:
        raise error from None


def behind_the_yield(x: Tensor) -> Any:
    box: dict[str, int] = {}
    copy = x.clone()
    with contextlib.suppress(ValueError), changed_behind(copy, box):
        copy.add_(1)
        check(x)
    return copy, box


def ended_by_a_return(x: Tensor) -> Tensor:
    with returning():
        return check(x)
    return x


def replaced(x: Tensor) -> Tensor:
    with replacing():
        if x[0] > 0.7:
            raise ValueError("a")
        if x[0] > 0:
            raise IndexError("b")
    return x


def within_try_and_loop(x: Tensor) -> Any:
    total = 0.0
    for index in range(3):
        try:
            with scaled(HOLDER, index) as scale:
                if x[index] > 0:
                    raise ValueError
                total = total + scale
                if x[index] < -1:
                    continue
                total = total + 10
        except ValueError:
            total = total - 1
        else:
            total = total + 100
        finally:
            total = total + 1000
    return total, x


def read_before_it_is_assigned(x: Tensor) -> Tensor:
    count, total = 0, x
    with logged([], "a"):
        while total.sum() < 9:
            if count > 5:
                raise ValueError("too often")
            count = count + 1
            total = total + 1
    return total


FUNCTIONS = [
    read_before_it_is_assigned,
    *(behind_the_yield, ended_by_a_return, replaced, within_try_and_loop),
    *(raised, cleaned_up, swallowed, another_kind, translated, in_a_loop, in_a_loop_of_the_run, differentiated),
    *(unpacked, chosen_by_the_run, never_yields, outer_variables, yields_on_some_path),
]


@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any, front_end: str) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        agree(function, *CALLS)
        agree(function, *reversed(CALLS))


class Counting:
    def __init__(self) -> None:
        self.entered = self.failed = 0

    @contextlib.contextmanager
    def counting(self) -> Iterator[int]:
        self.entered += 1
        try:
            yield self.entered
        except ValueError:
            self.failed += 1
            raise

    def __call__(self, x: Tensor) -> Any:
        with self.counting() as number:
            check(x)
        return x * number


@pytest.mark.parametrize("front_end", ["source", "bytecode"])
def test_state(front_end: str) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        agree_fresh(Counting, *CALLS, programs=2)


@pytest.mark.parametrize("function", [swallowed, in_a_loop, cleaned_up], ids=lambda function: function.__name__)
def test_without_a_full_graph(function: Any) -> None:
    static = sg.to_static(function, full_graph=False, backend="eager")
    for call in (*CALLS, *CALLS):
        assert str(static(call)) == str(function(call))


@pytest.mark.parametrize("suffix", [".py", ".pt2", ".onnx"])
def test_in_files(tmp_path: Any, suffix: str) -> None:
    def function(x: Tensor) -> Tensor:
        y = x
        with swallowing([], ValueError):
            y = x * 2
            check(x)
            y = x * 3
        return x + y

    sg.save(function, path := tmp_path / f"file{suffix}", args=(CALLS[0],))
    run: Any
    if suffix == ".py":
        space: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), space)
        run = space["function"]
    else:
        run = sg.load(path)
    for call in CALLS:
        torch.testing.assert_close(run(call), function(call))


def test_refused() -> None:
    def function(x: Tensor) -> Tensor:
        with twice():
            if x[1] > 0:
                raise ValueError("positive")
        return x

    assert refusal(function, CALLS[0]).reason.code == "SG305"
