"""What a written file asks of a call, and what it takes: state, modes, the same object twice, containers, odd names."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from tests.cases.harness import python_module

T = torch.tensor
X = T([1.0, 2.0])


def written(function: Any, folder: Path, *args: Any, **options: Any) -> Any:
    """The written file's function, or its module."""
    sg.save(function, folder / "written.py", args=args, **options)
    module = python_module(folder / "written.py")
    return module.load() if hasattr(module, "load") else getattr(module, function.__name__)


# ---- grad mode
def by_mode(x: Tensor) -> Tensor:
    return x * 2 if torch.is_grad_enabled() else x * 3


def in_part(x: Tensor) -> Tensor:
    with torch.no_grad():
        scale = x.sum()
    return x * scale


def with_grad(x: Tensor) -> Tensor:
    with torch.enable_grad():
        return x * 2


@torch.enable_grad()  # type: ignore[untyped-decorator]  # torch has no types there
def decorated(x: Tensor) -> Tensor:
    return x * 2


@pytest.mark.parametrize("function", [by_mode, with_grad, decorated])
def test_grad_mode_is_the_saves_where_the_code_asks(function: Any, tmp_path: Path) -> None:
    got = written(function, tmp_path, X)
    torch.testing.assert_close(got(X), function(X))
    with torch.no_grad(), pytest.raises(ValueError, match="grad mode is False, the program was made for True"):
        got(X)


@torch.no_grad()
def test_under_no_grad_as_well(tmp_path: Path) -> None:
    got = written(by_mode, tmp_path, X)
    torch.testing.assert_close(got(X), X * 3)
    with torch.enable_grad(), pytest.raises(ValueError, match="grad mode"):
        got(X)


def test_grad_mode_turned_off_for_a_part_is_the_same_in_both(tmp_path: Path) -> None:
    got = written(in_part, tmp_path, X)
    for grad in (True, False):
        x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
        with torch.set_grad_enabled(grad):
            results = got(x), in_part(y)
        torch.testing.assert_close(*results)
        assert [each.requires_grad for each in results] == [grad, grad]
        if grad:
            results[0].sum().backward()
            results[1].sum().backward()
            torch.testing.assert_close(x.grad, y.grad)


# ---- one object or two
def writes_first(a: Tensor, b: Tensor) -> Tensor:
    a.add_(1)
    return a + b


def test_one_tensor_twice(tmp_path: Path) -> None:
    got = written(writes_first, tmp_path, *[X.clone()] * 2)
    with pytest.raises(ValueError, match="made for a being b"):
        got(X.clone(), X.clone())
    torch.testing.assert_close(got(*[X.clone()] * 2), writes_first(*[X.clone()] * 2))


def test_two_tensors(tmp_path: Path) -> None:
    got = written(writes_first, tmp_path, X.clone(), X.clone())
    torch.testing.assert_close(got(X.clone(), X * 5), writes_first(X.clone(), X * 5))
    with pytest.raises(ValueError, match="made for a being another object than b"):
        got(*[X.clone()] * 2)


def extends(a: list[Tensor], b: list[Tensor]) -> Tensor:
    a.append(b[0] * 2)
    return a[0] + len(b)


def test_two_lists(tmp_path: Path) -> None:
    got = written(extends, tmp_path, [X], [X])
    with pytest.raises(ValueError, match="another object than b"):
        got(*[[X]] * 2)


# ---- state that the program was specialised on
class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cache: Tensor | None = None
        self.a = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Any:
        if self.cache is not None:
            x = x + self.cache
        self.cache = x.detach()
        return self.a(x)


class Log(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.log.append(x.sum())
        return x * len(self.log)


class Lazy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "scale"):
            self.scale = x.detach().sum()
        return x * self.scale


@pytest.mark.parametrize("make", [Cache, Log, Lazy])
def test_state_that_a_call_changes_is_asked_for_at_the_next(make: Any, tmp_path: Path) -> None:
    original = make()
    got = written(copy.deepcopy(original), tmp_path, X)
    torch.testing.assert_close(got(X), original(X))
    with pytest.raises(ValueError, match="the program was made for"):
        got(X)


def test_state_of_which_only_the_values_change_is_kept(tmp_path: Path) -> None:
    original = Cache()
    original(X)
    got = written(copy.deepcopy(original), tmp_path, X)
    for x in (X, -X, X * 3):
        torch.testing.assert_close(got(x), original(x))


# ---- what is passed
@dataclass
class Pair:
    x: Tensor
    y: Tensor


def doubles(pair: Pair) -> Pair:
    pair.x = pair.x * 2
    return pair


def test_a_dataclass_that_is_written_to(tmp_path: Path) -> None:
    got = written(doubles, tmp_path, Pair(X, X))
    pair = Pair(X * 3, X)
    assert got(pair) is pair
    torch.testing.assert_close(pair.x, X * 6)


