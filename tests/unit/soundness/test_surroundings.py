"""Changes of imported modules, of the environment, of what libraries hold, and of the interpreter's settings."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import stillgraph as sg
import tests.unit.soundness.userpackage.first
from tests.unit.soundness import usermodule, userpackage
from tests.unit.soundness import usermodule as renamed
from tests.unit.soundness.following import Box, X, deleting, follows, nothing, setting, storing


@pytest.fixture(autouse=True)
def _modules_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("K", "helper", "Settings"):
        monkeypatch.setattr(usermodule, name, getattr(usermodule, name))
    monkeypatch.setattr(usermodule, "ITEMS", [1, 2])
    monkeypatch.setattr(usermodule, "COMPUTED", {"lazy": 4})
    monkeypatch.setattr(usermodule.Settings, "rate", 1)
    monkeypatch.setattr(userpackage.first, "rate", 3)
    monkeypatch.setattr(userpackage, "first", userpackage.first)
    monkeypatch.delattr(usermodule, "APPEARS", raising=False)
    monkeypatch.setenv("STILLGRAPH_TEST", "2")
    monkeypatch.delenv("STILLGRAPH_TEST_ABSENT", raising=False)


# ---- imported modules
def imported_inside(x: Tensor) -> Tensor:
    import tests.unit.soundness.usermodule as inner

    return x * inner.K


def name_imported_inside(x: Tensor) -> Tensor:
    from tests.unit.soundness.usermodule import K

    return x * K


@pytest.mark.parametrize(
    "function",
    [lambda x: x * usermodule.K, imported_inside, name_imported_inside],
    ids=["imported outside", "imported inside", "name imported inside"],
)
def test_a_number_of_a_module(function: Callable[[Tensor], Tensor]) -> None:
    follows(function, setting(usermodule, K=5.0), setting(usermodule, K=torch.ones(3) * 2))


def test_a_list_of_a_module() -> None:
    items = renamed.ITEMS
    follows(
        lambda x: x * renamed.ITEMS[0] * len(renamed.ITEMS),
        partial(items.append, 5),
        storing(items, 0, 5),
        setting(usermodule, ITEMS=[7]),
    )


def test_a_function_of_a_module() -> None:
    follows(lambda x: usermodule.helper(x), setting(usermodule, K=7.0), setting(usermodule, helper=lambda x: x - 1))


def test_a_class_of_a_module() -> None:
    class Other:
        rate = 9

    follows(
        lambda x: x * usermodule.Settings.rate,
        setting(usermodule.Settings, rate=7),
        setting(usermodule, Settings=Other),
    )


def test_a_submodule() -> None:
    follows(
        lambda x: x * tests.unit.soundness.userpackage.first.rate,
        setting(userpackage.first, rate=7),
        setting(userpackage, first=Box(rate=9)),
    )


def test_a_name_that_a_module_lacks() -> None:
    follows(
        lambda x: x * 2 if hasattr(usermodule, "APPEARS") else x,
        setting(usermodule, APPEARS=1),
        deleting(usermodule, "APPEARS"),
    )


def test_what_the_getattr_of_a_module_gives() -> None:
    follows(
        lambda x: x * usermodule.lazy,
        storing(usermodule.COMPUTED, "lazy", 7),
    )


def test_a_submodule_that_is_imported_late() -> None:
    def function(x: Tensor) -> Tensor:
        from tests.unit.soundness.userpackage import second

        return x * second.rate

    def change() -> None:
        from tests.unit.soundness.userpackage import second

        second.rate = 11

    follows(function, change, change)


def test_a_module_that_is_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    other: Any = ModuleType(usermodule.__name__)
    other.K = 9.0
    changes = (
        partial(monkeypatch.setitem, sys.modules, usermodule.__name__, other),
        partial(monkeypatch.setattr, tests.unit.soundness, "usermodule", other),
    )
    follows(imported_inside, *changes)


# ---- the environment
def test_the_environment() -> None:
    follows(lambda x: x * int(os.environ["STILLGRAPH_TEST"]), partial(os.environ.update, STILLGRAPH_TEST="5"))


def test_what_the_environment_lacks() -> None:
    follows(
        lambda x: x * 2 if os.environ.get("STILLGRAPH_TEST_ABSENT") else x,
        partial(os.environ.update, STILLGRAPH_TEST_ABSENT="5"),
    )


def test_getenv() -> None:
    follows(
        lambda x: x * int(os.getenv("STILLGRAPH_TEST", "1")),
        partial(os.environ.update, STILLGRAPH_TEST="5"),
        partial(os.environ.pop, "STILLGRAPH_TEST"),
    )


def test_the_environment_through_a_helper_of_another_module() -> None:
    follows(
        lambda x: x * usermodule.from_environment("STILLGRAPH_TEST", 1.0),
        partial(os.environ.update, STILLGRAPH_TEST="5"),
        partial(os.environ.pop, "STILLGRAPH_TEST"),
    )


def test_other_variables_of_the_environment_make_no_program() -> None:
    static = sg.to_static(lambda x: x * int(os.environ["STILLGRAPH_TEST"]), backend="eager")
    static(X)
    os.environ["STILLGRAPH_TEST_ABSENT"] = "1"
    static(X)
    assert static.cache_info().programs == 1


def all_names(x: Tensor) -> Tensor:
    return x * sum(name.startswith("STILLGRAPH_TEST") for name in os.environ)


def is_there(x: Tensor) -> Tensor:
    return x * ("STILLGRAPH_TEST_ABSENT" in os.environ)


def copied(x: Tensor) -> Tensor:
    return x * int(dict(os.environ).get("STILLGRAPH_TEST_ABSENT", 1))


def as_bytes(x: Tensor) -> Tensor:
    return x * int(os.environb.get(b"STILLGRAPH_TEST_ABSENT", b"1"))


@pytest.mark.parametrize("function", [all_names, is_there, copied, as_bytes])
def test_ways_to_read_the_environment(function: Callable[[Tensor], Tensor]) -> None:
    follows(
        function,
        partial(os.environ.update, STILLGRAPH_TEST_ABSENT="5"),
        partial(os.environ.pop, "STILLGRAPH_TEST_ABSENT"),
    )


def sets(x: Tensor) -> Tensor:
    os.environ["STILLGRAPH_TEST_ABSENT"] = "5"
    return x * int(os.environ["STILLGRAPH_TEST_ABSENT"])


def sets_default(x: Tensor) -> Tensor:
    os.environ.setdefault("STILLGRAPH_TEST_ABSENT", "5")
    return x


@pytest.mark.parametrize("function", [sets, sets_default])
def test_a_variable_of_the_environment_that_is_set(function: Callable[[Tensor], Tensor]) -> None:
    static = sg.to_static(function, backend="eager")
    for before in (None, "5", None, "7"):
        after = []
        for call in (function, static):
            os.environ.pop("STILLGRAPH_TEST_ABSENT", None)
            if before is not None:
                os.environ["STILLGRAPH_TEST_ABSENT"] = before
            result = call(X)
            after.append((os.environ["STILLGRAPH_TEST_ABSENT"], result.tolist()))
        assert after[0] == after[1]


def test_a_variable_of_the_environment_that_counts_is_refused() -> None:
    def counts(x: Tensor) -> Tensor:
        os.environ["STILLGRAPH_TEST"] = str(int(os.environ["STILLGRAPH_TEST"]) + 1)
        return x

    with pytest.raises(sg.CaptureError, match="STILLGRAPH_TEST is read and then changed"):
        sg.to_static(counts, backend="eager")(X)
    assert os.environ["STILLGRAPH_TEST"] == "2"


# ---- what is patched in libraries
def relu(x: Tensor) -> Tensor:
    return torch.relu(x)


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x)


def square_root(x: Tensor) -> Tensor:
    return x * math.sqrt(4.0)


@pytest.mark.parametrize(
    ("function", "module", "name", "other"),
    [
        (relu, torch, "relu", lambda x: x * 3),
        (gelu, F, "gelu", lambda x: x * 3),
        (square_root, math, "sqrt", lambda x: 9.0),
    ],
    ids=["torch", "torch.nn.functional", "math"],
)
def test_a_function_of_a_library(
    monkeypatch: pytest.MonkeyPatch, function: Callable[[Tensor], Tensor], module: ModuleType, name: str, other: Any
) -> None:
    follows(function, partial(monkeypatch.setattr, module, name, other), monkeypatch.undo, args=(-X,))


LIBRARY = """
CONFIG = {"k": 2}

class Scaler:
    def __init__(self):
        self.rate = 1

    def run(self, x):
        return x * self.rate * CONFIG["k"]

SCALER = Scaler()

def run(x):
    return SCALER.run(x)
"""


def test_what_an_installed_library_holds(tmp_path: Path) -> None:
    path = tmp_path / "site-packages" / "library_of_stillgraph_test.py"
    path.parent.mkdir()
    path.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    library: Any = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = library
    spec.loader.exec_module(library)
    follows(
        lambda x: library.run(x),
        partial(library.CONFIG.update, k=5),
        setting(library.SCALER, rate=7),
        setting(library.Scaler, run=lambda self, x: x - 1),
    )


# ---- the interpreter
def test_the_recursion_limit() -> None:
    follows(lambda x: x * sys.getrecursionlimit(), lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1))


def test_a_clock() -> None:
    follows(lambda x: x * 0 + (1 if time.perf_counter() > 0 else 0), nothing, seen=False)
