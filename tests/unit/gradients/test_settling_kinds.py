"""What code leads to that the run calls as it is, by all the ways there are, and what is written around its call."""

from __future__ import annotations

import array
import logging
import sys
import types
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.gradients.scenarios import V, Wrap, as_in_eager, refused

CONFIG = types.ModuleType("stillgraph_test_config")
exec("scale = 1.0\ndef get():\n    return scale", vars(CONFIG))
sys.modules["stillgraph_test_config"] = CONFIG


class Held:
    """State that methods called by syntax show."""

    def __init__(self) -> None:
        self.n = 1

    def __iter__(self) -> Any:
        return iter([self.n])

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> int:
        return self.n

    def __mul__(self, other: Any) -> Any:
        return other * self.n

    def __bool__(self) -> bool:
        return self.n > 2

    def __enter__(self) -> int:
        return self.n

    def __exit__(self, *args: Any) -> None:
        pass

    @property
    def shown(self) -> int:
        return self.n


def by_with(held: Held) -> int:
    with held as n:
        return n


WAYS = {
    "iter": lambda held: next(iter(held)),
    "for": lambda held: sum([n * 1 for n in held]),
    "len": len,
    "item": lambda held: held[0],
    "mul": lambda held: held * 1,
    "bool": lambda held: 2 if held else 1,
    "with": by_with,
    "property": lambda held: held.shown,
    "getattr": lambda held: getattr(held, "n"),  # noqa: B009 (what is shown is getattr)
    "weakref": lambda held: weakref.ref(held)().n,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_hook_finds_what_was_written_whatever_way_it_looks(way: str) -> None:
    look = WAYS[way]

    def scenario(wrap: Wrap) -> Any:
        weight, held = nn.Parameter(V(1, 2, 3)), Held()
        weight.register_hook(lambda g: g * look(held))

        def f(x: Tensor) -> Any:
            weight.grad = None
            held.n += 1
            (weight * x).sum().backward()
            return weight.grad.clone()

        f = wrap(f)
        return [(f(V(1, 2, 3) * k), held.n) for k in range(3)]

    as_in_eager(scenario)()


@pytest.mark.parametrize("look", [lambda: CONFIG.scale, lambda: CONFIG.get()], ids=["variable", "function"])
def test_a_hook_finds_what_was_written_to_a_module(look: Any) -> None:
    def scenario(wrap: Wrap) -> Any:
        weight = nn.Parameter(V(1, 2, 3))
        weight.register_hook(lambda g: g * look())
        CONFIG.scale = 1.0

        def f(x: Tensor) -> Any:
            weight.grad = None
            CONFIG.scale += 1
            (weight * x).sum().backward()
            return weight.grad.clone()

        f = wrap(f)
        return [(f(V(1, 2, 3)), CONFIG.scale) for _ in range(3)]

    as_in_eager(scenario)()


SUBMODULES = {
    "of a sequence": (lambda: nn.Sequential(nn.Identity(), nn.Dropout()), lambda m: m[1]),
    "of a list": (lambda: nn.ModuleList([nn.Identity(), nn.Dropout()]), lambda m: m[1]),
    "of a dict": (lambda: nn.ModuleDict({"a": nn.Identity(), "b": nn.Dropout()}), lambda m: m["b"]),
    "of all": (lambda: nn.Sequential(nn.Identity(), nn.Dropout()), lambda m: list(m.modules())[2]),
}


@pytest.mark.parametrize("kind", SUBMODULES)
def test_a_hook_finds_what_was_written_to_a_submodule(kind: str) -> None:
    make, get = SUBMODULES[kind]

    def scenario(wrap: Wrap) -> Any:
        weight, model = nn.Parameter(V(1, 2, 3)), make()
        get(model).k = 1
        weight.register_hook(lambda g: g * get(model).k * (2 if get(model).training else 3))

        def f(x: Tensor) -> Any:
            weight.grad = None
            get(model).k += 1
            model.train(get(model).k % 2 == 0)
            (weight * x).sum().backward()
            return weight.grad.clone()

        f = wrap(f)
        return [(f(V(1, 2, 3)), get(model).k, model.training) for _ in range(3)]

    as_in_eager(scenario)()


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, held: Held) -> Tensor:
        ctx.held = held
        return x * held.n

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.held.n, None


@as_in_eager
def test_backward_finds_what_was_written_after_forward(wrap: Wrap) -> Any:
    held = Held()

    def f(x: Tensor) -> Any:
        y = Kept.apply(x, held)
        held.n += 1
        y.sum().backward()
        return y.detach()

    f = wrap(f)
    made = [V(1, 2, 3) for _ in range(3)]
    return [(f(x), x.grad, held.n) for x in made]


# ---- what is written to a place that such code changes counts, be it what was there when the call began
class Counter:
    def __init__(self) -> None:
        self.calls, self.seen = 0, [0]


def before(c: Counter, backward: Any, x: Tensor) -> None:
    c.calls = c.seen[0] = 0
    backward()


def behind(c: Counter, backward: Any, x: Tensor) -> None:
    backward()
    c.calls = 0
    c.seen.clear()
    c.seen.append(0)


def twice(c: Counter, backward: Any, x: Tensor) -> None:
    c.calls = 0
    backward()
    c.calls = 0
    backward()


@pytest.mark.parametrize("reset", [before, behind, twice], ids=lambda reset: reset.__name__)
def test_a_reset_counts(reset: Any) -> None:
    def scenario(wrap: Wrap) -> Any:
        weight, c = nn.Parameter(V(1, 2, 3)), Counter()

        def note(g: Tensor) -> None:
            c.calls += 1
            c.seen[0] += 1

        weight.register_hook(note)

        def f(x: Tensor) -> Any:
            reset(c, lambda: (weight * x).sum().backward(), x)
            return x * 2

        f = wrap(f)
        return [(f(V(1, 2, 3)), c.calls, list(c.seen)) for _ in range(3)]

    as_in_eager(scenario)()


