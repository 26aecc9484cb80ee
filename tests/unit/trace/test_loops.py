from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.types import JoinFailure, NumberType, TableType, TensorType
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.leaves import DEAD
from stillgraph.trace.control_flow.loop_state import Fixed, Slot, State, Tree, build, leaves_of, slots_of
from stillgraph.trace.control_flow.widening import widen
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import Return
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.containers import split
from tests.unit.trace.agreement import WHILE, N, P, agree, count, nodes, program_of, refusal


@pytest.fixture
def joiner() -> Joiner:
    def unexpected(*args: Any) -> Any:
        raise AssertionError(args)

    made = Recorder(unexpected, unexpected)
    return Joiner(made, made.symbolic.mark, allow_unjoined=False)


# ---- the state of a loop
@pytest.mark.parametrize("value", [1, "a", None, MISSING, (1, "b"), {"k": [2]}])
def test_what_does_not_change_is_fixed(joiner: Joiner, value: Any) -> None:
    state = Fixed(value)
    again = widen(joiner, state, value, "v")
    assert again is state or slots_of(again) == []
    assert build(again, lambda slot: pytest.fail(str(slot))) == value


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [(1, 2, int), (1, 2.5, float), (True, 2, int), (False, True, bool), (1.0, 2.0, float)],
)
def test_a_number_that_changes_is_carried(joiner: Joiner, before: Any, after: Any, kind: type) -> None:
    state = widen(joiner, Fixed(before), after, "n")
    assert isinstance(state, Slot)
    assert state.type == NumberType(kind, mixed=type(before) is not type(after))
    assert state.entry == before
    assert widen(joiner, state, after, "n") is state


def test_a_size_that_changes_becomes_unknown(joiner: Joiner) -> None:
    make = joiner.recorder.symbolic.empty

    def tensor(*shape: int) -> Any:
        return make(shape, torch.float32, torch.device("cpu"), False)

    state = widen(joiner, Fixed(tensor(2, 3)), tensor(4, 3), "x")
    assert isinstance(state, Slot)
    assert isinstance(state.type, TensorType)
    assert state.type.shape == (None, 3)
    assert widen(joiner, state, tensor(9, 3), "x") is state
    with pytest.raises(JoinFailure, match="Shape Join Failed"):
        widen(joiner, state, tensor(9), "x")


@pytest.mark.parametrize(("before", "fact"), [(None, "may_be_none"), (MISSING, "may_be_unbound")])
def test_nothing_before_the_loop(joiner: Joiner, before: Any, fact: str) -> None:
    state = widen(joiner, Fixed(before), 3, "n")
    assert isinstance(state, Slot)
    assert getattr(state.type, fact)
    assert state.entry is before


def test_containers_are_carried_by_their_leaves(joiner: Joiner) -> None:
    state: State = widen(joiner, Fixed((1, {"k": 2, "c": "same"})), (1, {"k": 3, "c": "same"}), "s")
    assert isinstance(state, Tree)
    (slot,) = slots_of(state)
    assert slot.entry == 2
    assert build(state, lambda slot: "carried") == (1, {"k": "carried", "c": "same"})
    assert leaves_of(state, (1, {"k": 7, "c": "same"}), split) == [(slot, 7)]
    assert leaves_of(state, DEAD, split) == [(slot, DEAD)]


@pytest.mark.parametrize(
    ("before", "after"),
    [((1,), ("a", 2)), ([1], (1,)), (1, (1,)), ({"a": 1}, collections.OrderedDict(a=1))],
)
def test_what_changes_its_kind_cannot_be_carried(joiner: Joiner, before: Any, after: Any) -> None:
    with pytest.raises(JoinFailure):
        widen(joiner, Fixed(before), after, "v")


@pytest.mark.parametrize(
    ("before", "after", "entries"),
    [("a", "b", ["a", "b"]), (1, "a", [1, "a"]), (None, "a", [None, "a"]), (MISSING, None, [MISSING, None])],
)
def test_constants_are_carried_as_an_index(joiner: Joiner, before: Any, after: Any, entries: list[Any]) -> None:
    state = widen(joiner, Fixed(before), after, "v")
    assert isinstance(state, Slot)
    assert isinstance(state.type, TableType)
    assert [entry.value for entry in state.type.entries] == entries
    assert state.entry is before
    assert widen(joiner, state, after, "v") is state


