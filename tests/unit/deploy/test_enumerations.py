"""Files of programs that choose, return, compare, print and keep members of enumerations."""

from __future__ import annotations

import enum
import http
import logging
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.deploy.python.comparison import difference
from tests.cases.compare import assert_same
from tests.unit.deploy.saving import opened


class Status(enum.Enum):
    EXACT = 1
    CONVERGED = "two"
    FAILED = (1, 2)
    DONE = 1  # noqa: PIE796  # a second name


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Name(str, enum.Enum):  # noqa: UP042  # shown otherwise than a `StrEnum`
    A = "a"
    B = "b"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Kept(enum.IntFlag, boundary=enum.KEEP):
    READ = 1
    WRITE = 2
    BOTH = 3


class Told(enum.Enum):
    A = 1
    B = 2

    def __str__(self) -> str:
        return f"told {self.name}"


class Inner(enum.Enum):
    Z = 1


class Outer(enum.Enum):
    A = Inner.Z
    B = torch.float64


INPUTS = [torch.tensor(values) for values in ([1.0, 2.0], [-1.0, -2.0], [9.0, 3.0], [0.0, 0.5])]


def returned(x: Tensor) -> Any:
    status = Status.EXACT if x.sum() > 5 else Status.CONVERGED if x.sum() > 0 else Status.FAILED
    maybe = Status.DONE if x.sum() > 0 else None
    return x * 2, status, maybe, "exact" if x.sum() > 0 else Status.EXACT


def compared(x: Tensor) -> Any:
    status, n = Status.EXACT, 0
    while n < 5 and status is Status.EXACT:
        x, n = x + 1, n + 1
        if x.sum() > 9:
            status = Status.CONVERGED
    match status:
        case Status.EXACT:
            x = x * 2
    return x, n, status, status != Status.CONVERGED, status in {Status.EXACT, Status.FAILED}


def as_keys(x: Tensor) -> Any:
    status = Status.EXACT if x.sum() > 0 else Status.CONVERGED
    counts = {Status.EXACT: 0, Status.CONVERGED: 0}
    for v in x:
        counts[Status.EXACT if v > 0 else Status.CONVERGED] += 1
    return {Status.EXACT: x, Status.CONVERGED: x + 1}[status], counts, {Name.A: x, torch.float32: x, None: 1}


def of_kinds(x: Tensor) -> Any:
    level = Level.HIGH if x.sum() > 0 else Level.LOW
    name = Name.A if x.sum() > 0 else Name.B
    return level.name, level.value, level + 1, level, x * level, name, name.upper(), name == "a"


def of_flags(x: Tensor) -> Any:
    access = Access.READ if x.sum() > 0 else Access.READ | Access.WRITE
    kept = Kept(9) if x.sum() > 0 else Kept.BOTH
    return access, access & Access.WRITE, ~access, Access.READ in access, kept, kept | 4


def of_members(x: Tensor) -> Any:
    outer = Outer.A if x.sum() > 0 else Outer.B
    code = http.HTTPStatus.OK if x.sum() > 0 else http.HTTPStatus.NOT_FOUND
    return outer, code, code.phrase, list(Status), Status["FAILED"], Level(int(x.sum().clamp(1, 2)))


