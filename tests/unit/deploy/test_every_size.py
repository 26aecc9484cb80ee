"""A file serves every size that the function serves of an open dimension, or it is not written (SG501)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.api import open_sizes
from tests.cases.harness import python_module

Function = Callable[..., Any]


# ---- one argument
def neighbours(x: Tensor) -> Tensor:
    total = x.sum()
    for i in range(x.shape[0] - 1):
        total = total + x[i] * x[i + 1]
    return total


def of_one_element(x: Tensor) -> Tensor:
    if x.shape[0] == 1:
        return x + 1
    return x - 1


def in_pairs(x: Tensor) -> Tensor:
    total = x.sum() * 0
    for a, b in zip(x[1:], x[:-1]):
        total = total + a * b
    return total


def both_halves(x: Tensor) -> Tensor:
    n = x.shape[0] // 2
    return x[:n] + x[n : 2 * n]


def outer(x: Tensor) -> Tensor:
    n = x.shape[0]
    return x.view(n, 1) * torch.ones(n)


def head_and_rest(x: Tensor) -> Tensor:
    head, *rest = x
    return head + len(rest)


def both(x: Tensor) -> Tensor:
    a, b = x
    return a + b


def first_three(x: Tensor) -> list[Tensor]:
    return [row + 1 for row in x[:3]]


def thirds(x: Tensor) -> list[Tensor]:
    return [part.sum() for part in x.chunk(3)]


def long(x: Tensor) -> Tensor:
    parts = [row * 2 for row in x[5:]]
    return torch.stack(parts).sum() if parts else x.sum()


# ---- two arguments
def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def as_many_rows(x: Tensor, y: Tensor) -> Tensor:
    return x.view(y.shape[0], -1)


def stacked(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y])


def side_by_side(x: Tensor, y: Tensor) -> Tensor:
    total = x.sum() * 0
    for a, b in zip(x, y):
        total = total + a * b
    return total


def save(function: Function, path: Path, *sizes: int, dims: list[Any] | None = None) -> Function:
    spec = [sg.InputSpec([dim]) for dim in dims or [None] * len(sizes)]
    sg.save(function, path, args=tuple(torch.arange(1.0, size + 1) for size in sizes), input_spec=spec)
    return getattr(python_module(path), function.__name__) if path.suffix == ".py" else sg.load(path)


BY_CONDITION = (ValueError, AssertionError, RuntimeError)
"""What a file raises where a condition of it refuses a call."""


def agree(file: Function, function: Function, args: tuple[Tensor, ...]) -> None:
    """Both give the same, or both raise: the file what the function does, or that a condition does not hold."""
    try:
        expected = function(*args)
    except (IndexError, RuntimeError, ValueError) as error:
        with pytest.raises((type(error), *BY_CONDITION)):
            file(*args)
    else:
        torch.testing.assert_close(file(*args), expected)


@pytest.mark.parametrize("function", [neighbours, of_one_element, in_pairs, both_halves, outer, head_and_rest])
@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_every_size_is_served(function: Function, size: int, suffix: str, tmp_path: Path) -> None:
    file = save(function, tmp_path / f"file{suffix}", size)
    for each in (1, 2, 3, 4, 5, 7, 9):
        agree(file, function, (torch.arange(1.0, each + 1),))
        agree(file, function, (-torch.arange(1.0, each + 1),))


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_what_the_function_refuses_the_file_refuses(suffix: str, tmp_path: Path) -> None:
    file = save(both, tmp_path / f"file{suffix}", 2)
    for each in (0, 1, 2, 3):
        agree(file, both, (torch.arange(1.0, each + 1),))


@pytest.mark.parametrize("function", [added, as_many_rows, stacked, side_by_side])
def test_sizes_of_two_arguments_are_served_apart(function: Function, tmp_path: Path) -> None:
    sizes = (6, 3) if function is as_many_rows else (3, 3)
    file = save(function, tmp_path / "file.py", *sizes)
    for x, y in itertools.product((1, 2, 3, 5), repeat=2):
        agree(file, function, (torch.arange(1.0, x + 1), torch.arange(1.0, y + 1)))


@pytest.mark.parametrize(
    ("function", "size", "said"),
    [
        (first_three, 3, r"a program for x.shape\[0\] >= 3; for x.shape\[0\] = 1, the program raises IndexError"),
        (first_three, 7, r"a program for x.shape\[0\] >= 3; for x.shape\[0\] = 1, the program raises IndexError"),
        (thirds, 2, r"== 2; for x.shape\[0\] = "),
        (thirds, 7, r"== 3; for x.shape\[0\] = "),
        (long, 3, r"a program for x.shape\[0\] < 5; for x.shape\[0\] = 7, the result differs from eager's"),
    ],
)
@pytest.mark.parametrize("suffix", [".py", ".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
def test_what_serves_the_example_s_side_alone_is_not_saved(
    function: Function, size: int, said: str, suffix: str, tmp_path: Path
) -> None:
    with pytest.raises(sg.CaptureError, match=said) as raised:
        save(function, tmp_path / f"file{suffix}", size)
    assert raised.value.reason.code == "SG501"
    assert not list(tmp_path.iterdir())


def test_in_a_range_that_takes_one_way_it_is_saved(tmp_path: Path) -> None:
    file = save(first_three, tmp_path / "file.py", 4, dims=[sg.Dim("n", min=3)])
    for each in (3, 4, 8):
        agree(file, first_three, (torch.arange(1.0, each + 1),))
    with pytest.raises(ValueError, match="made for x"):
        file(torch.ones(2))


def test_what_torch_s_exporter_takes_for_one_size_is_not_saved_as_two(tmp_path: Path) -> None:
    with pytest.raises(sg.CaptureError, match=r"would not serve every size .*: for x.shape\[0\] = 1") as raised:
        save(added, tmp_path / "file.pt2", 3, 3)
    assert raised.value.reason.code == "SG501"
    assert "one name" in raised.value.hint
    named = save(added, tmp_path / "file.pt2", 3, 3, dims=[sg.Dim("n"), sg.Dim("n")])
    for each in (1, 2, 5):
        agree(named, added, (torch.ones(each), torch.ones(each)))


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.shape[0]
        return (x * self.weight).flatten() * self.seen


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_a_module_is_as_it_was_and_the_file_begins_there(suffix: str, tmp_path: Path) -> None:
    model, path = Counts(), tmp_path / f"file{suffix}"
    with torch.no_grad():
        sg.save(model, path, args=(torch.ones(4, 3),), input_spec=[sg.InputSpec([None, 3])])
        assert model.seen == 0
        file = python_module(path).load() if suffix == ".py" else sg.load(path)
        for size in (1, 2, 5):
            torch.testing.assert_close(file(torch.ones(size, 3)), model(torch.ones(size, 3)))


def test_a_function_that_never_ends_for_another_size_is_saved(tmp_path: Path) -> None:
    def doubled(x: Tensor) -> Tensor:
        n = x.shape[0]
        while n < 20:
            n = n * 2
        return x.sum() + n

    file = save(doubled, tmp_path / "file.pt2", 3)
    for each in (1, 2, 30):
        torch.testing.assert_close(file(torch.ones(each)), doubled(torch.ones(each)))


def test_two_sizes_for_which_a_function_never_ends_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiplied(x: Tensor, y: Tensor) -> Tensor:
        n, m = x.shape[0], y.shape[0]
        while n % 3 or m % 3:
            n, m = n * 2, m * 2
        return x.sum() * n + y.sum() * m

    tried: list[str] = []

    class Trial(open_sizes._Trial):
        def of(self, sizes: Any) -> Any:
            found = super().of(sizes)
            tried.append(found.kind)
            return found

    monkeypatch.setattr(open_sizes, "_SECONDS", 0.3)
    monkeypatch.setattr(open_sizes, "_Trial", Trial)
    file = save(multiplied, tmp_path / "file.py", 3, 6)
    assert tried.count("endless") == 2
    given = torch.ones(3), torch.ones(6)
    torch.testing.assert_close(file(*given), multiplied(*given))


def telling(x: Tensor) -> Tensor:
    print("the inner ones of", x.shape[0])
    y = x[1:-1]
    return y + y.flip(0)


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
@pytest.mark.filterwarnings("ignore:.*does not print")
def test_trials_show_nothing(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(telling, tmp_path / f"file{suffix}", 3)
    assert capsys.readouterr() == ("", "")


MADE: list[str] = []


def making(x: Tensor) -> Tensor:
    os.makedirs(os.path.join(MADE[0], "made"), exist_ok=True)
    y = x[1:-1]
    return y + y.flip(0)


def test_what_does_something_outside_is_not_run_with_other_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("it is run beside eager PyTorch")

    monkeypatch.setattr(open_sizes.Beside, "of", refuse)
    MADE[:] = [str(tmp_path)]
    save(making, tmp_path / "file.py", 3)
    with pytest.raises(AssertionError, match="beside eager"):
        save(neighbours, tmp_path / "other.py", 3)


# ---- what users say of a size is asked by the file, too
def of_a_size_by_assert(x: Tensor) -> Tensor:
    assert x.shape[0] >= 2, "too short"
    return x * x.shape[0]


def of_a_count_by_check(x: Tensor) -> Tensor:
    found = x[x > 0] if x.sum() > 0 else x[x < 0]
    torch._check(found.shape[0] >= 2)
    return found.reshape(-1) * 2


def of_a_count_by_raise(x: Tensor) -> Tensor:
    found = x[x > 0] if x.sum() > 0 else x[x < 0]
    if found.shape[0] < 2:
        raise ValueError("too few")
    return found


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
@pytest.mark.parametrize("function", [of_a_size_by_assert, of_a_count_by_check, of_a_count_by_raise])
def test_what_is_said_of_a_size_is_asked(function: Callable[[Tensor], Tensor], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"asked.{suffix}"
    sg.save(function, path, args=(torch.tensor([1.0, 2.0, 3.0, -1.0, -4.0]),), input_spec=[sg.InputSpec([None])])
    loaded = sg.load(path)
    for x in (torch.tensor([1.0, 2.0, -1.0]), torch.tensor([-3.0, -2.0, 1.0])):
        assert torch.equal(loaded(x), function(x))
    x = torch.tensor([1.0]) if function is of_a_size_by_assert else torch.tensor([1.0, -0.5])
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        function(x)
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        loaded(x)


def taken_one_by_one(x: Tensor) -> Tensor:
    total = torch.zeros(())
    while x.numel() > 0:
        total = total * 2 + x[0]
        x = x[1:]
    return total


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_a_loop_until_nothing_is_left(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"left.{suffix}"
    sg.save(taken_one_by_one, path, args=(torch.ones(3),), input_spec=[sg.InputSpec([None])])
    for size in (4, 1, 0):
        x = torch.arange(1.0, size + 1)
        assert torch.equal(sg.load(path)(x), taken_one_by_one(x))
