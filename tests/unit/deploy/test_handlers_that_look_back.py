"""Files of programs whose handlers use what the body of the ``try`` had written when it failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import bytecode  # noqa: F401  # a fixture

X = torch.tensor([1.0, 2.0])
CALLS = (X, -X, X * 3, X * 9, X * 30, X - 1.5, torch.zeros(2), -X * 3)


def checked(v: Tensor) -> Tensor:
    if v.sum() > 8:
        raise ValueError("large")
    if v.sum() < 0:
        raise RuntimeError("negative")
    return v + 1


def in_line(x: Tensor) -> Tensor:
    y = x
    try:
        y = x * 2
        if x.sum() > 0:
            raise ValueError("positive")
        y = x * 3
    except ValueError:
        y = y + 1
    return y


def step_by_step(x: Tensor) -> tuple[Tensor, int]:
    done, y = 0, x
    try:
        y = checked(y)
        done = 1
        y = checked(y * 2)
        done = 2
        y = checked(y * 3)
        done = 3
    except ValueError:
        y = y - done
    except RuntimeError:
        done = -done
    return y, done


def in_a_loop(x: Tensor) -> tuple[Tensor, int]:
    total, count = torch.zeros(2), 0
    try:
        for i in range(int(x.abs().sum())):
            total = total + checked(x + i)
            count += 1
        total = total * 2
        checked(total)
    except (ValueError, RuntimeError):
        total = total - 1
    return total, count


def behind_a_loop(x: Tensor) -> Tensor:
    y = x
    try:
        checked(x)
        while y.sum() < 20:
            y = y + 3
            checked(y)
        y = y * 2
    except ValueError:
        y = y - 0.5
    except RuntimeError:
        y = y + 0.25
    return y


def in_branches(x: Tensor) -> tuple[Tensor, str]:
    where, y = "begin", x
    try:
        if x[0] > 0:
            where = "positive"
            y = checked(x)
            y = y + 5
            where = "checked"
        else:
            y = x * 2
        y = checked(y)
        where = "end"
    except (ValueError, RuntimeError):
        y = y - 1
    return y, where


def one_in_another(x: Tensor) -> tuple[Tensor, int]:
    n, y = 0, x
    try:
        n = 1
        try:
            y = checked(x)
            n = 2
            y = checked(y * 4)
            n = 3
        except RuntimeError:
            n = n + 10
        y = checked(y + 1)
        n = n + 100
        if y.sum() > 7:
            raise ValueError("again")
        n = n + 1000
    except ValueError:
        y = y - 0.5
        n = -n
    return y, n


def cleaned_up(x: Tensor) -> Tensor:
    log: list[Tensor] = []
    y = x
    try:
        try:
            y = checked(x)
            y = checked(y + 4)
        finally:
            log.append(y)
    except ValueError:
        return log[0] * 2
    return log[0]


def put_back_in_a_branch(x: Tensor) -> tuple[Tensor, int]:
    level, y = 0, x
    try:
        if x[0] > 0:
            level = 1
            try:
                y = checked(x)
                level = 2
            finally:
                level = level - 1
        y = checked(y + level)
    except ValueError:
        y = y - 0.5
    except RuntimeError:
        y = y - 0.25
    return y, level


def perhaps_unset(x: Tensor) -> Any:
    y = None
    try:
        checked(x)
        y = x * 2
        checked(x * 4)
    except (ValueError, RuntimeError):
        return x if y is None else y
    return y


def of_an_object(x: Tensor) -> Tensor:
    class State:
        best = x

    state = State()
    try:
        state.best = checked(x)
        state.best = checked(state.best * 4)
    except ValueError:
        return state.best + 1
    except RuntimeError:
        return state.best - 1
    return state.best


class Rejected(Exception):
    """Of which no operation of torch's is."""


def accepted(v: Tensor) -> None:
    if v.sum() > 8:
        raise Rejected


def written_before(x: Tensor) -> Tensor:
    y = x
    try:
        y = x.clone()
        y.add_(1)
        accepted(y)
        y = y * 3
        accepted(y)
    except Rejected:
        y = y * 2
    return y


def of_another_shape(x: Tensor) -> Tensor:
    y = x
    try:
        accepted(x)
        y = torch.cat([x, x])
        accepted(y)
        y = y[:1]
        accepted(y)
    except Rejected:
        y = y - 1
    return y.sum()


def of_a_length_of_the_run(x: Tensor) -> tuple[Tensor, list[int]]:
    y, found = x, [0]
    try:
        for i in range(int(x[0])):
            y = torch.cat([y, x])
            found.append(i)
            accepted(y)
    except Rejected:
        y = y - 1
    return y, found


HANDLERS = [
    in_line,
    step_by_step,
    in_a_loop,
    behind_a_loop,
    in_branches,
    one_in_another,
    cleaned_up,
    put_back_in_a_branch,
    perhaps_unset,
    of_an_object,
    written_before,
    of_another_shape,
    of_a_length_of_the_run,
]


def outcome(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    try:
        return function(x.clone())
    except Exception as error:  # of any kind: it is compared
        return type(error) if isinstance(error, ValueError) else RuntimeError


def agree(path: Path, function: Callable[[Tensor], Any]) -> None:
    sg.save(function, path, args=(X,))
    loaded = sg.load(path)
    for call in CALLS:
        expected, actual = outcome(function, call), outcome(loaded, call)
        if isinstance(expected, type):
            assert isinstance(actual, type), (call, actual)
        else:
            assert_same(expected, actual, f"{path.suffix}: {call}")


@pytest.mark.parametrize("function", HANDLERS, ids=lambda function: function.__name__)
def test_as_in_eager(tmp_path: Path, function: Callable[[Tensor], Any]) -> None:
    agree(tmp_path / "program.pt2", function)


@pytest.mark.slow
@pytest.mark.parametrize("function", HANDLERS, ids=lambda function: function.__name__)
def test_through_bytecode(bytecode: None, tmp_path: Path, function: Callable[[Tensor], Any]) -> None:  # noqa: F811  # the fixture
    agree(tmp_path / "program.pt2", function)


@pytest.mark.parametrize("function", [step_by_step, in_a_loop])
def test_in_onnx(tmp_path: Path, function: Callable[[Tensor], Any]) -> None:
    agree(tmp_path / "program.onnx", function)


def test_what_is_written_in_place_behind_a_failure_is_refused(tmp_path: Path) -> None:
    def written(x: Tensor) -> Tensor:
        y = x
        try:
            y = x.clone()
            accepted(y)
            y.add_(1)
        except Rejected:
            y = y * 2
        return y

    with pytest.raises(sg.ExportError, match="'y', which is written in place in the try"):
        sg.save(written, tmp_path / "program.pt2", args=(X,))
