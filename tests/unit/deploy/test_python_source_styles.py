"""What torch's operators would say otherwise than eager is written with Python's statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.deploy.python import style, write
from stillgraph.deploy.python.trial import Wrong
from tests.cases.harness import python_module

T = torch.tensor
X = T([1.0, 2.0])


def int_or_float(x: Tensor) -> Any:
    n: float = 0
    if x.sum() > 0:
        n = 1
    else:
        n = 2.5
    return x * n, n


def factorial(n: Tensor) -> Any:
    r: Any = 1
    while n > 1:
        r = r * n
        n = n - 1
    return r


def sum_or_zero(x: Tensor) -> Any:
    c = x.sum() > 0
    return x.sum() if c else 0


def bool_or_int(x: Tensor) -> Any:
    n = True
    for _ in range(3):
        if x.sum() > 0:
            n = n + 1
        x = x - 1
    return n


def written_alias(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x.clone()
    y.add_(1)
    return x, y


def written_root(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x.clone()
    x.add_(1)
    return x, y


def written_view(x: Tensor) -> Any:
    y = x[:1] if x.sum() > 0 else x[1:]
    y[0] = 7
    return x, y


def written_while_carried(x: Tensor) -> Any:
    y = x
    while y.sum() < 5:
        y.add_(1)
        y = y * 2
    return x, y


def written_in_an_arm(x: Tensor, flag: Tensor) -> Any:
    y = x if x.sum() > 0 else x.clone()
    if flag.sum() > 0:
        y.mul_(3)
    return x, y


CALLS: dict[Any, list[tuple[Tensor, ...]]] = {
    int_or_float: [(-X,), (X,)],
    factorial: [(T(3),), (T(0),)],
    sum_or_zero: [(X,), (-X,)],
    bool_or_int: [(-X,), (X,), (X * 10,)],
    written_alias: [(-X,), (X,)],
    written_root: [(-X,), (X,)],
    written_view: [(-X,), (X,)],
    written_while_carried: [(X * 9,), (X,), (-X,)],
    written_in_an_arm: [(-X, X), (X, X.clone()), (X, -X)],
}


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("example", [0, 1])
def test_the_paths_not_taken_at_the_save_are_eagers(function: Any, example: int, tmp_path: Path) -> None:
    path = tmp_path / "written.py"
    sg.save(function, path, args=[each.clone() for each in CALLS[function][example]])
    assert "Control flow: Python's own" in path.read_text()
    written = getattr(python_module(path), function.__name__)
    for call in CALLS[function]:
        want = function(*(each.clone() for each in call))
        got = written(*(each.clone() for each in call))
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        kinds = [[type(each) for each in (value if isinstance(value, tuple) else (value,))] for value in (got, want)]
        assert kinds[0] == kinds[1]


# ---- the trial
def test_paths_that_the_example_does_not_take_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "mixes_kinds", lambda graph: False)
    sg.save(int_or_float, tmp_path / "written.py", args=(-X,))
    text = " ".join((tmp_path / "written.py").read_text().split())
    assert "torch's operators give something else (the outcome[0][1] is a float, not a int" in text
    with pytest.raises(ExportError, match="arguments are negated"):
        sg.save(int_or_float, tmp_path / "other.py", args=(-X,), control_flow="torch")


def doubled(x: Tensor) -> Tensor:
    while x.sum() > -1:
        x = x * 2
    return x


def joined(x: Tensor) -> Tensor:
    while x.sum() > -1:
        x = torch.cat([x, x])
    return x


@pytest.mark.parametrize("function", [doubled, joined])
def test_values_on_which_a_loop_does_not_end_are_left_out(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "written.py", args=(-X,))
    torch.testing.assert_close(getattr(python_module(tmp_path / "written.py"), function.__name__)(-X * 3), -X * 3)


def test_what_torchs_operators_do_not_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "try_out", lambda *args: Wrong("it raises RuntimeError: no", raised=True))
    with pytest.raises(ExportError, match="cannot express this: it raises RuntimeError: no") as caught:
        sg.save(doubled, tmp_path / "written.py", args=(-X,), control_flow="torch")
    assert caught.value.reason.code == "SG402"
    assert list(tmp_path.iterdir()) == []


def first_or_sum(x: Tensor) -> Tensor:
    return x[0] if x.numel() else x.sum()


def test_a_branch_on_a_size_takes_one_arm(tmp_path: Path) -> None:
    """`torch.cond` looks at both with the sizes of the call, and `x[0]` of nothing is an error."""
    path, spec = tmp_path / "first.py", [sg.InputSpec([None])]
    sg.save(first_or_sum, path, args=(torch.ones(4),), input_spec=spec)
    loaded = python_module(path).first_or_sum
    for x in (torch.ones(0), torch.arange(3.0), torch.ones(1)):
        assert torch.equal(loaded(x), first_or_sum(x))
    with pytest.raises(ExportError, match="a branch depends on a size"):
        sg.save(first_or_sum, path, args=(torch.ones(4),), input_spec=spec, control_flow="torch")
