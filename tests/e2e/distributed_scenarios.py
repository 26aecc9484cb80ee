"""Training under `torchrun`, in several ways; every process writes what came of it. See `test_distributed.py`.

A scenario trains in this process's part of the group and returns what the losses and weights are to be compared with.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.algorithms.join import Join
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import stillgraph as sg

STEPS = 5


# ---- models with control flow
class Block(nn.Module):
    """A residual block whose activation is for the data to say."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 12), nn.Linear(12, 6)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inner(x)
        h = torch.relu(h) if h.mean() > 0 else torch.tanh(h)
        return x + self.outer(h)


class Model(nn.Module):
    """Blocks, a loop that the data ends, and two heads of which each call uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.heads = nn.ModuleList(nn.Linear(6, 1) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        for block in self.blocks:
            x = block(x)
        halvings = 0
        while x.abs().max() > 1.5:
            x = x * 0.5
            halvings += 1
        if x.sum() > 0:
            return self.heads[0](x), halvings
        return self.heads[1](x), halvings


class Repeating(nn.Module):
    """One block, applied as often as the data says: as often on every process."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.head = Block(), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        change, times = torch.ones((), dtype=x.dtype), 0
        while change > 0.5 and times < 6:
            before = x
            x = torch.tanh(self.block(x))
            change = (x.detach() - before.detach()).abs().max()
            distributed.all_reduce(change, distributed.ReduceOp.MAX)
            times += 1
        return self.head(x), times


