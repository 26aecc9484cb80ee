"""Files with attention over sequences of which only the run knows the length."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.passes import pipeline
from stillgraph.passes.kernels.attention import open_attention
from stillgraph.passes.kernels.hiding import OPEN_ATTENTION, hide, obstacle_to_inference, write_out
from tests.sampling import only
from tests.unit.deploy.alone import alone
from tests.unit.trace.test_attention import ALL, KINDS, LAYERS, MIXED, NONE, OPEN, OTHER, WIDTH, chosen, heads

SUFFIXES = (".pt2", ".onnx", ".py")
CALLS = (MIXED, OTHER, NONE, ALL, -OTHER)


def grown(x: Tensor) -> Tensor:
    while x.shape[0] < 9 and x.sum() < 40:
        y = F.scaled_dot_product_attention(heads(x), heads(x), heads(x), is_causal=True)
        x = torch.cat([x, y.transpose(1, 2).reshape(-1, WIDTH)[-1:] + 1])
    return x


def decoded(x: Tensor) -> tuple[Tensor, Tensor]:
    keys, values, query = heads(x), heads(x * 2), heads(x[-1:])
    while keys.shape[2] < 9 and query.sum() < 40:
        query = F.scaled_dot_product_attention(query, keys, values) + 1
        keys, values = torch.cat([keys, query], 2), torch.cat([values, -query], 2)
    return query, values


PROGRAMS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: KINDS[name] for name in KINDS if "half" not in name},  # type: ignore[misc]  # its default
    **{name: lambda name=name: LAYERS[name]().eval() for name in LAYERS},  # type: ignore[misc]  # its default
    "a text that grows": lambda: grown,
    "keys and values that grow": lambda: decoded,
}


def _opened(path: Path) -> Any:
    if path.suffix != ".py":
        return sg.load(path)
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    functions = {name: value for name, value in vars(module).items() if isinstance(value, FunctionType)}
    if "load" in functions:
        return module.load()
    return next(function for name, function in functions.items() if not name.startswith("_"))


FAST = {("plain", ".pt2"), ("causal", ".onnx"), ("keys and values that grow", ".pt2"), ("a text that grows", ".py")}


@pytest.mark.parametrize(("name", "suffix"), only(itertools.product(PROGRAMS, SUFFIXES), FAST))
@torch.no_grad()
def test_a_file_takes_every_length(tmp_path: Path, name: str, suffix: str) -> None:
    function = PROGRAMS[name]()
    path = tmp_path / f"written{suffix}"
    sg.save(function, path, args=(MIXED,), input_spec=OPEN)
    run = _opened(path)
    for x in CALLS:
        torch.testing.assert_close(run(x), function(x), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_torch_s_own_kernel_runs_in_a_pt2(tmp_path: Path) -> None:
    sg.save(grown, path := tmp_path / "grown.pt2", args=(MIXED,), input_spec=OPEN)
    torch.save(([OTHER, ALL], [grown(OTHER), grown(ALL)]), tmp_path / "expected")
    told = alone(f"""
        module = torch.export.load({str(path)!r}).module()
        given, expected = torch.load({str(tmp_path / "expected")!r})
        print([torch.equal(module(x)[0], y) for x, y in zip(given, expected)])
        print("scaled_dot_product_attention" in str([child.code for _, child in module.named_modules()
                                                     if isinstance(child, torch.fx.GraphModule)]))
    """)
    assert told.splitlines() == ["[True, True]", "True"]


def test_a_query_that_may_look_at_nothing_gives_zeros_in_an_onnx_file(tmp_path: Path) -> None:
    def masked(x: Tensor, mask: Tensor) -> Tensor:
        y = F.scaled_dot_product_attention(x, x, x, mask)
        return y if x.sum() > 0 else -y

    x, mask = MIXED.reshape(1, 2, 5, 4), torch.ones(5, 5, dtype=torch.bool).tril()
    sg.save(masked, path := tmp_path / "masked.onnx", args=(x, mask))
    for given in (mask, mask.tril(-1), mask & False):
        torch.testing.assert_close(sg.load(path)(x, given), masked(x, given), rtol=1e-5, atol=1e-6)


def test_dropout_is_left_to_torch() -> None:
    def dropped(x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*[heads(chosen(x))] * 3, dropout_p=0.5)

    lowered = pipeline.run(sg.export(dropped, (MIXED,), input_spec=OPEN))
    assert open_attention(hide(lowered)) is not None
    obstacle = obstacle_to_inference(write_out(lowered))
    assert obstacle is not None
    assert obstacle.reason == OPEN_ATTENTION


def test_only_open_lengths_are_hidden() -> None:
    def known(x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(heads(x), heads(x), heads(x))

    assert open_attention(pipeline.run(sg.export(known, (MIXED,), input_spec=OPEN))) is None
    lowered = pipeline.run(sg.export(grown, (MIXED,), input_spec=OPEN))
    assert open_attention(lowered) is not None
    assert open_attention(hide(lowered)) is None


def test_the_inductor_backend_gives_the_same() -> None:
    def few(x: Tensor) -> Tensor:
        y = F.scaled_dot_product_attention(*[heads(chosen(x))] * 3)
        return y if x.sum() > 0 else -y

    static = sg.to_static(few, backend="inductor", input_spec=OPEN)
    for x in CALLS:
        torch.testing.assert_close(static(x), few(x))


class Prefix(nn.Module):
    """A cache of one size, of which the part that is written is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        cache = torch.zeros(1, 2, 16, WIDTH // 2)
        while count < 9:
            cache[:, :, :count] = cache[:, :, :count] + 1
            cache[:, :, count] = heads(x)[:, :, 0]
            count = count + 1
            x = F.scaled_dot_product_attention(heads(x), cache[:, :, :count], cache[:, :, :count]).reshape(1, WIDTH)
            x = self.project(x)
        return x


@pytest.mark.slow
@torch.no_grad()
def test_a_package(tmp_path: Path) -> None:
    module, path = Prefix(), tmp_path / "prefix.aoti.pt2"
    sg.save(module, path, args=(MIXED[:1], torch.tensor(3)))
    run = sg.load(path, native=True)
    for x, count in ((MIXED[1:2], 0), (MIXED[2:3], 5), (OTHER[:1], 8), (OTHER[:1], 9)):
        torch.testing.assert_close(run(x, torch.tensor(count)), module(x, torch.tensor(count)))


@pytest.mark.slow
@torch.no_grad()
def test_a_package_takes_what_is_empty(tmp_path: Path) -> None:
    function = KINDS["causal"]
    sg.save(function, path := tmp_path / "causal.aoti.pt2", args=(MIXED,), input_spec=OPEN)
    run = sg.load(path, native=True)
    for x in CALLS:
        torch.testing.assert_close(run(x), function(x))
