from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.trace.control_flow.staging import any_flag
from stillgraph.trace.heap.exits import BREAK, CONTINUE, Exit, Return
from tests.unit.trace.agreement import IF, N, P, agree, agree_fresh, count, nodes, program_of, refusal


class Holder:
    def __init__(self, n: Any) -> None:
        self.n = n


def test_flags() -> None:
    assert Return(1).certain
    assert BREAK.certain
    assert CONTINUE.flags == (False, True, False, False)
    assert not Exit().certain
    assert any_flag(Exit(broke=True)) is True


# ---- what arms write is undone before the other runs
def local_variables(x: Tensor) -> Any:
    a, b, c = 1, 2, x
    if x.sum() > 0:
        a = b + 1
        b = a * 10
        c = c + 1
    else:
        b = a + 100
        c = c * b
    return a, b, c


def objects(x: Tensor) -> Any:
    h, inner = Holder(1), Holder(x)
    h.inner = inner
    if x.sum() > 0:
        h.n += 1
        h.inner.n = inner.n * 2
    else:
        h.n *= 10
        inner.n = h.inner.n - 1
    return h.n, inner.n


class Slotted:
    __slots__ = ("inner",)


def held_by_slots(x: Tensor) -> Any:
    s = Slotted()
    s.inner = Holder(0)
    if x.sum() > 0:
        s.inner.n = 3
    return s.inner.n


def made_in_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        h = Holder(1)
        h.n += 1
        n = h.n
    else:
        values = [1, 2]
        values.append(3)
        n = len(values)
    return n


def closures(x: Tensor) -> Any:
    n = 0

    def step(k: int) -> None:
        nonlocal n
        n += k

    if x.sum() > 0:
        step(1)
        step(2)
    else:
        step(10)
    step(100)
    return n


def nested(x: Tensor) -> Any:
    n, values = 0, [0, 0]
    if x.sum() > 0:
        n += 1
        if x.max() > 10:
            n += 10
            values[0] = n
        else:
            values[1] = n
        n += 100
    elif x.min() < -2:
        n -= 1
        values[0] = 7
    return n, values


def tensors_in_place(x: Tensor) -> Any:
    y, z = x * 1, torch.zeros(2)
    view = y[1:]
    if x.sum() > 0:
        y[0] = 7
        z += 1
    else:
        view.zero_()
        z[1] = x[0]
    return y, view, z


@pytest.mark.parametrize(
    "function", [local_variables, objects, held_by_slots, made_in_an_arm, closures, nested, tensors_in_place]
)
def test_each_arm_starts_from_the_same_state(function: Any) -> None:
    agree(function, P, N, P * 5)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.seen.add_(x.detach())
            return self.a(x)
        self.seen = self.seen * 2
        return self.b(x)


def test_buffers_of_one_arm() -> None:
    agree_fresh(Gated, P, N, P, N)


def test_parameters_of_one_arm_are_inputs_of_the_whole() -> None:
    kinds = [i.kind for i in program_of(Gated(), P).inputs]
    assert kinds.count("parameter") == 4
    assert kinds.count("buffer") == 1


# ---- the rest of a block runs where an arm went on
def rest_joins_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        return x
    print("rest")
    y = x * 2
    if y.min() < -5:
        return y, 1
    return y + 1


def rest_runs_once_for_both(x: Tensor) -> Any:
    y = x + 1 if x.sum() > 0 else x - 1
    print("once")
    return y


def rest_after_a_raise(x: Tensor) -> Any:
    if x.sum() < 0:
        raise ValueError("negative")
    return x.sqrt()


@pytest.mark.parametrize("function", [rest_joins_an_arm, rest_runs_once_for_both, rest_after_a_raise])
def test_the_rest(function: Any) -> None:
    agree(function, P, N, N / 5)


def test_a_raise_needs_no_join() -> None:
    program = program_of(rest_after_a_raise, P)
    assert count(program, IF) == 1