def appends(x: Tensor, items: list[Tensor]) -> Tensor:
    items.append(x * 2)
    return x + 1


def test_a_list_that_is_appended_to(tmp_path: Path) -> None:
    given = [X]
    got = written(appends, tmp_path, X, given)
    assert len(given) == 1
    items, others = [X], [X]
    torch.testing.assert_close(got(X * 3, items), appends(X * 3, others))
    torch.testing.assert_close(items, others)
    with pytest.raises(ValueError, match=r"type\(items\)"):
        got(X, (X,))


def keyed(x: Tensor, **rest: Tensor) -> Tensor:
    return x * rest["a"]


def starred(x: Tensor, *rest: Tensor) -> Tensor:
    return x * rest[0]


def test_missing_arguments_are_told(tmp_path: Path) -> None:
    got = written(keyed, tmp_path, X, kwargs={"a": X})
    for rest in ({}, {"b": X}, {"a": X, "b": X}):
        with pytest.raises(ValueError, match=r"list\(rest\)"):
            got(X, **rest)
    got = written(starred, tmp_path, X, X)
    for items in ((), (X, X)):
        with pytest.raises(ValueError, match=r"len\(rest\)"):
            got(X, *items)


class TwoSelves(nn.Module):
    def forward(module, x: Tensor, self: Tensor) -> Tensor:  # that is what is tested
        return x + self


def second_self(x: Tensor, self: Tensor) -> Tensor:
    return x + self


def test_a_parameter_called_self(tmp_path: Path) -> None:
    torch.testing.assert_close(written(second_self, tmp_path, X, X)(X, self=-X), X * 0)
    with pytest.raises(ExportError, match="parameter called 'self'"):
        sg.save(TwoSelves(), tmp_path / "two.py", args=(X, X))


# ---- names
class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.ParameterList([nn.Parameter(X.clone()), nn.Parameter(X * 3)])
        self.shared = self.q[1]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.q[0] + self.q[1] + self.shared


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.ModuleDict({"x-y": nn.Linear(2, 2), "norm": nn.BatchNorm1d(2), "a b": nn.BatchNorm1d(2)})

    def forward(self, x: Tensor) -> Tensor:
        x = self.q["x-y"](x)
        return self.q["a b"](self.q["norm"](x))


@pytest.mark.parametrize("make", [Listed, Named])
def test_parameters_whose_names_are_no_identifiers(make: Any, tmp_path: Path) -> None:
    original = make()
    x = torch.stack([X, -X, X * 2])
    got = written(copy.deepcopy(original), tmp_path, x)
    assert list(got.state_dict()) == [name for name in original.state_dict() if "num_batches" not in name] or list(
        got.state_dict()
    ) == list(original.state_dict())
    for each in (x, x * 2):
        torch.testing.assert_close(got(each), original(each))
    torch.testing.assert_close(dict(got.named_buffers()), dict(original.named_buffers()))
    got.load_state_dict(original.state_dict())


# ---- open sizes
def added(x: Tensor) -> Tensor:
    return x * 2 + torch.ones(16)


def reduced(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.sum(0, keepdim=True).abs() + 1)


def halved(x: Tensor) -> Tensor:
    while x.abs().sum() > 1:
        x = x / 2
    return x.softmax(0)


def chosen(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, x.sum(1, keepdim=True)) @ x.t()


def asks(x: Tensor) -> Tensor:
    return (x * 2 if x.shape[0] != 1 else x * 3) + torch.ones(16)


@pytest.mark.parametrize("function", [added, reduced, halved, chosen, asks])
def test_open_sizes_take_one(function: Any, tmp_path: Path) -> None:
    got = written(function, tmp_path, torch.randn(3, 16), input_spec=[sg.InputSpec([None, 16])])
    for size in (1, 2, 5):
        x = torch.randn(size, 16)
        torch.testing.assert_close(got(x), function(x))


def of_one_size(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def test_sizes_of_one_name_are_checked_and_others_are_stretched(tmp_path: Path) -> None:
    given = torch.randn(3, 16), torch.randn(3, 16)
    got = written(of_one_size, tmp_path, *given, input_spec=[sg.InputSpec([None, 16])] * 2)
    x, y = torch.randn(3, 16), torch.randn(1, 16)
    torch.testing.assert_close(got(x, y), x + y)
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(2\)"):
        got(x, torch.randn(2, 16))
    got = written(of_one_size, tmp_path, *given, input_spec=[sg.InputSpec([sg.Dim("n"), 16])] * 2)
    with pytest.raises(ValueError, match=r"made for one size of 'n': x.shape\[0\] and y.shape\[0\]"):
        got(x, y)
