"""Errors that Python raises in a capture tell the kinds of values that eager PyTorch has."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph
import stillgraph as sg
from stillgraph.operators.elements.stand_ins import StandIn
from stillgraph.trace.values.caught import Caught
from stillgraph.trace.values.errors import KINDS, OF_MIXED_KINDS, OF_SEVERAL_KINDS
from stillgraph.trace.values.numbers import Staged
from tests.front_ends import bytecode  # noqa: F401  # a fixture


def attribute(x: Any, number: Any) -> Any:
    return x.nope


def method(x: Any, number: Any) -> Any:
    return x.nope(1)


def asked(x: Any, number: Any) -> Any:
    return getattr(x, "nope")  # noqa: B009


def deleted(x: Any, number: Any) -> None:
    del x.nope


def added(x: Any, number: Any) -> Any:
    return x + "a"


def concatenated(x: Any, number: Any) -> Any:
    return [] + x  # noqa: RUF005


def compared(x: Any, number: Any) -> Any:
    return x < "a"


def attribute_of_a_number(x: Any, number: Any) -> Any:
    return number.nope


def number_and_text(x: Any, number: Any) -> Any:
    return number + "a"


def item_of_a_number(x: Any, number: Any) -> Any:
    return number[0]


def unpacked_number(x: Any, number: Any) -> Any:
    first, _ = number
    return first


FAILING = [
    *(attribute, method, asked, deleted, added, concatenated, compared),
    *(attribute_of_a_number, number_and_text, item_of_a_number, unpacked_number),
]


def _texts(fail: Callable[[Any, Any], Any], compiled: Callable[[Any], Any]) -> tuple[str, str]:
    def function(x: Any) -> Any:
        value = x.sum().item()
        try:
            fail(x, value)
        except (AttributeError, TypeError) as error:
            print(error)
            print(f"{error} {error!r}")
            said = str(error)
        return x + 1, said

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        said = compiled(function)(torch.ones(2))[1]
    return said, printed.getvalue()


@pytest.mark.parametrize("fail", FAILING)
@pytest.mark.parametrize("front_end", ["source", "bytecode", "segments"])
def test_the_text_is_eagers(fail: Any, front_end: str, request: pytest.FixtureRequest) -> None:
    if front_end == "bytecode":
        request.getfixturevalue("bytecode")
    options: dict[str, Any] = {"full_graph": False, "strict": True} if front_end == "segments" else {}
    static = functools.partial(sg.to_static, backend="eager", **options)
    assert _texts(fail, static) == _texts(fail, lambda function: function)


class StagedNet:
    """Of the user's: it begins as classes do that stand for values."""

    size = 3


def of_a_class_of_the_users(x: Any, number: Any) -> Any:
    net = StagedNet()
    found = []
    for ask in (lambda: net.width, lambda: len(net), lambda: net + 1):
        try:
            found.append(ask())
        except (AttributeError, TypeError) as error:
            found.append(str(error))
    return x + 1, found


@pytest.mark.parametrize("full_graph", [True, False])
def test_classes_of_the_users_keep_their_names(full_graph: bool) -> None:
    static = sg.to_static(of_a_class_of_the_users, backend="eager", full_graph=full_graph)
    x = torch.ones(2)
    assert static(x, 1)[1] == of_a_class_of_the_users(x, 1)[1]
    assert static.cache_info().programs == 1


def test_all_that_stands_for_values_is_known_by_name() -> None:
    """A class whose name an error may tell is in one of the tables."""
    for module in pkgutil.walk_packages(stillgraph.__path__, "stillgraph."):
        if module.name.split(".")[1] in ("trace", "operators"):
            importlib.import_module(module.name)
    found = {each.__name__ for each in _all_below(Staged) if not issubclass(each, Caught)}
    found |= {"Unjoined", "UnjoinedMethod"}
    stand_ins = {each.__name__ for each in _all_below(StandIn) if each.stands_for is None}
    known = {*OF_SEVERAL_KINDS, *OF_MIXED_KINDS, *KINDS, *_ABSTRACT}
    assert found | stand_ins <= known, found | stand_ins - known


# What no error of Python's tells of:
_ABSTRACT = {
    *("ArrayValue", "Count", "Indexed", "Listed", "OfComplex", "Watching", "WatchingIterator", "_ListIterator"),
    "_View",
}


def _all_below(kind: type) -> set[type]:
    return {kind}.union(*map(_all_below, kind.__subclasses__())) - {StandIn}
