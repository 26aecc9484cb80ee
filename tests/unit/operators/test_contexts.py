"""``with`` around what only the run raises."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.sampling import crossed
from tests.unit.operators.asserting import asserted_in_a_with
from tests.unit.operators.managers import Manager
from tests.unit.trace.agreement import agree, agree_fresh, refusal

UP, DOWN, LOW = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]), torch.tensor([0.1, -0.1])
CALLS = (UP, DOWN, LOW)


def check(x: Tensor) -> Tensor:
    if x.sum() < -2:
        raise ValueError(f"too low: {x.sum().item():.1f}")
    if x.sum() < 1:
        raise KeyError("low")
    return x * 2


def seen(x: Tensor) -> Any:
    manager = Manager()
    try:
        with manager:
            x = check(x)
    except (ValueError, KeyError):
        x = x - 1
    return x, manager.log


def gone_by(x: Tensor) -> Any:
    with Manager():
        return check(x)


def ended(x: Tensor) -> Any:
    with Manager(ValueError, KeyError) as manager:
        x = check(x)
    return x, manager.log


def ended_for_some(x: Tensor) -> Any:
    with Manager(KeyError) as manager:
        y = x + 1
        x = check(x)
        y = y + 1
    return x, y, manager.log


def returned_from(x: Tensor) -> Any:
    with Manager(ValueError) as manager:
        if x.sum() > 0:
            return x, manager.log
        x = check(x)
    return x - 1, manager.log


def nested(x: Tensor) -> Any:
    outer, inner, again, first = Manager(ValueError), Manager(KeyError), Manager(ValueError, KeyError), Manager()
    with outer, inner as same:
        x = check(x)
        same.log.append(7)
    with again:
        with first:
            x = check(x)
        x = x * 3
    return x, outer.log, inner.log, again.log, first.log


def in_a_loop(x: Tensor) -> Any:
    manager = Manager(ValueError, KeyError)
    done = 0
    for value in x:
        with manager:
            if value > 1.5:
                break
            check(value * 4)
            done += 1
    return done, manager.log


def suppressed(x: Tensor) -> Any:
    with contextlib.suppress(KeyError):
        x = check(x)
        x = x + 1
    return x


def asked_for_its_type(x: Tensor) -> Any:
    class Asks:
        def __enter__(self) -> None:
            self.found = 0

        def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
            if kind is ValueError:
                self.found = 1
            elif isinstance(error, KeyError):
                self.found = 2
            return error is not None and trace is not None

    asks = Asks()
    with asks:
        x = check(x)
    return x, asks.found


def ended_by_a_tensor(x: Tensor) -> Any:
    class Decides:
        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
            return x[0] > 0

    with Decides():
        return check(x)
    return x - 7


def counted_by_a_local_class(x: Tensor) -> Any:
    n = 0

    class Counts:
        def __enter__(self) -> None:
            nonlocal n
            n += 100

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            nonlocal n
            n += 1 if kind is None else 10

    try:
        with Counts():
            x = check(x)
    except (ValueError, KeyError):
        pass
    return n, x


def raised_anew(x: Tensor) -> Any:
    class Translates:
        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            if kind is not None:
                raise RuntimeError("translated")

    try:
        with Translates():
            x = check(x)
    except RuntimeError:
        return x - 5
    return x


def known_before(x: Tensor) -> Any:
    with Manager(ValueError) as manager:
        if x.sum() > 10:
            check(x)
        raise ValueError("always")
    return x, manager.log


def of_every_type(x: Tensor) -> Any:
    with Manager(RuntimeError, LookupError) as manager:
        if x.sum() > 1:
            raise RuntimeError("big")
        if x.sum() < -1:
            raise IndexError("small")
        x = x + 1
    return x, manager.log


class Inherits(contextlib.AbstractContextManager):  # type: ignore[type-arg]
    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return kind is ValueError


def inherited(x: Tensor) -> Any:
    with Inherits():
        if x.sum() > 0:
            raise ValueError("big")
        x = x + 1
    return x


@contextlib.contextmanager
def counted(log: list[str]) -> Iterator[None]:
    log.append("in")
    yield
    log.append("out")


def by_a_generator(x: Tensor) -> Any:
    log: list[str] = []
    with counted(log):
        check(x)
    return log


FUNCTIONS = [
    *(seen, gone_by, ended, ended_for_some, returned_from, nested, in_a_loop, suppressed, asked_for_its_type),
    *(ended_by_a_tensor, counted_by_a_local_class, raised_anew, known_before, of_every_type, inherited),
    *(asserted_in_a_with, by_a_generator),
]


@pytest.mark.parametrize(("function", "first"), crossed(FUNCTIONS, range(3)))
def test_agrees(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])


class Guarded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.manager = Manager(ValueError)
        self.calls = 0

    def forward(self, x: Tensor) -> Any:
        with self.manager:
            self.calls += 1
            x = check(x)
            self.calls += 10
        return x


def test_on_a_module() -> None:
    agree_fresh(Guarded, *CALLS, programs=3)  # the manager's log is longer each time


def shown(x: Tensor) -> Any:
    class Shows:
        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            self.name = "none" if kind is None else kind.__name__
            print(self.name)

    with Shows():
        check(x)


def printed(x: Tensor) -> Tensor:
    class Prints:
        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            print("left", kind, error, trace is None)

    with Prints():
        return check(x)


def test_the_class_of_an_exception_is_printed() -> None:
    agree(printed, *CALLS)


def prints_the_traceback(x: Tensor) -> Any:
    class Prints:
        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            print(trace)

    with Prints():
        return check(x)


def by_a_stack(x: Tensor) -> Any:
    log: list[int] = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, 1)
        check(x)
    return log


def pushed_in_an_arm(x: Tensor) -> Any:
    log: list[int] = []
    with contextlib.ExitStack() as stack:
        if x.sum() > 0:
            stack.callback(log.append, 1)
    return log


def redirected(x: Tensor) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        print("hi")
    return text.getvalue()


@pytest.mark.parametrize(
    ("function", "code"),
    [
        *((by_a_stack, "SG208"), (pushed_in_an_arm, "SG305")),
        *((redirected, "SG305"), (prints_the_traceback, "SG301")),
    ],
)
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


def test_the_name_of_the_class_is_told() -> None:
    agree(shown, *CALLS)
