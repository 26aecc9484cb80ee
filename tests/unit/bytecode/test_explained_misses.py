"""Looking for the guard that fails runs no code of the user's, and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import torch

from stillgraph.core.parcel import Parcel
from stillgraph.runtime.calls.advice import advice
from stillgraph.runtime.guards import words
from stillgraph.runtime.guards.differences import difference
from tests.unit.bytecode.segmented import Record, agrees, to_partial


class Endless:
    """A sequence of the old kind, which never ends."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __getitem__(self, key: Any) -> Any:
        self.asked.append(key)
        assert len(self.asked) < 20
        return torch.ones(1)


def test_objects_of_another_class_are_not_asked(recwarn: Any) -> None:
    def f(given: Any) -> Any:
        if isinstance(given, dict):
            return given["b"]["c"][0] * 2
        return torch.ones(2)

    for options in ({}, {"full_graph": True, "strict": False}):
        static, endless = to_partial(f, **options), Endless()
        for given in ({"a": torch.ones(2), "b": {"c": [torch.ones(3), 1]}}, torch.ones(5), endless):
            assert torch.equal(static(given), f(given))
        assert static.explain_miss(Endless()) is None
        assert endless.asked == []
    assert not recwarn.list


@pytest.mark.slow
def test_a_default_is_not_made() -> None:
    def make(record: Record) -> Any:
        def f(x: Any, keys: str) -> Any:
            made: Any = defaultdict(dict)
            for key in keys:
                made[key][0] = 1
            print("p")
            made["z"][x.sum().item()] = 1
            return {key: dict(value) for key, value in made.items()}

        return f

    x = torch.ones(2)
    agrees(make, *((x, keys) for keys in ("abab", "a", "", "zzb")), times=4, settled=9)


# ---- what is said of values
LAYERS = [(torch.ones(2, 3), torch.ones(2, 3))] * 9
MISSES: dict[str, tuple[Any, Any, str]] = {
    "tensors": (None, LAYERS, "cache should be None (NoneType), but is [(float32[2, 3], float32[2, 3]), "),
    "none": (LAYERS, None, "cache should be a list, but is a NoneType"),
    "lines": (("a\nb" * 99,), ("b" * 99,), "cache[0] should be 'a\\nba\\n"),
}


@pytest.mark.parametrize("name", MISSES)
@pytest.mark.parametrize("full_graph", [False, True])
def test_values_are_shown_briefly(name: str, full_graph: bool) -> None:
    first, second, begins = MISSES[name]

    def f(x: Any, cache: Any = None) -> Any:
        return x if cache is None else x + len(cache[0])

    why = to_partial(f, full_graph=full_graph, strict=False)
    why(torch.ones(2), first)
    told = why.explain_miss(torch.ones(2), second)
    assert told.startswith(begins)
    assert len(told) < 180
    for part in ("tensor(", "Parcel", "\n"):
        assert part not in told


def test_what_is_handed_on_is_not_called_by_our_names() -> None:
    kinds = [words.kind_expected(Parcel), words.kind_found(Parcel("held", 3))]
    assert kinds == ["an object that is only handed on", "a int"]
    assert difference("x", [None], [Parcel("held", [torch.ones(3)])], words.shown) == (
        "x[0] should be None (NoneType), but is [float32[3]] (list)"
    )


# ---- and to do about it
ADVICE = {
    "x should be Tensor float32[2] on cpu, but is Tensor float32[3] on cpu": "tensors of few shapes",
    "x.shape[0] should be 2, but the shape is (3,)": "tensors of few shapes",
    "x should be Parameter float32[2] on cpu, requires grad, but is Tensor float32[2] on cpu": "tensors of few shapes",
    "x should be the same Log as before, but is <Log object>": "the same object",
    "f should run the code of a (a.py:1), but runs that of b (b.py:1)": "the same object",
    "len(x) should be 2, but is 3": "as many entries",
    "x should have the key 'a', but lacks it": "as many entries",
    "x should be a list, but is a NoneType": "one type of value",
    "x should be None (NoneType), but is [float32[3]] (list)": "one type of value",
    "x should be 3, but is 4": "as a tensor",
}


@pytest.mark.parametrize("reason", ADVICE)
def test_the_advice_fits_what_differs(reason: str) -> None:
    assert ADVICE[reason] in advice(reason, ())


class Rows:
    """Has attributes with names like those that values were once passed by."""

    def __init__(self, *rows: torch.Tensor) -> None:
        self.held_rows = [*rows]
        self.held_0 = [*rows]


@pytest.mark.parametrize("name", ["held_rows", "held_0"])
def test_the_names_of_the_users_attributes_are_told(name: str) -> None:
    def f(b: Rows) -> Any:
        return getattr(b, name)[0] * 2

    static = to_partial(f, dynamic=False)
    b = Rows(torch.ones(3))
    static(b)
    for number in range(4, 8):
        setattr(b, name, [torch.ones(number)])
        why = static.explain_miss(b)
        assert f"b.{name}[0]" in why or f"args[0].{name}[0]" in why
        assert "stillgraph_held" not in why
        static(b)
        other = Rows(torch.ones(number, dtype=torch.float64))
        told = static.explain_miss(other)
        assert "stillgraph_held" not in told
        static(other)


def test_no_text_names_what_values_are_passed_by() -> None:
    class Box:
        held_0: Any = None

    def f(box: Box, x: torch.Tensor) -> Any:
        y = x + 1
        print("a")
        z = y * box.held_0[0]
        print("b")
        return z + box.held_0[0]

    static = to_partial(f)
    box = Box()
    for size in (3, 1):
        box.held_0 = [torch.ones(size)]
        static(box, torch.ones(3))
    for text in (str(static.explain()), static.code):
        assert "stillgraph_held" not in text
        assert "Parcel" not in text
    assert "held_0[0]" in str(static.explain())


class Node:
    def __init__(self, value: float) -> None:
        self.value = value


def test_what_is_passed_twice_is_told_by_its_names() -> None:
    def f(x: Any, left: Node, right: Node) -> Any:
        print("a")
        left.value = 2.0
        return x * left.value + right.value

    static, x = to_partial(f), torch.ones(2)
    assert torch.equal(static(x, Node(1.0), Node(3.0)), x * 5)
    for number in range(3):
        node = Node(number + 5.0)
        assert torch.equal(static(x, node, node), x * 4)
    told = {why for part in static.plan.segments for why in part._cache.reasons if why}
    assert told == {
        "left should be a Node that is looked into, but is one that is only handed on",
        "left and right should be different objects, but are the same object",
    }
