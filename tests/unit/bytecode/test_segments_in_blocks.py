"""Segments that begin inside of ``with`` blocks: what only the run raises leaves them, and breaks nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg
from tests.unit.bytecode.segmented import CALLS, Record, X, agrees, reasons, segments, to_partial

BAD = torch.tensor([1.0, 20.0, 300.0])
BOTH = (*CALLS, (BAD,))
RAISES_INSIDE = "an exception is raised where a tensor decides, inside a try block that stays Python"
MANAGERS: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "inference_mode(False)": lambda: torch.inference_mode(False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "record_function": lambda: torch.profiler.record_function("step"),
    "nullcontext": contextlib.nullcontext,
    "lock": threading.Lock,
    "fork_rng": lambda: torch.random.fork_rng(devices=[]),
}


def modes() -> tuple[bool, bool, bool]:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("manager", MANAGERS.values(), ids=MANAGERS)
def test_what_a_tensor_decides(manager: Callable[[], Any]) -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            record(modes())
            with manager():
                print("begun", x.sum().item())
                if x.max() > 100:
                    raise ValueError("too large")
                y = x @ x * 2
                print("done", y.item())
            return y + 1

        return f

    static = agrees(make, *BOTH)
    assert modes() == (True, False, False)
    assert RAISES_INSIDE not in reasons(static)
    assert not any("one of the ways on" in each for each in reasons(static))


@pytest.mark.parametrize("manager", MANAGERS.values(), ids=MANAGERS)
def test_what_an_operation_raises(manager: Callable[[], Any]) -> None:
    def make(record: Record) -> Any:
        def f(x: Any, index: Any) -> Any:
            record(modes())
            with manager():
                print("begun", x.sum().item())
                y = x[index] * 2
                print("done", y.sum().item())
            return y + 1

        return f

    static = agrees(make, *((x, torch.tensor([k])) for k in (1, 2, 7) for x in (X, -X)))
    assert RAISES_INSIDE not in reasons(static)
    assert modes() == (True, False, False)


def test_blocks_in_blocks_and_in_functions_that_are_called() -> None:
    """The innermost is left first; a lock is free again behind it, and the caller's block is left, too."""
    lock = threading.Lock()

    def make(record: Record) -> Any:
        def inner(x: Any) -> Any:
            with lock, torch.enable_grad():
                print("inner", x.sum().item(), modes())
                if x.max() > 100:
                    raise ValueError("too large")
                return x * 2

        def f(x: Any) -> Any:
            assert not lock.locked()
            with torch.no_grad():
                print("outer", modes())
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    y = inner(x) @ x
                    print("between", y.dtype)
            return y

        return f

    static = agrees(make, *BOTH)
    assert RAISES_INSIDE not in reasons(static)
    assert not lock.locked()
    assert modes() == (True, False, False)


def test_a_file_is_closed(tmp_path: Path) -> None:
    """Behind what the run raises, with all that was written to it."""
    paths = iter([tmp_path / "eager", tmp_path / "static"])

    def make(record: Record) -> Any:
        path = next(paths)
        path.touch()

        def f(x: Any) -> Any:
            record(path.read_text())
            with open(path, "w") as log:
                log.write(f"{x.sum().item()}\n")
                y = torch.linalg.cholesky(torch.diag(x))
                log.write(f"{y.sum().item()}\n")
            return y

        return f

    static = agrees(make, (X,), (-X,))
    assert RAISES_INSIDE not in reasons(static)


def test_a_manager_that_sees_exceptions() -> None:
    """It is told of them, with what it reads as it is then; so is a handler around."""

    class Manager:
        def __init__(self, record: Record, ends: bool) -> None:
            self.record, self.ends, self.count = record, ends, 0

        def __enter__(self) -> Manager:
            return self

        def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
            self.record((kind, str(error), self.count, modes()))
            return self.ends

    for ends in (False, True):

        def make(record: Record, ends: bool = ends) -> Any:
            def f(x: Any) -> Any:
                y = x
                with Manager(record, ends) as manager, torch.no_grad():
                    print("begun", x.sum().item())
                    manager.count += 1
                    y = x * 2
                    if x.max() > 100:
                        raise ValueError("too large")
                    manager.count += 1
                    y = y + 1
                    print("done", y.sum().item())
                return y

            return f

        agrees(make, *BOTH)


