from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.current import current
from tests.unit.trace.agreement import N, P, agree, agree_fresh, nodes, program_of

GLOBAL = torch.ones(3)


def spelled(function: Any, *args: Any) -> list[tuple[str, Any]]:
    """How the operations of a function stand in its program."""
    return [(n.op, n.target) for n in nodes(program_of(function, *args)) if n.op.startswith("call")]


@pytest.mark.parametrize(
    ("function", "op", "target"),
    [
        (lambda x: x + 1, "call_function", operator.add),
        (lambda x: 1 - x, "call_function", operator.sub),
        (lambda x: 2**x, "call_function", operator.pow),
        (lambda x: x @ x, "call_function", operator.matmul),
        (lambda x: x[1:], "call_function", operator.getitem),
        (lambda x: x == 1, "call_function", operator.eq),
        (lambda x: x.sum(), "call_method", "sum"),
        (lambda x: x.clamp(min=1), "call_method", "clamp"),
        (lambda x: torch.sin(x), "call_function", torch.sin),
        (lambda x: F.gelu(x), "call_function", F.gelu),
        (lambda x: F.layer_norm(x, (3,)), "call_function", F.layer_norm),
        (lambda x: x[None].mT, "call_function", getattr),
        (lambda x: torch.ones(2), "call_function", torch.ones),
    ],
)
def test_a_call_is_recorded_as_it_was_written(function: Any, op: str, target: Any) -> None:
    assert (op, target) in spelled(function, P)


def test_what_torch_calls_inside_is_not_recorded() -> None:
    assert spelled(lambda x: F.multi_head_attention_forward, P) == []
    assert spelled(lambda x: F.cross_entropy(x[None], torch.tensor([1])), P)[-1] == ("call_function", F.cross_entropy)


def test_constants_need_no_node() -> None:
    assert spelled(lambda x: (x.shape[0] * 2, x.dim(), x.dtype, x.device, len(x)), P) == []


def tensors_from_everywhere() -> Any:
    enclosed, held = torch.ones(3) * 2, [torch.ones(3) * 3]

    def function(x: Tensor) -> Tensor:
        return x + GLOBAL + enclosed + held[0] + enclosed + torch.tensor([1.0, 2.0, 3.0])

    return function


def test_real_tensors_become_inputs_once() -> None:
    function = tensors_from_everywhere()
    program = program_of(function, P)
    assert [i.kind for i in program.inputs].count("tensor") == 3
    agree_fresh(tensors_from_everywhere, P, N)


def test_the_data_of_lifted_tensors_is_read_at_each_run() -> None:
    weight = torch.ones(3)
    static = sg.to_static(lambda x: x * weight, backend="eager")
    assert torch.equal(static(P), P)
    weight.mul_(5)
    assert torch.equal(static(P), P * 5)


def test_a_capture_ends_with_nothing_left_behind() -> None:
    program_of(lambda x: x + 1, P)
    assert current() is None
    assert not is_fake(torch.ones(1) + 1)
    with pytest.raises(ZeroDivisionError):
        program_of(lambda x: x / (1 // 0), P)
    assert current() is None
    assert not is_fake(torch.ones(1) + 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.shape, x.dtype, x.device, x.ndim, x.numel(), x.stride(), x.is_contiguous(), x.element_size()),
        lambda x: (x.T, x.mT, x.real, x.data, x.detach()),
        lambda x: (x.is_floating_point(), torch.is_tensor(x), x.storage_offset(), x.layout, x.itemsize),
        lambda x: (x.requires_grad, x.is_leaf, x.grad_fn is None, (x * 2).requires_grad),
        lambda x: (x.max(0), x.sort(1), torch.topk(x, 1), x.min(1).values),
        lambda x: (x.split(1), x.unbind(1), torch.meshgrid(x[0], x[1], indexing="ij"), x.aminmax()),
        lambda x: (x.size(), x.size(0), x.shape[1:], torch.Size([1, 2]), torch.broadcast_shapes((2, 1), (3,))),
        lambda x: (torch.equal(x, x), torch.allclose(x, x + 1), torch.is_nonzero(x.sum())),
        lambda x: (x.to(torch.float64), x.half(), x.type_as(torch.ones(1).long()), x.bool().any()),
        lambda x: x.nonzero().shape[0],
        lambda x: (x[x > 0], x[x > 0].numel(), x.masked_select(x > 0).sum()),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: x.new_zeros(2) + torch.zeros_like(x[0, :2]) + torch.arange(2),
        lambda x: torch.nn.functional.one_hot(x.argmax(), 6),
    ],
)
def test_attributes_and_results_of_many_kinds(function: Any) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    agree(function, x, -x)


def test_attributes_that_are_set() -> None:
    def sets(x: Tensor) -> Any:
        y = x * 1
        y.data = y.data * 2
        y.requires_grad = True
        return y * 3, y.requires_grad

    def sets_the_arguments(x: Tensor) -> Tensor:
        x.data = x * 2
        return x

    agree(sets, P, N)
    agree(sets_the_arguments, P, N)


def test_tensor_hooks() -> None:
    def hooked(x: Tensor) -> Tensor:
        y = x * 2
        y.register_hook(lambda gradient: gradient * 10)
        return y * 3

    agree(hooked, P.clone().requires_grad_(), N.clone().requires_grad_())


def test_random_operations_stay_random() -> None:
    def noisy(x: Tensor) -> Any:
        y = F.dropout(x, 0.5) if x.sum() > 0 else x + torch.randn(3)
        return y, torch.rand(2), torch.randperm(4)

    agree(noisy, P, N)
    static = sg.to_static(lambda x: x + torch.rand(3), backend="eager")
    assert not torch.equal(static(P), static(P))


def test_dropout_and_batch_norm_follow_the_mode() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return self.drop(self.norm(x.expand(2, 3) * torch.arange(2.0)[:, None]))

    agree_fresh(Net, P, N, lambda m: m.eval(), P, N, lambda m: m.train(), P, programs=2)
