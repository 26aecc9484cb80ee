"""Programs that run and cannot be saved; arguments that do not fit; functions whose source does not do."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.messages.case import not_saved, refused, told

X = torch.ones(3)


@not_saved("SG401", ".pt2", X)
def a_tensor_or_a_pair(x: Tensor) -> Any:
    if x.max() > 1:
        return x, x.max()
    return x


@not_saved("SG401", ".pt2", X)
def two_ranks(x: Tensor) -> Any:
    return x if x.sum() > 0 else x[None]


@not_saved("SG401", ".pt2", X)
def two_dtypes(x: Tensor) -> Any:
    if x.sum() > 0:
        return x
    return x > 0


@not_saved("SG401", ".onnx", X)
def a_key_of_one_path(x: Tensor) -> Any:
    found = {"x": x}
    if x.sum() > 0:
        found["mean"] = x.mean()
    return found


@not_saved("SG402", ".onnx", torch.eye(3))
def no_such_operator(x: Tensor) -> Any:
    y = x * 2
    return torch.linalg.eigvalsh(y) if x.sum() > 0 else y[0]


@not_saved("SG402", ".pt2", X)
def tensors_of_many_sizes_side_by_side(x: Tensor) -> Any:
    found = [x[:, None]]
    while x.sum() < 10:
        x = x + 1
        found.append(x[x > -9][:, None])
    return torch.cat(found, dim=1)


@not_saved("SG402", ".pt2", X)
def a_list_whose_element_is_written(x: Tensor) -> Any:
    found = []
    total = torch.zeros(3)
    while total.sum() < 10:
        total += x
        found.append(total)
    return found


@not_saved("SG402", ".pt2", torch.ones(3, requires_grad=True))
def it_differentiates(x: Tensor) -> Any:
    (gradient,) = torch.autograd.grad((x * x).sum(), x)
    return gradient


@not_saved("SG402", ".pt2", X)
def the_clock_is_read(x: Tensor) -> Any:
    import time

    return x * time.time()


@not_saved("SG402", ".pt2", X)
def it_calls_itself(x: Tensor) -> Any:
    if x.norm() > 1:
        return it_calls_itself(x / 2) + 1
    return x


@not_saved("SG402", ".pt2", X)
def keys_of_a_kind_of_their_own(x: Tensor) -> Any:
    return {(1, 2): x * 2}


@not_saved("SG401", ".pt2", X)
def an_object_of_one_path(x: Tensor) -> Any:
    if x.sum() > 0:
        return {"x": x, "mean": x.mean()}
    return {"x": x}


@not_saved("SG402", ".pt2", X)
def an_exception_of_torchs_handled(x: Tensor) -> Any:
    try:
        y = torch.linalg.cholesky(x.diag())
    except torch.linalg.LinAlgError:
        y = x.diag()
    return y


@not_saved("SG402", ".pt2", X)
def a_handler_that_looks_back(x: Tensor) -> Any:
    y = x
    try:
        y = x * 2
        if x.sum() > 0:
            raise KeyError("positive")
        y.neg_()
    except KeyError:
        y = y + 1
    return y


@not_saved("SG402", ".onnx", X)
def a_generator_of_its_own(x: Tensor) -> Any:
    return x + torch.rand(3, generator=torch.Generator().manual_seed(1))


@not_saved("SG402", ".pt2", X)
def a_numpy_array_is_made(x: Tensor) -> Any:
    return (x * 2).numpy()


@not_saved("SG402", ".pt2", X)
def a_file_is_read_and_written(x: Tensor) -> Any:
    torch.save(x, "x.pt")
    return x * 2


activation = eval("lambda x: x * 2 if x.sum() > 0 else x")


@told("SG101")
def made_by_eval() -> Any:
    _ = sg.to_static(activation, backend="eager").code


@told("SG103")
def awaited() -> Any:
    @sg.to_static(backend="eager")
    async def scaled(x: Tensor) -> Any:
        return x * 2 if x.sum() > 0 else x

    asyncio.run(scaled(X))


@refused("SG104", X)
def of_the_caller(x: Tensor) -> Any:
    return x * len(sys._getframe(1).f_locals)


@refused("SG501", torch.tensor([5, 3, 0]), input_spec=[sg.InputSpec([None])])
def another_dtype(tokens: Tensor) -> Any:
    return tokens == 0


@refused("SG501", torch.ones(3, 2), input_spec=[sg.InputSpec([None, 3])])
def another_size(x: Tensor) -> Any:
    return x




@not_saved("SG401", ".pt2", X)
def a_key_of_one_path_in_a_list(x: Tensor) -> Any:
    found = {"x": x}
    if x.sum() > 0:
        found["mean"] = x.mean()
    return [found]


@not_saved("SG401", ".pt2", X)
def an_element_of_one_path(x: Tensor) -> Any:
    found = {1}
    if x.sum() > 0:
        found.add(2)
    return x, found


class Gate(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x


@refused("SG105", X)
def a_scripted_module(x: Tensor) -> Any:
    gate = torch.jit.script(Gate())
    return gate(x) + 1
