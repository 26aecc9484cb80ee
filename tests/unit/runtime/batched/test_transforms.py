"""Static functions under the transforms of `torch.func`, against the function itself, or a loop over the lanes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import stillgraph as sg

X = torch.tensor([1.0, 2.0])
LANES = torch.tensor([[1.0, 2.0], [5.0, 6.0], [60.0, 50.0], [-3.0, -4.0]])


def plain(x: Tensor) -> Tensor:
    while x.abs().sum() < 100:
        if x.sum() > 10:
            x = x * x
        else:
            x = x * 2 + x.sin()
    return x


def plain_loss(x: Tensor, w: Tensor) -> Tensor:
    y = plain(x * w)
    return (y.log() if y.sum() > 0 else y.abs().sqrt()).sum()


@pytest.fixture
def static() -> Any:
    return sg.to_static(plain, backend="eager")


@pytest.fixture
def loss() -> Any:
    return sg.to_static(plain_loss, backend="eager")


W = torch.tensor([0.5, 1.5])


@pytest.mark.parametrize("warm", [False, True])
def test_derivatives(static: Any, loss: Any, warm: bool) -> None:
    if warm:
        static(X)
        loss(X, W)
    for function, other in ((static, plain),):
        torch.testing.assert_close(vjp(function, X)[1](W), vjp(other, X)[1](W))
        torch.testing.assert_close(jvp(function, (X,), (W,)), jvp(other, (X,), (W,)))
        torch.testing.assert_close(jacrev(function)(X), jacrev(other)(X))
        torch.testing.assert_close(jacfwd(function)(X), jacfwd(other)(X))
    for argnums in (0, 1, (0, 1)):
        torch.testing.assert_close(grad(loss, argnums)(X, W), grad(plain_loss, argnums)(X, W))
    torch.testing.assert_close(hessian(loss)(X, W), hessian(plain_loss)(X, W))
    assert loss.cache_info().programs == 3 + warm  # by what requires gradients


def test_vmap(static: Any) -> None:
    expected = torch.stack([plain(x) for x in LANES])
    torch.testing.assert_close(vmap(static)(LANES), expected)
    torch.testing.assert_close(vmap(static, 1, 1)(LANES.T), expected.T)
    torch.testing.assert_close(vmap(vmap(static))(LANES.reshape(2, 2, 2)), expected.reshape(2, 2, 2))


def test_what_only_the_inner_lanes_differ_in(loss: Any) -> None:
    both = vmap(lambda x: vmap(lambda w: loss(x, w))(LANES.abs()))(LANES)
    expected = torch.stack([torch.stack([plain_loss(x, w) for w in LANES.abs()]) for x in LANES])
    torch.testing.assert_close(both, expected)


def test_gradients_of_each_lane(loss: Any) -> None:
    expected = [torch.stack(each) for each in zip(*(grad(plain_loss, (0, 1))(x, W) for x in LANES))]
    torch.testing.assert_close([*vmap(grad(loss, (0, 1)), (0, None))(LANES, W)], expected)


def test_gradients_through_lanes(loss: Any) -> None:
    def total(function: Any, w: Tensor) -> Tensor:
        return vmap(lambda x: function(x, w))(LANES).sum()

    expected = sum(grad(plain_loss, 1)(x, W) for x in LANES)
    torch.testing.assert_close(grad(lambda w: total(loss, w))(W), expected)
    w = W.clone().requires_grad_()
    total(loss, w).backward()
    torch.testing.assert_close(w.grad, expected)


def test_second_derivatives_of_each_lane(loss: Any) -> None:
    expected = torch.stack([hessian(plain_loss)(x, W) for x in LANES])
    torch.testing.assert_close(vmap(hessian(loss), (0, None))(LANES, W), expected)


def test_tangents_of_each_lane(static: Any) -> None:
    def pushed(function: Any, x: Tensor) -> Any:
        return jvp(function, (x,), (W,))[1]

    expected = torch.stack([pushed(plain, x) for x in LANES])
    torch.testing.assert_close(vmap(lambda x: pushed(static, x))(LANES), expected)


def test_our_vmap_inside_of_a_gradient(static: Any) -> None:
    batched = sg.vmap(static)
    expected = grad(lambda x: torch.stack([plain(each) for each in x]).sin().sum())(LANES)
    torch.testing.assert_close(grad(lambda x: batched(x).sin().sum())(LANES), expected)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        while x.abs().sum() > 0.5:
            x = torch.tanh(self.layer(x)) * 0.7
        return x


def test_functional_call() -> None:
    torch.manual_seed(0)
    module = Recurrent()
    static = sg.to_static(Recurrent(), backend="eager")
    parameters = dict(module.named_parameters())

    def total(module: nn.Module, parameters: Any, x: Tensor) -> Tensor:
        return functional_call(module, parameters, (x,)).sum()

    found, expected = (functional_call(each, parameters, (X,)) for each in (static, module))
    torch.testing.assert_close(found, expected)
    found, expected = (grad(lambda p, each=each: total(each, p, X))(parameters) for each in (static, module))
    torch.testing.assert_close(found, expected)
    each_lane = vmap(grad(lambda p, x: total(static, p, x)), (None, 0))(parameters, LANES)
    rows = [grad(lambda p, x=x: total(module, p, x))(parameters) for x in LANES]
    torch.testing.assert_close(each_lane, {name: torch.stack([row[name] for row in rows]) for name in parameters})
    ensemble = {name: torch.stack([each.detach(), each.detach() * 0.5]) for name, each in parameters.items()}
    found = vmap(lambda p: total(static, p, X))(ensemble)
    expected = torch.stack([total(module, {n: e[i] for n, e in ensemble.items()}, X) for i in range(2)])
    torch.testing.assert_close(found, expected)
    assert all(not torch._C._functorch.is_functorch_wrapped_tensor(each) for each in static.parameters())


def test_a_lane_that_raises(static: Any) -> None:
    def checked(x: Tensor) -> Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        return x

    with pytest.raises(ValueError, match="negative"):
        vmap(sg.to_static(checked, backend="eager"))(LANES)
