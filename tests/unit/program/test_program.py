from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.context import Context, current_context
from stillgraph.program.exceptions import raise_, raise_made
from stillgraph.program.input_spec import InputSpec, as_dtype
from stillgraph.program.operations import assert_, unbound
from stillgraph.program.sources import Argument, Attribute, Cell, Global, Held, Item, Slot
from tests.unit.trace.agreement import P, nodes, program_of


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("mean", torch.zeros(3))
        self.steps = 0

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        self.steps += 1
        y = self.linear(x) + self.mean
        while y.sum() > 1:
            y = y / 2
        return y, self.steps


def test_what_a_program_knows() -> None:
    program = program_of(Layer(), P, name="layer")
    assert program.name == "layer"
    kinds = {i.name: i.kind for i in program.inputs}
    assert kinds == {
        "x": "argument",
        "linear_weight": "parameter",
        "linear_bias": "parameter",
        "mean": "buffer",
        "steps": "state",
    }
    assert len(program.effects) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        program.name = "other"  # type: ignore[misc]


def test_every_node_says_where_and_how_it_runs() -> None:
    program = program_of(Layer(), P)
    called = [node for node in nodes(program) if node.op in ("call_function", "call_method")]
    assert called
    for node in called:
        assert "val" in node.meta
        assert isinstance(node.meta["context"], Context)
        assert node.meta["location"].file.endswith((__file__, "linear.py"))


def test_placeholders_are_the_inputs_in_order() -> None:
    program = program_of(Layer(), P)
    placeholders = [node for node in program.graph.graph.nodes if node.op == "placeholder"]
    assert [node.name for node in placeholders] == [i.name for i in program.inputs]


def test_contexts() -> None:
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        context = current_context()
    assert str(context) == "grad mode is off, autocast(cpu, bfloat16)"
    with torch.inference_mode():
        assert str(current_context()) == "inference mode is on"
    assert current_context().grad


def test_sources_name_themselves() -> None:
    cell = (lambda x: lambda: x)(1).__closure__[0]  # type: ignore[index]
    assert str(Item(Attribute(Argument(0), "layers"), "a")) == "args[0].layers['a']"
    assert str(Slot(Argument("x"), "_buffers", "mean")) == "x.mean"
    assert str(Global("package.module", "NAME")) == "package.module.NAME"
    assert Cell("x", cell) == Cell("y", cell)
    assert Held("a", P) != Held("a", P.clone())
    assert len({Cell("x", cell), Cell("y", cell), Held("a", P), Held("b", P)}) == 2


# ---- InputSpec
def test_input_specs() -> None:
    spec = InputSpec([None, -1, 3], "int64", "ids")
    assert (spec.shape, spec.dtype, spec.name) == ((None, None, 3), torch.int64, "ids")
    assert repr(spec) == "InputSpec([None, None, 3], 'int64', 'ids')"
    assert InputSpec.from_tensor(P) == InputSpec([3])
    assert as_dtype("torch.float16") is torch.float16


@pytest.mark.parametrize(
    ("shape", "dtype", "error"),
    [
        ([-2], "float32", ValueError),
        ([1.5], "float32", TypeError),
        ([True], "float32", TypeError),
        ([1], "f", ValueError),
    ],
)
def test_bad_input_specs(shape: Any, dtype: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="InputSpec"):
        InputSpec(shape, dtype)


def test_one_program_for_all_sizes() -> None:
    def scaled(x: Tensor) -> Tensor:
        return x * x.shape[0] if x.sum() > 0 else x - 1

    static = sg.to_static(scaled, backend="eager", input_spec=[InputSpec([None])])
    for size in (4, 3, 7):
        x = torch.ones(size)
        assert torch.equal(static(x), x * size)
    assert static.cache_info().programs == 1


# ---- operations of our own
@pytest.mark.parametrize(
    "use",
    [
        lambda u: u + 1,
        lambda u: 1 - u,
        lambda u: u[0],
        lambda u: bool(u),
        lambda u: len(u),
        lambda u: u == 1,
        lambda u: torch.sin(u),
        lambda u: P + u,
        lambda u: torch.stack([P, u]),
    ],
)
def test_any_use_of_an_unbound_variable_raises(use: Any) -> None:
    with pytest.raises(UnboundLocalError, match="'y'"):
        use(unbound("y"))


def test_raising() -> None:
    error = ValueError("a", 1)
    for _ in range(2):
        with pytest.raises(ValueError, match="a") as caught:
            raise_(error)
        assert caught.value is not error
        assert caught.value.args == error.args
    with pytest.raises(KeyError, match="b"):
        raise_made(KeyError, ("b",), None)
    with pytest.raises(AssertionError, match="why"):
        assert_(torch.tensor(False), "why", True)
    assert_(torch.tensor(True), "why", True)


def test_paths_by_tensors_as_keys_are_told_apart_by_the_key_itself() -> None:
    first, second = torch.ones(2), torch.ones(2)
    path = Item(Argument(0), first)
    assert path == Item(Argument(0), first)
    assert path != Item(Argument(0), second)
    assert path != Item(Argument(0), "a")
    assert path != Item(Argument(1), first)