class Normalised(nn.Module):
    """Batch normalisation, whose statistics are buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm, self.outer = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        h = self.norm(self.inner(x))
        return (self.outer(h.relu()), 1) if h.max() > 2 else (self.outer(h), 0)


class Tied(nn.Module):
    """One weight in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.there, self.back = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.back.weight = self.there.weight
        self.head = nn.Linear(6, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        h = self.there(x)
        if h.norm() > 3:
            return self.head(self.back(h) / 2), 1
        return self.head(self.back(h)), 0


# ---- training
@dataclass(frozen=True)
class Outcome:
    """What is compared: what each step gave, and the weights at the end."""

    losses: list[float]
    numbers: list[Any]
    weights: dict[str, Tensor]


def made(kind: Callable[[], nn.Module] = Model, dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(0)
    return kind().to(dtype)


def part(step: int, rank: int) -> tuple[Tensor, Tensor]:
    """One process's part of a batch; the processes' parts take different paths."""
    generator = torch.Generator().manual_seed(100 * rank + step)
    x = (1 + rank) * torch.randn(4, 6, generator=generator, dtype=torch.float64) + (rank % 2) - 0.5
    return x, x.sin().sum(dim=1, keepdim=True)


def loss_of(predicted: Tensor, y: Tensor) -> Tensor:
    return (predicted - y.to(predicted.dtype)).square().mean()


def outcome(losses: list[float], numbers: list[Any], model: nn.Module) -> Outcome:
    weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    return Outcome(losses, numbers, {name: value.detach().clone() for name, value in weights.items()})


def train(model: nn.Module, call: Callable[[Tensor], Any] | None = None, *, clip: bool = False) -> Outcome:
    """Train on this process's parts."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses, numbers = [], []
    for step in range(STEPS):
        x, y = part(step, distributed.get_rank())
        predicted, number = (call or model)(x)
        loss = loss_of(predicted, y)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.item())
        numbers.append(number)
    return outcome(losses, numbers, model)


def train_alone(model: nn.Module, *, clip: bool = False) -> Outcome:
    """Train on the whole batch in one process, part by part; the losses and numbers of this process's part."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses, numbers = [], []
    rank, count = distributed.get_rank(), distributed.get_world_size()
    for step in range(STEPS):
        parts = [part(step, each) for each in range(count)]
        results = [(model(x), y) for x, y in parts]
        each_loss = [loss_of(predicted, y) for (predicted, _), y in results]
        optimizer.zero_grad()
        (sum(each_loss, torch.zeros(())) / count).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(each_loss[rank].item())
        numbers.append(results[rank][0][1])
    return outcome(losses, numbers, model)


def accumulate(model: Any, call: Callable[[Tensor, bool], Tensor], quiet: Callable[[bool], Any]) -> Outcome:
    """Train with the gradients of three parts at a time; ``quiet`` is entered with whether others are to wait."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(3):
            x, y = part(10 * step + micro, distributed.get_rank())
            with quiet(micro < 2):
                loss = loss_of(call(x, micro < 2), y)
                loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return outcome(losses, [], model)


def accumulate_alone(model: nn.Module) -> Outcome:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses, count = [], distributed.get_world_size()
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(3):
            parts = [part(10 * step + micro, rank) for rank in range(count)]
            each_loss = [loss_of(model(x)[0], y) for x, y in parts]
            (sum(each_loss, torch.zeros(())) / count).backward()
            losses.append(each_loss[distributed.get_rank()].item())
        optimizer.step()
    return outcome(losses, [], model)


# ---- scenarios: what came of it, and what should have
Scenario = Callable[[], tuple[Outcome, Outcome]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def static(target: Any, **options: Any) -> Any:
    return sg.to_static(target, **{"backend": "eager", **options})


def parallel(model: nn.Module, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(model, **{"find_unused_parameters": True, **options})


def programs(function: Any, count: int = 1) -> None:
    """A capture whose facts do not change is made once."""
    found = getattr(function, "forward", function).cache_info().programs
    assert found == count, f"{found} programs"


@scenario
def parallel_over_static() -> tuple[Outcome, Outcome]:
    model = static(made())
    result = train(parallel(model))
    programs(model)
    return result, train_alone(made())


@scenario
def static_over_parallel() -> tuple[Outcome, Outcome]:
    model = static(parallel(made()))
    result = train(model)
    programs(model)
    return result, train_alone(made())


@scenario
def static_step_over_parallel() -> tuple[Outcome, Outcome]:
    model = parallel(made())
    step = static(lambda x: model(x))
    result = train(model, step)
    programs(step)
    return result, train_alone(made())


@scenario
def static_step_over_parallel_over_static() -> tuple[Outcome, Outcome]:
    model = parallel(static(made()))
    step = static(lambda x: model(x))
    result = train(model, step, clip=True)
    programs(step)
    return result, train_alone(made(), clip=True)


@scenario
def parallel_as_part_of_a_static_module() -> tuple[Outcome, Outcome]:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = parallel(made())

        def forward(self, x: Tensor) -> Any:
            y, count = self.inner(x)
            if y.mean() > 0:
                return y * 2, count
            return y, count

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = made()

        forward = Outer.forward

    return train(static(Outer())), train_alone(Plain())


@scenario
def compiled_regions_under_parallel() -> tuple[Outcome, Outcome]:
    model = parallel(made())
    step = static(lambda x: model(x), backend="aot_eager")
    return train(model, step), train_alone(made())


@scenario
def parallel_with_gradients_as_views() -> tuple[Outcome, Outcome]:
    model = parallel(made(), gradient_as_bucket_view=True)
    return train(model, static(lambda x: model(x))), train_alone(made())


@scenario
def parallel_with_a_static_graph() -> tuple[Outcome, Outcome]:
    def build() -> DistributedDataParallel:
        return parallel(made(Tied), find_unused_parameters=False, static_graph=True)

    model = build()
    step = static(lambda x: model(x))
    result = train(model, step)
    programs(step)
    return result, train(build())


@scenario
def parallel_of_tied_weights() -> tuple[Outcome, Outcome]:
    return train(static(parallel(made(Tied)))), train_alone(made(Tied))


@scenario
def buffers_are_broadcast() -> tuple[Outcome, Outcome]:
    model = parallel(made(Normalised))
    return train(model, static(lambda x: model(x))), train(parallel(made(Normalised)))


@scenario
def buffers_are_broadcast_to_a_static_module() -> tuple[Outcome, Outcome]:
    return train(parallel(static(made(Normalised)))), train(parallel(made(Normalised)))


@scenario
def accumulation_without_sync_around_the_step() -> tuple[Outcome, Outcome]:
    model = parallel(made())
    step = static(lambda x: model(x))
    result = accumulate(
        model, lambda x, _: step(x)[0], lambda waiting: model.no_sync() if waiting else nullcontext()
    )
    programs(step)
    return result, accumulate_alone(made())


@scenario
def accumulation_without_sync_inside_the_step() -> tuple[Outcome, Outcome]:
    model = parallel(made())

    @static
    def step(x: Tensor, waiting: bool) -> Tensor:
        if waiting:
            with model.no_sync():
                return model(x)[0]  # type: ignore[no-any-return]
        return model(x)[0]  # type: ignore[no-any-return]

    result = accumulate(model, step, lambda waiting: nullcontext())
    programs(step, 2)
    return result, accumulate_alone(made())


@scenario
def accumulation_in_a_parallel_module() -> tuple[Outcome, Outcome]:
    model = parallel(static(made()))
    result = accumulate(
        model, lambda x, _: model(x)[0], lambda waiting: model.no_sync() if waiting else nullcontext()
    )
    return result, accumulate_alone(made())


@scenario
def uneven_inputs_are_joined() -> tuple[Outcome, Outcome]:
    def run(model: Any, call: Any) -> Outcome:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        with Join([model]):
            for step in range(2 + distributed.get_rank()):
                x, y = part(step, distributed.get_rank())
                loss = loss_of(call(x)[0], y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return outcome(losses, [], model)

    eager, mine = parallel(made()), parallel(made())
    return run(mine, static(lambda x: mine(x))), run(eager, eager)


@scenario
def the_state_of_a_parallel_static_module_is_saved() -> tuple[Outcome, Outcome]:
    model = parallel(static(made()))
    result = train(model)
    file = io.BytesIO()
    torch.save(model.module.state_dict(), file)
    file.seek(0)
    loaded = made()
    loaded.load_state_dict(torch.load(file, weights_only=True))
    assert list(model.state_dict()) == [f"module.{name}" for name in loaded.state_dict()]
    return Outcome(result.losses, result.numbers, dict(loaded.state_dict())), train_alone(made())


@scenario
def two_parallel_models_swap_places() -> tuple[Outcome, Outcome]:
    """A program is for the wrapper it was captured for."""
    first, second = parallel(made()), parallel(made())
    models = {"model": first}
    step = static(lambda x: models["model"](x))
    train(first, step)
    models["model"] = second
    return train(second, step), train_alone(made())


@scenario
def collectives_in_a_static_function() -> tuple[Outcome, Outcome]:
    def metrics(x: Tensor) -> tuple[list[Tensor], Tensor, Tensor, int]:
        total = x.sum(0)
        distributed.all_reduce(total)
        everyone = [torch.empty_like(x) for _ in range(distributed.get_world_size())]
        distributed.all_gather(everyone, x)
        first = x.clone()
        distributed.broadcast(first, src=0)
        rounds = 0
        while total.abs().max() > 1:  # alike on every process
            total = total / 3
            distributed.all_reduce(total, op=distributed.ReduceOp.AVG if False else distributed.ReduceOp.MAX)
            rounds += 1
        distributed.barrier()
        return everyone, first, total, rounds

    step = static(metrics)
    for number in range(3):
        x, _ = part(number, distributed.get_rank())
        torch.testing.assert_close(step(x.clone()), metrics(x.clone()), rtol=0, atol=0)
    programs(step)
    same = Outcome([], [], {})
    return same, same


@scenario
def sync_batch_norm_says_what_it_says() -> tuple[Outcome, Outcome]:
    """It has no CPU kernel."""
    model = static(nn.SyncBatchNorm.convert_sync_batchnorm(made(Normalised)))
    x, _ = part(0, distributed.get_rank())
    message = ""
    try:
        model(x)
    except ValueError as error:
        message = str(error)
    assert message.startswith("SyncBatchNorm expected input tensor to be on"), message
    same = Outcome([], [], {})
    return same, same


# ---- fully_shard
def sharded(model: Any, *, parts: bool = True, **options: Any) -> Any:
    for block in getattr(model, "blocks", [model.block] if hasattr(model, "block") else []) if parts else []:
        fully_shard(block, **options)
    return fully_shard(model, **options)


class OneHead(Model):
    """Every process uses every parameter: what ``fully_shard`` exchanges does not depend on the data."""

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        for block in self.blocks:
            x = block(x)
        halvings = 0
        while x.abs().max() > 1.5:
            x = x * 0.5
            halvings += 1
        y = self.heads[0](x) + self.heads[1](x.sin())
        return (y, halvings) if x.sum() > 0 else (y * 2, halvings)


@scenario
def sharded_whole_over_static() -> tuple[Outcome, Outcome]:
    model = static(made(OneHead))
    result = train(sharded(model, parts=False))
    programs(model)
    return result, train_alone(made(OneHead))


@scenario
def sharded_part_by_part_over_static() -> tuple[Outcome, Outcome]:
    model = static(made(OneHead))
    result = train(sharded(model), clip=True)
    programs(model)
    return result, train_alone(made(OneHead), clip=True)


@scenario
def static_over_sharded_parts() -> tuple[Outcome, Outcome]:
    return train(static(sharded(made(OneHead)))), train_alone(made(OneHead))


@scenario
def sharded_between_two_static_modules() -> tuple[Outcome, Outcome]:
    model: Any = made(OneHead)
    for block in model.blocks:
        static(block)
    return train(static(sharded(model))), train_alone(made(OneHead))


@scenario
def static_step_over_sharded() -> tuple[Outcome, Outcome]:
    model = sharded(made(OneHead))
    step = static(lambda x: model(x))
    result = train(model, step)
    programs(step)
    return result, train_alone(made(OneHead))


@scenario
def compiled_regions_under_sharding() -> tuple[Outcome, Outcome]:
    model = sharded(made(OneHead))
    return train(model, static(lambda x: model(x), backend="aot_eager")), train_alone(made(OneHead))


@scenario
def sharded_and_kept_whole_after_the_forward() -> tuple[Outcome, Outcome]:
    model = sharded(made(OneHead), reshard_after_forward=False)
    return train(model, static(lambda x: model(x))), train_alone(made(OneHead))


@scenario
def a_sharded_block_is_called_again_and_again() -> tuple[Outcome, Outcome]:
    model = sharded(made(Repeating))
    step = static(lambda x: model(x))
    result = train(model, step)
    programs(step)
    assert len(set(result.numbers)) > 1, "the loop always went as often"
    return result, train(sharded(made(Repeating)))


@scenario
def sharded_tied_weights() -> tuple[Outcome, Outcome]:
    model = sharded(made(Tied))
    return train(model, static(lambda x: model(x))), train_alone(made(Tied))


@scenario
def sharded_in_mixed_precision() -> tuple[Outcome, Outcome]:
    inside = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    whole = MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32)

    def build() -> Any:
        model: Any = made(OneHead, torch.float32)
        for block in model.blocks:
            fully_shard(block, mp_policy=inside)
        return fully_shard(model, mp_policy=whole)

    def call(model: Any) -> Callable[[Tensor], Any]:
        return lambda x: model(x.float())

    eager, mine = build(), build()
    step = static(lambda x: mine(x))
    return train(mine, lambda x: step(x.float())), train(eager, call(eager))


@scenario
def sharded_accumulation() -> tuple[Outcome, Outcome]:
    model = sharded(made(OneHead))
    step = static(lambda x: model(x))

    def quiet(waiting: bool) -> Any:
        model.set_requires_gradient_sync(not waiting)
        return nullcontext()

    return accumulate(model, lambda x, _: step(x)[0], quiet), accumulate_alone(made(OneHead))


@scenario
def sharded_with_checkpointed_blocks() -> tuple[Outcome, Outcome]:
    class Checkpointed(OneHead):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return self.heads[0](x) + self.heads[1](x.sin()), 0

    model: Any = made(Checkpointed)
    for block in model.blocks:
        static(block)
    return train(sharded(model)), train_alone(made(Checkpointed))


# ---- the process
def compare(found: Outcome, expected: Outcome) -> None:
    assert found.numbers == expected.numbers, (found.numbers, expected.numbers)
    torch.testing.assert_close(found.losses, expected.losses, rtol=0, atol=1e-10)
    weights = {name.removeprefix("module."): value for name, value in expected.weights.items()}
    mine = {name.removeprefix("module.").replace(".module.", "."): v for name, v in found.weights.items()}
    if distributed.get_rank() == 0 or weights.keys() == mine.keys():  # a full state is gathered by the first process
        torch.testing.assert_close(mine, weights, rtol=0, atol=1e-10)


def attempt(run: Scenario) -> str:
    """Run a scenario; what went wrong, if something did."""
    try:
        compare(*run())
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--only")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    for name, run in SCENARIOS.items():
        if options.only not in (None, name):
            continue
        fault = attempt(run)
        (options.out / f"{name}.{rank}.json").write_text(json.dumps(fault))
        sys.stdout.flush()
        faults: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(faults, fault)
        if any(faults):
            print(f"{rank}: {name}: {fault}", file=sys.stderr)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
