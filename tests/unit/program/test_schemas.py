"""What torch's schemas tell of operations: what they write to, whether they draw, what they return."""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx
from torch.overrides import get_testing_overrides

from stillgraph.program.facts.python_functions import DRAWING
from stillgraph.program.facts.schemas import draws, is_custom, is_effectful, returns_nothing, statistics, writes

SEEDED = torch.Tag.nondeterministic_seeded
SWITCHES = {"train": True, "training": True, "dropout": 0.5, "dropout_p": 0.5}
LIBRARY = torch.library.Library("stillgraph_schemas", "DEF")
LIBRARY.define("fills(Tensor x, Tensor(a!) y, *, Tensor(b!)? z=None) -> Tensor")
LIBRARY.define("tells(Tensor x) -> ()")
LIBRARY.define("shuffles(Tensor x) -> Tensor", tags=(SEEDED,))
LIBRARY.define("ends_so_(Tensor x) -> Tensor")
OURS = torch.ops.stillgraph_schemas


def calling(target: Any, *args: Any, **kwargs: Any) -> fx.Node:
    """A node that calls a function, or a method; texts that name tensors become nodes."""
    graph = fx.Graph()

    def given(value: Any) -> Any:
        return graph.placeholder(value) if isinstance(value, str) else value

    args, kwargs = fx.node.map_aggregate(args, given), fx.node.map_aggregate(kwargs, given)
    return graph.call_method(target, args, kwargs) if isinstance(target, str) else graph.call_function(
        target, args, kwargs
    )


