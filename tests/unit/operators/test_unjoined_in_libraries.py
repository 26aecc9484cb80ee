"""Values that are one or another by the path, in a library's code: what that asks is told of the one that it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.importing import installed
from tests.unit.trace.agreement import N, P, agree, agree_fresh

LIBRARY = """
    from torch import nn

    class Field(nn.Module):
        factor = 2.0
        count = 0

        def forward(self, x):
            return x * 3

        def __len__(self):
            return 4

        def of_class(self):
            return 5

    class Reversed(nn.Module):
        factor = 3.0
        count = 0

        def __init__(self, base):
            super().__init__()
            self.base = base

        def forward(self, x):
            return -self.base(-x) + 1

        def __len__(self):
            return 7

        def of_class(self):
            return self.factor * 2

    class Around(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base

        def forward(self, x):
            return self.base(x)

    class Solver:
        def __init__(self, f):
            self.f = f

        def step(self, f, x):
            return f(x)

        def run(self, x):
            for each in x:
                x = x + self.step(self.f, each)
            return x

    def called(f, x):
        return f(x)

    def kept(f, x):
        return Solver(Around(f)).run(x)

    def in_turn(f, x):
        while x.sum() < 20:
            x = x.abs() + f(x).abs()
        return x

    def method(f, x):
        return x * f.of_class()

    def attribute(f, x):
        return x * f.factor

    def of_class(f, x):
        return x if isinstance(f, Reversed) else x * 2

    def by_type(f, x):
        return x * len(type(f).__name__), x if f.__class__ is Reversed else x * 2

    def in_an_object(f, x):
        return x if isinstance(Solver(f).f, Reversed) else x * 2

    def in_its_dictionary(f, x):
        return x * (1 + ("base" in vars(f)["_modules"]))

    def asked(f, x):
        return x * len(f), x if hasattr(f, "base") else -x, getattr(f, "nothing", 3)

    def written(f, x):
        f.count = 5
        setattr(f, "other", 6)
        del f.other
        return x * f.count

    def given_back(make, x):
        f = make()
        return x if isinstance(f, Reversed) else f(x)

    def given_to_an_object(make, x):
        solver = Solver(make())
        return x if isinstance(solver.f, Reversed) else x * 2

    def text_or_number(make, x):
        given = make()
        return x if isinstance(given, str) else x * given

    def is_none(make, x):
        given = make()
        return x if given is None else given * 2

    def left(make, x):
        box = {}
        make(box)
        return x if box["left"] is None else x * 2
"""
HANDED = [
    *("called", "kept", "in_turn", "method", "attribute", "of_class", "by_type", "in_an_object", "in_its_dictionary"),
    *("asked", "written"),
]
PROGRAMS = {"written": 3}  # which attributes there are when a call begins is guarded


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "a_library_that_asks", LIBRARY, monkeypatch)


@pytest.mark.parametrize("name", HANDED)
def test_one_that_is_made_on_one_path(library: ModuleType, name: str) -> None:
    def make() -> Callable[[Tensor], Any]:
        field, use, made = library.Field(), getattr(library, name), library.Reversed

        def handed(x: Tensor) -> Any:
            f = field
            if x.sum() > 0:
                f = made(f)
            return use(f, x), field.count

        return handed

    agree_fresh(make, P, N, P * 2, programs=PROGRAMS.get(name, 1))


@pytest.mark.parametrize("name", HANDED)
def test_two_from_outside(library: ModuleType, name: str) -> None:
    def make() -> Callable[[Tensor], Any]:
        field = library.Field()
        other, use = library.Reversed(field), getattr(library, name)

        def handed(x: Tensor) -> Any:
            return use(field if x.sum() > 0 else other, x), field.count, other.count

        return handed

    agree_fresh(make, P, N, P * 2, programs=PROGRAMS.get(name, 1))


@pytest.mark.parametrize("name", ["given_back", "given_to_an_object"])
def test_one_of_two_that_rewritten_code_gives_to_a_library(library: ModuleType, name: str) -> None:
    use, field = getattr(library, name), library.Field()
    other = library.Reversed(field)
    agree(lambda x: use(lambda: field if x.sum() > 0 else other, x), P, N)


def test_a_constant_of_a_path_that_rewritten_code_gives_to_a_library(library: ModuleType) -> None:
    use = library.text_or_number
    agree(lambda x: use(lambda: "text" if x.sum() > 0 else 3, x), P, N)


def test_a_tensor_or_none_that_rewritten_code_gives_to_a_library(library: ModuleType) -> None:
    use = library.is_none
    agree(lambda x: use(lambda: None if x.sum() > 0 else x + 1, x), P, N)


def test_a_tensor_or_none_that_rewritten_code_leaves_to_a_library(library: ModuleType) -> None:
    use = library.left

    def leaves(x: Tensor) -> Any:
        def leave(box: dict[str, Any]) -> None:
            box["left"] = None if x.sum() > 0 else torch.ones(1)

        return use(leave, x)

    agree(leaves, P, N)
