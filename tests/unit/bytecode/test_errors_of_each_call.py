"""Exceptions that Python handles between programs are those of the call: no program keeps one of an earlier call."""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.linalg import LinAlgError, cholesky

import stillgraph as sg
from tests.sampling import crossed
from tests.unit.bytecode.segmented import to_partial

ONES, NEGATIVE, GOOD = torch.ones(3, 3), -torch.eye(3), torch.eye(3) * 2
LATE, MIXED = torch.diag(torch.tensor([1.0, 1.0, -1.0])), torch.diag(torch.tensor([3.0, -1.0, -1.0]))


def retried_with_a_jitter(a: Tensor) -> Any:
    jitter, tries = 0.0, 0
    while True:
        try:
            return cholesky(a + jitter * torch.eye(len(a))), tries
        except LinAlgError:
            jitter = 1e-3 if jitter == 0 else jitter * 10
            tries += 1
            if tries > 4:
                raise


def retried_twice(a: Tensor) -> Any:
    for i in range(2):
        try:
            return cholesky(a)
        except LinAlgError:
            if i:
                raise
            a = a * 1.0
    return None


def raised_from(a: Tensor) -> Any:
    for i in range(2):
        try:
            return cholesky(a)
        except LinAlgError as error:
            if i:
                raise RuntimeError(f"gave up: {error}") from error
            a = a * 1.0
    return None


def raised_again_where_a_tensor_decides(x: Tensor) -> Tensor:
    try:
        y = cholesky(x)
    except LinAlgError:
        print("handled")
        if x.sum() > 0:
            raise
        y = x * 2
    return y


def _raises_again(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise  # in a handler of its caller's
    return x * 2


def raised_again_by_a_callee(x: Tensor) -> Tensor:
    try:
        y = cholesky(x)
    except LinAlgError:
        print("handled")
        y = _raises_again(x)
    return y


def in_the_context_of_another(x: Tensor) -> Tensor:
    try:
        y = cholesky(x)
    except LinAlgError as outer:
        print("outer")
        try:
            if x.sum() > 2:
                raise KeyError("inner")
            y = cholesky(x + 0.0)
        except (KeyError, LinAlgError) as inner:
            print("inner", inner.__context__ is outer)
            if x[0, 0] > 2:
                raise
            y = x * 5
        if y.sum() < -15:
            raise
    return y


def the_handled_one_by_another_name(x: Tensor) -> Tensor:
    try:
        y = cholesky(x)
    except LinAlgError as error:
        other = error if x[0, 0] == 1 else ValueError("other")
        print("handled")
        y = x * 2
        print(other is error)
        if y.sum() > 10:
            raise
        if y.sum() < -5:
            raise other from None
    return y


class Unsure(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        try:
            return cholesky(x)
        except LinAlgError:
            if x[0, 0] > 0:
                raise
            raise ValueError("negative") from None


_unsure = Unsure()


def a_module_in_a_loop(x: Tensor) -> Tensor:
    y = x
    for k in range(3):
        try:
            y = _unsure(x + k * torch.eye(3))
            break
        except RuntimeError:
            print("retry", k)
        except ValueError as error:
            print(error, repr(error.__context__))
            if k == 2:
                raise
    return y


def raised_behind_the_loop(x: Tensor) -> Tensor:
    last = None
    for k in range(2):
        try:
            return cholesky(x + k * 1e-3 * torch.eye(3))
        except LinAlgError as error:
            last = error
    raise RuntimeError("all have failed") from last


FUNCTIONS = (
    retried_with_a_jitter,
    retried_twice,
    raised_from,
    raised_again_where_a_tensor_decides,
    raised_again_by_a_callee,
    in_the_context_of_another,
    the_handled_one_by_another_name,
    a_module_in_a_loop,
    raised_behind_the_loop,
)


def _told(error: BaseException | None) -> Any:
    return None if error is None else (type(error), str(error), _told(error.__cause__), _told(error.__context__))


def _seen(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            outcome: Any = str(function(x.clone()))
        except Exception as error:  # of any kind: it is compared
            entries = traceback.extract_tb(error.__traceback__)
            outcome = _told(error), [(each.name, each.lineno) for each in entries if each.filename == __file__][1:]
    return outcome, printed.getvalue()


CALLS = (ONES, NEGATIVE, LATE, GOOD, MIXED, ONES * 2, NEGATIVE * 4)


@pytest.mark.parametrize(("function", "first"), crossed(FUNCTIONS, range(0, len(CALLS), 2)))
def test_it_is_the_exception_of_this_call(function: Any, first: int) -> None:
    static = to_partial(function)
    for x in (*CALLS[first:], *CALLS[:first], *CALLS):
        assert _seen(static, x) == _seen(function, x)


class Holder:
    error: Exception


KEPT = Holder()


def returned(x: Tensor) -> Any:
    error = KeyError("a", x.shape[0])
    error.add_note("b")
    error.__cause__ = OSError("c")
    return x * 2, error, [error]


def held_by_an_object(x: Tensor) -> Any:
    held = Holder()
    held.error = ValueError("a")
    return x * 2, held.error, [held.error]


def stored(x: Tensor) -> Any:
    KEPT.error = ValueError("a")
    return x * 2, KEPT.error, [KEPT.error]


@pytest.mark.parametrize("full_graph", [False, True])
@pytest.mark.parametrize("function", [returned, held_by_an_object, stored], ids=lambda each: each.__name__)
def test_each_call_makes_its_own(function: Any, full_graph: bool) -> None:
    static = sg.to_static(function, full_graph=full_graph, backend="eager")
    eager = function(ONES)[1]
    given = []
    for _ in range(3):
        _, error, held = static(ONES)
        assert held[0] is error
        assert _told(error) == _told(eager)
        assert vars(error) == vars(eager)
        assert error.__traceback__ is None
        with pytest.raises(type(eager)):
            raise error
        given.append(error)
    assert len(set(map(id, given))) == 3


def test_one_from_before_stays_itself() -> None:
    error = ValueError("a")

    def f(x: Tensor) -> Any:
        return x * 2, error

    for full_graph in (False, True):
        static = sg.to_static(f, full_graph=full_graph, backend="eager")
        assert all(static(ONES)[1] is error for _ in range(3))
