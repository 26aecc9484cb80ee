"""no_grad, enable_grad, inference_mode, set_grad_enabled: as blocks, decorators and plain calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.contexts.modes import DOWN_GRAD, MATRICES, TRAINED, UP, UP_GRAD, VECTORS, WEIGHT, agree_in
from tests.unit.trace.agreement import refusal


def around_an_if(x: Tensor) -> Any:
    with torch.no_grad():
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
    return y, x * 2


def indexed_behind_a_block(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.expand((1, *x.shape))
    return (x[0] - x).pow(2).sum() + y[0].sum()


def indexed_in_a_block(x: Tensor) -> Tensor:
    y = x * 2
    with torch.no_grad():
        first = y[0]
    return y - first


def in_one_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        with torch.no_grad():
            y = x * 2
    else:
        y = x * 3
    return y


def switched_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        torch.set_grad_enabled(False)
        y = x * 2
        torch.set_grad_enabled(True)
    else:
        y = x * 3
    return y


def switched_around_an_if(x: Tensor) -> Any:
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    if x.sum() > 0:
        y = x * 3
    else:
        y = x + 1
    torch.set_grad_enabled(before)
    return y, x * 2


def switched_in_a_loop(x: Tensor) -> Tensor:
    while x.sum() > 1:
        torch.set_grad_enabled(False)
        step = x * 0.25
        torch.set_grad_enabled(True)
        x = x - step - 0.5
    return x


def switched_by_a_count(x: Tensor) -> Tensor:
    for i in range(3):
        with torch.set_grad_enabled(i == 2):
            if x.sum() > 0:
                x = x * 2
            else:
                x = x * 3
    return x


@torch.no_grad()
def decorated(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * 2
    with torch.enable_grad():
        return x * 3


@torch.no_grad
def decorated_without_a_call(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x * 3


@torch.inference_mode()
def decorated_for_inference(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x * 3


def inference_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        with torch.inference_mode():
            y = x * 2
    else:
        y = x * 3
    return y


def inference_switched_off_inside(x: Tensor) -> Any:
    with torch.inference_mode():
        y = x * 2
        with torch.inference_mode(False):
            z = x * 3
            if z.sum() > 0:
                z = z * 2
    return y, z


def enabled_in_a_loop(x: Tensor) -> Any:
    trips = 0
    with torch.no_grad():
        while x.sum() > 1 and trips < 6:
            x = x * 0.5
            trips += 1
            if trips > 1:
                with torch.enable_grad():
                    x = x * TRAINED.sum() * 0.1
    return x, trips


def in_place(x: Tensor) -> Tensor:
    y = x * 2
    with torch.no_grad():
        y.mul_(3)
        if x.sum() > 0:
            y.add_(1)
        else:
            y.sub_(1)
    return y * 2


def entered_by_hand(x: Tensor) -> Any:
    mode = torch.no_grad()
    mode.__enter__()
    y = x * 2
    mode.__exit__(None, None, None)
    return y, x * 3


def entered_twice(x: Tensor) -> Any:
    mode = torch.no_grad()
    with mode:
        y = x * 2
    with mode:
        if x.sum() > 0:
            y = y * 2
    return y, x * 2


def on_a_stack(x: Tensor) -> Tensor:
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
    return y


def caught_around(x: Tensor) -> Tensor:
    try:
        with torch.no_grad():
            y = x * 2
            if x.sum() > 0:
                raise ValueError("caught")
            y = y + 1
    except ValueError:
        return x * 5
    return y


def caught_by_the_outer_of_two(x: Tensor) -> Tensor:
    try:
        try:
            with torch.no_grad():
                x = x * int(x.shape[0] / 0)
        except ZeroDivisionError:
            if x.sum() > 0:
                raise ValueError("from a handler") from None
    except ValueError:
        return x * 5
    return x


def raised_through(x: Tensor) -> Tensor:
    with torch.no_grad():
        if x.sum() > 0:
            raise ValueError("not caught")
    return x


def gradients_inside(x: Tensor) -> Tensor:
    with torch.enable_grad():
        z = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad((z * z).sum(), z)
    if gradient.sum() > 0:
        return gradient
    return -gradient


def generated(x: Tensor) -> Iterator[Tensor]:
    with torch.no_grad():
        for value in x:
            yield value * 2


def over_a_generator(x: Tensor) -> list[Tensor]:
    found = []
    for value in generated(x):
        if value > 0:
            found.append(value * 3)
        else:
            found.append(value)
    return found


FUNCTIONS = [
    around_an_if,
    indexed_behind_a_block,
    indexed_in_a_block,
    in_one_arm,
    switched_in_an_arm,
    switched_around_an_if,
    switched_in_a_loop,
    switched_by_a_count,
    decorated,
    decorated_without_a_call,
    decorated_for_inference,
    inference_in_an_arm,
    inference_switched_off_inside,
    enabled_in_a_loop,
    in_place,
    entered_by_hand,
    entered_twice,
    on_a_stack,
    caught_around,
    caught_by_the_outer_of_two,
    raised_through,
    gradients_inside,
    over_a_generator,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_inside_a_function(function: Any) -> None:
    agree_in(lambda: function, *VECTORS)


def plain(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * 2
    return x.clone()


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_around_every_call(around: Any) -> None:
    agree_in(lambda: plain, *VECTORS, around=around)


def test_around_some_calls() -> None:
    around = (torch.enable_grad, torch.no_grad, torch.inference_mode, torch.enable_grad, torch.inference_mode)
    static = agree_in(lambda: plain, UP_GRAD, UP_GRAD, DOWN_GRAD, UP_GRAD, UP_GRAD, around=around)
    assert static.cache_info().programs == 3


def test_asked_for() -> None:
    def function(x: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return x * 2
        return x * (4 if torch.is_inference_mode_enabled() else 3)

    agree_in(lambda: function, *[UP_GRAD] * 3, around=(torch.enable_grad, torch.no_grad, torch.inference_mode))


def test_switched_by_an_argument() -> None:
    def function(x: Tensor, train: bool) -> Tensor:
        with torch.set_grad_enabled(train):
            return x * 2 if x.sum() > 0 else x * 3

    agree_in(lambda: function, (UP_GRAD, True), (UP_GRAD, False), (DOWN_GRAD, True), (UP, True))


class Averaged(nn.Module):
    """Keeps a moving average, and clamps its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(WEIGHT.clone())
        self.register_buffer("average", torch.zeros(3))

    @torch.no_grad()
    def encode(self, x: Tensor) -> Tensor:
        h = x @ self.weight.detach()
        return torch.relu(h) if h.sum() > 0 else h

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.weight.clamp_(-1, 1)
        y = x @ self.weight
        with torch.no_grad():
            if y.sum() > 0:
                self.average.mul_(0.9).add_(y.mean(0), alpha=0.1)
            else:
                self.average = self.average * 0.5
        return y * self.average + self.encode(x)


