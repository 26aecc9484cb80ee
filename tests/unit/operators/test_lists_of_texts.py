"""Lists of which only the run knows the length, of texts: with values of the run, or of which paths leave one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.importing import loaded
from tests.unit.trace.agreement import agree, outcome

ROWS = [torch.tensor(row) for row in ([-1.0, -2.0, 3.0, 4.0], [1.0, -2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0])]
CALLS = [(row, torch.tensor(n)) for row in ROWS for n in (3, 0, 4, 1)]


def grown(x: Tensor, n: Tensor) -> Any:
    found, begun = [], ["begun"]
    for i in range(int(n)):
        found.append(f"{i}: {x[i].item()}")
        begun.append(f"{i}" if x[i] > 0 else "none")
    print(found, begun[-1])
    return found, begun, len(begun), begun[-1], begun[0], begun[1:], begun[::-1], [*found, "z"]


def in_comprehensions(x: Tensor, n: Tensor) -> Any:
    shown = [f"{v.item():.1f}" for v in x[x > 0]]
    return shown, ",".join(f"{v.item()}" for v in x[x > 1]), ",".join(str(i) for i in range(int(n)))


def used_whole(x: Tensor, n: Tensor) -> Any:
    found = [f"{i % 2}" for i in range(int(n))]
    joined = ",".join(found), ", ".join(["a", *found])
    ordered = sorted(found), sorted(found, reverse=True), max(["-", *found]), min(found, default="q")
    return joined, ordered, found == ["0", "1", "0"], "1" in found, found.count("1"), found != []


def looked_through(x: Tensor, n: Tensor) -> Any:
    found = [f"{i}" for i in range(int(n))]
    total = ""
    for i, text in enumerate(found):
        if text != "1":
            total += f"{i}={text};"
    return total, found.index("2") if "2" in found else -1


def in_tuples_and_dicts(x: Tensor, n: Tensor) -> Any:
    pairs, rows = [], []
    for i in range(int(n)):
        pairs.append((f"k{i}", x[i]))
        rows.append({"name": f"k{i}" if x[i] > 0 else "none", "value": i})
    return pairs, rows


def or_none(x: Tensor, n: Tensor) -> Any:
    found = []
    for i in range(int(n)):
        found.append(f"{i}" if x[i] > 0 else None)
    try:
        return found, ",".join(found)  # type: ignore[arg-type]  # it fails where one is None
    except TypeError as error:
        return found, str(error)


def of_arms(x: Tensor, n: Tensor) -> Any:
    log = []
    if n > 2:
        log.append(f"{int(n)}")
    log.append("end")
    return log, len(log)


def with_a_handler(x: Tensor, n: Tensor) -> Any:
    log: list[str] = []
    step = 0
    while step < n:
        step += 1
        try:
            log.append(f"{step}")
            if (x + step).sum() > 5:
                raise ValueError("too much")
        except ValueError as error:
            log.append(str(error))
    return log


def names(x: Tensor, n: Tensor) -> list[str]:
    made = []
    for i in range(int(n)):
        made.append("a" if x[i] > 0 else "b")
    return made


def of_known_texts(x: Tensor, n: Tensor) -> Any:
    made = names(x, n)
    ordered = sorted(made), max(["-", *made]), min(made, default="q"), sorted(["q", *made], reverse=True)
    return made, ",".join(made), ordered, made == ["b", "b"], made != [], "a" in made


def counted(x: Tensor, n: Tensor) -> Any:
    kinds = Counter(names(x, n))
    return kinds, kinds["a"], kinds["none"]


def known_and_then_others(x: Tensor, n: Tensor) -> Any:
    made = names(x, n)
    for i in range(int(n)):
        made.append(f"{i}")
    made.append("b" if x[0] > 0 else "c")
    return made, sorted(made), ",".join(made), made[-1], made == ["a"]


def nested(x: Tensor, n: Tensor) -> Any:
    made = []
    for i in range(int(n)):
        inner = []
        for k in range(i):
            inner.append(f"{i}{k}")
        made.append(inner)
    return made


def removed(x: Tensor, n: Tensor) -> Any:
    found = [f"{i}" for i in range(int(n))]
    if "1" in found:
        found.remove("1")
    last = found.pop() if found else "none"
    found.insert(0, "first")
    found.reverse()
    return found, last


FUNCTIONS = [
    *(grown, in_comprehensions, used_whole, looked_through, in_tuples_and_dicts, or_none, of_arms, with_a_handler),
    *(of_known_texts, known_and_then_others, nested, removed),
]


@pytest.mark.parametrize("function", [*FUNCTIONS, counted])
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_a_full_graph(function: Any) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for args in CALLS:
        assert repr(outcome(static, args)) == repr(outcome(function, args))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_python_source(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "texts.py", args=CALLS[0])
    written = getattr(loaded(tmp_path / "texts.py"), function.__name__)
    for args in CALLS:
        assert repr(outcome(written, args)) == repr(outcome(function, args))


@pytest.mark.parametrize("name", ["texts.pt2", "texts.onnx"])
@pytest.mark.parametrize("function", [grown, in_comprehensions, of_known_texts, known_and_then_others, nested])
def test_other_files(function: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=r"texts?.* that only the run knows") as caught:
        sg.save(function, tmp_path / name, args=CALLS[0])
    assert caught.value.reason.code == "SG402"


def unread(x: Tensor, n: Tensor) -> Any:
    log = []
    while x.sum() < n:
        x = x + 1
        log.append(f"{x.sum().item()}")
    return x


def test_a_list_that_nobody_reads(tmp_path: Path) -> None:
    sg.save(unread, tmp_path / "unread.pt2", args=CALLS[0])
    assert torch.equal(sg.load(tmp_path / "unread.pt2")(*CALLS[2]), unread(*CALLS[2]))
