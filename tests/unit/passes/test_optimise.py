"""Each pass of the optimiser on the smallest program it is about; all of them on programs of many kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.passes import pipeline
from stillgraph.passes.optimise.optimise import PASSES, chosen, optimise, optimise_for_a_compiler
from stillgraph.passes.regions.regions import Branch, Loop, all_regions, controls, outputs
from stillgraph.program.facts.writes import name_of
from stillgraph.program.program import Program
from stillgraph.program.verify import verify
from tests.unit.passes.captured import SAMPLES, Sample, run

X, W, N = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([0.5, 0.25]), torch.tensor(3)
LOWERING = tuple(each for each in pipeline.WHOLE_GRAPH if each is not optimise)
BEFORE = LOWERING[: pipeline.WHOLE_GRAPH.index(optimise)]
AFTER = LOWERING[len(BEFORE) :]


def lowered(function: Callable[..., object], *args: Tensor) -> Program:
    with torch.no_grad():
        return pipeline.run(sg.export(function, args), BEFORE)


def names(program: Program, kind: type | None = None) -> list[str]:
    """The operations of a program, or of the regions of its branches or loops alone."""
    regions = [program.graph] if kind is None else []
    for module in all_regions(program.graph):
        regions += [region for each in controls(module) if kind and isinstance(each, kind) for region in each.regions]
    return [name_of(node) for module in regions for node in module.graph.nodes]


def count(program: Program, kind: type) -> int:
    return sum(isinstance(each, kind) for module in all_regions(program.graph) for each in controls(module))


def changed(name: str, program: Program, *calls: tuple[Tensor, ...]) -> Program:
    """What a pass makes of a program: a valid one with the same results."""
    made = PASSES[name](program)
    verify(made)
    for args in calls:
        assert run_all(made, args) == run_all(program, args)
    return made


def run_all(program: Program, args: tuple[Tensor, ...]) -> list[object]:
    return [each.tolist() if isinstance(each, Tensor) else each for each in run(program, args)]


# ---- branches
def equal_arms(x: Tensor, w: Tensor) -> Tensor:
    if x.sum() > 0:
        y = torch.sin(x) * 2
    else:
        y = torch.sin(x) * 2
    return y + w.sum()


def nearly_equal_arms(x: Tensor, w: Tensor) -> Tensor:
    if x.sum() > 0:
        y = torch.sin(x) * 2
    else:
        y = torch.sin(x) * 2.5
    return y + w.sum()


def test_arms_that_are_equal_are_no_branch() -> None:
    made = changed("arms", lowered(equal_arms, X, W), (X, W), (-X, W))
    assert count(made, Branch) == 0
    assert names(made).count("sin") == 1
    assert count(changed("arms", lowered(nearly_equal_arms, X, W), (X, W), (-X, W)), Branch) == 1


def asked_twice(x: Tensor, w: Tensor) -> Tensor:
    positive, large = x.sum() > 0, x.max() > 3
    if torch.logical_and(positive, large):
        y = x.sin() if positive else x.cos()
        y = y + (w.sum() if large else w.max())
    else:
        y = x.exp() if positive else x.tan()
    return y


def test_a_condition_is_known_inside_a_branch_on_it() -> None:
    calls = [(X, W), (-X, W), (X / 9, W)]
    made = changed("conditions", lowered(asked_twice, X, W), *calls)
    assert count(lowered(asked_twice, X, W), Branch) == 4
    assert count(made, Branch) == 2
    assert "cos" not in names(made, Branch)
    assert {"exp", "tan", "sin"} <= set(names(made, Branch))


# ---- selections
def small_arms(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    if x.sum() > 0:
        y, z = x / w.sum(), x > 1
    else:
        y, z = x * 2, x < 1
    return y, z


def fails_in_an_arm(x: Tensor, n: Tensor) -> Tensor:
    return x[n] if n < 3 else x[0]


def of_a_product(x: Tensor, w: Tensor) -> Tensor:
    return torch.outer(x, x) @ x if x.sum() > 0 else x


def of_unknown_size(x: Tensor, w: Tensor) -> Tensor:
    return x[x > 1] * 2 if x.sum() > 0 else x[x > 1] + 1


def test_small_arms_are_chosen_between() -> None:
    nan = torch.tensor([float("nan"), 1.0, 2.0])
    made = changed("selections", lowered(small_arms, X, W), (X, W), (-X, W), (X, W * 0), (-X, W * 0))
    assert count(made, Branch) == 0
    assert names(made).count("where") == 1
    assert run(made, (-X, W * 0))[0].isfinite().all()  # what the other arm divides by zero is not looked at
    assert run(made, (nan, W))[1].tolist() == small_arms(nan, W)[1].tolist()


@pytest.mark.parametrize(
    ("function", "other"), [(fails_in_an_arm, N - 1), (of_a_product, W), (of_unknown_size, W)]
)
def test_arms_that_may_fail_or_are_large_stay_a_branch(function: Callable[..., object], other: Tensor) -> None:
    assert count(changed("selections", lowered(function, X, other), (X, other)), Branch) == 1


def test_no_gradient_goes_through_a_selection() -> None:
    program = pipeline.run(sg.export(small_arms, (X.clone().requires_grad_(), W)), BEFORE)
    assert count(PASSES["selections"](program), Branch) == 1


# ---- loops
def invariant(x: Tensor, w: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x + 1 + torch.sin(w).sum() * w.max()
    return x


def invariant_in_an_inner_loop(x: Tensor, w: Tensor) -> Tensor:
    while x.sum() < 100:
        while x.max() < 30:
            x = x * 2 + torch.cos(w).sum() + x.min()
        x = x + torch.tan(w).abs().sum() + 5
    return x


def table_in_a_loop(x: Tensor, w: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x + torch.sin(torch.arange(3.0) / 10).abs() + w.max()
    return x


def may_fail_in_a_loop(x: Tensor, n: Tensor) -> Tensor:
    total = x.sum()
    while total < 100:
        total = total + 30 // n
    return total


def written_in_a_loop(x: Tensor, w: Tensor) -> Tensor:
    w = w.clone()
    while x.sum() < 100:
        x = x + torch.sin(w).sum() + 1
        w.add_(1)
    return x


def test_what_a_loop_does_not_change_is_computed_before_it() -> None:
    made = changed("invariants", lowered(invariant, X, W), (X, W), (X * 100, W))
    assert not {"sin", "max"} & set(names(made, Loop))
    assert {"sin", "max"} <= set(names(made))
    made = changed("invariants", lowered(invariant_in_an_inner_loop, X, W), (X, W), (X * 100, W))
    assert not {"cos", "tan", "abs"} & set(names(made, Loop))


def test_a_table_of_constants_is_computed_before_a_loop() -> None:
    made = changed("invariants", lowered(table_in_a_loop, X, W), (X, W), (X * 100, W))
    assert not {"sin", "truediv", "abs"} & set(names(made, Loop))


def test_what_may_fail_or_is_written_to_stays_in_the_loop() -> None:
    made = changed("invariants", lowered(may_fail_in_a_loop, X, N), (X, N))
    assert run(made, (X * 100, N * 0)) == [800.0]  # no iteration, no division
    assert "sin" in names(changed("invariants", lowered(written_in_a_loop, X, W), (X, W)), Loop)


def test_gradients_are_summed_in_eager_pytorchs_order() -> None:
    program = pipeline.run(sg.export(invariant, (X, W.clone().requires_grad_())), BEFORE)
    assert "sin" in names(PASSES["invariants"](program), Loop)


def counts_for_nobody(x: Tensor, w: Tensor) -> Tensor:
    steps, previous = 0, x
    while x.sum() < 100:
        previous = x * steps  # noqa: F841 (it is what the loop carries for nobody)
        steps += 1
        x = x * 2
    return x + w.sum()


def test_nothing_is_carried_for_nobody() -> None:
    program = lowered(counts_for_nobody, X, W)
    (loop,) = (each for each in controls(program.graph) if isinstance(each, Loop))
    assert len(outputs(loop.body)) > 1
    made = changed("carries", program, (X, W), (X * 100, W))
    (loop,) = (each for each in controls(made.graph) if isinstance(each, Loop))
    assert len(outputs(loop.body)) == len(loop.entries) == 1


# ---- common subexpressions
def computed_twice(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    first = torch.sin(x) * 2 + w.sum()
    second = (torch.sin(x) * 2).exp()
    inside = torch.sin(x) * 2 - w.max() if x.sum() > 0 else x.tan()
    return first, second, inside, x + 1, x + 1, x.add(1.0) + 0


def test_what_is_computed_twice_is_computed_once() -> None:
    made = changed("common", lowered(computed_twice, X, W), (X, W), (-X, W))
    everywhere = [name_of(node) for module in all_regions(made.graph) for node in module.graph.nodes]
    assert everywhere.count("sin") == 1
    assert everywhere.count("mul") == 1
    first, second = run(made, (X, W))[3:5]
    assert first is not second


def test_draws_are_not_shared() -> None:
    made = changed("common", lowered(lambda x: (torch.rand_like(x) + x) * 0 + (torch.rand_like(x) + x) * 0, X))
    assert names(made).count("rand_like") == 2


# ---- all of them
@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_programs_mean_the_same(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLGRAPH_OPTIMISE", "all")
    program, _ = sample.capture()
    for passes in (optimise, optimise_for_a_compiler):
        made = pipeline.run(program, (*BEFORE, passes, *AFTER))
        verify(made)
        for call in sample.calls:
            receiver = (sample.fresh(),) if sample.name == "Stateful" else ()
            plain = pipeline.run(program, LOWERING)
            assert run_all(made, (*receiver, *call)) == run_all(plain, (*receiver, *call))


def test_the_variable_chooses_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("all") == list(PASSES)
    assert chosen("none") == []
    assert chosen("carries, arms") == ["arms", "carries"]
    with pytest.warns(RuntimeWarning, match="there is no pass 'loops'; there are conditions, arms"):
        assert chosen("loops,arms") == ["arms"]
    monkeypatch.setenv("STILLGRAPH_OPTIMISE", "none")
    assert count(optimise(lowered(equal_arms, X, W)), Branch) == 1
    monkeypatch.setenv("STILLGRAPH_OPTIMISE", "all")
    assert count(optimise(lowered(equal_arms, X, W)), Branch) == 0