def test_operands_are_the_same_for_both_arms() -> None:
    (branch,) = (n for n in nodes(program_of(local_variables, P)) if n.target is IF)
    module = program_of(local_variables, P).graph
    arms = [getattr(module, str(arm.target)) for arm in branch.args[1:3]]  # type: ignore[union-attr]
    taken = [[n.name for n in arm.graph.nodes if n.op == "placeholder"] for arm in arms]
    assert taken[0] == taken[1]
    assert len(taken[0]) == len(branch.args[3])  # type: ignore[arg-type]


# ---- what cannot be part of an arm
def mode_left_on(x: Tensor) -> Tensor:
    if x.sum() > 0:
        torch.set_grad_enabled(False)
    return x * 2


def layout_changed(x: Tensor) -> Tensor:
    y = x * 1
    if x.sum() > 0:
        y.unsqueeze_(0)
    return y.sum()


@pytest.mark.parametrize(
    ("function", "code"), [(mode_left_on, "SG305"), (layout_changed, "SG305")]
)
def test_refused_with_the_line(function: Any, code: str) -> None:
    error = refusal(function, P)
    assert error.reason.code == code
    assert error.location is not None
    assert error.location.file == __file__


def test_a_refused_capture_leaves_the_grad_mode_alone() -> None:
    refusal(mode_left_on, P)
    assert torch.is_grad_enabled()


DROPOUTS = {
    "dropout": lambda y: nn.functional.dropout(y, 0.5, training=True),
    "in place": lambda y: nn.functional.dropout(y * 1, 0.5, True, True),
    "by keywords": lambda y: nn.functional.dropout(input=y * 1, p=0.5, inplace=True),
    "alpha": lambda y: nn.functional.alpha_dropout(y, 0.5, training=True),
    "channels": lambda y: nn.functional.dropout1d(y[None], 0.5, training=True),
    "torch's": lambda y: torch.dropout(y, 0.5, True),
    "torch's in place": lambda y: torch.dropout_(y * 1, 0.5, True),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_a_dropout_of_rows_that_only_the_run_counts(name: str) -> None:
    drop = DROPOUTS[name]

    def rows(x: Tensor) -> Tensor:
        i, total = 0, x.new_zeros(())
        while i < x.shape[0] - 1 and x[i + 1, 0] > 0:
            total = total + drop(x[i : i + 1]).sum()
            i += 1
        return total + drop(x[x[:, 0] > 0]).sum()

    static = sg.to_static(rows, backend="eager")
    for x in (torch.ones(5, 4), -torch.ones(5, 4)):
        torch.manual_seed(0)
        actual = static(x)
        torch.manual_seed(0)
        assert torch.equal(actual, rows(x))


def test_a_size_that_decides_inside_torch_is_told_without_torchs_symbols() -> None:
    static = sg.to_static(lambda x: nn.functional.channel_shuffle(x[x > 0][None, :, None], 2), backend="eager")
    with pytest.raises(sg.CaptureError, match="channel_shuffle needs a value") as caught:
        static(torch.ones(6))
    assert "(a size decides what it does)" in str(caught.value)
    assert not re.search(r"\bu\d", str(caught.value))


def test_a_size_that_only_makes_torch_fail_is_left_to_the_run() -> None:
    def pooled(x: Tensor) -> Tensor:
        return nn.functional.max_pool1d(x[x > 0][None], 2)

    static = sg.to_static(pooled, backend="eager")
    for kept in (6, 5, 3, 2, 1, 0):
        x = torch.where(torch.arange(6) < kept, torch.arange(1.0, 7.0), -1.0).requires_grad_()
        if kept < 2:
            with pytest.raises(RuntimeError) as eager:
                pooled(x)
            with pytest.raises(RuntimeError) as ours:
                static(x)
            assert str(ours.value) == str(eager.value)
            continue
        expected, actual = pooled(x), static(x)
        assert torch.equal(actual, expected)
        gradients = [torch.autograd.grad(each.sum(), x)[0] for each in (expected, actual)]
        assert torch.equal(*gradients)
    assert static.cache_info().programs == 1