def seeded_overloads() -> Iterator[Any]:
    for name in sorted({s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")}):
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        yield from (op for op in (getattr(packet, each) for each in packet.overloads()) if SEEDED in op.tags)


SEEDED_OVERLOADS = list(seeded_overloads())


def named(op: Any) -> dict[str, Any]:
    """Arguments with which an operator draws."""
    known = {"self": "self", **SWITCHES}
    return {each.name: known[each.name] for each in op._schema.arguments if each.name in known}


def test_there_are_operators_that_draw() -> None:
    names = {str(op).split(".")[1] for op in SEEDED_OVERLOADS}
    assert {"rand", "bernoulli_", "native_dropout", "binomial", "_standard_gamma", "_sample_dirichlet", "lstm"} <= names


@pytest.mark.parametrize("op", SEEDED_OVERLOADS, ids=str)
def test_every_operator_that_draws_is_known(op: Any) -> None:
    assert draws(calling(op, **named(op)))
    name = str(op).split(".")[1]
    assert draws(calling(getattr(torch.ops.aten, name), **named(op)))
    for space in (torch, F, torch._C._nn):
        function = getattr(space, name, None)
        if isinstance(function, BuiltinFunctionType):
            assert draws(calling(function, **named(op)))
    if hasattr(torch.Tensor, name):
        assert draws(calling(name, "self", **{k: v for k, v in named(op).items() if k != "self"}))


DRAWERS = {str(op).split(".")[1] for op in SEEDED_OVERLOADS} | {each.__name__ for each in DRAWING}


def drawers_called_by(function: FunctionType) -> set[str]:
    """The names of what draws among all that a function's code calls."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):  # it was not written in a file
        return set()
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}
    return names & DRAWERS


@pytest.mark.parametrize(
    "function",
    [f for f in get_testing_overrides() if isinstance(f, FunctionType) and drawers_called_by(f)],
    ids=lambda f: f"{f.__module__}.{f.__qualname__}",
)
def test_every_function_in_python_that_draws_is_listed(function: FunctionType) -> None:
    assert function in DRAWING


@pytest.mark.parametrize(
    ("node", "drawn"),
    [
        (calling(F.dropout, "x", 0.5, True), True),
        (calling(F.dropout, "x", 0.5, False), False),
        (calling(F.dropout, "x"), True),
        (calling(F.rrelu, "x"), False),
        (calling(F.rrelu, "x", training=True), True),
        (calling(torch.dropout, "x", 0.5, False), False),
        (calling(torch.dropout, input="x", p=0.5, train=True), True),
        (calling(F.scaled_dot_product_attention, "q", "k", "v"), False),
        (calling(F.scaled_dot_product_attention, "q", "k", "v", None, 0.5), True),
        (calling(torch.lstm, "x", ["h", "c"], ["w"], True, 2, 0.5, True, False, False), True),
        (calling(torch.lstm, "x", ["h", "c"], ["w"], True, 2, 0.5, False, True, False), False),
        (calling(torch.lstm, "x", ["h", "c"], ["w"], True, 2, 0.0, True, True, False), False),
        (calling(torch.lstm, "x", "sizes", ["h", "c"], ["w"], True, 2, 0.5, True, False), True),
        (calling(torch.gru, "x", "h", ["w"], True, 2, 0.5, True, False, False), True),
        (calling(torch.gru, "x", "h", ["w"], True, 2, 0.0, True, False, False), False),
        (calling("bernoulli", "x", 0.5), True),
        (calling("add", "x", 1), False),
        (calling(operator.add, "x", 1), False),
        (calling(OURS.shuffles, "x"), True),
        (calling(OURS.tells.default, "x"), False),
    ],
    ids=str,
)
def test_what_draws(node: fx.Node, drawn: bool) -> None:
    assert draws(node) is drawn


def test_attention_without_dropout_draws_nothing() -> None:
    given = dict.fromkeys(list(inspect.signature(F.multi_head_attention_forward).parameters)[:13], "x")
    assert not draws(calling(F.multi_head_attention_forward, **{**given, "dropout_p": 0.0}))
    assert draws(calling(F.multi_head_attention_forward, **{**given, "dropout_p": 0.1}))
    assert not draws(calling(F.multi_head_attention_forward, **{**given, "dropout_p": 0.1}, training=False))


@pytest.mark.parametrize(
    ("node", "written"),
    [
        (calling("add_", "x", 1), ["x"]),
        (calling("add", "x", 1), []),
        (calling("sort", "x"), []),
        (calling("__iadd__", "x", 1), ["x"]),
        (calling("__and__", "x", "y"), []),
        (calling("retain_grad", "x"), []),
        (calling("share_memory_", "x"), ["x"]),
        (calling(torch.topk, "x", 2, out=["v", "i"]), ["v", "i"]),
        (calling(torch.ops.aten.topk.values, "x", 2, values="v", indices="i"), ["v", "i"]),
        (calling(torch.ops.aten.topk, "x", 2, values="v", indices="i"), ["v", "i"]),
        (calling(torch.ops.aten.add_.Tensor, "x", "y"), ["x"]),
        (calling(torch.relu_, input="x"), ["x"]),
        (calling(torch._foreach_add_, ["x", "y"], 1), ["x", "y"]),
        (calling(torch.fused_moving_avg_obs_fake_quant, *"xofabsz", 0.1, 0, 1, 0), ["a", "b", "s", "z"]),
        (calling(F.relu, "x", True), ["x"]),
        (calling(F.relu, "x", inplace=True), ["x"]),
        (calling(F.relu, "x", False), []),
        (calling(F.dropout, "x", 0.5, True, True), ["x"]),
        (calling(F.normalize, "x", 2.0, 1, 1e-12, "y"), ["y"]),
        (calling(F.embedding, "i", "w", None, 1.0), ["w"]),
        (calling(F.embedding, "i", "w"), []),
        (calling(torch.nn.init.uniform_, "x"), ["x"]),
        (calling(torch.nn.utils.clip_grad_norm_, ["x", "y"], 1.0), ["x", "y"]),
        (calling(operator.setitem, "x", 0, 1), ["x"]),
        (calling(operator.and_, "x", "y"), []),
        (calling(OURS.fills, "x", "y"), ["y"]),
        (calling(OURS.fills.default, "x", "y", z="z"), ["y", "z"]),
        (calling(OURS.ends_so_, "x"), []),
    ],
    ids=str,
)
def test_what_is_written(node: fx.Node, written: list[str]) -> None:
    found = writes(node)
    flat = [each for value in found for each in (value if isinstance(value, (list, tuple)) else [value])]
    assert [str(each) for each in flat if each is not None] == written


@pytest.mark.parametrize(
    ("node", "updated"),
    [
        (calling(F.batch_norm, "x", "m", "v", training=True), ["m", "v"]),
        (calling(F.batch_norm, "x", "m", "v"), []),
        (calling(torch.batch_norm, "x", "w", "b", "m", "v", True, 0.1, 1e-5, False), ["m", "v"]),
        (calling(torch.batch_norm, "x", "w", "b", "m", "v", False, 0.1, 1e-5, False), []),
        (calling(F.instance_norm, "x", "m", "v"), ["m", "v"]),
        (calling(F.relu, "x"), []),
    ],
    ids=str,
)
def test_running_statistics(node: fx.Node, updated: list[str]) -> None:
    assert [str(each) for each in statistics(node)] == updated


@pytest.mark.parametrize(
    ("target", "has_to_run"),
    [
        (OURS.tells, True),
        (OURS.fills.default, True),
        (OURS.shuffles, True),
        (torch._assert_async, True),
        (torch._foreach_add_, True),
        (torch.Tensor.__setitem__, True),
        (torch.Tensor.add_, True),
        (torch.nn.init.constant_, True),
        (torch.Tensor.dim, False),
        (torch.is_floating_point, False),
        (torch.Tensor.add, False),
        (torch.Tensor.__len__, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_has_to_run_though_nothing_comes_of_it(target: Any, has_to_run: bool) -> None:
    assert is_effectful(target) is has_to_run


def test_what_returns_nothing() -> None:
    assert all(map(returns_nothing, (OURS.tells, OURS.tells.default, torch._foreach_add_)))
    assert not any(map(returns_nothing, (OURS.fills, "sort", "remove", print)))


def test_whose_operators_they_are() -> None:
    assert all(map(is_custom, (OURS.tells, OURS.fills.default)))
    assert not any(map(is_custom, (torch.ops.aten.add, torch.ops.prims.add.default, torch.add, "add")))
