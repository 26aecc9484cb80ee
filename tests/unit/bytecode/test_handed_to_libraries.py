"""Functions that are handed to Python's or torch's own code, which calls them: followed, where an operator does."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_map, tree_map_only

import stillgraph as sg

XS = [torch.arange(3.0) - 1, torch.arange(3.0), torch.arange(3.0) * -2]


class Pair(NamedTuple):
    left: Any
    right: Any


def doubled_where_large(t: Any) -> Any:
    if isinstance(t, int):
        return t + 1
    if t.sum() > 0:
        return t * 2
    return t - 1


def by_tree_map(x: Tensor) -> Any:
    return tree_map(doubled_where_large, {"a": x, "b": [Pair(x + 1, 3)]})


def by_tree_map_of_two(x: Tensor) -> Any:
    return tree_map(lambda a, b: a * b, (x, [x + 1]), (x * 2, [x]))


def by_tree_map_only(x: Tensor) -> Any:
    return tree_map_only(Tensor, lambda t: t.relu(), [x, 3, {"k": (x * 2, "text")}])


def by_leaves_that_print(x: Tensor) -> Any:
    return tree_map(lambda t: print(t.sum().item()), [x, x + 1]), x * 2


def by_a_factory(x: Tensor) -> Any:
    found: Any = collections.defaultdict(lambda: x.sum())
    found["a"] += 1
    return found["a"] + found["b"], list(found)


def by_a_factory_that_counts(x: Tensor) -> Any:
    numbers: Any = collections.defaultdict(lambda: len(numbers))
    return [numbers[each] for each in "abcab"], x + len(numbers)


def by_a_factory_that_branches(x: Tensor) -> Any:
    def made() -> Tensor:
        if x.sum() > 0:
            return x * 2
        return x

    found: Any = collections.defaultdict(made)
    return found["a"] + 1


def by_sorted_names(x: Tensor, **others: Any) -> Any:
    for _name, value in sorted({"b": x * 2, "a": x + 1, **others}.items()):
        x = x * value
    return x, [number for _, number, _ in sorted([("q", 2, x), ("q", 1, x + 1)])]


FUNCTIONS = [
    *(by_tree_map, by_tree_map_of_two, by_tree_map_only, by_a_factory, by_a_factory_that_counts),
    *(by_a_factory_that_branches, by_sorted_names),
]


def plain(value: Any) -> Any:
    return repr(value)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_in_the_program(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x in XS:
        assert plain(static(x)) == plain(function(x))
    assert static.explain().breaks == ()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_with_a_full_graph(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in XS:
        assert plain(static(x)) == plain(function(x))


def test_what_a_leaf_prints_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    static = sg.to_static(by_leaves_that_print, full_graph=False, strict=True, backend="eager")
    for x in XS:
        assert plain(static(x)) == plain(by_leaves_that_print(x))
        printed = capsys.readouterr().out.splitlines()
        assert printed[:2] == printed[2:]


# ---- a factory is the value's, and goes where it goes
def with_a_factory(x: Tensor) -> Any:
    return collections.defaultdict(lambda: x.sum())


def with_a_factory_behind_a_print(x: Tensor) -> Any:
    found: Any = collections.defaultdict(lambda: x.sum())
    print("made")
    return found["a"] + 1


def test_a_factory_that_leaves_knows_the_values_of_its_call() -> None:
    static = sg.to_static(with_a_factory, full_graph=False, strict=True, backend="eager")
    assert [static(x)["a"].item() for x in XS] == [x.sum().item() for x in XS]
    static = sg.to_static(with_a_factory_behind_a_print, full_graph=False, strict=True, backend="eager")
    assert [static(x).item() for x in XS] == [x.sum().item() + 1 for x in XS]
    with pytest.raises(sg.CaptureError, match="a defaultdict is returned with a factory that the function makes"):
        sg.to_static(with_a_factory, backend="eager")(XS[0])


def test_a_factory_from_outside_may_leave_a_full_graph() -> None:
    def counts(x: Tensor) -> Any:
        found = collections.defaultdict(list, {"x": [x * 2]})
        return found

    static = sg.to_static(counts, backend="eager")
    for x in XS:
        assert plain(static(x)) == plain(counts(x))


@pytest.mark.parametrize("full_graph", [False, True])
def test_a_factory_of_an_argument_is_asked_in_each_call(full_graph: bool) -> None:
    def f(found: Any) -> Any:
        return found["a"] + found["b"]

    options: Any = {} if full_graph else {"strict": True}
    static = sg.to_static(f, full_graph=full_graph, backend="eager", **options)

    def given(x: Tensor) -> Any:
        return collections.defaultdict(lambda: x.sum(), b=x)

    for x in XS:
        mine, other = given(x), given(x)
        assert plain(static(mine)) == plain(f(other))
        assert plain(dict(mine)) == plain(dict(other))


def test_a_factory_that_is_exchanged_is_noticed() -> None:
    found: Any = collections.defaultdict(lambda: 2)

    def f(x: Tensor) -> Any:
        found.pop("a", None)
        return x * found["a"]

    static = sg.to_static(f, full_graph=False, strict=True, backend="eager")
    assert plain(static(XS[1])) == plain(f(XS[1]))
    found.default_factory = lambda: 5
    assert plain(static(XS[1])) == plain(XS[1] * 5)
