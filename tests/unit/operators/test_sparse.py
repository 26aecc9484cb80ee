"""Sparse tensors: how many elements one holds, and whether it is coalesced, only the run knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree

EYE, ONES, NONE = torch.eye(2), torch.ones(2, 2), torch.zeros(2, 2)
UNCOALESCED = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (2, 2))
DENSE = (EYE, ONES, NONE, 2 * ONES)


def counted(x: Tensor) -> Any:
    s, c = x.to_sparse(), x.to_sparse_csr()
    return s._nnz(), s._nnz() / x.numel(), s.indices().shape[1], s.values().numel(), c._nnz(), c.values().shape[0]


def decided_by(x: Tensor) -> Any:
    if x.to_sparse()._nnz() > 3:
        return x * 2
    return x - 1


def told_by_its_length(x: Tensor) -> Any:
    found = x.to_sparse().values()
    if found.numel() == 0:
        return x.sum()
    return found.max() * len(found)


def looped_over(x: Tensor) -> Any:
    s, total = x.to_sparse(), torch.zeros(())
    for i, v in zip(s.indices()[0], s.values()):
        total = total + (i + 1) * v
    return total


def indexed_by(x: Tensor) -> Any:
    rows, columns = x.to_sparse().indices()
    return x[rows, columns], rows.float() * x.to_sparse().values(), rows.stride(), x.to_sparse().indices().stride()


def compressed(x: Tensor) -> Any:
    rows, columns, blocks = x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((1, 2))
    return (
        (rows.crow_indices(), rows.col_indices(), rows.values(), rows._nnz()),
        (columns.ccol_indices(), columns.row_indices(), columns.values(), columns._nnz()),
        (blocks.col_indices(), blocks.values(), blocks._nnz()),
    )


def of_rows(x: Tensor) -> Any:
    s = x.to_sparse(1)
    return s.values().shape, s.indices().shape, s.values(), s.sparse_dim(), s.dense_dim()


def of_two(x: Tensor) -> Any:
    s = x.to_sparse() + EYE.to_sparse()
    return s._nnz(), s.coalesce()._nnz(), s.coalesce().values(), s.to_dense()


def made_of_parts(x: Tensor) -> Any:
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [1, 0, 0]]), x[0, :1].expand(3), (2, 2))
    return s._nnz(), s.coalesce()._nnz(), s.is_coalesced(), s._values(), s.to_dense()


def written_through_its_values(x: Tensor) -> Any:
    s = x.to_sparse()
    s.values().mul_(3)
    return s.to_dense()


def not_about_it(x: Tensor) -> Any:
    s = x.to_sparse()
    sums = torch.sparse.sum(s), torch.sparse.sum(s, 0).to_dense(), s.sum(), s.norm()
    return sums, torch.sparse.softmax(s, 1).to_dense(), torch.sparse.mm(s, x), s.t().to_dense(), s.shape, s.is_sparse


def chosen(x: Tensor) -> Any:
    s = x.to_sparse()
    if x.sum() > 2:
        s = s * 2
    return s.to_dense(), s._nnz(), s.is_sparse, s.layout


def of_one_path(x: Tensor) -> Any:
    s = x.to_sparse_csr() if x.sum() > 2 else None
    return x if s is None else (s @ x) * s._nnz()


def sparse_or_not(x: Tensor) -> Any:
    s = x.to_sparse() if x.sum() > 2 else x
    return s.is_sparse, s.layout, s.sum()


def of_rows_or_not(x: Tensor) -> Any:
    s = x.to_sparse(1) if x.sum() > 2 else x
    return s.to_dense()


def carried(x: Tensor) -> Any:
    s, steps = (x + EYE).to_sparse(), 0
    while s.sum() < 10:
        s = s * 2
        steps += 1
    return s.to_dense(), s._nnz(), steps


FUNCTIONS: list[Callable[[Tensor], Any]] = [
    counted,
    decided_by,
    told_by_its_length,
    looped_over,
    indexed_by,
    compressed,
    of_rows,
    of_two,
    made_of_parts,
    written_through_its_values,
    not_about_it,
    chosen,
    of_one_path,
    sparse_or_not,
    carried,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_made_in_the_call(function: Any) -> None:
    agree(function, *DENSE)
    agree(function, *reversed(DENSE))


def parts(s: Tensor) -> Any:
    return s.values() * 2, s._indices(), s._values().numel(), s._nnz(), s.values().sum()


def parts_if_coalesced(s: Tensor) -> Any:
    try:
        return s.values()
    except RuntimeError:
        return -s._values()


def coalesced(s: Tensor) -> Any:
    c = s.coalesce()
    return c.values(), c is s, s.is_coalesced(), c.is_coalesced(), (s + s).is_coalesced()


@pytest.mark.parametrize("function", [parts, parts_if_coalesced, coalesced])
def test_arguments(function: Any) -> None:
    calls = [EYE.to_sparse(), ONES.to_sparse(), NONE.to_sparse()]
    calls += [] if function is parts else [UNCOALESCED]
    for order in (calls, calls[::-1]):
        static = sg.to_static(function, backend="eager")
        for call in order:
            assert str(static(call.clone())) == str(function(call.clone()))
        assert static.cache_info().programs == 1


def test_gradients() -> None:
    def function(x: Tensor) -> Tensor:
        return (x.to_sparse().values() ** 2).sum()

    agree(function, *(x.clone().requires_grad_() for x in DENSE))


def test_trains_with_sparse_gradients() -> None:
    def make() -> tuple[nn.Embedding, Callable[[Tensor], Tensor]]:
        torch.manual_seed(0)
        layer = nn.Embedding(4, 2, sparse=True)
        optimizer = torch.optim.SparseAdam(layer.parameters(), 0.1)

        def step(places: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = layer(places).pow(2).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return layer, step

    (layer, step), (other, same) = make(), make()
    static = sg.to_static(same, backend="eager")
    for places in torch.tensor([[1, 2], [2, 2], [0, 3]]):
        assert torch.equal(step(places), static(places))
    assert torch.equal(layer.weight, other.weight)


def written(s: Tensor) -> Any:
    s.coalesce().mul_(2)
    return s.to_dense()


def counted_inside(x: Tensor) -> Any:
    return x * torch.ops.aten._nnz.default(x.to_sparse())


def of_other_shapes(x: Tensor) -> Any:
    s = x.to_sparse() if x.sum() > 2 else x[:1].to_sparse()
    while s.sum() < 10:
        s = s * 2
    return s.to_dense()


def grown(x: Tensor) -> Any:
    found = []
    for row in x:
        if row.sum() > 0:
            found.append((x * row).to_sparse())
    return torch.stack(found).to_dense() if found else x


def picked(x: Tensor) -> Any:
    of_rows = [x.to_sparse(1), x.to_sparse(1) * 2]
    return of_rows[int(x[0, 0] > 0)].to_dense()


def embedded(x: Tensor) -> tuple[Tensor, Tensor]:
    w = torch.ones(4, 2, requires_grad=True)
    return w, torch.nn.functional.embedding(x.long(), w, sparse=True).sum()


def sparse_gradient(x: Tensor) -> Any:
    w, loss = embedded(x)
    loss.backward()
    return torch.tensor(w.grad.is_sparse)


def differentiated(x: Tensor) -> Any:
    w, loss = embedded(x)
    return torch.tensor(torch.autograd.grad(loss, w)[0].is_sparse)


@pytest.mark.parametrize(
    ("function", "argument", "code"),
    [
        (written, EYE.to_sparse(), "SG301"),
        (counted_inside, EYE, "SG304"),
        (of_other_shapes, EYE, "SG201"),
        (of_rows_or_not, EYE, "SG203"),
        (grown, EYE, "SG203"),
        (picked, EYE, "SG203"),
        (sparse_gradient, EYE, "SG304"),
        (differentiated, EYE, "SG304"),
    ],
)
def test_refused(function: Any, argument: Tensor, code: str) -> None:
    with pytest.raises(sg.CaptureError, match=code):
        sg.to_static(function, backend="eager")(argument.clone())
    partly = sg.to_static(function, backend="eager", full_graph=False)
    expected = function(argument.clone())
    assert torch.equal(partly(argument.clone()), expected)


def halved(s: Tensor, v: Tensor) -> Any:
    return (s @ v) / 2, s.is_sparse, s.layout


COMPRESSED = {
    "coo": torch.Tensor.to_sparse,
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda dense: dense.to_sparse_bsr((2, 2)),
    "dense": torch.clone,
    "expanded": lambda dense: dense[:1, :1].expand(4, 4),
}


@pytest.mark.parametrize("full_graph", [True, False])
def test_arguments_of_all_layouts(full_graph: bool) -> None:
    static = sg.to_static(halved, backend="eager", full_graph=full_graph)
    dense, v = torch.eye(4) * 2, torch.ones(4, 2)
    for _ in range(2):
        for convert in COMPRESSED.values():
            found, expected = static(convert(dense), v), halved(convert(dense), v)
            assert torch.equal(found[0], expected[0])
            assert found[1:] == expected[1:]
    assert static.cache_info().programs == len(COMPRESSED)


def nested() -> Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)


def test_a_nested_tensor_is_refused_by_name() -> None:
    with pytest.raises(sg.CaptureError, match="NestedTensor") as refused:
        sg.to_static(lambda n: n * 2, backend="eager")(nested())
    assert refused.value.reason.code == "SG304"


def test_a_nested_tensor_is_pythons_without_a_full_graph() -> None:
    static = sg.to_static(lambda n, x: ((n * 2).values().sum(), x + 1), backend="eager", full_graph=False, strict=True)
    total, x = static(nested(), torch.ones(2))
    assert total == 36
    assert torch.equal(x, torch.full((2,), 2.0))
