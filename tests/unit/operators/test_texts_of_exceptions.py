"""Functions of Python's that make texts and copies of exceptions which hold values of the run."""

from __future__ import annotations

import copy
import pickle
import traceback
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

P, N = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


def format_only(x: Tensor) -> Any:
    try:
        raise ValueError(f"bad {x.sum().item()}")
    except ValueError as error:
        return x, traceback.format_exception_only(error)


def of_a_number(x: Tensor) -> Any:
    try:
        raise ValueError(x.sum().item())
    except ValueError as error:
        return x, traceback.format_exception_only(type(error), error)


def of_its_cause(x: Tensor) -> Any:
    try:
        raise ValueError("known") from KeyError(x.sum().item())
    except ValueError as error:
        return x, str(traceback.TracebackException.from_exception(error).__cause__)


def raised_on_a_path(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError(f"bad {x.sum().item()}")
    except ValueError as error:
        try:
            return x, str(copy.deepcopy(error))
        except TypeError as failure:
            return x, str(failure)
    return x, "fine"


def pickled(x: Tensor) -> Any:
    try:
        raise ValueError(f"bad {x.sum().item()}")
    except ValueError as error:
        try:
            return x, str(pickle.loads(pickle.dumps(error)))
        except (TypeError, AttributeError) as failure:
            return x, str(failure)


def of_known_values(x: Tensor) -> Any:
    try:
        raise ValueError("bad", 2)
    except ValueError as error:
        return x + 1, traceback.format_exception_only(error), str(copy.deepcopy(error))


def copied_texts(x: Tensor) -> Any:
    text = f"{x.sum().item()}"
    copied = copy.deepcopy([text, {"t": text}])
    return copied, copy.copy(text)


REFUSED = {
    **dict.fromkeys((format_only, of_a_number, of_its_cause, pickled), "SG302"),
    raised_on_a_path: "SG301",
}


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_refused(function: Any) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(P)
    assert caught.value.reason.code in (REFUSED[function], "SG302")


@pytest.mark.parametrize("function", [*REFUSED, of_known_values, copied_texts])
def test_without_a_full_graph(function: Any) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in (P, N):
        assert str(static(x)) == str(function(x))


@pytest.mark.parametrize("function", [of_known_values, copied_texts])
def test_as_in_eager(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for x in (P, N):
        assert str(static(x)) == str(function(x))
