"""A capture draws from no random generator: each call draws anew, and leaves the states that eager PyTorch leaves."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.importing import installed

X = torch.ones(3)

LIBRARY = """
    import os
    import random
    import secrets
    import time
    import uuid
    import numpy as np
    import torch
    from numpy.random import rand

    OWN, PYTHONS = np.random.default_rng(3), random.Random(3)

    def of_python(x):
        return x + random.random()

    def chosen(x):
        return x + random.choice([1, 2, 3])

    def branches(x):
        return x + 1 if random.random() < 0.5 else x - 1

    def of_numpy(x):
        return x + float(np.random.rand()) + float(rand())

    def of_an_object(x):
        return x + float(OWN.random())

    def of_an_object_of_pythons(x):
        return x + PYTHONS.random()

    def of_torch(x):
        torch.manual_seed(4)
        return x + torch.rand(3)

    def masks(x):
        mask = np.zeros((2, 3), dtype=bool)
        for row in range(2):
            mask[row, np.random.choice(np.arange(3), int(1.5 + np.random.rand()), replace=False)] = True
        return x + torch.tensor(mask).float()

    CHANCES = {
        "numpys": lambda: np.random.default_rng().random(),
        "numpys_old": lambda: np.random.RandomState().rand(),
        "a_sequence": lambda: np.random.SeedSequence().generate_state(1)[0] / 2**32,
        "bits": lambda: np.random.PCG64().random_raw() / 2**64,
        "pythons": lambda: random.Random().random(),
        "the_systems": lambda: random.SystemRandom().random(),
        "torchs": lambda: torch.Generator().seed() / 2**64,
        "bytes": lambda: int.from_bytes(os.urandom(4), "big") / 2**32,
        "a_secret": lambda: secrets.randbelow(2**32) / 2**32,
        "an_identity": lambda: uuid.uuid4().int / 2**128,
        "a_clock": lambda: time.perf_counter() % 1,
        "nanoseconds": lambda: time.time_ns() % 10**9,
    }
    SEEDED = {
        "numpys": lambda: np.random.default_rng(3).random(),
        "pythons": lambda: random.Random(3).random(),
    }

    def by_chance(x, name):
        return x + float(CHANCES[name]())

    def by_seed(x, name):
        return x + float(SEEDED[name]())

    def fails(x):
        if np.random.rand() < 2:
            raise ValueError("drawn")
        return x
"""
FUNCTIONS = [
    *("of_python", "chosen", "branches", "of_numpy", "of_an_object", "of_an_object_of_pythons", "of_torch", "masks"),
    "fails",
]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield installed(tmp_path, "lib_that_draws", LIBRARY, monkeypatch)


def results(library: ModuleType, function: Any, calls: int = 3) -> list[Any]:
    """What calls give, and what is drawn after them from each generator."""
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # one after the other
    library.OWN.bit_generator.state = np.random.default_rng(3).bit_generator.state
    library.PYTHONS.setstate(random.Random(3).getstate())
    given: list[Any] = []
    for _ in range(calls):
        try:
            given.append(function(X).tolist())
        except (ValueError, sg.CaptureError) as error:
            given.append((type(error), str(error)))
    return [*given, *states(library)]


def states(library: ModuleType) -> list[Any]:
    return [
        *(random.random(), np.random.rand(), torch.rand(1).item()),
        *(library.OWN.random(), library.PYTHONS.random()),
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_library_draws_in_each_call(library: ModuleType, name: str) -> None:
    def called(x: Tensor) -> Any:
        return getattr(library, name)(x) * 2

    assert results(library, sg.symbolic_trace(called)) == results(library, called)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_with_a_full_graph_too_or_it_is_refused(library: ModuleType, name: str) -> None:
    def called(x: Tensor) -> Any:
        return getattr(library, name)(x) * 2

    given, expected = results(library, sg.to_static(called, backend="eager")), results(library, called)
    if any(isinstance(each, tuple) and each[0] is sg.CaptureError for each in given):
        assert ("SG301" if name == "masks" else "SG305") in str(given[0])  # an array is written at a number of the run
        assert given[-5:] == results(library, lambda x: x)[-5:]  # a refused call draws nothing
    else:
        assert given == expected


def test_a_library_draws_in_each_call_beside_another_thread(library: ModuleType) -> None:
    """Such as the monitor of a progress bar: what an attempt has drawn is put back all the same."""

    def called(x: Tensor) -> Any:
        return library.chosen(x) * 2

    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        assert results(library, sg.to_static(called, backend="eager")) == results(library, called)
    finally:
        ends.set()
        thread.join()


def test_a_check_draws_nothing(library: ModuleType) -> None:
    def called(x: Tensor) -> Any:
        return library.of_python(x) + torch.rand(3)

    assert results(library, sg.to_static(called, backend="eager", check=2)) == results(library, called)


def test_numbers_that_are_mixed_of_a_seed_are_drawn_from_nothing() -> None:
    def mixed(x: Tensor) -> Tensor:
        return x + int(np.random.SeedSequence(7).generate_state(3)[0] % 7)

    assert torch.equal(sg.to_static(mixed, backend="eager")(X), mixed(X))


CHANCES = (
    *("numpys", "numpys_old", "a_sequence", "bits", "pythons", "the_systems", "torchs", "bytes", "a_secret"),
    *("an_identity", "a_clock", "nanoseconds"),
)


@pytest.mark.parametrize("options", [{}, {"full_graph": False}], ids=["full", "partial"])
@pytest.mark.parametrize("name", CHANCES)
def test_what_is_made_by_chance_in_a_library_is_made_in_each_call(
    library: ModuleType, name: str, options: dict[str, Any]
) -> None:
    def called(x: Tensor) -> Any:
        return library.by_chance(x, name) * 2

    static = sg.to_static(called, backend="eager", **options)
    given = [outcome(static) for _ in range(3)]
    is_refused = options == {} and all(isinstance(each, str) and "SG3" in each for each in given)
    assert is_refused or len({*given}) > 1


def outcome(function: Any) -> Any:
    try:
        return function(X)[0].item()
    except sg.CaptureError as error:
        return str(error)


@pytest.mark.parametrize("given", [{"entropy": 7}, {"entropy": 7, "spawn_key": (1,)}], ids=str)
def test_a_seed_may_be_given_by_name(given: dict[str, Any]) -> None:
    def seeded(x: Tensor) -> Any:
        return x + int(np.random.SeedSequence(**given).generate_state(1)[0] % 7)

    static = sg.to_static(seeded, backend="eager")
    assert torch.equal(static(X), seeded(X))


@pytest.mark.parametrize("given", [{"entropy": None}, {"spawn_key": (1,)}], ids=str)
def test_a_seed_of_none_is_none(given: dict[str, Any]) -> None:
    def seeded(x: Tensor) -> Any:
        return x + int(np.random.SeedSequence(**given).generate_state(1)[0] % 7)

    with pytest.raises(sg.CaptureError, match="without a seed"):
        sg.to_static(seeded, backend="eager")(X)


@pytest.mark.parametrize("name", ["numpys", "pythons"])
def test_what_has_a_seed_is_drawn_as_it_always_is(library: ModuleType, name: str) -> None:
    def called(x: Tensor) -> Any:
        return library.by_seed(x, name) * 2

    assert results(library, sg.symbolic_trace(called)) == results(library, called)
