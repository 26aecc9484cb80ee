"""Changes of nn modules: attributes, parameters, children, hooks, classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

import stillgraph as sg
from tests.unit.soundness.following import Box, X, follows, setting, storing


class Net(nn.Module):
    """A module with some of everything."""

    k = 3

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)
        self.scale, self.names, self.options = 2, ["a"], {"r": 1}
        self.register_buffer("buf", torch.ones(3))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])
        self.named = nn.ModuleDict({"a": nn.LeakyReLU()})
        self.sequence = nn.Sequential(nn.Linear(3, 3), nn.Softplus())
        self.listed = nn.ParameterList([torch.ones(3)])
        self.keyed = nn.ParameterDict({"p": torch.ones(3)})
        self.extra: Any = None
        self.hidden = Box(z=1)

    def helper(self, x: Tensor) -> Tensor:
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.lin(x)) * self.scale + len(self.names) + self.options["r"] + self.k
        for layer in self.layers:
            x = layer(x)
        for name, layer in self.named.items():
            x = layer(x) + len(name)
        x = self.sequence(x)
        for parameter in self.listed:
            x = x * parameter
        for parameter in self.keyed.values():
            x = x * parameter
        if self.training:
            x = x * 2
        if self.extra is not None:
            x = x + self.extra
        if hasattr(self, "late"):
            x = x * self.late
        x = x * getattr(self.hidden, "z", 1)
        return self.helper(x) * self.buf


class OtherNet(Net):
    def helper(self, x: Tensor) -> Tensor:
        return x * 11


class OtherLinear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return x * 12


class Half(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight / 2


def doubled_output(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return output * 2


def tripled_output(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return output * 3


def added_output(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return output + 1


def with_kwargs(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Tensor) -> Tensor:
    return output * (4 + len(kwargs))


def doubled_input(module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
    return (args[0] * 2,)


def sevenfold(x: Tensor) -> Tensor:
    return x * 7


def halve(parameter: Tensor) -> None:
    with torch.no_grad():
        parameter.mul_(0.5)


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.ones(*shape) * 2)


def new_net() -> Net:
    return Net().eval()


@pytest.fixture
def net() -> Net:
    return new_net()


NetChanges = dict[str, list[Callable[[Any], object]]]
ATTRIBUTES: NetChanges = {
    "a number": [lambda net: setattr(net, "scale", 5)],
    "training": [lambda net: net.train()],
    "a child's training": [lambda net: net.drop.train()],
    "the probability of a dropout": [lambda net: net.drop.train(), lambda net: setattr(net.drop, "p", 0.9)],
    "a list": [lambda net: net.names.append("b")],
    "a value in a dictionary": [lambda net: net.options.update(r=7)],
    "a new dictionary": [lambda net: setattr(net, "options", {"r": 9})],
    "an optional": [lambda net, value=value: setattr(net, "extra", value) for value in (torch.ones(3), 2.0, None)],
    "one that appears and goes": [lambda net: setattr(net, "late", 5.0), lambda net: delattr(net, "late")],
    "one that hides its class's": [lambda net: setattr(net, "k", 8), lambda net: delattr(net, "k")],
    "a plain object's": [lambda net: setattr(net.hidden, "z", 5), lambda net: delattr(net.hidden, "z")],
    "a method": [lambda net: setattr(net, "helper", sevenfold), lambda net: delattr(net, "helper")],
    "a child's forward": [lambda net: setattr(net.lin, "forward", sevenfold)],
    "its class": [lambda net: setattr(net, "__class__", OtherNet), lambda net: setattr(net, "__class__", Net)],
    "a child's class": [lambda net: setattr(net.lin, "__class__", OtherLinear)],
}
PARAMETERS: NetChanges = {
    "values": [lambda net: halve(net.lin.weight)],
    "a new parameter": [lambda net: setattr(net.lin, "weight", parameter(3, 3))],
    "its data": [lambda net: setattr(net.lin.weight, "data", torch.ones(3, 3))],
    "no bias": [lambda net: setattr(net.lin, "bias", None)],
    "frozen": [lambda net: net.lin.weight.requires_grad_(False), lambda net: net.requires_grad_(False)],
    "tied": [lambda net: setattr(net.sequence[0], "weight", net.lin.weight)],
    "a late one": [lambda net: net.register_parameter("late", parameter(3))],
    "appended to a list": [lambda net: net.listed.append(torch.ones(3) * 2)],
    "added to a dictionary": [lambda net: net.keyed.update({"q": torch.ones(3) * 2})],
    "replaced in a dictionary": [lambda net: storing(net.keyed, "p", parameter(3))()],
    "loaded": [lambda net: net.load_state_dict(new_net().state_dict())],
    "loaded and assigned": [lambda net: net.load_state_dict(new_net().state_dict(), assign=True)],
    "dtype there and back": [lambda net: net.double().float().half().float()],
    "parametrized, and no longer": [
        lambda net: parametrize.register_parametrization(net.lin, "weight", Half()),
        lambda net: parametrize.remove_parametrizations(net.lin, "weight"),
    ],
    "parametrized, and the original kept": [
        lambda net: parametrize.register_parametrization(net.lin, "weight", Half()),
        lambda net: parametrize.remove_parametrizations(net.lin, "weight", leave_parametrized=False),
    ],
    "weight norm": [
        lambda net: parametrizations.weight_norm(net.lin),
        lambda net: halve(net.lin.parametrizations.weight.original0),
    ],
}
BUFFERS: NetChanges = {
    "values": [lambda net: net.buf.fill_(4)],
    "a new one": [lambda net: setattr(net, "buf", torch.ones(3) * 3)],
    "a late one": [lambda net: net.register_buffer("late", torch.ones(3) * 2)],
    "a number instead": [lambda net: (delattr(net, "buf"), setattr(net, "buf", 3.0))],
    "no longer persistent": [lambda net: net.register_buffer("buf", torch.ones(3) * 5, persistent=False)],
    "a parameter instead": [lambda net: (delattr(net, "buf"), net.register_parameter("buf", parameter(3)))],
}
CHILDREN: NetChanges = {
    "replaced": [lambda net: setattr(net, "lin", nn.Linear(3, 3)), lambda net: setattr(net, "lin", nn.Identity())],
    "appended to a list": [lambda net: net.layers.append(nn.Sigmoid())],
    "replaced in a list": [lambda net: storing(net.layers, 0, nn.Identity())()],
    "deleted from a list": [lambda net: net.layers.__delitem__(0)],
    "turned round in a list": [lambda net: setattr(net, "layers", nn.ModuleList(reversed(net.layers)))],
    "added to a dictionary": [lambda net: net.named.update({"bb": nn.Tanh()})],
    "taken from a dictionary": [lambda net: net.named.pop("a")],
    "appended to a sequence": [lambda net: net.sequence.append(nn.Tanh())],
    "replaced in a sequence": [lambda net: storing(net.sequence, 1, nn.Tanh())()],
    "replaced by its path": [lambda net: net.set_submodule("sequence.0", OtherLinear(3, 3))],
}
HOOKS: NetChanges = {
    "after a child": [lambda net: net.lin.register_forward_hook(doubled_output)],
    "before a child": [lambda net: net.lin.register_forward_pre_hook(doubled_input)],
    "after the module": [lambda net: net.register_forward_hook(doubled_output)],
    "before the module": [lambda net: net.register_forward_pre_hook(doubled_input)],
    "after one in a list": [lambda net: net.layers[1].register_forward_hook(doubled_output)],
    "as many, but others": [
        lambda net: net.lin.register_forward_hook(doubled_output),
        lambda net: (net.lin._forward_hooks.clear(), net.lin.register_forward_hook(tripled_output)),
        lambda net: net.lin._forward_hooks.clear(),
    ],
    "in another order": [
        lambda net: (net.lin.register_forward_hook(doubled_output), net.lin.register_forward_hook(added_output)),
        lambda net: net.lin._forward_hooks.move_to_end(next(iter(net.lin._forward_hooks))),
    ],
    "given keywords": [lambda net: net.lin.register_forward_hook(with_kwargs, with_kwargs=True)],
}


def _all(changes: NetChanges) -> Any:
    return pytest.mark.parametrize("changes", changes.values(), ids=changes)


@_all(ATTRIBUTES)
def test_attributes(net: Net, changes: list[Callable[[Any], object]]) -> None:
    follows(net, *(partial(change, net) for change in changes))


@_all(PARAMETERS)
def test_parameters(net: Net, changes: list[Callable[[Any], object]]) -> None:
    follows(net, *(partial(change, net) for change in changes))


@_all(BUFFERS)
def test_buffers(net: Net, changes: list[Callable[[Any], object]]) -> None:
    follows(net, *(partial(change, net) for change in changes))


@_all(CHILDREN)
def test_children(net: Net, changes: list[Callable[[Any], object]]) -> None:
    follows(net, *(partial(change, net) for change in changes))


@_all(HOOKS)
def test_hooks(net: Net, changes: list[Callable[[Any], object]]) -> None:
    follows(net, *(partial(change, net) for change in changes))


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Net, "k", 9),
        (Net, "helper", lambda self, x: x * 9),
        (nn.Linear, "forward", lambda self, x: x * 7),
        (nn.Module, "__call__", lambda self, *args: torch.zeros(3)),
    ],
    ids=["an attribute", "a method", "the forward of torch's", "the call of every module"],
)
def test_classes(net: Net, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, value: Any) -> None:
    follows(net, partial(monkeypatch.setattr, kind, name, value), monkeypatch.undo)


def test_a_hook_on_every_module(net: Net) -> None:
    handles: list[Any] = []

    def register() -> None:
        handles.append(nn.modules.module.register_module_forward_hook(doubled_output))

    def remove() -> None:
        for handle in handles:
            handle.remove()

    try:
        follows(net, register, remove)
    finally:
        remove()


def test_a_module_that_a_function_calls(net: Net) -> None:
    follows(
        lambda x: net(x) * 2,
        setting(net, scale=5),
        setting(net.lin, weight=parameter(3, 3)),
        setting(net.lin, forward=sevenfold),
    )


def test_what_a_hook_reads(net: Net) -> None:
    gains = {"lin": 2.0}
    net.lin.register_forward_hook(lambda module, args, output: output * gains["lin"])
    follows(net, storing(gains, "lin", 5.0))


def test_what_a_parametrization_reads(net: Net) -> None:
    class Scaled(nn.Module):
        factor = 0.5

        def forward(self, weight: Tensor) -> Tensor:
            return weight * self.factor

    scaled = Scaled()
    parametrize.register_parametrization(net.lin, "weight", scaled)
    follows(net, setting(scaled, factor=2.0))


# ---- the settings of torch's modules
def test_batch_norm() -> None:
    norm = nn.BatchNorm1d(3).eval()
    follows(
        lambda x: norm(x[None]),
        setting(norm, eps=0.5),
        partial(norm.train, False),
        setting(norm, running_mean=torch.ones(3)),
        setting(norm, weight=None),
    )


def test_convolution() -> None:
    convolution = nn.Conv1d(1, 1, 1)
    follows(
        lambda x: convolution(x[None]),
        setting(convolution, padding=(1,)),
        setting(convolution, stride=(2,)),
        setting(convolution, padding_mode="reflect", _reversed_padding_repeated_twice=[1, 1]),
    )


def test_softmax() -> None:
    softmax = nn.Softmax(0)
    follows(lambda x: softmax(x[None]), setting(softmax, dim=1))


def test_leaky_relu() -> None:
    leaky = nn.LeakyReLU(0.1)
    follows(lambda x: leaky(-x), setting(leaky, negative_slope=0.5), setting(leaky, inplace=True))


def test_attention() -> None:
    attention = nn.MultiheadAttention(4, 2).eval()

    def function(x: Tensor) -> Tensor:
        rows = x.repeat(4).reshape(3, 1, 4)
        return attention(rows, rows, rows)[0]  # type: ignore[no-any-return]

    follows(
        function,
        setting(attention, num_heads=1, head_dim=4),
        setting(attention, dropout=0.3),
        lambda: attention.out_proj.register_forward_hook(doubled_output),
    )


def test_lstm() -> None:
    lstm = nn.LSTM(3, 3)
    follows(
        lambda x: lstm(x[None])[0],
        setting(lstm, batch_first=True),
        partial(halve, lstm.weight_ih_l0),
        setting(lstm, weight_hh_l0=parameter(12, 3)),
        settled=2,  # a call gathers new weights
    )


def test_embedding() -> None:
    embedding = nn.Embedding(4, 2)
    follows(
        lambda x: embedding(x.long()),
        setting(embedding, max_norm=0.1),
        setting(embedding, max_norm=None),
        setting(embedding, weight=parameter(4, 3)),
    )


# ---- parametrizations whose weights are kept
class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight * 2


def test_a_call_that_would_use_kept_weights_is_refused() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Doubled())
    static = sg.to_static(lambda x: layer(x), backend="eager")
    expected = static(X)
    with parametrize.cached(), pytest.raises(sg.CaptureError, match=r"in a block of parametrize.cached\(\)"):
        static(X)
    assert torch.equal(static(X), expected)
    assert static.cache_info().programs == 1


def test_weights_that_are_kept_inside_the_function() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Doubled())

    def twice(x: Tensor) -> Tensor:
        with parametrize.cached():
            return layer(layer(x))

    follows(twice, lambda: nn.init.zeros_(layer.parametrizations.weight.original))
