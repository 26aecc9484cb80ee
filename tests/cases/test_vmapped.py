"""`sg.vmap` of every case: each lane has the values and gradients of a call for it alone."""

from __future__ import annotations

import collections
import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor

import stillgraph as sg
from stillgraph.runtime.batched import calling
from tests.cases.case import Case, all_cases
from tests.cases.harness import signature
from tests.sampling import only

_EFFECTS = (
    *("S10b_nonlocal_write", "A08_for_in_tensor", "A24_print", "S08_store_attr", "S08b_store_attr_in_if"),
    *("RunningNormalizer", "LossScaler", "WarmupThenDecay"),
)
_UNLIKE = (
    *("M01_SingleIfNet", "A30_list_append_while", "A30b_list_append_return", "A15_return_diff_len"),
    *("A15b_return_diff_dtype", "M09b_join_35_34", "M09c_join_34_341"),
    *("M09f_join_3u_3uu", "M09g_join_3u_4uu", "M09h_join_3u_34u", "restarted_momentum", "keep_positive_rows"),
    *("GreedyDecoder", "GrowingDecoder"),
)
REFUSED = {
    **dict.fromkeys(_EFFECTS, "SG311"),
    **dict.fromkeys(_UNLIKE, "SG312"),
    "M08_shape_change_in_while": "SG201",  # as without lanes
}
"""By case, the code with which a batched call of it is refused: it has effects, or the results cannot be stacked."""

FAST = ("A27_nested_calls", "S11c_predicate_layerlist")


@dataclass(frozen=True)
class Lanes:
    """Calls with equal signatures: for each leaf of their arguments, what each call has there."""

    columns: list[tuple[Any, ...]]
    spec: Any

    def given(self, grad: bool) -> list[Any]:
        """The leaves of a batched call, as tensors of its own."""
        return [
            torch.stack(column).clone().requires_grad_(grad and column[0].is_floating_point())
            if isinstance(column[0], Tensor)
            else column[0]
            for column in self.columns
        ]

    def arguments(self, leaves: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return args, kwargs

    def of_each(self, given: list[Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        for index in range(len(self.columns[0])):
            yield self.arguments([each[index] if isinstance(each, Tensor) else each for each in given])


def lanes_of(case: Case) -> list[Lanes]:
    """The inputs of a case that differ in nothing but elements, each of them twice."""
    groups: dict[str, list[Any]] = collections.defaultdict(list)
    for index, args in enumerate(case.inputs):
        shapes = [tuple(each.shape) for each in pytree.tree_leaves(args) if isinstance(each, Tensor)]
        groups[f"{signature(case, index)} {shapes}"].append(pytree.tree_flatten((args, dict(case.kwargs))))
    made = []
    for calls in groups.values():
        columns = zip(*(leaves for leaves, _ in [*calls, *reversed(calls)]), strict=True)
        made.append(Lanes([*columns], calls[0][1]))
    return [lanes for lanes in made if any(isinstance(column[0], Tensor) for column in lanes.columns)]


def stacked(column: tuple[Any, ...]) -> Any:
    """What a batched call gives where the calls for the lanes give these."""
    if isinstance(column[0], Tensor):
        return torch.stack(column)
    if isinstance(column[0], (bool, int, float)):
        kinds = (bool, int, float)
        widest = max(map(type, column), key=kinds.index)
        return torch.tensor(column, dtype=(torch.bool, torch.int64, torch.float64)[kinds.index(widest)])
    assert all(each == column[0] for each in column)
    return column[0]


def gradients(leaves: list[Any], given: list[Any]) -> list[Tensor | None]:
    outputs = [each for each in leaves if isinstance(each, Tensor) and each.requires_grad]
    taken = [each for each in given if isinstance(each, Tensor) and each.requires_grad]
    if not outputs or not taken:
        return []
    weighed = [(each * torch.arange(1, each.numel() + 1).reshape(each.shape).cos()).sum() for each in outputs]
    return [*torch.autograd.grad(weighed, taken, allow_unused=True)]


def alone(case: Case, lanes: Lanes, given: list[Any]) -> list[Any] | Exception:
    """The stacked results of the calls for the lanes, or what the first one raises that raises anything."""
    target = case.target()
    try:
        results = [pytree.tree_leaves(target(*args, **kwargs)) for args, kwargs in lanes.of_each(given)]
    except Exception as error:  # of any kind: the batched call has to raise it as well
        return error
    return [stacked(column) for column in zip(*results, strict=True)]


def assert_same_leaves(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, Tensor):
            torch.testing.assert_close(one, other, equal_nan=True)
        else:
            assert one == other


def check(case: Case, lanes: Lanes, grad: bool, one_by_one: list[str]) -> None:
    given, own = lanes.given(grad), lanes.given(grad)
    args, kwargs = lanes.arguments(own)
    dims, _ = lanes.arguments([0 if isinstance(each, Tensor) else None for each in own])
    batched = sg.vmap(case.target(), dims)
    with contextlib.redirect_stdout(io.StringIO()):
        expected = alone(case, lanes, given)
        if isinstance(expected, Exception):
            with pytest.raises(type(expected)) as raised:
                batched(*args, **kwargs)
            assert str(raised.value) == str(expected)
            return
        found = pytree.tree_leaves(batched(*args, **kwargs))
    assert not one_by_one
    assert_same_leaves(found, expected)
    ours, theirs = gradients(found, own), gradients(expected, given)
    assert [each is None for each in ours] == [each is None for each in theirs]
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
    assert_same_leaves(own, given)  # a call may have written in place


def call_all(case: Case) -> None:
    for lanes in lanes_of(case):
        given = lanes.given(False)
        args, kwargs = lanes.arguments(given)
        dims, _ = lanes.arguments([0 if isinstance(each, Tensor) else None for each in given])
        with contextlib.redirect_stdout(io.StringIO()):
            sg.vmap(case.target(), dims)(*args, **kwargs)


CASES = [name for name, case in all_cases().items() if lanes_of(case)]


@pytest.mark.parametrize("name", only(CASES, FAST))
def test_each_lane_has_what_a_call_for_it_alone_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one: list[str] = []
    monkeypatch.setattr(calling, "log", lambda kind, what, text, **more: one_by_one.append(text))
    case = all_cases()[name]
    if name in REFUSED:
        with pytest.raises(sg.CaptureError) as refused:
            call_all(case)
        assert refused.value.reason.code == REFUSED[name]
        return
    for lanes in lanes_of(case):
        for grad in (False, True):
            check(case, lanes, grad, one_by_one)
