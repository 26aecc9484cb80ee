# ruff: noqa: B904 (what raises in handlers is what these are about)
"""``except*``: Python makes a group of all that its handlers raise, but what ends a capture goes its way past it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode

UP = torch.tensor([1.0, 2.0, 3.0])


class Counted:
    def __init__(self) -> None:
        self.n = 0


def raise_both():
    raise ExceptionGroup("g", [ValueError(1), KeyError("k")])


def counted_in_a_handler(x, st):
    try:
        raise_both()
    except* ValueError:
        st.n += 1
    except* KeyError:
        if x.max() > 2:
            st.n += 2
    return st.n


def counted_in_a_body(x, st):
    try:
        if x.max() > 2:
            st.n += 2
    except* BaseException:
        st.n += 1
    return st.n


def inner_and_outer(x, st):
    try:
        try:
            raise_both()
        except* ValueError:
            if x.max() > 2:
                st.n += 1
    except* KeyError:
        if x.max() > 2:
            st.n += 10
    return st.n


def raised_again(x, st):
    try:
        raise_both()
    except* ValueError:
        st.n += 1
        raise
    except* KeyError as error:
        if x.max() > 2:
            st.n += len(error.exceptions)


def with_all_its_blocks(x, st):
    try:
        y = x + 1
    except* ValueError:
        y = x
    else:
        if x.max() > 2:
            return x * 2
    finally:
        st.n += 1
    return y


CAPTURED = [counted_in_a_handler, counted_in_a_body, inner_and_outer, raised_again, with_all_its_blocks]


def raised_by_the_run(x, st):
    try:
        raise_both()
    except* ValueError:
        if x.max() < 5:
            raise TypeError("small")
    except* KeyError:
        st.n += 1
        if x.sum() > 0:
            raise TypeError("t")


def failing_in_the_run(x, st):
    try:
        raise_both()
    except* ValueError:
        st.n += [1, 2, 3][int(x.max())]


def raised_by_a_function(x, st):
    def check():
        if x.max() < 5:
            raise TypeError("small")

    try:
        raise_both()
    except* ValueError:
        check()
    except* KeyError:
        st.n += 1


def refused_in_a_handler(x, st):
    it = (each for each in [1, 2])
    try:
        raise_both()
    except* ValueError:
        st.n += 1
        if x.max() > 2:
            next(it)
    except* KeyError:
        st.n += 20
    return list(it)


RAISING = [raised_by_the_run, failing_in_the_run, raised_by_a_function]


def shown(value: Any) -> Any:
    if isinstance(value, BaseExceptionGroup):
        return type(value), value.message, [shown(each) for each in value.exceptions]
    return repr(value)


def outcome(function: Callable[..., Any], x: Any, st: Counted) -> Any:
    try:
        found = shown(function(x, st))
    except Exception as error:  # of any kind: it is compared with that of eager
        found = shown(error)
    return found, st.n


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", CAPTURED, ids=lambda function: function.__name__)
def test_what_begins_a_capture_anew_leaves_it(function: Callable[..., Any], way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        mine, eagers = Counted(), Counted()
        for x in (UP, -UP, UP * 10, UP):
            assert outcome(static, x, mine) == outcome(function, x, eagers)


@pytest.mark.parametrize("way", ["source", "bytecode"])
@pytest.mark.parametrize("function", RAISING, ids=lambda function: function.__name__)
def test_what_the_run_raises_in_a_handler_is_refused(function: Callable[..., Any], way: str) -> None:
    st = Counted()
    front_end = through_bytecode() if way == "bytecode" else contextlib.nullcontext()
    with front_end, pytest.raises(sg.CaptureError, match=r"stays Python|raises ExceptionGroup") as caught:
        sg.to_static(function, backend="eager")(UP, st)
    assert caught.value.reason.code in ("SG208", "SG209")
    assert st.n == 0


@pytest.mark.parametrize("function", [*RAISING, refused_in_a_handler], ids=lambda function: function.__name__)
def test_what_the_run_raises_is_grouped_without_a_full_graph(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    mine, eagers = Counted(), Counted()
    for x in (UP, -UP, UP * 10, UP):
        assert outcome(static, x, mine) == outcome(function, x, eagers)


@pytest.mark.parametrize("way", ["source", "bytecode"])
def test_a_refusal_leaves_it(way: str) -> None:
    st = Counted()
    front_end = through_bytecode() if way == "bytecode" else contextlib.nullcontext()
    with front_end, pytest.raises(sg.CaptureError, match="is advanced"):
        sg.to_static(refused_in_a_handler, backend="eager")(UP, st)
    assert st.n == 0
