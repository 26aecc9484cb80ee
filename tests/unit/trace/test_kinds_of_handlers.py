"""What an `except` is for is evaluated where something is raised, and nowhere else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.unset_functions import outcome, static


def a_class_that_may_be_unset(x):
    if x.sum() > 0:
        kind = IndexError
    try:
        return x[x[0].long()]
    except kind:
        return "caught"


def printing_kinds():
    print("kinds")
    return IndexError


def classes_of_a_call(x):
    try:
        return x[x[0].long()]
    except printing_kinds():
        return "caught"


def kept_kinds(kept):
    kept.append(IndexError)
    return kept[-1]


def classes_that_are_kept(x):
    kept = []
    try:
        y = x[x[0].long()]
    except kept_kinds(kept):
        y = x
    return y, len(kept)


def a_class_that_is_certainly_unset(x):
    try:
        return x[x[0].long()]
    except kind:  # noqa: F821
        kind = IndexError  # noqa: F841 (that it is assigned makes it a local variable)
    return "caught"


ONLY_ASKED_LATER = [
    a_class_that_may_be_unset,
    classes_of_a_call,
    classes_that_are_kept,
    a_class_that_is_certainly_unset,
]
RAISES, RAISES_NOT = torch.tensor([7.0, 0, 0]), torch.tensor([-1.0, 0, 0])


@pytest.mark.parametrize("function", ONLY_ASKED_LATER, ids=lambda function: function.__name__)
def test_what_an_except_is_for_is_evaluated_only_where_something_is_raised(
    function: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for order in ((RAISES, RAISES_NOT, -RAISES), (RAISES_NOT, RAISES, -RAISES)):
        found = static(function, "segments")
        for x in order:
            assert outcome(found, x, capsys) == outcome(function, x, capsys)


@pytest.mark.parametrize("way", ["source", "bytecode"])
@pytest.mark.parametrize("function", ONLY_ASKED_LATER[:-1], ids=lambda function: function.__name__)
def test_with_a_full_graph_it_has_to_be_known_before(
    function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    front_end = through_bytecode() if way == "bytecode" else contextlib.nullcontext()
    with front_end, pytest.raises(sg.CaptureError, match="an 'except' is for") as caught:
        static(function, way)(RAISES)
    assert caught.value.reason.code == "SG208"
    assert capsys.readouterr().out == ""