def test_a_reset_on_one_path_is_refused() -> None:
    weight, c = nn.Parameter(V(1, 2, 3)), Counter()
    weight.register_hook(lambda g: setattr(c, "calls", c.calls + 1))

    def f(x: Tensor) -> Any:
        (weight * x).sum().backward()
        if x.sum() > 0:
            c.calls = 0
        return x

    assert "Counter.calls is used after backward()" in refused(f, V(1, 2, 3))


# ---- kinds of change
class State:
    def __init__(self) -> None:
        self.n, self.items, self.names = 0, [], set()
        self.memory, self.layer = array.array("d", [0.0]), nn.Dropout()


def adds_in_place(s: State) -> None:
    items = s.items
    items += [1]


def unites_in_place(s: State) -> None:
    names = s.names
    names |= {"a"}


def fills_an_array(s: State) -> None:
    s.memory[0] += 1


CHANGES = {
    "setattr": (lambda s: setattr(s, "n", s.n + 1), lambda s: s.n, "State.n"),
    "vars": (lambda s: vars(s).update(n=s.n + 1), lambda s: s.n, "State.n"),
    "object.__setattr__": (lambda s: object.__setattr__(s, "n", s.n + 1), lambda s: s.n, "State.n"),
    "+=": (adds_in_place, lambda s: len(s.items), "s.items"),
    "|=": (unites_in_place, lambda s: len(s.names), "s.names"),
    "array": (fills_an_array, lambda s: s.memory[0], "s.memory"),
    "eval": (lambda s: s.layer.eval(), lambda s: s.layer.training, "Dropout.training"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_change_is_seen(kind: str) -> None:
    change, look, place = CHANGES[kind]
    weight, s = nn.Parameter(V(1, 2, 3)), State()
    weight.register_hook(lambda g: change(s))

    def f(x: Tensor) -> Any:
        (weight * x).sum().backward()
        return x * look(s)

    assert f"{place} is used after backward()" in refused(f, V(1, 2, 3))


@as_in_eager
def test_a_step_in_the_backward_pass_drops_gradients(wrap: Wrap) -> Any:
    weight = nn.Parameter(V(1, 2, 3))
    optimizer = torch.optim.SGD([weight], 0.1)

    def step(parameter: Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()

    weight.register_post_accumulate_grad_hook(step)

    def f(x: Tensor) -> Any:
        (weight * x).sum().backward()
        return weight.grad is None, weight.detach().clone()

    f = wrap(f)
    return [f(V(1, 2, 3) * k) for k in range(3)]


def test_how_far_a_scheduler_is_is_not_read_behind_its_step() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(V(1, 2, 3))], 0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)

    def f(x: Tensor) -> Any:
        optimizer.step()
        scheduler.step()
        return x * scheduler.T_cur

    assert "CosineAnnealingWarmRestarts.T_cur is used after" in refused(f, V(1, 2, 3))


# ---- and no more than that
class Trainer:
    """A trainer whose own method has the name of an optimizer's."""

    def __init__(self) -> None:
        self.weight, self.n, self.norms = nn.Parameter(V(1, 2, 3)), 0, [0.0]
        self.optimizer = torch.optim.SGD([self.weight], 0.1)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rate)
        self.weight.register_hook(self.note)

    def rate(self, epoch: int) -> float:
        return 0.5**epoch

    def note(self, g: Tensor) -> None:
        self.norms[0] = g.norm().item()

    def step(self, x: Tensor) -> Any:
        self.optimizer.zero_grad()
        loss = (self.weight * x).square().sum()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.n += 1
        return loss.detach(), self.n


@as_in_eager
def test_a_method_is_not_called_for_its_name(wrap: Wrap) -> Any:
    trainer = Trainer()
    step = wrap(trainer.step)
    return [(step(V(1, 2, 3) * k), trainer.n, list(trainer.norms), trainer.weight.detach().clone()) for k in (1, 2, 3)]


class Camera(nn.Module):
    """Keeps what its layer gives, and the gradient of that."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.acts, self.gradient = nn.Linear(3, 2).double(), None, None

    def save(self, g: Tensor) -> None:
        self.gradient = g

    def forward(self, x: Tensor) -> Tensor:
        self.acts = self.layer(x)
        self.acts.register_hook(self.save)
        return self.acts.square().sum()


@as_in_eager
def test_what_forward_writes_is_read_behind_a_hook_that_does_not(wrap: Wrap) -> Any:
    camera = Camera()

    def f(x: Tensor) -> Any:
        camera(x).backward()
        return camera.acts.detach() * 2

    f = wrap(f)
    return [(f(V(1, 2, 3) * k), camera.gradient) for k in (1, 2)]


class Tee:
    def __init__(self, state: dict[str, int]) -> None:
        self.state, self.written = state, []

    def write(self, text: str) -> None:
        self.written.append((self.state["n"], text))

    def flush(self) -> None:
        pass


@as_in_eager
def test_the_stream_of_a_handler_finds_what_was_written(wrap: Wrap) -> Any:
    state = {"n": 0}
    tee = Tee(state)
    logger = logging.getLogger("stillgraph.test.tee")
    logger.setLevel("INFO")
    logger.propagate = False
    handler = logging.StreamHandler(tee)
    logger.addHandler(handler)

    def f(x: Tensor) -> Any:
        state["n"] += 1
        logger.info("x")
        return x * 2

    f = wrap(f)
    results = [f(V(1, 2, 3)) for _ in range(3)]
    logger.removeHandler(handler)
    return results, tee.written
