"""Files of programs that give ``None``, or a number of another type, on one path."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import stillgraph as sg
from tests.sampling import few

P, N, SMALL = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]), torch.tensor([-0.25, 0.0])


def number(x: Tensor) -> Any:
    return 1 if x.sum() > 0 else 2.5


def truth_or_number(x: Tensor) -> Any:
    return {"n": True if x.sum() > 0 else 3, "t": (x, False if x.sum() > 1 else 2.5)}


def computed_with(x: Tensor) -> Any:
    n = 1 if x.sum() > 0 else 2.5
    return max(n, 2), n**2, round(n, 1), n / 2, n % 2, -n, n * n - 1, n + True, int(n), n > 1, x * n


def carried(x: Tensor) -> Any:
    n = 1 if x.sum() > 0 else 2.5
    if x.sum() > 1:
        m = n + 1
        x = x + n
    else:
        m = n * 2.0
    while x.sum() > 0:
        x = x - abs(n)
        m = m - n
    return m, x


def in_nested_loops(x: Tensor) -> Any:
    a, b = 0, True
    while x.sum() > -1:
        y = x
        while y.sum() > 0:
            a = a + b
            y = y - 1
            if y.sum() < 1:
                b = 0.5
        x = x - 1
    return {"a": a, "b": b}


def picked(x: Tensor) -> Any:
    return [1, 2.5][int(x.argmax())]


def caught(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        n: Any = 2.5
    except ValueError:
        n = 1
    return n


def nothing(x: Tensor) -> Any:
    return None if x.sum() > 0 else x


def early(x: Tensor) -> Any:
    if x.sum() > 0:
        return None
    y = x * 2
    return y, y + 1


def boxes(x: Tensor) -> Any:
    y = x[x > 0]
    return {"boxes": y if y.numel() > 0 else None, "both": (y, y * 2) if y.numel() > 1 else None, "k": x}


def last(x: Tensor) -> Any:
    found = None
    while x.sum() > 0:
        found = x
        x = x - 1
    return found


def number_or_nothing(x: Tensor) -> Any:
    return None if x.sum() > 0 else (1 if x.sum() > -1 else 2.5)


def in_a_tree(x: Tensor) -> Any:
    out: dict[str, Any] = {"a": None, "b": [1, x], "c": None}
    if x.sum() > 0:
        out["a"] = (x, {"k": 3 if x.sum() > 5 else 2.5})
    while x.sum() > 1:
        out["c"] = x.sum()
        x = x - 1
    return out, None


def one_list_twice(x: Tensor) -> Any:
    out = [x]
    return {"a": (out, x * 2) if x.sum() > 0 else None, "b": out, "c": out}


FUNCTIONS = [
    *(number, truth_or_number, computed_with, carried, in_nested_loops, picked, caught),
    *(nothing, early, boxes, last, number_or_nothing, in_a_tree, one_list_twice),
]
EXAMPLES = {"positive": P, "negative": N}


def assert_same(given: Any, wanted: Any) -> None:
    """The same in value and Python type, all the way down."""
    assert type(given) is type(wanted), (given, wanted)
    if isinstance(wanted, Tensor):
        torch.testing.assert_close(given, wanted, rtol=0, atol=0)
    elif isinstance(wanted, dict):
        assert list(given) == list(wanted)
        assert_same([*given.values()], [*wanted.values()])
    elif isinstance(wanted, (list, tuple)):
        assert len(given) == len(wanted)
        for one, other in zip(given, wanted):
            assert_same(one, other)
    else:
        assert given == wanted


@pytest.mark.parametrize(
    ("function", "suffix", "example"), few(itertools.product(FUNCTIONS, ("pt2", "onnx"), EXAMPLES), 7)
)
def test_the_type_on_every_path(function: Any, suffix: str, example: str, tmp_path: Path) -> None:
    sg.save(function, tmp_path / f"f.{suffix}", args=(EXAMPLES[example],))
    loaded = sg.load(tmp_path / f"f.{suffix}")
    assert loaded.notes == ()
    for x in (P, N, SMALL):
        assert_same(loaded(x), function(x))


def test_one_object_stays_one(tmp_path: Path) -> None:
    sg.save(one_list_twice, tmp_path / "f.pt2", args=(P,))
    for x in (P, N):
        given = sg.load(tmp_path / "f.pt2")(x)
        assert given["b"] is given["c"]


def test_what_torch_alone_gets(tmp_path: Path) -> None:
    sg.save(number_or_nothing, tmp_path / "f.pt2", args=(P,))
    alone = torch.export.load(tmp_path / "f.pt2").module()
    value, kind, is_none = alone(P)
    assert is_none.item() is True
    value, kind, is_none = alone(SMALL)
    assert (value.item(), kind.item(), is_none.item()) == (1.0, 1, False)
    value, kind, is_none = alone(N)
    assert (value.item(), kind.item(), is_none.item()) == (2.5, 2, False)


def test_the_outputs_of_an_onnx_file_are_named(tmp_path: Path) -> None:
    sg.save(in_a_tree, tmp_path / "f.onnx", args=(P,))
    session = onnxruntime.InferenceSession(tmp_path / "f.onnx")
    names = [given.name for given in session.get_outputs()]
    assert names == ["a_0", "a_1_k", "a_1_k_kind", "a_is_none", "b_0", "b_1", "c", "c_is_none"]


def accumulated(x: Tensor, n: Tensor) -> Tensor | None:
    total = None
    for i in range(int(n)):
        total = x if total is None else total + x * i
    return total


def until_it_returns(x: Tensor, n: Tensor) -> Any:
    rounds = 0
    while True:
        if x.sum() > n:
            return x, rounds
        x, rounds = x + 1, rounds + 1


@pytest.mark.parametrize("function", [accumulated, until_it_returns])
def test_what_a_loop_sets_is_one_output(function: Any, tmp_path: Path) -> None:
    """Nobody expects to be told that an accumulator is there, or that an endless loop has returned."""
    sg.save(function, tmp_path / "f.pt2", args=(P, torch.tensor(3)))
    loaded, alone = sg.load(tmp_path / "f.pt2"), torch.export.load(tmp_path / "f.pt2").module()
    for n in (1, 3, 20):
        assert_same(loaded(P, torch.tensor(n)), function(P, torch.tensor(n)))
        given, expected = alone(P, torch.tensor(n)), function(P, torch.tensor(n))
        assert len(tree_leaves(given)) == len(tree_leaves(expected))


def test_an_accumulator_of_nothing_is_an_error(tmp_path: Path) -> None:
    sg.save(accumulated, tmp_path / "f.pt2", args=(P, torch.tensor(3)))
    assert accumulated(P, torch.tensor(0)) is None
    with pytest.raises(AssertionError, match="the result is None or unbound"):
        sg.load(tmp_path / "f.pt2")(P, torch.tensor(0))


def test_whole_numbers_that_floats_do_not_tell_apart(tmp_path: Path) -> None:
    def large(x: Tensor) -> Any:
        return 2**53 + 1 if x.sum() > 0 else 2.5

    sg.save(large, tmp_path / "f.pt2", args=(N,))
    loaded = sg.load(tmp_path / "f.pt2")
    assert_same(loaded(N), 2.5)
    with pytest.raises(OverflowError, match=r"exact up to 2\*\*53"):
        loaded(P)


# ---- refused
def unknown_power(x: Tensor) -> Any:
    n = 1 if x.sum() > 0 else 2.5
    return n**n


def without_a_value(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x if x.sum() > 1 else None
    return y


@pytest.mark.parametrize(
    ("function", "code", "text"),
    [
        (unknown_power, "SG402", "pow on a number that is of another type on another path"),
        (without_a_value, "SG401", "the result is None on one path, and a variable without a value on another"),
    ],
)
@pytest.mark.parametrize("example", [P, N], ids=["positive", "negative"])
def test_what_is_refused(function: Any, code: str, text: str, example: Tensor, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=text) as caught:
        sg.save(function, tmp_path / "f.pt2", args=(example,))
    assert caught.value.reason.code == code
    assert list(tmp_path.iterdir()) == []


class Keeps(nn.Module):
    """Its attribute is of another type, or ``None``, after one of the paths."""

    def __init__(self, value: Any, reads: bool) -> None:
        super().__init__()
        self.value, self.other, self.reads = value, value, reads

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.value if self.reads else x * 2
        self.value = 1 if x.sum() > 0 else 2.5
        self.other = None if x.sum() > 0 else 3.5
        return y


def test_state_of_another_type_is_refused_where_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=r"a call changes args\[0\].value, which the program was captured for"):
        sg.save(Keeps(1.5, True), tmp_path / "f.pt2", args=(P,))


def test_state_of_another_type_is_a_note_where_it_is_not(tmp_path: Path) -> None:
    sg.save(Keeps(1.5, False), tmp_path / "f.pt2", args=(P,))
    loaded = sg.load(tmp_path / "f.pt2")
    assert len(loaded.notes) == 2
    assert_same([loaded(x) for x in (P, N)], [x * 2 for x in (P, N)])


def test_the_file_says_it_in_json(tmp_path: Path) -> None:
    sg.save(number_or_nothing, tmp_path / "f.pt2", args=(P,))
    extra = {"stillgraph.json": ""}
    torch.export.load(tmp_path / "f.pt2", extra_files=extra)
    (entry,) = json.loads(extra["stillgraph.json"])["entries"]
    assert entry["result"] == {"none": 2, "else": {"number": 0, "kind": 1}}
    assert entry["kinds"] == ["float", "int", "bool"]
