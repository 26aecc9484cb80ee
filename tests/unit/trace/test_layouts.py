"""How a tensor lies in memory, where the paths that lead to it leave it in different ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree

import stillgraph as sg
from tests.cases.compare import assert_same


def one_arm(x: Tensor) -> Any:
    y = x.expand(2, 6).t()
    if x[0] > 0:
        y = y.contiguous()
    return y, y.stride(), y.is_contiguous(), y.stride(0)


def decided_behind(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    if x.sum() > 0:
        y = y.t().contiguous().t()
    z = y + 1
    return z * (2 if z.is_contiguous() else 3), z.contiguous().stride(), torch.cat([z, z]).is_contiguous()


def in_a_loop(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    while y.sum() < 9:
        y = (y + 1).t().contiguous().t()
    if not y.is_contiguous():
        y = y * 10
    return y, y.stride()


def made_contiguous(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    if x.sum() > 0:
        y = y.t().contiguous().t()
    w = (y * 2).contiguous()
    return w.view(-1), w.stride(), w.is_contiguous(), w.contiguous() is w


def of_a_view(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x[2:]
    else:
        y = x[:4]
    return y.storage_offset(), y


def transposed_or_copied(x: Tensor) -> Tensor:
    y = x.reshape(2, 3).t()
    if x.sum() > 0:
        y = y.contiguous()
    return y


def attributes(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    return [(view.stride(), view.is_contiguous()) for view in (y.T, y.mT, y.H, y.mH, y.data, y.detach(), y.T.mT)]


def decided_by_an_attribute(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    if y.T.is_contiguous():
        return x + 1
    return x - 1


def complex_parts(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    z = torch.complex(y, y)
    return z.real.stride(), z.imag.stride(), z.imag.is_contiguous(), z.mH.stride()


def attribute_of_what_is_computed(x: Tensor) -> Any:
    return (transposed_or_copied(x) * 2).mT.stride(), transposed_or_copied(x).relu().T.is_contiguous()


def data_set(x: Tensor) -> Any:
    new = torch.empty(3, 2)
    new.data = transposed_or_copied(x)
    view = new.T
    return new.is_contiguous(), view.stride(), new


def other_memory(x: Tensor) -> Any:
    new = torch.empty(0)
    new.set_(transposed_or_copied(x))
    return new.is_contiguous(), new.stride(), torch.neg(new, out=torch.empty(0)).stride()


def required(x: Tensor) -> Any:
    y = (transposed_or_copied(x) * 1).requires_grad_()
    (slope,) = torch.autograd.grad((y * y).sum(), y, create_graph=True)
    return y.is_contiguous(), slope.stride()


def changed_in_place(x: Tensor) -> Any:
    found = [
        transposed_or_copied(x).t_().stride(),
        transposed_or_copied(x).transpose_(0, 1).stride(),
        transposed_or_copied(x).swapaxes_(0, 1).is_contiguous(),
        transposed_or_copied(x).unsqueeze_(0).stride(),
    ]
    y = transposed_or_copied(x)
    y.unsqueeze_(0).squeeze_(0).swapdims_(0, 1)
    return found, y.stride(), y.is_contiguous(), y.T.mul_(2).is_contiguous(), y


def viewed(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    if y.is_contiguous():
        return y.view(6), y.view(2, 3).stride()
    return y.T.view(6), y.T.view(3, 2).stride()


def views_of_attributes(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    if x.sum() > 0:
        y = y * 2
    return y.T.T.view(6), y.view(torch.int16), y.T.mT.view(torch.int32)


def handled(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    try:
        return y.view(6)
    except RuntimeError:
        return y.reshape(6) + 100


def handled_of_an_attribute(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    try:
        z = y.T.view(6)
    except RuntimeError:
        z = y.reshape(6) + 100
    return z


def handled_view_as(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    try:
        return y.view_as(x)
    except RuntimeError:
        return x - 100


def handled_dtype(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    try:
        return y.view(torch.int16)
    except RuntimeError:
        return x - 100


def handled_strides(x: Tensor) -> Any:
    y = x[0].clone().expand(6) if x.sum() > 0 else x + 1
    try:
        return y.as_strided((2,), (1,), 4)
    except RuntimeError:
        return x - 100


def handled_lack_of_memory(x: Tensor) -> Any:
    y = x.clone() if x.sum() > 0 else x[:3] + 1
    try:
        return y[:3].as_strided((6,), (1,))
    except RuntimeError:
        pass
    try:
        return torch.as_strided(x, (7,), (1,))
    except RuntimeError:
        return x - 100


def results_of_one_call(x: Tensor) -> Any:
    y = transposed_or_copied(x)
    parts = y.split(1), y.unbind(), y.chunk(2, 1), y.sort(), torch.max(y, 0), torch.broadcast_tensors(y, y)
    return [[part.stride() for part in each] for each in parts]


def handled_write(x: Tensor) -> Any:
    y = x[0].expand(6) if x.sum() > 0 else x + 1
    try:
        y += 1
    except RuntimeError:
        y = x - 100
    return y


def no_such_view(x: Tensor) -> Any:
    try:
        return x.reshape(2, 3).t().view(6)
    except RuntimeError as error:
        return x + len(str(error))


def part_of_what_grows(x: Tensor) -> Tensor:
    rows = x.reshape(3, 2).t()
    while rows[0, -1].abs() < 1000 and rows.shape[1] < 8:
        left, right = torch.stack([rows, rows + 1, rows, rows - 1], dim=-1).split(2, dim=-1)
        pair = left.view(2, -1, 2, 1).sum(dim=2) * right.view(2, -1, 1, 2)[..., 0]
        rows = torch.cat([rows, pair.sum(dim=1)], dim=1)
    return rows


CASES = [
    *(one_arm, decided_behind, in_a_loop, made_contiguous, of_a_view, attributes, decided_by_an_attribute),
    *(complex_parts, attribute_of_what_is_computed, data_set, other_memory, required, changed_in_place, viewed),
    *(views_of_attributes, handled, handled_of_an_attribute, handled_view_as, handled_dtype, handled_strides),
    *(handled_lack_of_memory, results_of_one_call, handled_write, no_such_view, part_of_what_grows),
]


@pytest.mark.parametrize("function", CASES, ids=lambda case: case.__name__)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in (torch.arange(6.0) + 1, -torch.arange(6.0) - 1, torch.zeros(6)):
        expected, actual = function(x), static(x)
        assert_same(expected, actual)
        for one, other in zip(_pytree.tree_leaves(expected), _pytree.tree_leaves(actual), strict=True):
            if isinstance(one, Tensor):
                assert one.stride() == other.stride()
    assert static.cache_info().programs == 1


def test_what_no_path_has_changed_is_known() -> None:
    def function(x: Tensor) -> Any:
        y = x.t() * 2
        if x.sum() > 0:
            z = x + 1
        else:
            z = x - 1
        return y.stride(), y.is_contiguous(), z

    program = sg.export(function, (torch.ones(2, 3),))
    assert "stride" not in str(program)
    assert "is_contiguous" not in str(program)


def test_tensors_from_before_the_call_that_are_given_other_memory() -> None:
    def function(x: Tensor, first: Tensor, second: Tensor) -> Any:
        first.data = transposed_or_copied(x)
        second.set_(transposed_or_copied(x))
        return [(each.stride(), each.is_contiguous(), each.T.is_contiguous()) for each in (first, second)]

    static = sg.to_static(function, backend="eager")
    for x in (torch.arange(6.0) + 1, -torch.arange(6.0) - 1):
        assert static(x, torch.ones(3, 2), torch.ones(3, 2)) == function(x, torch.ones(3, 2), torch.ones(3, 2))
    assert static.cache_info().programs == 1


def test_a_loop_that_makes_a_view_possible() -> None:
    def function(x: Tensor) -> Any:
        y = transposed_or_copied(x)
        for _ in range(2):
            try:
                z = y.view(6)
                break
            except RuntimeError:
                y = y.contiguous()
        return z, y.stride()

    static = sg.to_static(function, backend="eager")
    for x in (torch.arange(6.0) + 1, -torch.arange(6.0) - 1):
        assert_same(function(x), static(x))
