"""Code that is not rewritten changes containers of the caller's, or of a package's module."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.importing import installed

PACKAGE = """
    STATE = {"n": 0}
    LOG = []

    def append(values):
        values.append(1)

    def put(values):
        values[0] = 9

    def drawn(values):
        for i in range(2):
            values.append(i)
            yield i

    def key(value):
        LOG.append(value)
        return -value

    def count():
        STATE["n"] += 1
        LOG.append(STATE["n"])
        return STATE["n"]
"""
NO_FILE = """
def append(values): values.append(1)
def called(x, values):
    append(values)
    return x + len(values)
def comprehended(x, values):
    [values.append(each) for each in range(2)]
    return x + len(values)
def inside(x, values):
    def inner(): values.append(1)
    inner()
    return x + len(values)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "writing", PACKAGE, monkeypatch)


class Odd:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __index__(self) -> int:
        self.values.append(1)
        return 1

    def __str__(self) -> str:
        self.values.append(2)
        return "odd"

    def __lt__(self, other: Any) -> bool:
        self.values.append(3)
        return False


def in_a_class_body(x: Any, values: Any) -> Any:
    class Made:
        values.append(1)

    return x + len(values), Made.__name__


def in_a_class_body_on_one_path(x: Any, values: Any) -> Any:
    if x.sum() > 100:

        class Made:
            last = values.pop()

    return x + len(values)


def by_exec(x: Any, values: Any) -> Any:
    exec("values.append(1)")
    return x + len(values)


def by_an_index(x: Any, values: Any) -> Any:
    return [*range(Odd(values))], x + len(values)


def by_a_text(x: Any, values: Any) -> Any:
    return "%s" % Odd(values), x + len(values)  # noqa: UP031  # that is what is tested


def by_sorting(x: Any, values: Any) -> Any:
    return len(sorted([Odd(values), Odd(values)])), x + len(values)


def _agrees(function: Any, full: bool, state: Any = lambda: None, reset: Any = lambda: None) -> str | None:
    """It does what eager does, or is refused and leaves everything as it is; the code of the refusal."""

    def told(called: Any, values: list[int]) -> list[Any]:
        reset()
        return [(repr(called(torch.ones(1) * n, values)), list(values), repr(state())) for n in range(3)]

    expected = told(function, [5, 6])
    static = sg.to_static(function, backend="eager", full_graph=full, **({} if full else {"strict": True}))
    values = [5, 6]
    try:
        found = told(static, values)
    except sg.CaptureError as error:
        refused = error.reason.code
    else:
        assert found == expected
        return None
    assert values == [5, 6]
    return refused


FUNCTIONS = [in_a_class_body, in_a_class_body_on_one_path, by_exec, by_an_index, by_a_text, by_sorting]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_of_the_callers(function: Any, full: bool) -> None:
    assert _agrees(function, full) == ("SG305" if full else None)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", ["called", "comprehended", "inside"])
def test_from_no_file(name: str, full: bool) -> None:
    space: dict[str, Any] = {"__name__": "from_no_file"}
    exec(NO_FILE, space)
    assert _agrees(space[name], full) is None


@pytest.mark.parametrize("full", [True, False])
def test_by_a_package(package: Any, full: bool) -> None:
    def reset() -> None:
        package.STATE["n"] = 0
        package.LOG.clear()

    def state() -> Any:
        return package.STATE, package.LOG

    def appended(x: Any, values: Any) -> Any:
        package.append(values)
        package.put(values)
        return x + len(values) + values[0]

    def generated(x: Any, values: Any) -> Any:
        return x + sum(package.drawn(values)) + len(values)

    def counted(x: Any, values: Any) -> Any:
        return x + package.count()

    def counted_and_read(x: Any, values: Any) -> Any:
        return x + package.count(), len(package.LOG)

    def sorted_by(x: Any, values: Any) -> Any:
        return sorted([3, 1], key=package.key), x + len(package.LOG)

    for function in (appended, generated, counted, counted_and_read, sorted_by):
        assert _agrees(function, full, state, reset) is None


GLOBALS = """
K = 0
def counted(x):
    global K
    K += 1
    return x * K
def removed(x):
    global Z
    Z = 1
    del Z
    return x
"""


@pytest.mark.parametrize("names", [{"__name__": __name__}, {"__name__": "no_module_of_this_name"}, {}])
def test_globals_of_no_module(names: dict[str, str]) -> None:
    space: dict[str, Any] = {**names}
    exec(GLOBALS, space)
    for name in ("counted", "removed"):
        with pytest.raises(sg.CaptureError, match="belongs to no module"):
            sg.to_static(space[name], backend="eager")(torch.ones(1))
    static = sg.to_static(space["counted"], backend="eager", full_graph=False, strict=True)
    assert [static(torch.ones(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    assert space["K"] == 3
    assert "K" not in globals()
    static = sg.to_static(space["removed"], backend="eager", full_graph=False, strict=True)
    assert [static(torch.ones(1)).item() for _ in range(2)] == [1.0, 1.0]
    assert "Z" not in space