def test_a_handler_around() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            y = x
            try:
                with torch.no_grad():
                    print("begun", x.sum().item())
                    y = x * 2
                    if x.max() > 100:
                        raise ValueError("too large")
                    y = y + 1
                    print("done", y.sum().item())
            except ValueError as error:
                record((str(error), modes()))
                return y * 3
            return y

        return f

    agrees(make, *BOTH)


def test_a_manager_of_another_class() -> None:
    """The same block may be that of a manager which is to see what happens."""

    @contextlib.contextmanager
    def noting(record: Record) -> Any:
        try:
            yield
        except ValueError as error:
            record(str(error))
            raise

    def make(record: Record) -> Any:
        def f(x: Any, sees: bool) -> Any:
            with noting(record) if sees else torch.no_grad():
                print("begun", x.sum().item())
                if x.max() > 100:
                    raise ValueError("too large")
                y = x * 2
            return y

        return f

    agrees(make, *((x, sees) for sees in (False, True) for x in (X, BAD)))


def test_a_model_is_one_program_behind_a_step() -> None:
    class Checked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            if torch.isnan(x).any():
                raise ValueError("nan")
            return self.linear(x)

    torch.manual_seed(0)
    model = Checked()

    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            with torch.no_grad():
                print("begun", x.sum().item())
                y = model(x).softmax(-1)
                print("done", round(y.max().item(), 3))
            return y.argmax(-1)

        return f

    static = agrees(make, *CALLS, (X * float("nan"),))
    assert segments(static) == 4  # before the block, two in it, and behind it


def test_a_check_before_a_step() -> None:
    """What can only raise is a branch by itself: the program may end behind it."""

    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            if x.max() > 100:
                raise ValueError(f"{x.max().item()} is too large")
            y = x * 2
            if x.min() < -1:
                message = "too small"
                raise ValueError(message)
            print("checked", y.sum().item())
            return y + 1

        return f

    static = agrees(make, *BOTH)
    assert segments(static) == 2


class Told:
    """A manager that prints how its block ends."""

    def __init__(self, swallows: bool = False) -> None:
        self.swallows = swallows

    def __enter__(self) -> None:
        print("enter")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        print("exit", kind, error, trace is None)
        return self.swallows


@contextlib.contextmanager
def told() -> Any:
    print("enter")
    try:
        yield
    finally:
        print("exit")


def of_a_class(take: Callable[[Any], Any]) -> Any:
    def f(x: Any) -> Any:
        with Told():
            y = take(x)
        return y

    return f


def swallowed(take: Callable[[Any], Any]) -> Any:
    def f(x: Any) -> Any:
        y = None
        with Told(swallows=True):
            y = take(x)
        return x, y

    return f


def left_alone(take: Callable[[Any], Any]) -> Any:
    class Leaves:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: Any) -> None:
            print("exit")

    def f(x: Any) -> Any:
        with Leaves():
            y = take(x)
        return y

    return f


def of_a_generator(take: Callable[[Any], Any]) -> Any:
    def f(x: Any) -> Any:
        with told():
            y = take(x)
        return y

    return f


def with_a_finally(take: Callable[[Any], Any]) -> Any:
    def f(x: Any) -> Any:
        try:
            y = take(x)
        finally:
            print("finally")
        return y

    return f


def in_two(take: Callable[[Any], Any]) -> Any:
    def f(x: Any) -> Any:
        try:
            with Told():
                print("begun")
                y = take(x)
        finally:
            print("finally", x)
        return y

    return f


ITEMS = [1, 2, 3]
TAKEN: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "an index": (lambda n: ITEMS[n], (-1, 1, 7, 0)),
    "a division": (lambda n: 12 // n, (-1, 1, 0, 3)),
    "an operation": (torch.linalg.cholesky, (torch.eye(2), -torch.eye(2), torch.eye(2) * 4)),
}


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("make", [of_a_class, swallowed, left_alone, of_a_generator, with_a_finally, in_two])
def test_a_block_is_told_of_what_an_operation_raises(make: Callable[[Any], Any], taken: Any) -> None:
    """Also where the program has printed before, and where nothing around the block handles it."""
    take, values = taken
    agrees(lambda note: make(take), *((value,) for value in values))


class Noting:
    """A manager that puts on record how its block ends, which a program does when it is done."""

    def __init__(self, record: Record) -> None:
        self.record = record

    def __enter__(self) -> None:
        self.record("enter")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.record(f"exit {kind and kind.__name__}")


