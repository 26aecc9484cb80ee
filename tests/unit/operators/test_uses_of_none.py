"""What is done with a value that is None on one path: None answers as in eager, be the other a tensor or a number."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree, refusal

Use = Callable[[Any, Tensor], Any]


def added_in_place(n: Any, x: Tensor) -> Any:
    n += 1
    return n


def raised_in_place(n: Any, x: Tensor) -> Any:
    n **= 2
    return n


def caught(n: Any, x: Tensor) -> Any:
    try:
        return -n
    except TypeError:
        return x


def used_where_it_has_it(n: Any, x: Tensor) -> Any:
    return n.sum() * 2 if hasattr(n, "sum") else x


def made_where_it_is(n: Any, x: Tensor) -> Any:
    return torch.ones(2, device=n.device) + x.sum()


OF_BOTH: dict[str, Use] = {
    "-n": lambda n, x: -n,
    "+n": lambda n, x: +n,
    "abs(n)": lambda n, x: abs(n),
    "operator.neg(n)": lambda n, x: operator.neg(n),
    "n ** 2": lambda n, x: n**2,
    "x ** n": lambda n, x: x**n,
    "n // 2": lambda n, x: n // 2,
    "pow(n, 2)": lambda n, x: pow(n, 2),
    "type": lambda n, x: type(n),
    "class": lambda n, x: n.__class__,
    "is of the class": lambda n, x: n.__class__ is Tensor,
    "hasattr of real": lambda n, x: hasattr(n, "real"),
    "hasattr of what nothing has": lambda n, x: hasattr(n, "nothing_has_this"),
    "hasattr of what all have": lambda n, x: hasattr(n, "__class__"),
    "getattr of what nothing has": lambda n, x: getattr(n, "nothing_has_this", 3),
    "caught": caught,
    "used where it has it": used_where_it_has_it,
}
OF_TENSORS: dict[str, Use] = {
    "n += 1": added_in_place,
    "n **= 2": raised_in_place,
    "n.__add__(1)": lambda n, x: n.__add__(1),
    "n.add(1)": lambda n, x: n.add(1),
    "n.pow(2)": lambda n, x: n.pow(2),
    "n.neg()": lambda n, x: n.neg(),
    "n.lt(1)": lambda n, x: n.lt(1),
    "n.add_(1)": lambda n, x: n.add_(1),
    "n.__getitem__(0)": lambda n, x: n.__getitem__(0),
    "n.__len__()": lambda n, x: n.__len__(),
    "n.tolist()": lambda n, x: n.tolist(),
    "n.numpy()": lambda n, x: n.numpy(),
    "n.type()": lambda n, x: n.type(),
    "n.numpy(), unused": lambda n, x: (n.numpy(), x)[1],
    "np.asarray(n).sum()": lambda n, x: np.asarray(n).sum() if n is not None else 0.0,
    "np.shape": lambda n, x: np.asarray(n).ndim,
    "device": lambda n, x: n.device,
    "type of its device": lambda n, x: n.device.type == "cpu",
    "made where it is": made_where_it_is,
    "getattr of device": lambda n, x: getattr(n, "device", None),
    "getattr of ndim": lambda n, x: getattr(n, "ndim", -1),
    "getattr of shape": lambda n, x: getattr(n, "shape", ()),
    "getattr of real": lambda n, x: getattr(n, "real", 3),
    "getattr of T": lambda n, x: getattr(n, "mT", x),
    "getattr without default": lambda n, x: getattr(n, "dtype"),  # noqa: B009 (what is shown)
    "hasattr of sum": lambda n, x: hasattr(n, "sum"),
    "hasattr of device": lambda n, x: hasattr(n, "device"),
    "hasattr of shape": lambda n, x: hasattr(n, "shape"),
    "n.mT": lambda n, x: n.mT,
    "n.data": lambda n, x: n.data,
    "sum(n)": lambda n, x: sum(n),
    "list(n)": lambda n, x: list(n),
    "tuple(n)": lambda n, x: tuple(n),
    "max(n)": lambda n, x: max(n),
    "1 in n": lambda n, x: 2.0 in n,
    "list(map(abs, n))": lambda n, x: list(map(abs, n)),
}
MADE: dict[str, Callable[[Tensor], Any]] = {
    "a tensor": lambda x: x[None] * 2 if x.sum() > 0 else None,
    "a number": lambda x: x.sum().item() if x.sum() > 0 else None,
}


@pytest.mark.parametrize("use", [*OF_BOTH, *OF_TENSORS])
def test_none_answers_as_in_eager_where_there_may_be_a_tensor(use: str) -> None:
    do = {**OF_BOTH, **OF_TENSORS}[use]
    agree(lambda x: do(MADE["a tensor"](x), x), P, N)


@pytest.mark.parametrize("use", sorted(set(OF_BOTH) - {"used where it has it"}))
def test_none_answers_as_in_eager_where_there_may_be_a_number(use: str) -> None:
    agree(lambda x: OF_BOTH[use](MADE["a number"](x), x), P, N)


OF_LOOPS: dict[str, Callable[[Tensor], Any]] = {
    "a tensor": lambda x: x * 2,
    "no dimensions": torch.sum,
    "a number": lambda x: x.sum().item(),
    "a truth": lambda x: bool(x[0] > 1),
    "a constant": lambda x: 3,
}


@pytest.mark.parametrize("through", [contextlib.nullcontext, through_bytecode], ids=["source", "bytecode"])
@pytest.mark.parametrize("made", OF_LOOPS)
def test_a_loop_over_none_says_so_in_a_handler(made: str, through: Any) -> None:
    make = OF_LOOPS[made]

    def looped(x: Tensor) -> Any:
        found = []
        try:
            for each in make(x) if x.sum() > 0 else None:
                found.append(each)
        except TypeError as error:
            return str(error)
        return found

    def delegated(x: Tensor) -> Any:
        try:
            v = make(x) if x.sum() > 0 else None

            def own() -> Any:
                yield 1
                yield from v

            return list(own())
        except TypeError as error:
            return str(error)

    with through():
        for function in (looped, delegated):
            static = sg.to_static(function, backend="eager")
            assert [str(static(x)) for x in (P, N)] == [str(function(x)) for x in (P, N)]


def test_a_star_takes_no_none() -> None:
    def starred(x: Tensor) -> Any:
        n = x * 2 if x.sum() > 0 else None
        try:
            return torch.stack([*n])  # type: ignore[misc]  # what is shown
        except TypeError:
            return x

    agree(starred, P, N)


def test_the_hash_of_what_the_run_makes_is_refused() -> None:
    assert refusal(lambda x: hash(x * 2), P).reason.code == "SG301"
    assert refusal(lambda x: hash(MADE["a tensor"](x)), P).reason.code == "SG301"


def test_the_class_of_what_the_run_makes_is_eagers() -> None:
    layer = nn.Linear(3, 1)
    agree(lambda x: ((x * 2).__class__, x.sum().item().__class__, layer.weight.__class__, x.__class__.__name__), P)
    agree(lambda x: getattr(x * 2, "__class__", None), P)
