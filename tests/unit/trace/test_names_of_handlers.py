# ruff: noqa: F821, F841 (the functions are about variables that may have no value)
"""``except E as e`` leaves ``e`` without a value at its end, whatever the handler has put there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode


def raise_unless(test):
    if not test:  # pytest makes something else of an ``assert``
        raise AssertionError


UP = torch.tensor([1.0, 2.0, 3.0])


def assigned_again(x):
    try:
        if x.max() > 2:
            raise ValueError("q")
        e = 4
    except ValueError as e:
        e = 5
    return e


def left_by_continue(x):
    r = 0
    for i in range(2):
        try:
            if x[i] > 1.5:
                raise ValueError("q")
            e = 4
        except ValueError as e:
            e = 5
            r = r + 1
            continue
        r = r + e
    return r, e


def read_by_an_inner_function(x):
    def g():
        return e

    try:
        if x.max() > 2:
            raise ValueError("q")
        e = 4
    except ValueError as e:
        e = 5
    return g()


def of_the_function_around(x):
    e = 1

    def g():
        nonlocal e
        try:
            if x.max() > 2:
                raise ValueError("q")
            e = 4
        except ValueError as e:
            e = 5

    g()
    return e


def returned_by_the_handler(x):
    try:
        if x.max() > 2:
            raise ValueError("q")
        e = 4
    except ValueError as e:
        e = x + 1
        if x.sum() > 2:
            return e
    return 3


def deleted_by_the_handler(x):
    try:
        if x.max() > 2:
            raise ValueError("q")
        e = 4
    except ValueError as e:
        del e
        e = 5
        del e
    return e


def left_by_what_the_run_raises(x):
    try:
        try:
            if x.max() > 2:
                raise ValueError("q")
            e = 4
        except ValueError as e:
            e = x * 2
            raise_unless(x.max() > 10)
    except AssertionError:
        try:
            return e
        except NameError as n:
            return str(n)
    return e


def left_though_it_is_certain(x):
    try:
        try:
            raise ValueError("q")
        except ValueError as e:
            e = x * 2
            raise_unless(x.max() > 10)
    except AssertionError:
        try:
            return e
        except NameError as n:
            return str(n)
    return 3


def left_where_an_inner_function_reads(x):
    def g():
        return e

    try:
        try:
            raise ValueError("q")
        except ValueError as e:
            e = x * 2
            raise_unless(x.max() > 10)
    except AssertionError:
        try:
            return g()
        except NameError as n:
            return str(n)
    return 3


def still_there_in_the_handler(x):
    try:
        raise ValueError("q")
    except ValueError as e:
        e = x * 2
        try:
            try:
                raise_unless(x.max() > 10)
            except KeyError as e:
                e = 3
        except AssertionError:
            return e
    return 3


FUNCTIONS = [
    assigned_again,
    left_by_continue,
    read_by_an_inner_function,
    of_the_function_around,
    returned_by_the_handler,
    deleted_by_the_handler,
    left_by_what_the_run_raises,
    left_though_it_is_certain,
    left_where_an_inner_function_reads,
    still_there_in_the_handler,
]


def outcome(function: Callable[..., Any], x: Any) -> str:
    try:
        return repr(function(x))
    except Exception as error:  # of any kind: it is compared with that of eager
        return repr(error)


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_unset_behind_its_handler(function: Callable[..., Any], way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        if way == "bytecode" and function is left_by_what_the_run_raises:  # its bytecode says less of the two names
            assert "SG201" in outcome(static, UP)
            return
        for x in (UP, -UP, UP * 10, UP):
            assert outcome(static, x) == outcome(function, x)


def of_the_module(x):
    global kept
    try:
        if x.max() > 2:
            raise ValueError("q")
        kept = 4
    except ValueError as kept:
        kept = 5


def test_one_of_the_module_is_refused_where_only_the_run_raises() -> None:
    with pytest.raises(sg.CaptureError, match="a try block that stays Python") as caught:
        sg.to_static(of_the_module, backend="eager")(UP)
    assert caught.value.reason.code == "SG208"


def test_one_of_the_module_without_a_full_graph() -> None:
    static = sg.to_static(of_the_module, backend="eager", full_graph=False)
    for x, expected in ((UP, None), (-UP, 4), (UP, None)):
        static(x)
        assert globals().get("kept") == expected
