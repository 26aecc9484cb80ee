"""Files of functions with default values: of parameters, and of dicts that make what they lack."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.deploy.saving import opened

X = torch.tensor([1.0, 2.0])


class Mode(enum.Enum):
    TWICE = 2
    THRICE = 3


class Flags(enum.IntFlag):
    A = 1
    B = 2


def by_member(x: Tensor, mode: Mode = Mode.TWICE, *, flags: Flags = Flags.A | Flags.B) -> Any:
    return x * (2 if mode is Mode.TWICE else 3), mode.name, flags == 3


def by_dtype(x: Tensor, dtype: torch.dtype = torch.float64, device: Any = torch.device("cpu")) -> Tensor:  # noqa: B008
    return x.to(device, dtype)


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize("function", [by_member, by_dtype])
def test_defaults_that_the_example_leaves_out(function: Any, suffix: str, tmp_path: Path) -> None:
    sg.save(function, tmp_path / f"program{suffix}", args=(X,))
    with opened(tmp_path / f"program{suffix}", function) as loaded:
        assert_same(loaded(X), function(X))


def test_defaults_stand_in_the_signature(tmp_path: Path) -> None:
    sg.save(by_member, tmp_path / "program.py", args=(X,))
    assert "def by_member(x, mode=Mode.TWICE, *, flags=Flags(3)):" in (tmp_path / "program.py").read_text()
    with opened(tmp_path / "program.py", by_member) as loaded:
        assert_same(loaded(X, Mode.TWICE, flags=Flags.A | Flags.B), by_member(X))
        for args, flags in (((X, Mode.THRICE), Flags(3)), ((X, None), Flags(3)), ((X,), Flags.A)):
            with pytest.raises(ValueError, match="the program was made for"):
                loaded(*args, flags=flags)


def made(x: Tensor) -> Any:
    counts: Any = defaultdict(int)
    for v in x:
        counts[int(v)] += 1
    lists: Any = defaultdict(list)
    lists["a"].append(x)
    kinds = [defaultdict(kind, a=x) for kind in (float, dict, set, OrderedDict, Counter, None)]
    return counts, lists, kinds


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_dicts_that_make_what_they_lack(suffix: str, tmp_path: Path) -> None:
    sg.save(made, tmp_path / f"program{suffix}", args=(X,))
    with opened(tmp_path / f"program{suffix}", made) as loaded:
        for x in (X, torch.tensor([3.0, 3.0])):
            (counts, lists, kinds), (expected, others, wanted) = loaded(x), made(x)
            assert counts == expected
            assert counts["missing"] == 0
            assert lists["missing"] == []
            assert [each.default_factory for each in kinds] == [each.default_factory for each in wanted]
            torch.testing.assert_close(lists["a"], others["a"])


def with_own(x: Tensor) -> Any:
    return defaultdict(lambda: 3, a=x)


def with_class(x: Tensor) -> Any:
    return defaultdict(Mode, a=x)


@pytest.mark.parametrize("function", [with_own, with_class])
def test_what_a_file_cannot_make_is_refused(function: Any, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="a defaultdict whose default_factory is"):
        sg.save(function, tmp_path / "program.pt2", args=(X,))
