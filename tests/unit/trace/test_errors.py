"""Errors that Python raises in a capture tell the kinds of values that eager PyTorch has."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
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