def with_a_manager(record: Record, begin: Callable[[Any], Any]) -> Any:
    def f(x: Any, index: Any) -> Any:
        with Noting(record):
            y = begin(x)[index]
        return y * 2

    return f


def with_a_generator(record: Record, begin: Callable[[Any], Any]) -> Any:
    @contextlib.contextmanager
    def noted() -> Any:
        record("enter")
        try:
            yield
        finally:
            record("exit")

    def f(x: Any, index: Any) -> Any:
        with noted():
            y = begin(x)[index]
        return y * 2

    return f


def with_cleanup(record: Record, begin: Callable[[Any], Any]) -> Any:
    def f(x: Any, index: Any) -> Any:
        y = begin(x)
        try:
            return y[index] * 2
        finally:
            record("finally")

    return f


def with_a_lock(record: Record, begin: Callable[[Any], Any]) -> Any:
    lock = threading.Lock()

    def f(x: Any, index: Any) -> Any:
        record(lock.locked())
        with lock:
            y = begin(x)[index]
        return y * 2

    return f


def before_what_is_left(record: Record, begin: Callable[[Any], Any]) -> Any:
    def f(x: Any, index: Any) -> Any:
        with Noting(record):
            y = x[index]
            begin(x)
        return y * 2

    return f


def in_its_own(x: Any) -> Any:
    y = torch.zeros(3)
    y[0] = x.sum()
    return y


def written_in_a_loop(x: Any) -> Any:
    y, total = torch.zeros(3), x.abs().sum()
    while total > 1:
        y += total
        total = total / 2
    return y


LEAVING: dict[str, Callable[[Any], Any]] = {
    "a number drawn": lambda x: x + torch.rand(3),
    "dropout": lambda x: torch.nn.functional.dropout(x),
    "a write to what was given": lambda x: x.add_(1),
    "a write to a view of it": lambda x: x.view(3, 1)[:, 0].mul_(2),
    "a write to what a branch hands out": lambda x: (x if x.sum() > 0 else x[:]).add_(1),
    "a write to its own": in_its_own,
    "both": lambda x: in_its_own(x).add_(torch.rand(3)),
    "a write in a loop": written_in_a_loop,
    "a number drawn from a generator": lambda x: x + torch.rand(3, generator=torch.Generator().manual_seed(0)),
}
AROUND = [with_a_manager, with_a_generator, with_cleanup, with_a_lock, before_what_is_left]


@pytest.mark.parametrize("begin", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("around", AROUND)
def test_a_block_of_a_program_that_leaves_something_is_told(around: Any, begin: Callable[[Any], Any]) -> None:
    """Such a program is not run twice, so that plain PyTorch cannot end the block in its stead."""

    assert outcomes(around, begin, to_partial) == outcomes(around, begin, lambda f: f)


LEAVING_NOTHING = ["a number drawn", "dropout", "a write to its own", "both"]


@pytest.mark.parametrize("begin", [LEAVING[name] for name in LEAVING_NOTHING], ids=LEAVING_NOTHING)
@pytest.mark.parametrize("around", [each for each in AROUND if each is not with_a_lock])
def test_a_program_that_leaves_nothing_else_is_made_anew(around: Any, begin: Callable[[Any], Any]) -> None:
    """What it drew is drawn again; with a full graph, too."""

    def to_whole(function: Any) -> Any:
        return sg.to_static(function, backend="eager")

    assert outcomes(around, begin, to_whole) == outcomes(around, begin, lambda f: f)


def outcomes(around: Any, begin: Callable[[Any], Any], convert: Callable[[Any], Any]) -> list[Any]:
    """What calls give or raise, what they have drawn, and what they leave."""
    noted: list[Any] = []
    f, found = convert(around(noted.append, begin)), []
    for index in (1, 7, 2, 9, 0):
        for x in (X, -X):
            torch.manual_seed(index)
            given = x.clone()
            try:
                value = f(given, torch.tensor(index)).tolist()
            except IndexError as error:
                value = str(error)
            found.append((value, given.tolist(), noted.copy(), torch.rand(1).item()))
            noted.clear()
    return found


def test_a_block_stays_in_the_program_that_writes_to_its_own_tensors() -> None:
    notes: list[Any] = []
    f = with_a_manager(notes.append, in_its_own)
    static = to_partial(f)
    with pytest.raises(IndexError):
        static(X, torch.tensor(9))
    assert notes == ["enter", "exit IndexError"]
    static(X, torch.tensor(1))
    assert segments(static) == 1
