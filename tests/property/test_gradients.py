"""Generated programs as static functions have eager's derivatives, first and second, for whatever may require one."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

from tests.cases.compare import assert_same, tensors_in
from tests.property.containers import container_programs
from tests.property.programs import programs
from tests.property.steps import KEPT
from tests.property.test_containers import REFUSED, refusal
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.property.ways import BYTECODE, SEGMENTS, SOURCE, STEPS, Way, way, ways
from tests.sampling import few
from tests.unit.gradients.derivatives import derivatives

__all__ = ["folder", "way"]  # the fixtures

FEW, QUICK, BATCH, BATCHES, OTHERS = 2, 4, 10, 16, 8
WRITERS = {"plain": programs, "containers": container_programs}


def requiring(calls: Inputs, flags: list[bool]) -> Inputs:
    """The calls, the tensors at these places requiring gradients."""
    calls = copy.deepcopy(calls)
    for args in calls:
        for tensor, flag in zip(tensors_in(args), flags, strict=True):
            tensor.requires_grad_(flag)
    return calls


def compare(make: Callable[[], Any], calls: Inputs, way: Way) -> None:
    """Assert that every call of a static function has eager's derivatives, by `torch.autograd.grad` and `backward`."""
    eager, static = make(), way.convert(make(), None)
    for number, args in enumerate(calls):
        for accumulate, curved in ((False, False), (False, True), (True, False)):
            expected, actual = (told(each, args, accumulate, curved) for each in (eager, static))
            for what, value in expected.items():
                assert_same(value, actual[what], f"call {number}: {what}")


def told(function: Any, args: tuple[Any, ...], accumulate: bool, curved: bool) -> dict[str, Any]:
    """What differentiating a call gives, what the call prints, and what it leaves to the next."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            found = derivatives(function, function, args, 2, accumulate, curved)
        except RuntimeError as error:
            if "of Unbind is a view" not in str(error):
                raise
            hypothesis.reject()  # eager PyTorch forbids to use such an element of a loop: see the guide
    kept = copy.deepcopy([getattr(function, name, None) for name in KEPT])
    text = printed.getvalue().replace("<UnbindBackward0>", "<SelectBackward0>")  # elements of a loop: see the guide
    return found | {"printed": text, "kept": kept}


def check(folder: Path, writer: str, count: int, seed: int, way: Way = SOURCE) -> Counter[str]:
    """Compare `count` different programs with eager; how many were refused, and how many had derivatives of order 2."""
    seen: set[str] = set()
    found: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(way.written(WRITERS[writer]()), inputs(), st.lists(st.booleans(), min_size=4, max_size=4))
    def agrees(source: str, calls: Inputs, flags: list[bool]) -> None:
        if source in seen:
            hypothesis.reject()
        hypothesis.note(source)
        function = load(source, folder)
        given = requiring(calls, flags if any(flags) else [True] * 4)
        error = refusal(function, given, way) if writer == "containers" else None
        if error is None:
            compare(lambda: load(source, folder), given, way)
            found["twice differentiable"] += any(
                "derivatives of order 2" in derivatives(function, function, args, 2, False, True) for args in given
            )
        else:
            assert error.reason.code in REFUSED, error
            found["refused"] += 1
        seen.add(source)

    torch.manual_seed(0)
    agrees()
    assert len(seen) >= count
    return found


@pytest.mark.parametrize("writer", ["plain", pytest.param("containers", marks=pytest.mark.slow)])
def test_derivatives_are_eagers(folder: Path, writer: str) -> None:
    found = check(folder, writer, QUICK, seed=-1 - SEED * 1000)
    assert found["refused"] <= QUICK / 2, found


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_derivatives_are_eagers(folder: Path, writer: str, batch: int) -> None:
    found = check(folder, writer, BATCH, seed=SEED * 1000 + batch + 1)
    assert found["refused"] <= BATCH / 3, found
    assert found["twice differentiable"] >= 2, found


@pytest.mark.parametrize(
    ("writer", "way"),
    few(itertools.product(WRITERS, (BYTECODE, SEGMENTS, STEPS)), 2),
    indirect=["way"],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_few_derivatives_are_eagers(folder: Path, writer: str, way: Way) -> None:
    found = check(folder, writer, FEW, -1 - SEED * 1000, way)
    assert found["refused"] <= FEW / 2, found


@pytest.mark.slow
@ways(BYTECODE, SEGMENTS, STEPS)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("batch", range(OTHERS))
def test_many_derivatives_are_eagers_other_ways(folder: Path, writer: str, batch: int, way: Way) -> None:
    found = check(folder, writer, BATCH, SEED * 1000 + batch + 1, way)
    assert found["refused"] <= BATCH / 3, found
