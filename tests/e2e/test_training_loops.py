"""Training loops on one static module: many steps, every route through it, state changed from outside in between."""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def two(make: Callable[[], nn.Module]) -> tuple[Any, Any]:
    """The same module twice: as it is, and static."""
    torch.manual_seed(0)
    eager = make()
    return eager, sg.to_static(copy.deepcopy(eager), backend="eager")


def gradients(module: nn.Module) -> dict[str, Tensor | None]:
    return {name: parameter.grad for name, parameter in module.named_parameters()}


# ---- mixture of experts
def test_experts_that_nobody_asks_have_no_gradient_and_full_ones_turn_words_away() -> None:
    module = example("mixture_of_experts")
    eager, static = two(lambda: module.Experts(experts=4))
    words = torch.randn(48, 16, generator=torch.Generator().manual_seed(0))
    routes = {"as it comes": words, "all to the same": words[:1].repeat(48, 1), "ones": torch.ones_like(words)}
    left_out, turned_away = set(), set()
    for route, batch in routes.items():
        for layer in (eager, static):
            layer.zero_grad(set_to_none=True)
            output, balance, dropped = layer(batch)
            (output.square().mean() + balance).backward()
        assert_same(eager(batch), static(batch), route)
        assert_same(gradients(eager), gradients(static), route)
        left_out.add(sum(grad is None for grad in gradients(static).values()) > 0)
        turned_away.add(dropped > 0)
    assert left_out == {True, False}
    assert True in turned_away
    assert static.forward.cache_info().programs == 1


@pytest.mark.parametrize(("top", "capacity"), [(1, 0.5), (4, 10.0)])
def test_experts_of_another_shape(top: int, capacity: float) -> None:
    module = example("mixture_of_experts")
    eager, static = two(lambda: module.Experts(experts=4, top=top, capacity=capacity))
    for seed in range(3):
        batch = torch.randn(24, 16, generator=torch.Generator().manual_seed(seed))
        assert_same(eager(batch), static(batch))


# ---- adaptive computation
def test_it_halts_at_once_never_or_in_between() -> None:
    module = example("adaptive_computation")
    eager, static = two(module.AdaptiveRNN)
    seen = set()
    for bias in (10.0, -10.0, 0.0, -2.0):
        for network in (eager, static):
            with torch.no_grad():
                network.halt.bias.fill_(bias)
            network.zero_grad(set_to_none=True)
        bits = torch.randint(0, 2, (3, 6, 3), generator=torch.Generator().manual_seed(1)).float()
        for network in (eager, static):
            output, cost, _ = network(bits)
            (output.square().mean() + cost).backward()
        expected, found = eager(bits), static(bits)
        assert_same(expected, found)
        assert_same(gradients(eager), gradients(static))
        seen.add(found[2])
    assert min(seen) == 3, "one look at each of three inputs"
    assert max(seen) == 24, "as many looks as there may be"
    assert static.forward.cache_info().programs == 1


def test_a_limit_changed_from_outside_is_seen() -> None:
    eager, static = two(example("adaptive_computation").AdaptiveRNN)
    bits = torch.ones(2, 4, 3)
    for most in (8, 2, 8, 1, 5):
        eager.most = static.most = most
        assert_same(eager(bits), static(bits))


# ---- gradient accumulation
def test_nothing_counts_when_every_gradient_overflows() -> None:
    module = example("gradient_accumulation")

    def accumulator() -> Any:
        return module.Accumulator(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1)))

    eager, static = two(accumulator)
    x, y = module.batch(0)
    for scale, counted in ((1e30, 0), (1.0, 1), (1e30, 1), (float("nan"), 1), (1.0, 2)):
        assert_same(eager(x * scale, y), static(x * scale, y))
        assert static.counted == eager.counted == counted
        assert_same(eager.totals, static.totals)
    assert static.skipped == 3
    eager.release()
    static.release()
    assert_same(gradients(eager), gradients(static))
    assert static.forward.cache_info().programs == 1


@pytest.mark.parametrize("every", [1, 3])
def test_accumulation_in_the_users_own_loop(every: int) -> None:
    """The usual way: ``backward`` adds to ``.grad``; a step is skipped by a test outside the static module."""
    eager, static = two(lambda: nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1)))
    batch = example("gradient_accumulation").batch

    def train(model: nn.Module) -> list[Any]:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        history: list[Any] = []
        for number in range(12):
            x, y = batch(number)
            (nn.functional.mse_loss(model(x), y) / every).backward()
            if (number + 1) % every:
                continue
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if norm.isfinite():
                optimizer.step()
            optimizer.zero_grad()
            history.append((norm, [parameter.detach().clone() for parameter in model.parameters()]))
        return history

    assert_same(train(eager), train(static))


# ---- early stopping
def test_the_judge_goes_on_from_what_it_is_given() -> None:
    module = example("early_stopping")
    eager, static = two(lambda: module.Judge(nn.Linear(4, 1), patience=2))
    x, y = module.data(0)
    stops = []
    for scale in (1.0, 0.5, 3.0, 4.0, 0.1, 5.0, 6.0, 7.0):
        for judge in (eager, static):
            with torch.no_grad():
                judge.model.weight.mul_(scale)
        stops.append(static(x, y))
        assert stops[-1] is eager(x, y)
        for name in ("best_loss", "best_round", "waited", "rounds"):
            assert_same(getattr(eager, name), getattr(static, name), name)
        assert_same(dict(eager.best.state_dict()), dict(static.best.state_dict()))
    assert stops.count(True) >= 1
    eager.patience = static.patience = 10
    eager.best_loss = static.best_loss = float("inf")
    assert static(x, y) is eager(x, y) is False
    assert static.waited == eager.waited == 0


def test_stopping_by_a_closure() -> None:
    def stopper(patience: int) -> Callable[[Tensor], bool]:
        best, waited = float("inf"), 0

        def stop(loss: Tensor) -> bool:
            nonlocal best, waited
            if loss < best:
                best, waited = loss.item(), 0
            else:
                waited += 1
            return waited >= patience

        return stop

    eager, static = stopper(2), sg.to_static(stopper(2), backend="eager")
    losses = [3.0, 2.0, 2.5, 1.0, 1.0, 1.5, 0.5, float("nan")]
    assert [static(torch.tensor(v)) for v in losses] == [eager(torch.tensor(v)) for v in losses]
    assert static.cache_info().programs == 1


# ---- BERT
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_bert_pretraining_step_by_step(dtype: torch.dtype, tolerance: float) -> None:
    """Forty steps with dropout, clipping and a schedule; then evaluation, and training again."""
    pytest.importorskip("transformers")
    module = example("bert_pretraining")
    eager, static = two(lambda: module.BertForPreTraining(module.CONFIG).to(dtype).train())
    expected, found = module.train(eager, 40), module.train(static, 40)
    assert max(abs(a - b) for a, b in zip(expected, found, strict=True)) <= tolerance
    assert expected[-1] < expected[0]
    for model in (eager, static):
        model.eval()
    with torch.no_grad():
        assert_same(eager(**module.batch(99)), static(**module.batch(99)))
    for model in (eager, static):
        model.train()
    expected, found = module.train(eager, 5), module.train(static, 5)
    assert max(abs(a - b) for a, b in zip(expected, found, strict=True)) <= tolerance
    assert static.forward.cache_info().programs == 2
