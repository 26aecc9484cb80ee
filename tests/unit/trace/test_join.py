from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch

from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.leaves import DEAD, same_constant
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import BREAK, CONTINUE, Exit, Return
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.containers import split
from tests.unit.trace.agreement import N, P, agree, refusal


def recorder() -> Recorder:
    def refuse(*args: Any) -> Any:
        raise AssertionError(args)

    return Recorder(refuse, refuse)


def joined(left: Any, right: Any, **options: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """The joined value, its leaves by number, and what each path hands out for them."""
    made = recorder()
    joiner = Joiner(made, made.symbolic.mark, **options)
    build = joiner.join(left, right, "y")
    leaves = [f"leaf {i}" for i in range(len(joiner.pairs))]
    return build(leaves), [(pair.left, pair.right) for pair in joiner.pairs]


@dataclasses.dataclass
class Point:
    x: Any
    n: int = 0


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize("value", [1, 1.5, True, "a", None, b"b", 2j, torch.float32, range(3), (1, "a"), []])
def test_the_same_constant_needs_no_leaf(value: Any) -> None:
    assert joined(value, value) == (value, [])


@pytest.mark.parametrize(
    ("left", "right", "value", "pairs"),
    [
        (1, 2, "leaf 0", [(1, 2)]),
        (1, True, "leaf 0", [(1, True)]),
        (1, 1.0, "leaf 0", [(1, 1.0)]),
        (0.0, -0.0, "leaf 0", [(0.0, -0.0)]),
        ((1, 2), (1, 3), (1, "leaf 0"), [(2, 3)]),
        ([1, [2]], [3, [4]], ["leaf 0", ["leaf 1"]], [(1, 3), (2, 4)]),
        ({"a": 1, "b": 2}, {"a": 1, "b": 5}, {"a": 1, "b": "leaf 0"}, [(2, 5)]),
        (Point(1, 2), Point(3, 2), Point("leaf 0", 2), [(1, 3)]),
        (Pair(1, 2), Pair(1, 3), Pair(1, "leaf 0"), [(2, 3)]),
        (slice(0, 2), slice(1, 2), slice("leaf 0", 2), [(0, 1)]),
        (1, MISSING, "leaf 0", [(1, MISSING)]),
        (None, 2, "leaf 0", [(None, 2)]),
        ((1, 2), (None, 2), ("leaf 0", 2), [(1, None)]),
        (DEAD, 2, 2, []),
        ([1], DEAD, [1], []),
        ("a", DEAD, "a", []),
        (DEAD, DEAD, MISSING, []),
        (MISSING, MISSING, MISSING, []),
    ],
)
def test_values(left: Any, right: Any, value: Any, pairs: list[Any]) -> None:
    assert joined(left, right) == (value, pairs)


@pytest.mark.parametrize(
    ("left", "right", "code", "phrase"),
    [
        ("a", "b", "SG203", "'a' on one path, 'b' on the other"),
        ("a", 1, "SG203", "'a' on one path, 1 on the other"),
        ((1,), (1, 2), "SG203", "outputs differ in structure"),
        ([1], (1,), "SG203", "a list of 1 on one path, a tuple of 1 on the other"),
        ({"a": 1}, collections.OrderedDict(a=1), "SG203", "a dict of 1 on one path, an OrderedDict of 1 on the other"),
        ("a", MISSING, "SG204", "on one path only"),
        (int, float, "SG203", "the class int on one path"),
    ],
)
def test_unlike_values(left: Any, right: Any, code: str, phrase: str) -> None:
    with pytest.raises(JoinFailure) as caught:
        joined(left, right, allow_unjoined=False)
    assert caught.value.code == code
    assert phrase in caught.value.message


def test_unlike_values_may_be_handed_out_but_not_used() -> None:
    value, pairs = joined("a", "b")
    assert isinstance(value, Unjoined)
    assert pairs == [(True, False)]
    for use in (bool, len, str, lambda v: v + 1, lambda v: v.name, lambda v: v[0], lambda v: P + v):
        with pytest.raises(Exception, match="'a' on one path, 'b' on the other"):
            use(value)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        ("a", "a", True),
        (P, P, True),
        (P, P.clone(), False),
        ([], [], False),
    ],
)
def test_what_is_one_constant(left: Any, right: Any, same: bool) -> None:
    assert same_constant(left, right) is same


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.ones(2, 3), "a float32 tensor of shape (2, 3)"),
        ([1, 2], "a list of 2"),
        (MISSING, "nothing"),
        (None, "None"),
        ("a", "'a'"),
        (Point(1), "a Point"),
    ],
)
def test_how_messages_name_values(value: Any, text: str) -> None:
    assert describe(value) == text


def test_exits() -> None:
    value, pairs = joined(BREAK, CONTINUE)
    assert value == Exit(broke="leaf 0", continued="leaf 1")
    assert pairs == [(True, False), (False, True)]
    value, pairs = joined(Return(1), Exit())
    assert value.returned == "leaf 0"
    assert pairs[0] == (True, False)
    assert not value.certain
    assert joined(Return(1), Return(1))[0].certain


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        (1, (2,)),
        {"a": 1},
        Point(1, 2),
        Pair(1, 2),
        slice(1, 2),
        torch.Size([1, 2]),
        collections.OrderedDict(a=1),
        collections.defaultdict(int, a=1),
        collections.deque([1, 2]),
        torch.return_types.max((P, P)),
    ],
)
def test_containers_come_apart_and_together(value: Any) -> None:
    parts = split(value)
    assert parts is not None
    assert len(parts.names) == len(parts.children)
    again = parts.rebuild(list(parts.children))
    assert type(again) is type(value)
    if not isinstance(value, torch.return_types.max):
        assert again == value
        assert again is not value or isinstance(value, (tuple, slice))


@pytest.mark.parametrize("value", [1, "ab", P, frozenset({1, 2}), object(), int, len])
def test_what_is_no_container(value: Any) -> None:
    assert split(value) is None


def test_errors_name_the_variable_and_the_line() -> None:
    def used(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            mode = "up"
        else:
            mode = "down"
        first = [*mode]
        return x * len(first)

    error = refusal(used, P)
    assert "'mode'" in str(error)
    assert error.location is not None
    assert error.location.line == used.__code__.co_firstlineno + 5


def test_a_variable_of_one_path_that_is_not_used_is_no_matter() -> None:
    def dropped(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            text = "only here"
            y = x * len(text)
        else:
            y = x
        return y

    agree(dropped, P, N)


def test_a_variable_of_one_path_that_is_used_raises_pythons_error() -> None:
    def unbound(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x
        return y + 1

    def unbound_number(x: torch.Tensor) -> int:
        if x.sum() > 0:
            n = 3
        return n

    agree(unbound, P, N)
    agree(unbound_number, P, N)
