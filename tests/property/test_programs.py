"""Generated programs as static functions give what eager PyTorch gives, in as many programs as Python arguments."""
from __future__ import annotations

import contextlib
import copy
import enum
import hashlib
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from tests.property.programs import Grammar, programs
from tests.property.ways import BYTECODE, COMPILED, SEGMENTS, SIZED, SOURCE, STEPS, Way, way, ways

__all__ = ["way"]  # the fixture

FEW, QUICK, BATCH, BATCHES, OTHERS = 2, 4, 20, 100, 20  # programs; all together no fewer than 2,000

Inputs = list[tuple[Any, ...]]


@st.composite
def inputs(draw: Callable[[st.SearchStrategy[Any]], Any], sizes: tuple[int, ...] = (3, 3, 3, 3)) -> Inputs:
    """The arguments of a call for each of the sizes that vectors have; all but the last share their Python numbers."""
    number = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0])

    def tensors(size: int) -> tuple[Tensor, ...]:
        scalars = [torch.tensor(draw(number)) for _ in range(2)]
        return (*scalars, *(torch.tensor(draw(st.lists(number, min_size=size, max_size=size))) for _ in range(2)))

    def numbers() -> tuple[int, float]:
        return draw(st.integers(-2, 4)), draw(number)

    shared = numbers()
    return [(*tensors(size), *shared) for size in sizes[:-1]] + [(*tensors(sizes[-1]), *numbers())]


SIZES = (3, 2, 4, 5, 1, 6)
"""Of vectors, in one call after the other."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = set(sys.modules)
    yield tmp_path_factory.mktemp("programs")
    for name in set(sys.modules) - before:
        if name.startswith("program_"):
            del sys.modules[name]


def load(source: str, folder: Path) -> Any:
    """The function of a program's source, from a real file so that its source can be found.

    Each has its own state. The enumerations are those of the first with that source, and so is the table of their
    members: these are the same ones whoever returns them.
    """
    name = f"program_{hashlib.sha1(source.encode()).hexdigest()[:16]}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    first = vars(sys.modules[name]) if name in sys.modules else {}
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = {name: value for name, value in first.items() if name == "NEXT" or isinstance(value, enum.EnumMeta)}
    vars(module).update(kept)
    return module.program


def check(
    folder: Path,
    count: int,
    seed: int,
    way: Way = SOURCE,
    grammar: Grammar | None = None,
    calls: st.SearchStrategy[Inputs] = inputs(),  # noqa: B008 (a strategy is a value)
) -> None:
    """Compare `count` different programs with eager, results and gradients; the seed says which."""
    passed: set[str] = set()
    given_up: set[str] = set()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(way.written(programs(grammar)), calls, st.booleans())
    def agrees(source: str, calls: Inputs, grad: bool) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        if way.check(lambda: load(source, folder), calls, grad):
            given_up.add(source)
        passed.add(source)

    agrees()
    assert len(passed) >= count
    assert len(given_up) * 10 <= count  # programs that are left to Python show nothing


SEED = int(os.environ.get("STILLGRAPH_PROPERTY_SEED", "0"))  # another number explores other programs


@pytest.mark.parametrize("batch", range(2))
def test_programs_agree_with_eager(folder: Path, batch: int) -> None:
    check(folder, QUICK, seed=-1 - batch - SEED * 1000)


def test_constants_that_paths_leave_agree_with_eager(folder: Path) -> None:
    check(folder, QUICK, seed=-1 - SEED * 1000, grammar=Grammar(constants=True))


def test_managers_around_blocks_agree_with_eager(folder: Path) -> None:
    check(folder, FEW, seed=-1 - SEED * 1000, grammar=Grammar(managers=True))


@pytest.mark.slow
@ways(SOURCE, BYTECODE, STEPS)
@pytest.mark.parametrize("batch", range(OTHERS))
def test_many_managers_around_blocks_agree_with_eager(folder: Path, batch: int, way: Way) -> None:
    check(folder, BATCH, seed=SEED * 1000 + batch + 1, way=way, grammar=Grammar(managers=True))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(OTHERS))
def test_many_constants_that_paths_leave_agree_with_eager(folder: Path, batch: int) -> None:
    check(folder, BATCH, seed=SEED * 1000 + batch + 1, grammar=Grammar(constants=True))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_programs_agree_with_eager(folder: Path, batch: int) -> None:
    check(folder, BATCH, seed=SEED * 1000 + batch + 1)


@ways(SIZED, STEPS, COMPILED)
def test_a_few_programs_agree_with_eager_on_other_sizes(folder: Path, way: Way) -> None:
    check(folder, FEW, seed=-1 - SEED * 1000, way=way, calls=inputs(SIZES))


@pytest.mark.slow
@ways(SIZED, SEGMENTS, STEPS, COMPILED)
@pytest.mark.parametrize("batch", range(OTHERS))
def test_many_programs_agree_with_eager_on_other_sizes(folder: Path, batch: int, way: Way) -> None:
    check(folder, BATCH, seed=SEED * 1000 + batch + 1, way=way, calls=inputs(SIZES))


@ways(BYTECODE, SEGMENTS, STEPS)
def test_a_few_programs_agree_with_eager(folder: Path, way: Way) -> None:
    check(folder, FEW, seed=-1 - SEED * 1000, way=way)


@pytest.mark.slow
@ways(BYTECODE, SEGMENTS, STEPS)
@pytest.mark.parametrize("batch", range(OTHERS))
def test_many_programs_agree_with_eager_other_ways(folder: Path, batch: int, way: Way) -> None:
    check(folder, BATCH, seed=SEED * 1000 + batch + 1, way=way)


@hypothesis.settings(max_examples=100, database=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(source=programs(), calls=inputs())
def test_the_generator_keeps_its_word(folder: Path, source: str, calls: Inputs) -> None:
    function = load(source, folder)
    for args in calls:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                s, t, v, w, n, c = function(*copy.deepcopy(args))
        except ValueError as error:
            if not str(error).startswith("after "):
                raise
            continue
        assert [type(value) for value in (s, t, v, w, n, c)] == [Tensor] * 4 + [int, float]
        assert {s.dtype, t.dtype, v.dtype, w.dtype} == {torch.float32}
        assert [s.shape, t.shape, v.shape, w.shape] == [(), (), (3,), (3,)]
