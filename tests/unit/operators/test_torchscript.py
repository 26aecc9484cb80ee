"""What people write for TorchScript is captured as eager PyTorch means it, on every path, and saved."""

import copy
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.sampling import few
from tests.unit.operators import written_for_torchscript as written
from tests.unit.operators.written_for_torchscript import CASES, N, P

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NOT_SAVED = {"empties": "SG401"}
"""Lists whose length only the run knows, returned or told apart: no file of tensors alone holds them."""


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


@pytest.mark.parametrize(("name", "make", "calls"), CASES, ids=[name for name, *_ in CASES])
def test_captured_as_eager_means_it(name: str, make: Any, calls: list[tuple[Any, ...]]) -> None:
    torch.manual_seed(0)
    target = make()
    expected = [target(*copy.deepcopy(args)) for args in calls]
    static = sg.to_static(target, backend="eager")
    for args, eager in zip(calls, expected, strict=True):
        assert same(static(*copy.deepcopy(args)), eager), name


@pytest.mark.parametrize(("name", "make", "calls"), few(CASES, 5), ids=[name for name, *_ in CASES])
def test_saved_as_eager_means_it(name: str, make: Any, calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    target = make()
    path = tmp_path / "it.pt2"
    if name in NOT_SAVED:
        with pytest.raises(sg.ExportError) as raised:
            sg.save(target, path, args=calls[0])
        assert raised.value.reason.code == NOT_SAVED[name]
        return
    sg.save(target, path, args=calls[0])
    assert same(sg.load(path)(*copy.deepcopy(calls[0])), target(*copy.deepcopy(calls[0])))


def test_a_scripted_function_becomes_branches_of_the_program() -> None:
    program = sg.export(written.calls_scripted, (P,))
    assert str(program).count(" if ") == 4  # three unrolled iterations, and the caller's own


def test_what_is_reached_by_neither_branch_is_not_in_the_program() -> None:
    assert "100" not in str(sg.export(written.scripting, (P,)))


# ---- what torch.jit made of modules has no Python left
SCRIPTED = [
    (lambda: torch.jit.script(written.Inner()), "script made of a module of the class Inner", "the Inner of "),
    (lambda: torch.jit.script(written.Inner()).forward, "the method forward of a scripted Inner", "Inner without"),
    (lambda: written.Outer(), "script made of a module of the class Inner", "the Inner of "),
    (lambda: written.TracedOuter(), "torch.jit.trace made of a module of the class Linear", "the Linear, without"),
    (lambda: written.OldStyle(), "OldStyle, which derives from torch.jit.ScriptModule", "@torch.jit.script_method"),
    (lambda: written.OuterOld(), "OldStyle, which derives from torch.jit.ScriptModule", "@torch.jit.script_method"),
]


@pytest.mark.parametrize(("make", "says", "hint"), SCRIPTED)
def test_scripted_modules_are_refused(make: Any, says: str, hint: str, tmp_path: Path) -> None:
    for use in (
        lambda: sg.export(make(), (P,)),
        lambda: sg.save(make(), tmp_path / "it.pt2", args=(P,)),
        lambda: sg.to_static(make(), backend="eager")(P),
    ):
        with pytest.raises(sg.CaptureError) as raised:
            use()
        assert raised.value.reason.code == "SG105"
        assert says in raised.value.message
        assert hint in raised.value.hint
        assert "<unknown>" not in str(raised.value)
    assert not (tmp_path / "it.pt2").exists()


def test_a_scripted_function_read_from_a_file_is_refused_where_it_decides(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(written.Inner()), str(tmp_path / "inner.pt"))
    loaded = torch.jit.load(str(tmp_path / "inner.pt"))
    with pytest.raises(sg.CaptureError, match="the class Inner is called"):
        sg.export(lambda x: loaded(x) + 1, (P,))


# ---- what eager would refuse, or what compiled code would do otherwise than its Python
@torch.jit.unused
def unused(x: Tensor) -> Tensor:
    return x * 2


@torch.jit.script
def reaches_unused(x: Tensor) -> Tensor:
    return unused(x)


@torch.jit.script
def whole_steps(x: Tensor, n: int) -> Tensor:
    return x * n


traced_with_a_decision = torch.jit.trace(written.calls_sit, P)
traced_sum = torch.jit.trace(lambda x, y: x + y, (P, P))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: reaches_unused(x), "'unused' is marked torch.jit.unused"),
        (lambda x: whole_steps(x, 2.5), "declared int, and given float"),
        (lambda x: whole_steps(x, x.sum()), "declared int, and given"),
        (lambda x: traced_with_a_decision(x), "decides by a tensor"),
        (lambda x: traced_sum(x, int(x.sum())), "given a number or list that only the run knows"),
    ],
)
def test_other_calls_of_compiled_functions_that_are_refused(function: Any, says: str) -> None:
    with pytest.raises(sg.CaptureError) as raised:
        sg.export(function, (P,))
    assert raised.value.reason.code == "SG105"
    assert says in raised.value.message


def decides(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 2


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_traced_function_keeps_the_decisions_of_its_trace() -> None:
    traced = torch.jit.trace(decides, P)
    assert same(sg.to_static(lambda x: traced(x), backend="eager")(N), traced(N))


def test_a_scripted_function_made_static_is_shown_as_the_function_that_it_was() -> None:
    static = sg.to_static(written.scripted, backend="eager")
    assert (static.__name__, list(inspect.signature(static).parameters)) == ("scripted", ["x", "n"])
    assert "def scripted(x: Tensor, n: int)" in static.code
    assert same(static(P, n=2), written.scripted(P, 2))
    program = sg.export(written.scripted, (P, 2), input_spec=[sg.InputSpec([None, 3]), None])
    assert re.match(r"program scripted\(x: f32\[x_dim_0, 3\]\)", str(program))


@pytest.mark.parametrize("x", [P, N])
def test_a_call_of_a_scripted_function_can_be_checked(x: Tensor) -> None:
    checked = sg.to_static(written.asks_inside_and_out, backend="eager", check=1)
    assert same(checked(x), written.asks_inside_and_out(x))
