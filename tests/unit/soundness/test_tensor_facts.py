"""What code can tell of arguments besides their contents: identity, layout, attributes, facts of tensors."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.soundness.worlds import World, X, follows
from tests.unit.trace.agreement import agree, refusal


# ---- tensors told by identity
def told_by_a_set(x: Tensor, y: Tensor) -> Any:
    return x * len({x, y})


def told_by_a_dict(x: Tensor, y: Tensor) -> Any:
    return x * {x: 1.0, y: 2.0}[x]


def told_by_a_function(x: Tensor, y: Tensor) -> Any:
    return x * 2 if operator.is_(x, y) else x


def told_by_its_opposite(x: Tensor, y: Tensor) -> Any:
    return x * 2 if operator.is_not(x, y) else x


@pytest.mark.parametrize("first", [True, False], ids=["one, then two", "two, then one"])
@pytest.mark.parametrize("function", [told_by_a_set, told_by_a_dict, told_by_a_function, told_by_its_opposite])
def test_two_tensors_told_by_identity(function: Callable[..., Any], first: bool) -> None:
    def world() -> World:
        one, other = X(), X()
        calls = [(one, one), (one, other)]
        return function, calls if first else calls[::-1]

    follows(world, 2)


@pytest.mark.parametrize("first", [True, False], ids=["the key, then another", "another, then the key"])
def test_a_tensor_that_is_a_key(first: bool) -> None:
    def world() -> World:
        key, other = X(), X()
        known = {key: 5.0}
        calls = [(key,), (other,), (key,), (other,)]
        return lambda x: x * known.get(x, 1.0), calls if first else calls[1:]

    follows(world, 2)


def test_the_id_of_an_argument_is_refused() -> None:
    assert refusal(lambda x, y: x if id(x) == id(y) else x * 2, X(), X()).reason.code == "SG301"


@pytest.mark.parametrize("first", [True, False], ids=["one, then two", "two, then one"])
def test_arguments_with_symbolic_sizes_told_by_identity(first: bool) -> None:
    def world() -> World:
        short, long = torch.arange(3.0), torch.arange(4.0)
        calls = [(short, short), (short, long), (long, long), (long, long + 1)]
        return lambda x, y: x.sum() - 1 if x is y else x.sum() + y.sum(), calls if first else calls[::-1]

    follows(world, 2, input_spec=[sg.InputSpec([None]), sg.InputSpec([None])])


def test_one_tensor_with_symbolic_sizes_passed_twice() -> None:
    spec = [sg.InputSpec([None]), sg.InputSpec([None])]
    x = torch.arange(3.0)
    agree(lambda x, y: x - y, (x, x), (x, x * 2), (X(), X() * 3), input_spec=spec)


# ---- attributes that people keep on tensors
def tagged(**attributes: Any) -> Tensor:
    tensor = X()
    tensor.__dict__.update(attributes)
    return tensor


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "function",
    [lambda x: x * getattr(x, "tag", 1.0), lambda x: x * 2 if hasattr(x, "tag") else x],
    ids=["getattr", "hasattr"],
)
def test_attributes_of_a_tensor(function: Callable[..., Any], order: slice) -> None:
    calls = [(X(),), (tagged(tag=3.0),), (tagged(tag=4.0),), (X(),), (tagged(other=1),)]
    follows(lambda: (function, calls[order]), 3)


# ---- facts of tensors
LEAF = X().requires_grad_()
WHOLE = torch.arange(6.0)
COMPLEX = torch.tensor([1 + 2j, 3j])
FACTS: dict[str, tuple[Callable[[Tensor], Any], Tensor, Tensor]] = {
    "is_leaf": (lambda x: x * 2 if x.is_leaf else x, LEAF, LEAF * 1),
    "storage_offset": (lambda x: x * x.storage_offset(), WHOLE[:3], WHOLE[3:]),
    "_version": (lambda x: x * x._version, X(), X().add_(1)),
    "_is_view": (lambda x: x * 2 if x._is_view() else x, X(), X()[:]),
    "retains_grad": (lambda x: x * 2 if x.retains_grad else x, LEAF * 1, LEAF * 2),
    "is_inference": (lambda x: x * 2 if x.is_inference() else x, X(), torch.inference_mode()(X)()),
    "torch.is_inference": (lambda x: x * 2 if torch.is_inference(x) else x, X(), torch.inference_mode()(X)()),
    "is_shared": (lambda x: x * 2 if x.is_shared() else x, X(), X().share_memory_()),
    "is_conj": (lambda x: x * 2 if x.is_conj() else x, COMPLEX, COMPLEX.conj()),
    "conjugated": (lambda x: torch.view_as_real(x.resolve_conj()), COMPLEX, COMPLEX.conj()),
    "is_neg": (lambda x: x * 2 if x.is_neg() else x, COMPLEX.imag, COMPLEX.conj().imag),
}
FACTS["retains_grad"][2].retain_grad()


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_an_argument(name: str) -> None:
    function, *tensors = FACTS[name]
    for first, second in (tensors, tensors[::-1]):
        static = sg.to_static(lambda x, f=function: f(x), backend="eager")
        for tensor in (first, second, first, second):
            assert_same(function(tensor).detach(), static(tensor).detach())
        assert static.cache_info().programs == 2


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_a_tensor_of_the_world(name: str) -> None:
    function, *tensors = FACTS[name]
    for first, second in (tensors, tensors[::-1]):
        held = [first]
        static = sg.to_static(lambda h=held, f=function: f(h[0]), backend="eager")
        assert_same(function(first).detach(), static().detach())
        held[0] = second
        assert_same(function(second).detach(), static().detach())


REFUSED: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "grad_fn": (lambda x: x * len(x.grad_fn.name()), LEAF * 1),  # type: ignore[union-attr]  # it is not None
    "_base": (lambda x: x * 2 if x._base is None else x, X()[:]),
    "data_ptr": (lambda x: x * 2 if x.data_ptr() else x, X()),
    "untyped_storage": (lambda x: x * x.untyped_storage().size(), X()),
    "deepcopy": (lambda x: copy.deepcopy(x) * 2, torch.ones(2, 3)[:, 0]),  # whose memory has holes
}


@pytest.mark.parametrize("name", REFUSED)
def test_facts_that_only_the_run_knows(name: str) -> None:
    function, tensor = REFUSED[name]
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(tensor)
    assert caught.value.reason.code == "SG301"


@pytest.mark.parametrize(
    "function",
    [lambda x: x * (2 if x.is_contiguous() else 3), lambda x: x * x.stride(0), lambda x: x.as_strided((2,), (1,))],
    ids=["is_contiguous", "stride", "as_strided"],
)
def test_the_layout_of_an_argument_with_symbolic_sizes(function: Callable[..., Any]) -> None:
    tensors = [torch.ones(2, 3), torch.arange(6.0).view(3, 2).T, torch.ones(4, 5), torch.arange(20.0).view(5, 4).T]
    for calls in (tensors, tensors[::-1]):
        # one program for each order of dimensions: their sizes are open
        follows(lambda given=calls: (function, [(t,) for t in given]), 2, input_spec=[sg.InputSpec([None, None])])
