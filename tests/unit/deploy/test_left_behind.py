"""What a call leaves in the user's objects and a file cannot keep: refused where the file would be wrong without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.sampling import crossed

X = torch.ones(3)


class Cache(nn.Module):
    """Other code runs from the second call on."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.last is None else x + self.last
        self.last = x * 2 if x.sum() > 0 else x
        return y


class Lazy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "scale"):
            self.scale = x.sum()
        return x * self.scale


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("memory", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.memory = torch.cat([self.memory, x])
        return self.memory.sum()


class Widening(nn.Module):
    """A number that becomes one of another type."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = 0

    def forward(self, x: Tensor) -> Tensor:
        self.rate = self.rate + 0.5
        return x * self.rate


class Phases(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.phase = "first"

    def forward(self, x: Tensor) -> Tensor:
        if self.phase == "first":
            if x.sum() > 0:
                self.phase = "second"
            return x
        return -x


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = 3

    def forward(self, x: Tensor) -> Tensor:
        del self.first
        return x * 2


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize(
    ("make", "place"),
    [
        (Cache, "args[0].last"),
        (Lazy, "args[0].scale"),
        (Growing, "args[0].memory"),
        (Widening, "args[0].rate"),
        (Phases, "args[0].phase"),
        (Dropping, "args[0].first"),
    ],
)
def test_what_the_next_call_would_find_changed(make: Any, place: str, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="was captured for, and a file cannot keep that") as raised:
        sg.save(make(), tmp_path / f"program{suffix}", args=(X,))
    assert f"a call changes {place}" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


class Holding(nn.Module):
    """Its containers are read, or only written to."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = [X.clone()]
        self.table: dict[str, Any] = {"count": 1}
        self.last: Any = None


class Counts(Holding):
    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        return x * len(self.seen)


class Adds(Holding):
    def forward(self, x: Tensor) -> Tensor:
        y = x + self.seen[-1]
        self.seen.append(x * 2)
        return y


class Iterates(Holding):
    def forward(self, x: Tensor) -> Tensor:
        for each in self.seen:
            x = x + each
        self.seen.append(x)
        return x


class Looks(Holding):
    def forward(self, x: Tensor) -> Tensor:
        y = self.table.get("last")
        self.table["last"] = x
        return x if y is None else x + y


class Tallies(Holding):
    def forward(self, x: Tensor) -> Tensor:
        self.table["count"] += 1
        return x * self.table["count"]


class Asks(Holding):
    def forward(self, x: Tensor) -> Tensor:
        seen = self.seen
        if x.sum() > 0:
            seen.append(x)
        return x + 1 if len(seen) > 2 else x


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize(
    ("make", "place"),
    [
        (Counts, "args[0].seen"),
        (Adds, "args[0].seen"),
        (Iterates, "args[0].seen"),
        (Looks, "args[0].table"),
        (Tallies, "args[0].table"),
        (Asks, "args[0].seen"),
    ],
)
def test_a_container_that_is_read_and_changed(make: Any, place: str, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="was captured for, and a file cannot keep that") as raised:
        sg.save(make(), tmp_path / f"program{suffix}", args=(X,))
    assert f"a call changes {place}, " in str(raised.value)
    assert raised.value.reason.code == "SG402"
    assert list(tmp_path.iterdir()) == []


def extended(xs: list[Tensor]) -> list[Tensor]:
    if xs[0].sum() > 0:
        xs.append(xs[0] * 2)
    return xs


def replaced(xs: list[Tensor]) -> dict[str, Any]:
    xs[0] = xs[0] + 1
    return {"all": xs}


def added(d: dict[str, Tensor]) -> dict[str, Tensor]:
    d["c"] = d["a"] * 2
    return d


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize(("function", "given"), [(extended, [X, X]), (replaced, [X, X]), (added, {"a": X})])
def test_an_argument_that_is_changed_and_returned(function: Any, given: Any, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=r"writes to args\[0\] and returns it"):
        sg.save(function, tmp_path / f"program{suffix}", args=(given,))


# ---- what is a note
class Noting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None
        self.mode = "plain"
        self.all: list[Tensor] = []

    def forward(self, x: Tensor, xs: list[Tensor]) -> Tensor:
        if self.mode == "plain":
            self.mode = "plain"
        self.last = x * 2 if x.sum() > 0 else x
        self.all.append(x)
        xs.append(x)
        return x + 1


def test_what_is_written_and_not_read(tmp_path: Path) -> None:
    sg.save(Noting(), tmp_path / "noting.pt2", args=(X, [X]))
    loaded = sg.load(tmp_path / "noting.pt2")
    for x in (X, -X, X):
        torch.testing.assert_close(loaded(x, [X]), x + 1)
    for place in ("args[0].last", "args[0].all[:]", "args[2][:]"):
        assert any(note.startswith(f"the artefact does not carry out: {place}") for note in loaded.notes)


class Appends(Holding):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.seen.append(x)
        while x.sum() < 10:
            x = x + 1
            self.seen.append(x)
        self.seen += [x]
        self.seen.insert(0, x)
        return x * 2


class Stores(Holding):
    def forward(self, x: Tensor) -> Tensor:
        self.table["last"] = x
        return x * 2


class Begins(Holding):
    """Whatever the last call left, this one writes it before it reads it."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = None
        for row in x:
            if row > 0:
                self.last = row
        return x if self.last is None else x + self.last


class Carries(Holding):
    def forward(self, x: Tensor) -> Tensor:
        self.last = None
        while x.sum() < 10:
            if self.last is not None:
                x = x + self.last
            x = x * 2
            self.last = x
        return x


@pytest.mark.parametrize(("make", "suffix"), crossed([Appends, Stores, Begins, Carries], [".pt2", ".onnx"]))
def test_what_no_call_finds(make: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"program{suffix}"
    sg.save(make(), path, args=(X,))
    loaded, original = sg.load(path), make()
    for x in (X, X * 5, X):
        torch.testing.assert_close(loaded(x), original(x))
    assert len(loaded.notes) == 1


# ---- several entries
class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory = X.clone()
        self.seen: list[Tensor] = [X.clone()]
        self.told: Any = None

    def put(self, x: Tensor) -> Tensor:
        self.memory = torch.cat([x, x])
        self.told = x.sum()
        return x * 2

    def mean(self) -> Tensor:
        return self.memory.mean()

    def other(self, x: Tensor) -> Tensor:
        return x + len(self.seen)


def test_what_another_entry_would_find_changed(tmp_path: Path) -> None:
    shared = Shared()
    with pytest.raises(sg.ExportError, match=r"'put' changes args\[0\].memory, which 'mean' was captured for"):
        sg.save({"put": shared.put, "mean": shared.mean}, tmp_path / "shared.pt2", args={"put": (X,)})


class SharedList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = [X.clone()]

    def put(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        return x * 2

    def size(self, x: Tensor) -> Tensor:
        return x + len(self.seen)


def test_a_list_that_another_entry_would_find_changed(tmp_path: Path) -> None:
    shared = SharedList()
    args = {"put": (X,), "size": (X,)}
    with pytest.raises(sg.ExportError, match=r"'put' changes args\[0\].seen, which 'size' was captured for"):
        sg.save({"put": shared.put, "size": shared.size}, tmp_path / "shared.pt2", args=args)


def test_what_no_entry_reads(tmp_path: Path) -> None:
    shared = Shared()
    args = {"put": (X,), "other": (X,)}
    sg.save({"put": shared.put, "other": shared.other}, tmp_path / "shared.pt2", args=args)
    loaded = sg.load(tmp_path / "shared.pt2")
    torch.testing.assert_close(loaded.put(X), X * 2)
    torch.testing.assert_close(loaded.other(X), X + 1)
    assert len(loaded.put.notes) == 2


def test_objects_of_other_modules_are_other_places(tmp_path: Path) -> None:
    one, other = Shared(), Shared()
    sg.save({"put": one.put, "mean": other.mean}, tmp_path / "apart.pt2", args={"put": (X,)})
    assert sg.load(tmp_path / "apart.pt2").mean() == 1
