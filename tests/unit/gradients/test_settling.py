"""Python code that the run calls as it is - optimizers, schedulers, hooks, handlers - and what the function writes."""

from __future__ import annotations

import collections
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.gradients.scenarios import P, V, Wrap, as_in_eager, refused

Step = Callable[[Any, SimpleNamespace, Tensor], None]


def constant(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.param_groups[0]["lr"] = 0.01
    o.step()


def of_a_counter(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    s.n += 1
    for group in o.param_groups:
        group["lr"] = 0.1 / s.n
    o.step()


def scaled(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.param_groups[0]["lr"] *= 0.5
    o.step()


def of_data(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.param_groups[0]["lr"] = x.sum().item() * 0.01
    o.step()


def in_a_branch(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    if x.sum() > 2:
        o.param_groups[0]["lr"] = 0.01
    o.step()


def written_before_a_step_in_a_branch(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.param_groups[0]["lr"] *= 0.5
    if x.sum() > 2:
        o.step()
        o.param_groups[0]["lr"] = 0.3


def beside_a_list_that_grows(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    s.seen.append(x.sum().item())
    o.param_groups[0]["lr"] = 0.1
    o.step()
    s.seen.append(2.0)


def in_a_loop(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    while x.sum() < 12:
        o.param_groups[0]["lr"] *= 0.5
        o.step()
        x = x * 2


def with_other_settings(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.param_groups[0].update(weight_decay=0.5, momentum=0.0)
    o.step()


def set_and_put_back(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    before = o.param_groups[0]["lr"]
    o.param_groups[0]["lr"] = 0.01
    o.step()
    o.param_groups[0]["lr"] = before


def two_steps_with_two_rates(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.param_groups[0]["lr"] = 0.1
    o.step()
    o.param_groups[0]["lr"] = 0.01
    o.step()


def after_the_step(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    o.step()
    o.param_groups[0]["lr"] *= 0.5


def groups_found_by_what_is_replaced(o: Any, s: SimpleNamespace, x: Tensor) -> None:
    held = s.held
    s.held = SimpleNamespace(n=held.n + 1)
    o.param_groups[0]["lr"] = 0.1 / s.held.n
    o.step()
    held.n = 7
    s.last = held


STEPS = (
    *(constant, of_a_counter, scaled, of_data, in_a_branch, written_before_a_step_in_a_branch, in_a_loop),
    *(with_other_settings, set_and_put_back, two_steps_with_two_rates, after_the_step),
    *(groups_found_by_what_is_replaced, beside_a_list_that_grows),
)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam], ids=["SGD", "Adam"])
@pytest.mark.parametrize("change", STEPS, ids=lambda change: change.__name__)
def test_a_step_goes_by_the_settings_of_its_time(change: Step, kind: Any) -> None:
    def scenario(wrap: Wrap) -> Any:
        weight = nn.Parameter(V(1, 2, 3))
        optimizer = kind([weight], lr=0.5)
        state = SimpleNamespace(n=0, held=SimpleNamespace(n=1), last=None, seen=[])

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (weight * x).sum()
            loss.backward()
            change(optimizer, state, x)
            return loss.detach()

        step = wrap(step)
        seen = []
        for k in (1, 2, 1, 3):
            loss = step(V(0.5, 1, 0.5, g=False) * k)
            settings = {name: value for name, value in optimizer.param_groups[0].items() if name != "params"}
            seen.append((loss, weight.detach().clone(), settings, state.n, state.held.n, [*state.seen]))
        return seen, None if state.last is None else state.last.n

    as_in_eager(scenario)()


class Noam:
    """The wrapper of an optimizer that sets its rate in each step."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer, self.n = optimizer, 0

    def step(self) -> None:
        self.n += 1
        for group in self.optimizer.param_groups:
            group["lr"] = min(self.n**-0.5, self.n * 0.1)
        self.optimizer.step()


class Own(torch.optim.Optimizer):
    """An optimizer of the user's, with attributes."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})
        self.boost, self.t = 1.0, 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        self.t += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-group["lr"] * self.boost)


def by_a_wrapper(weight: Any) -> Any:
    noam = Noam(torch.optim.SGD([weight], 0.1))

    def change(x: Tensor) -> None:
        noam.step()

    return change, lambda: (noam.n, noam.optimizer.param_groups[0]["lr"])


def by_an_attribute(weight: Any) -> Any:
    own = Own([weight])

    def change(x: Tensor) -> None:
        own.boost *= 2
        own.step()

    return change, lambda: (own.boost, own.t)


def by_a_hook_of_steps(weight: Any) -> Any:
    optimizer, state = torch.optim.SGD([weight], 0.1), {"scale": 1.0}

    def scale(*args: Any) -> None:
        weight.grad.mul_(state["scale"])

    optimizer.register_step_pre_hook(scale)

    def change(x: Tensor) -> None:
        state["scale"] *= 0.5
        optimizer.step()

    return change, lambda: state


def by_the_scheduler(weight: Any) -> Any:
    optimizer = torch.optim.SGD([weight], 0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def change(x: Tensor) -> None:
        optimizer.step()
        scheduler.gamma = x.sum().item()
        scheduler.step()

    return change, lambda: (scheduler.gamma, optimizer.param_groups[0]["lr"])


def by_a_schedule_of_ones_own(weight: Any) -> Any:
    optimizer, state = torch.optim.SGD([weight], 0.1), {"k": 1.0}
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: state["k"])

    def change(x: Tensor) -> None:
        optimizer.step()
        state["k"] *= 0.5
        scheduler.step()

    return change, lambda: (state, optimizer.param_groups[0]["lr"])


OWNERS = (by_a_wrapper, by_an_attribute, by_a_hook_of_steps, by_the_scheduler, by_a_schedule_of_ones_own)


@pytest.mark.parametrize("make", OWNERS, ids=lambda make: make.__name__)
def test_whoever_sets_the_rate_is_heard(make: Any) -> None:
    def scenario(wrap: Wrap) -> Any:
        weight = nn.Parameter(V(1, 2, 3))
        change, seen = make(weight)

        def step(x: Tensor) -> Tensor:
            weight.grad = None
            (weight * weight * x).sum().backward()
            change(x)
            return weight.detach().clone()

        step = wrap(step)
        return [(step(V(0.5, 1, 0.5, g=False) * k), str(seen())) for k in (1, 2, 1, 3)]

    as_in_eager(scenario)()


def a_hook_of_a_tensor(wrap: Wrap) -> Any:
    weight, state = nn.Parameter(V(1, 2, 3)), {"scale": 1.0, "n": 0}
    weight.register_hook(lambda g: g * state["scale"])

    def f(x: Tensor) -> Any:
        state["scale"] *= 0.5
        (weight * x).sum().backward()
        state["scale"] += 1
        return weight.grad.clone()

    f = wrap(f)
    return [(f(V(*P) * k), dict(state)) for k in range(3)]


def a_list_that_a_hook_reads_grows(wrap: Wrap) -> Any:
    weight, seen = nn.Parameter(V(1, 2, 3)), []
    weight.register_hook(lambda g: g * len(seen))

    def f(x: Tensor) -> Any:
        seen.append(x.sum().item())
        (weight * x).sum().backward()
        seen.append(1.0)
        return weight.grad.clone()

    f = wrap(f)
    return [(f(V(*P) * k), list(seen)) for k in range(3)]


def what_a_hook_appends_to_is_emptied_before(wrap: Wrap) -> Any:
    weight, seen, state = nn.Parameter(V(1, 2, 3)), [], {"n": 5}

    def note(g: Tensor) -> None:
        seen.append(g.sum().item())
        state["n"] += 1

    weight.register_hook(note)

    def f(x: Tensor) -> Any:
        seen.clear()
        state["n"] = 0
        (weight * x).sum().backward()
        return x * 2

    f = wrap(f)
    return [(f(V(*P) * k), list(seen), dict(state)) for k in range(3)]


class Scaled(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * Scaled.factor

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * Scaled.factor


def a_class_attribute_of_a_function(wrap: Wrap) -> Any:
    Scaled.factor = 1.0

    def f(x: Tensor) -> Any:
        Scaled.factor = Scaled.factor * 0.5
        y = Scaled.apply(x)
        y.sum().backward()
        return y.detach()

    f = wrap(f)
    made = [V(*P) for _ in range(3)]
    return [(f(x), x.grad, Scaled.factor) for x in made]


def a_handler_of_logs(wrap: Wrap) -> Any:
    state, seen = {"n": 0}, []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append((state["n"], record.getMessage()))

    logger = logging.getLogger("stillgraph.test.settling")
    logger.setLevel("INFO")
    logger.propagate = False
    handler = Handler()
    logger.addHandler(handler)

    def f(x: Tensor) -> Any:
        state["n"] += 1
        logger.info("step")
        return x * 2

    f = wrap(f)
    results = [f(V(*P)) for _ in range(3)]
    logger.removeHandler(handler)
    return results, seen


LISTENING = (
    *(a_list_that_a_hook_reads_grows, a_hook_of_a_tensor),
    *(what_a_hook_appends_to_is_emptied_before, a_class_attribute_of_a_function),
    a_handler_of_logs,
)


@pytest.mark.parametrize("scenario", LISTENING, ids=lambda scenario: scenario.__name__)
def test_code_that_is_called_as_it_is_finds_what_was_written(scenario: Any) -> None:
    as_in_eager(scenario)()


def _optimizer() -> Any:
    weight = nn.Parameter(V(1, 2, 3))
    weight.grad = V(1, 1, 1)
    return torch.optim.SGD([weight], 0.1, momentum=0.9)


def the_state_of_an_optimizer() -> Any:
    optimizer = _optimizer()

    def f(x: Tensor) -> Any:
        optimizer.step()
        return len(optimizer.state)

    return f, "optimizer.state is used after SGD.step"


def the_state_of_an_optimizer_is_dropped() -> Any:
    optimizer = _optimizer()

    def f(x: Tensor) -> Any:
        optimizer.step()
        if x.sum() < 0:
            optimizer.state.clear()
        return x

    return f, "optimizer.state is used after SGD.step"


def an_attribute_of_ones_own_optimizer() -> Any:
    own = Own([nn.Parameter(V(1, 2, 3))])

    def f(x: Tensor) -> Any:
        own.step()
        return x * own.t

    return f, "Own.t is used after Own.step"


def an_attribute_written_on_one_path() -> Any:
    own = Own([nn.Parameter(V(1, 2, 3))])

    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            own.step()
        return x * own.t

    return f, "Own.t is used after Own.step"


def what_a_hook_notes() -> Any:
    weight, norms = nn.Parameter(V(1, 2, 3)), {"w": 0.0}
    weight.register_hook(lambda g: norms.__setitem__("w", g.norm().item()))

    def f(x: Tensor) -> Any:
        (weight * x).sum().backward()
        return norms["w"]

    return f, "norms is used after backward()"


def what_a_hook_of_a_module_appends() -> Any:
    layer, seen = nn.Linear(3, 2).double(), []
    layer.register_full_backward_hook(lambda module, inputs, outputs: seen.append(outputs[0]))

    def f(x: Tensor) -> Any:
        layer(x).sum().backward()
        return [each * 2 for each in seen]

    return f, "seen is used after backward()"


def written_and_changed_in_a_branch() -> Any:
    own = Own([nn.Parameter(V(1, 2, 3))])

    def f(x: Tensor) -> Any:
        own.t = 5
        if x.sum() > 0:
            own.step()
        return x

    return f, "Own.t is written, and Own.step in a branch or loop may change it"


CHANGING = (
    *(the_state_of_an_optimizer, the_state_of_an_optimizer_is_dropped, an_attribute_of_ones_own_optimizer),
    *(an_attribute_written_on_one_path, what_a_hook_notes, what_a_hook_of_a_module_appends),
    written_and_changed_in_a_branch,
)


@pytest.mark.parametrize("make", CHANGING, ids=lambda make: make.__name__)
def test_what_such_code_may_have_changed_is_not_used(make: Any) -> None:
    function, message = make()
    assert message in refused(function, V(1, 2, 3, g=False))


def test_what_such_code_only_reads_is_used_behind_it() -> None:
    def scenario(wrap: Wrap) -> Any:
        weight = nn.Parameter(V(1, 2, 3))
        state, seen = {"scale": 2.0, "n": 0}, collections.deque(maxlen=3)
        weight.register_hook(lambda g: g * state["scale"])

        def f(x: Tensor) -> Any:
            (weight * x).sum().backward()
            state["n"] += 1
            seen.append(state["scale"])
            return state["scale"], len(seen), list(seen)

        f = wrap(f)
        return [(f(V(*P)), dict(state)) for _ in range(3)]

    as_in_eager(scenario)()


def test_what_was_written_stays_where_the_run_fails() -> None:
    weight = nn.Parameter(V(1, 2, 3))
    optimizer, state = torch.optim.SGD([weight], 0.1), {"n": 0}

    def fails(*args: Any) -> None:
        raise ValueError(f"at {state['n']}")

    optimizer.register_step_pre_hook(fails)

    def f(x: Tensor) -> Any:
        state["n"] += 1
        optimizer.step()
        state["n"] += 10
        return x

    static = sg.to_static(f, backend="eager")
    for k in (1, 2):
        with pytest.raises(ValueError, match=f"at {k}"):
            static(V(*P))
        assert state["n"] == k