def test_what_was_nothing_at_first_becomes_a_number(joiner: Joiner) -> None:
    state = widen(joiner, widen(joiner, Fixed(MISSING), None, "n"), 3, "n")
    assert isinstance(state, Slot)
    assert state.type == NumberType(int, may_be_none=True, may_be_unbound=True)


def test_an_iteration_that_never_ends_says_nothing(joiner: Joiner) -> None:
    state = Fixed(1)
    assert widen(joiner, state, DEAD, "n") is state
    assert Return(1).certain


# ---- the program of a loop
def carries(x: Tensor) -> tuple[Tensor, int]:
    scale, n, text = 2.0, 0, "constant"
    while x.sum() > 1:
        x = x / scale
        n += len(text)
        unused = x * 100  # noqa: F841
    return x, n


def test_only_what_changes_is_carried() -> None:
    (loop,) = (n for n in nodes(program_of(carries, P)) if n.target is WHILE)
    assert len(loop.args[2]) == 2  # type: ignore[arg-type]


def test_the_body_is_recorded_once_however_often_it_runs() -> None:
    program = program_of(carries, P)
    assert sum(n.target is torch.div or "div" in n.name for n in nodes(program)) == 1
    agree(carries, P, N, P * 1000)


@pytest.mark.parametrize(("limit", "n", "loops"), [(64, 10, 0), (64, 200, 1), (5, 10, 1), (0, 3, 1)])
def test_the_unroll_limit(limit: int, n: int, loops: int) -> None:
    def repeat(x: Tensor, n: int) -> Tensor:
        for i in range(n):
            x = x + i
        return x

    static = sg.to_static(repeat, backend="eager", unroll_limit=limit)
    assert torch.equal(static(P, n), repeat(P, n))
    assert count(static.programs[0], WHILE) == loops


def test_a_known_loop_over_unlike_things_is_unrolled_beyond_the_limit() -> None:
    def collect(x: Tensor) -> list[Tensor]:
        out = []
        for i in range(70):
            out.append(x + i)
        return out

    agree(collect, P)


def changes_rank(x: Tensor) -> Tensor:
    while x.sum() > 1:
        x = x[None] / 2
    return x


def changes_kind(x: Tensor) -> Any:
    y: Any = x
    while x.sum() > 1:
        x = x / 2
        y = "text"
    return y


@pytest.mark.parametrize(("function", "code"), [(changes_rank, "SG201")])
def test_loops_that_cannot_be_staged_say_why(function: Any, code: str) -> None:
    error = refusal(function, P)
    assert error.reason.code == code
    assert error.location is not None
    assert error.location.file == __file__


def test_only_the_first_iteration_changes_the_kind() -> None:
    agree(changes_kind, P, N)


def test_a_refused_loop_leaves_no_traces() -> None:
    values, x = [1], P.clone()

    def writes(x: Tensor) -> Tensor:
        values.append(2)
        x.add_(1)
        return changes_rank(x)

    with pytest.raises(sg.CaptureError):
        sg.to_static(writes, backend="eager")(x)
    assert values == [1]
    assert torch.equal(x, P)


# ---- loops that nothing but their bodies end
def returned(x: Tensor) -> Any:
    while True:
        x = x + 1
        if x.sum() > 5:
            return x, {"sum": x.sum()}


def returned_from_within(x: Tensor) -> Any:
    while True:
        while True:
            x = x + 1
            if x.sum() > 5:
                return [x, 1]
            if x.sum() > 3:
                break
        x = x + 1


def returned_or_left(x: Tensor) -> Any:
    while True:
        x = x + 1
        if x.sum() > 9:
            break
        if x.sum() == 4:
            return x, 5
    return x, 6


@pytest.mark.parametrize("function", [returned, returned_from_within, returned_or_left])
def test_what_an_endless_loop_returns_is_certain(function: Any) -> None:
    def taken_apart(x: Tensor) -> Any:
        first, second = function(x)
        return first, second

    agree(taken_apart, P, N, P * 0.1)


def test_an_endless_loop_whose_results_have_no_join_is_refused() -> None:
    def until(x: Tensor) -> Any:
        while True:
            x = x + 1
            if x.sum() > 5:
                return x, {"sum": x.sum()}
            if x.sum() > 3:
                return None

    def function(x: Tensor) -> Any:
        found = until(x)
        return x if found is None else found[0]

    assert refusal(function, torch.ones(2)).reason.code == "SG203"