def test_a_module() -> None:
    agree_in(Averaged, *MATRICES)


class Frozen(nn.Module):
    """Freezes a part of itself for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        before = [parameter.requires_grad for parameter in self.first.parameters()]
        for parameter in self.first.parameters():
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter, flag in zip(self.first.parameters(), before):
                parameter.requires_grad_(flag)

    def forward(self, x: Tensor) -> Tensor:
        with self.frozen():
            h = self.first(x)
        return self.second(h) if h.sum() > 0 else h + self.second(x)


def test_requires_grad_switched_for_a_while() -> None:
    agree_in(Frozen, *MATRICES)


def left_off(x: Tensor) -> Tensor:
    torch.set_grad_enabled(False)
    return x * 3


def left_off_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        torch.set_grad_enabled(False)
    return x * 3


def left_off_in_a_loop(x: Tensor) -> Tensor:
    while x.sum() > 1:
        torch.set_grad_enabled(False)
        x = x * 0.5
    return x


def left_on_under_a_mode(x: Tensor) -> Tensor:
    with torch.device("cpu"), torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        if x.sum() > 0:
            torch.set_grad_enabled(True)
    return x


@pytest.mark.parametrize("function", [left_off, left_off_in_an_arm, left_off_in_a_loop, left_on_under_a_mode])
def test_refused_with_every_mode_as_it_was(function: Any) -> None:
    depth = torch._C._len_torch_function_stack()
    error = refusal(function, UP_GRAD)
    assert error.reason.code == "SG305"
    assert "leaves a torch mode switched" in str(error)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert torch._C._len_torch_function_stack() == depth


def test_forward_mode_is_refused() -> None:
    def function(x: Tensor) -> Any:
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            return torch.autograd.forward_ad.unpack_dual(dual * dual).tangent

    def changed(x: Tensor) -> Tensor:
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            return x * x

    assert "dual_level is a mode of torch's" in str(refusal(function, UP))
    assert "allow_mutation_on_saved_tensors is a mode" in str(refusal(changed, UP))


# ---- hooks for saved tensors
def powers(x: Tensor) -> Tensor:
    y = x * x
    if y.sum() > 20:
        y = y * x
    return y.exp() * 1e-3


def doubled(saved: Tensor) -> Tensor:
    return saved * 2


def untouched(saved: Tensor) -> Tensor:
    return saved


@pytest.mark.parametrize("hooks", [(doubled, untouched), (doubled, lambda saved: saved / 2)])
def test_hooks_for_saved_tensors_around_a_call(hooks: Any) -> None:
    agree_in(lambda: powers, *VECTORS, around=lambda: torch.autograd.graph.saved_tensors_hooks(*hooks))


def test_hooks_around_a_call_see_nothing_of_the_capture() -> None:
    seen: list[Tensor] = []
    static = sg.to_static(powers, backend="eager")

    def pack(saved: Tensor) -> Tensor:
        seen.append(saved)
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, untouched):
        static(UP_GRAD)
        first = len(seen)
        static(UP_GRAD)
    assert first > 0
    assert len(seen) == 2 * first
    assert all(type(tensor) is Tensor for tensor in seen)


def test_hooks_for_saved_tensors_inside() -> None:
    def function(x: Tensor) -> Tensor:
        with torch.autograd.graph.saved_tensors_hooks(doubled, untouched):
            y = x * x
            if y.sum() > 20:
                y = y * x
        return y * x

    agree_in(lambda: function, *VECTORS)


@pytest.mark.parametrize("inside", [True, False])
def test_saved_on_the_cpu(inside: bool) -> None:
    def function(x: Tensor) -> Tensor:
        with torch.autograd.graph.save_on_cpu():
            y = x * x
            if y.sum() > 20:
                y = y * x
        return y

    if inside:
        agree_in(lambda: function, *VECTORS)
    else:
        agree_in(lambda: powers, *VECTORS, around=torch.autograd.graph.save_on_cpu)


def test_hooks_that_close_over_variables_are_refused() -> None:
    def function(x: Tensor) -> Tensor:
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda index: saved[0]):
            return x * x

    assert "a hook for saved tensors closes over variables" in str(refusal(function, UP_GRAD))
