"""Views of mappings: guarded by what they show, and by what kind of mapping that is."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.bytecode.segmented import to_partial

X = torch.arange(3.0)
LETTERS = "abcdefghijkl"
TABLE: Any = {}


class Lenient(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 5


class Plain(dict[str, int]):
    pass


KINDS: dict[str, Callable[[dict[str, int]], Any]] = {
    "dict": dict,
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": lambda held: collections.defaultdict(int, held),
    "Lenient": Lenient,
    "Plain": Plain,
}


def _numbers(count: int, first: int = 0) -> dict[str, int]:
    return {letter: first + number for number, letter in enumerate(LETTERS[:count])}


def _same(function: Callable[..., Any], static: Any, *args: Any) -> None:
    """One call in eager PyTorch and one of the static function: they give or raise the same."""
    found: list[Any] = []
    for each in (function, static):
        try:
            found.append(each(*args).tolist())
        except KeyError as error:
            found.append(repr(error))
    assert found[0] == found[1]


def summed(x: Tensor, view: Any) -> Tensor:
    total = 0
    for value in view:
        total = total + value
    return x * total


def missing(x: Tensor) -> Tensor:
    return x * TABLE["nothing"]


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_is_captured_once(kind: str, count: int) -> None:
    static = to_partial(summed)
    view = KINDS[kind](_numbers(count)).values()
    for _ in range(3):
        _same(summed, static, X, view)
    assert static.cache_info().misses == 1
    assert static.explain_miss(X, view) is None
    _same(summed, static, X, KINDS[kind](_numbers(count, first=2)).values())


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_shows_what_changes(kind: str, count: int) -> None:
    static, table = to_partial(summed), KINDS[kind](_numbers(count))
    view = table.values()
    _same(summed, static, X, view)
    table["b"] = 9
    _same(summed, static, X, view)
    del table["a"]
    _same(summed, static, X, view)
    table["z"] = 2.5
    _same(summed, static, X, view)
    table["z"] = True
    _same(summed, static, X, view)


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize("first", KINDS)
def test_what_a_proxy_shows_may_be_of_another_kind(first: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    static = to_partial(missing)
    for kind in (first, first, *KINDS, *KINDS):
        monkeypatch.setitem(globals(), "TABLE", types.MappingProxyType(KINDS[kind](_numbers(count))))
        _same(missing, static, X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_mapping_is_captured_once(kind: str) -> None:
    def total(x: Tensor, table: Any) -> Tensor:
        return summed(x, table.values())

    static = to_partial(total)
    for _ in range(3):
        _same(total, static, X, KINDS[kind](_numbers(12)))
    assert static.cache_info().misses <= 2


def test_the_factory_of_a_long_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    static = to_partial(missing)
    table: Any = collections.defaultdict(int, _numbers(12))
    for factory in (int, lambda: 7, lambda: 9, int):
        for wrap in (lambda held: held, types.MappingProxyType):
            table.pop("nothing", None)
            table.default_factory = factory
            monkeypatch.setitem(globals(), "TABLE", wrap(table))
            assert static(X).tolist() == (X * factory()).tolist()
            assert table["nothing"] == factory()
