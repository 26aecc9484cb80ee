"""Files of functions with default values: of parameters, and of dicts that make what they lack."""

from __future__ import annotations

import enum
import sys
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


class Text(str, enum.Enum):  # noqa: UP042  # shown otherwise than a `StrEnum`
    A = "a"
    B = "b"


def by_text(x: Tensor, text: Text = Text.A) -> Any:
    return x * (2 if text is Text.A else 3), text


def by_pair(x: Tensor, pair: tuple[Any, ...] = (0.0, True, Mode.TWICE, (None, b"a"))) -> Any:
    return x + pair[0] + int(pair[1]), pair[2].name, pair[3][1]


SAME: list[tuple[Any, Any]] = [
    (by_member, Mode.TWICE),
    (by_dtype, torch.float64),
    (by_text, Text.A),
    (by_pair, (0.0, True, Mode.TWICE, (None, b"a"))),
]
OTHER: list[tuple[Any, Any]] = [
    (by_member, Mode.THRICE),
    (by_member, 2),
    (by_dtype, torch.float32),
    (by_text, Text.B),
    (by_text, "a"),
    (by_pair, (-0.0, True, Mode.TWICE, (None, b"a"))),
    (by_pair, (0.0, 1, Mode.TWICE, (None, b"a"))),
    (by_pair, [0.0, True, Mode.TWICE, (None, b"a")]),
]


@pytest.mark.parametrize(("function", "value"), SAME, ids=lambda value: getattr(value, "__name__", ""))
def test_a_default_may_be_passed_or_left_out(function: Any, value: Any, tmp_path: Path) -> None:
    for args, others in (((X,), (X, value)), ((X, value), (X,))):
        sg.save(function, tmp_path / "program.pt2", args=args)
        loaded = sg.load(tmp_path / "program.pt2")
        assert_same(function(*others), loaded(*others))
        assert_same(function(*args), loaded(*args))


@pytest.mark.parametrize(("function", "value"), OTHER, ids=lambda value: getattr(value, "__name__", ""))
def test_another_value_than_the_default_is_told(function: Any, value: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    with pytest.raises(TypeError, match=r"was saved without the argument \w+: it has its default value"):
        sg.load(tmp_path / "program.pt2")(X, value)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (by_member, Mode.THRICE, "mode = <Mode.THRICE: 3>, not <Mode.TWICE: 2>"),
        (by_dtype, torch.float32, "dtype = torch.float32, not torch.float64"),
        (by_text, Text.B, "text = <Text.B: 'b'>, not <Text.A: 'a'>"),
    ],
)
def test_a_default_that_the_file_is_not_for_is_told(function: Any, value: Any, text: str, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X, value))
    loaded = sg.load(tmp_path / "program.pt2")
    assert_same(function(X, value), loaded(X, value))
    with pytest.raises(ValueError, match=f"was saved for {text}"):
        loaded(X)


def test_a_default_whose_class_is_not_loaded_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sg.save(by_member, tmp_path / "left_out.pt2", args=(X,))
    sg.save(by_member, tmp_path / "passed.pt2", args=(X, Mode.TWICE))
    expected = by_member(X)
    monkeypatch.delitem(sys.modules, __name__)
    assert_same(expected, sg.load(tmp_path / "left_out.pt2")(X))
    loaded = sg.load(tmp_path / "passed.pt2")
    with pytest.raises(TypeError, match="the argument mode is missing; it was saved with one"):
        loaded(X)
    assert_same(expected, loaded(X, Mode.TWICE))
    monkeypatch.undo()
    assert_same(expected, loaded(X))
