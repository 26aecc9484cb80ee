"""What a `functools.cached_property` computes and keeps where only some paths ask for it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.cases.harness import python_module
from tests.front_ends import through_bytecode


class Plain:
    def __init__(self):
        self.weight = torch.tensor([2.0, 3.0], requires_grad=True)
        self.asked = 0

    @functools.cached_property
    def scale(self):
        print("computed")
        return self.weight.detach() * 2

    @functools.cached_property
    def size(self):
        return len(self.weight)

    @functools.cached_property
    def name(self):
        return "scaled"

    @functools.cached_property
    def both(self):
        self.asked += 1
        return self.scale + self.size

    @functools.cached_property
    def sign(self):
        return 1 if self.weight.sum() > 4 else -1

    @functools.cached_property
    def broken(self):
        raise ValueError("broken")


class Inherited(Plain):
    pass


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
        self.asked = 0

    scale, size, name, both, sign, broken = (
        functools.cached_property(getattr(Plain, each).func)
        for each in ("scale", "size", "name", "both", "sign", "broken")
    )


def in_one_arm(o, x):
    if x.sum() > 0:
        return x * o.scale
    return x


def and_behind(o, x):
    if x.sum() > 0:
        x = x * o.scale
    print("behind")
    return x + o.scale, o.scale


def in_both(o, x):
    if x.sum() > 0:
        x = x * o.scale
    else:
        x = x - o.scale
    return x + o.scale


def a_number(o, x):
    if x.sum() > 0:
        x = x * o.size
    return x + o.size


def a_text(o, x):
    if x.sum() > 0 and o.name == "scaled":
        x = x * 2
    return x, o.name


def one_by_another(o, x):
    if x.sum() > 0:
        x = x * o.both
    return x + o.scale


def by_a_branch(o, x):
    if x[0] > 0:
        x = x * o.sign
    return x


def in_a_loop(o, x):
    while x.sum() > 1:
        x = x / o.scale
    return x


def in_some_iterations(o, x):
    for i in range(3):
        if x[0] > i:
            x = x * o.scale / 4
    return x


def of_short_circuit(o, x):
    return x if x.sum() > 0 and o.scale.sum() > x[0] else x - 1


def asked(o, x):
    if x.sum() > 0:
        x = x * o.scale
    return x, hasattr(o, "scale")


def by_name(o, x):
    if x.sum() > 0:
        x = x * getattr(o, "scale", None)
    return x + getattr(o, "scale", 5)


def forgotten(o, x):
    if x.sum() > 0:
        x = x * o.scale
        del o.scale
    return x


def forgotten_behind(o, x):
    if x.sum() > 0:
        x = x * o.scale
    del o.scale
    return x


def assigned(o, x):
    if x.sum() > 0:
        o.scale = x
    return x * o.scale


def fails(o, x):
    if x.sum() > 0:
        return o.broken
    return x


FUNCTIONS = [
    *(in_one_arm, and_behind, in_both, a_number, a_text, one_by_another, by_a_branch, in_a_loop, in_some_iterations),
    *(of_short_circuit, asked, by_name, forgotten, forgotten_behind, assigned, fails),
]
MORE, LESS, NONE = map(torch.tensor, ([2.0, -1.0], [-1.0, -1.0], [0.0, 0.0]))
ORDERS = [(MORE, LESS, NONE), (LESS, MORE, LESS), (NONE, NONE, MORE, MORE)]


def _outcome(function: Callable[..., Any], o: Any, x: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    try:
        result = repr(function(o, x.clone()))
    except (AttributeError, ValueError) as error:
        result = f"{type(error)}: {error}"
    kept = {name: repr(value) for name, value in vars(o).items() if not name.startswith("_")}
    return result, kept, capsys.readouterr().out


def _run(function: Callable[..., Any], kind: Any, way: str, capsys: pytest.CaptureFixture[str], orders: Any) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        for order in orders:
            found = sg.to_static(function, full_graph=way != "segments", backend="eager")
            mine, other = kind(), kind()
            for x in order:
                assert _outcome(found, mine, x, capsys) == _outcome(function, other, x, capsys)


@pytest.mark.parametrize("way", ["source", "bytecode"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_plain_object(function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, Plain, way, capsys, ORDERS[:2] if way == "bytecode" else ORDERS[1:])


@pytest.mark.parametrize("way", ["source", "bytecode"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_module(function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, Module, way, capsys, ORDERS[1:2])


@pytest.mark.filterwarnings("ignore:iterator or closure leaves the program")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_without_a_full_graph(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, Inherited, "segments", capsys, ORDERS[:1])


def test_what_is_kept_has_eagers_gradients() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

        @functools.cached_property
        def scale(self) -> torch.Tensor:
            return self.weight.sin()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale if x.sum() > 0 else x * self.weight

    for order in ORDERS:
        eager, static = Layer(), sg.to_static(Layer(), backend="eager")
        for x in order:
            for layer in (eager, static):
                layer(x).sum().backward(retain_graph=True)
            assert torch.equal(eager.weight.grad, static.weight.grad)


def test_one_program_serves_the_path_that_does_not_ask() -> None:
    o, found = Plain(), sg.to_static(in_one_arm, backend="eager")
    for x in (LESS, NONE, MORE):
        found(o, x)
    assert len(found.programs) == 1
    assert torch.equal(o.scale, torch.tensor([4.0, 6.0]))


class Filed(Module):
    def forward(self, x):
        return in_one_arm(self, x)


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_files(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="scale is there"):
        sg.save(Filed(), tmp_path / f"file{suffix}", args=(MORE,))
    filled = Filed()
    filled(MORE)
    sg.save(filled, tmp_path / f"filled{suffix}", args=(MORE,))
    path = tmp_path / f"filled{suffix}"
    loaded = python_module(path).load() if suffix == ".py" else sg.load(path)
    for x in (MORE, LESS):
        torch.testing.assert_close(loaded(x), filled(x))
