"""Global variables that a call deletes, or that some path does not assign."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode

UP = torch.tensor([1.0, 2.0, 3.0])
_UNSET = object()


def made_and_deleted(x):
    global fresh
    fresh = 1
    del fresh
    return x + 1


def made_and_deleted_on_one_path(x):
    global fresh
    if x.sum() > 0:
        fresh = 1
        del fresh
    else:
        fresh = 4
    return x + 1


def outcome(function: Callable[..., Any], x: Any) -> tuple[str, Any]:
    try:
        found = repr(function(x))
    except Exception as error:  # of any kind: it is compared with that of eager
        found = repr(error)
    return found, globals().get("fresh", _UNSET)


def begin(value: Any) -> None:
    globals().pop("fresh", None)
    if value is not _UNSET:
        globals()["fresh"] = value


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", [made_and_deleted, made_and_deleted_on_one_path])
def test_deleted_whether_it_was_there_or_not(function: Callable[..., Any], way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        for value in (_UNSET, 3, _UNSET, 5):
            for x in (UP, -UP):
                begin(value)
                expected = outcome(function, x)
                begin(value)
                found = outcome(static, x)
                refused = way != "segments" and "possibly unbound" in found[0]
                assert refused or found == expected


def read_and_deleted(x):
    global fresh
    if x.sum() > 0:
        fresh = 1
    try:
        r = fresh
        del fresh
        return r
    except NameError as e:
        return str(e)


def deleted_behind_a_branch(x):
    global fresh
    if x.sum() > 0:
        fresh = 1
    del fresh
    return x + 1


def deleted_twice(x):
    global fresh
    fresh = 3
    if x.sum() > 0:
        del fresh
    try:
        del fresh
    except NameError as e:
        return str(e)


DELETED = [read_and_deleted, deleted_behind_a_branch, deleted_twice]


@pytest.mark.parametrize("function", DELETED, ids=lambda function: function.__name__)
def test_deleted_though_some_path_has_not_assigned_it(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in (UP, -UP, -UP, UP):
        begin(_UNSET)
        expected = outcome(function, x)
        begin(_UNSET)
        assert outcome(static, x) == expected


@pytest.mark.parametrize("way", ["source", "bytecode"])
@pytest.mark.parametrize("function", DELETED, ids=lambda function: function.__name__)
def test_which_a_full_graph_refuses(function: Callable[..., Any], way: str) -> None:
    begin(_UNSET)
    front_end = through_bytecode() if way == "bytecode" else contextlib.nullcontext()
    with front_end, pytest.raises(sg.CaptureError, match="fresh is deleted, which some path") as caught:
        sg.to_static(function, backend="eager")(UP)
    assert caught.value.reason.code == "SG204"
    assert "fresh" not in globals()