def in_lists(x: Tensor) -> Any:
    found = []
    while x.sum() < 5:
        x = x + 2
        found.append(Status.EXACT if x.sum() > 0 else Status.CONVERGED)
    return found


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize(
    "function", [returned, compared, as_keys, of_kinds, of_flags, of_members, in_lists], ids=lambda f: f.__name__
)
def test_files_give_the_members(tmp_path: Path, function: Callable[..., Any], suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    sg.save(function, path, args=(INPUTS[0],))
    with opened(path, function) as loaded:
        for x in INPUTS:
            expected, actual = function(x), loaded(x)
            assert repr(actual) == repr(expected)
            assert difference(expected, actual) is None
            if suffix == ".pt2":
                assert_same(expected, actual)


@pytest.mark.slow
@pytest.mark.parametrize("function", [returned, of_kinds, of_flags], ids=lambda f: f.__name__)
def test_onnx_gives_the_members(tmp_path: Path, function: Callable[..., Any]) -> None:
    sg.save(function, tmp_path / "f.onnx", args=(INPUTS[0],))
    loaded = sg.load(tmp_path / "f.onnx")
    for x in INPUTS:
        assert_same(function(x), loaded(x))


def printed(x: Tensor) -> Tensor:
    status, told = (Status.EXACT, Told.A) if x.sum() > 0 else (Status.CONVERGED, Told.B)
    print("status", status, [status], told, [told])
    print(f"{status} {status!r} {status.name} {status.value} {told} {told!r}")
    logging.getLogger("of the file").warning("now %s", told)
    return x


def test_python_source_prints_members_as_their_classes_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    sg.save(printed, tmp_path / "f.py", args=(INPUTS[0],))
    with opened(tmp_path / "f.py", printed) as loaded:
        for x in INPUTS:
            capsys.readouterr(), caplog.clear()
            printed(x)
            expected = capsys.readouterr().out, caplog.messages[:]
            caplog.clear()
            loaded(x)
            assert (capsys.readouterr().out, caplog.messages) == expected


def test_members_of_a_file_are_equal_to_those_of_the_user(tmp_path: Path) -> None:
    sg.save(returned, tmp_path / "f.py", args=(INPUTS[0],))
    with opened(tmp_path / "f.py", returned) as loaded:
        _, status, _, _ = loaded(INPUTS[2])
    assert status == Status.EXACT
    assert Status.EXACT == status  # noqa: SIM300  # from both sides
    assert status != Status.CONVERGED
    assert {Status.EXACT: 1}[status] == 1


def of_argument(x: Tensor, status: Status, level: Level = Level.LOW) -> Any:
    return status, level, status if x.sum() > 0 else Status.FAILED


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_a_member_that_is_passed_comes_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    sg.save(of_argument, path, args=(INPUTS[0], Status.EXACT))
    with opened(path, of_argument) as loaded:
        for x in INPUTS:
            assert difference(of_argument(x, Status.EXACT), loaded(x, Status.EXACT)) is None
            assert loaded(x, Status.EXACT)[0] is Status.EXACT
        with pytest.raises(ValueError, match="status"):
            loaded(INPUTS[0], Status.FAILED)


class Failed(Exception):
    pass


def raising(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise Failed(Status.FAILED)
    return x


def test_python_source_raises_with_members(tmp_path: Path) -> None:
    sg.save(raising, tmp_path / "f.py", args=(INPUTS[0],))
    with opened(tmp_path / "f.py", raising) as loaded, pytest.raises(Exception, match=r"^Status.FAILED$") as raised:
        loaded(INPUTS[1])
    assert type(raised.value).__name__ == "Failed"


class Switching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = Status.EXACT

    def forward(self, x: Tensor) -> Any:
        self.last = Status.CONVERGED if x.sum() > 0 else Status.FAILED
        return x * 2


class Asked(Switching):
    def forward(self, x: Tensor) -> Any:
        before = self.last
        if x.sum() > 5:
            self.last = Status.FAILED
        return x * 2, before


def test_python_source_keeps_members_in_attributes(tmp_path: Path) -> None:
    model, asked = Switching(), Asked()
    sg.save(model, tmp_path / "f.py", args=(INPUTS[0],))
    with opened(tmp_path / "f.py", model) as loaded:
        for x in INPUTS:
            model(x), loaded(x)
            assert loaded.last == model.last
    sg.save(asked, tmp_path / "asked.py", args=(INPUTS[0],))
    with opened(tmp_path / "asked.py", asked) as loaded:
        assert loaded(INPUTS[1])[1] == Status.EXACT
        loaded(INPUTS[2])
        with pytest.raises(ValueError, match=r"self\.last is 'FAILED', the program was made for 'EXACT'"):
            loaded(INPUTS[0])


class Opaque(enum.Enum):
    A = object()
    B = object()  # noqa: PIE796  # another one


class Numbered(int, enum.Enum):
    A = 1
    B = 2

    def __new__(cls, number: int) -> Any:
        member = int.__new__(cls, number * 10)
        member._value_ = number
        return member


class Odd(enum.IntFlag):
    READ = 1

    def __rand__(self, other: Any) -> Any:
        return "odd"


def opaque(x: Tensor) -> Any:
    return Opaque.A if x.sum() > 0 else Opaque.B


def numbered(x: Tensor) -> Any:
    return Numbered.A if x.sum() > 0 else Numbered.B


def odd(x: Tensor) -> Any:
    return int(x.sum()) & Odd.READ


def local(x: Tensor) -> Any:
    class Local(enum.Enum):
        A = 1

    return Local.A if x.sum() > 0 else 0


@pytest.mark.parametrize(
    ("function", "suffix", "text"),
    [
        (opaque, ".py", "cannot hold object"),
        (numbered, ".py", "cannot make the members of 'Numbered'"),
        (odd, ".py", "'Odd' has operators of its own"),
        (local, ".pt2", "which a file cannot hold"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_refused_is_refused_with_a_line(
    tmp_path: Path, function: Callable[..., Any], suffix: str, text: str
) -> None:
    with pytest.raises(sg.ExportError, match=text) as raised:
        sg.save(function, tmp_path / f"f{suffix}", args=(INPUTS[0],))
    assert "test_enumerations.py" in str(raised.value)


# ---- dicts and sets by numbers of the run
def tables(x: Tensor) -> Any:
    table: dict[Any, Any] = {5: 0}
    ordered: OrderedDict[Any, Any] = OrderedDict()
    counted: defaultdict[Any, int] = defaultdict(int)
    for i, v in enumerate(x):
        table[int(v)] = table.get(int(v), 0) + 1
        ordered[float(v), i] = v
        counted[int(v)] += 1
    return table, ordered, counted, {int(v) for v in x}


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_dicts_and_sets_by_numbers_of_the_run_are_results(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    sg.save(tables, path, args=(INPUTS[0],))
    with opened(path, tables) as loaded:
        for x in (*INPUTS, torch.tensor([5.0, 5.0])):
            assert_same(tables(x), loaded(x))


def counter(x: Tensor) -> Any:
    counts: Counter[int] = Counter()
    for v in x:
        counts[int(v)] += 1
    return counts


def test_a_counter_by_numbers_of_the_run_is_a_result(tmp_path: Path) -> None:
    sg.save(counter, tmp_path / "f.py", args=(INPUTS[0],))
    with opened(tmp_path / "f.py", counter) as loaded:
        for x in INPUTS:
            assert_same(counter(x), loaded(x))
