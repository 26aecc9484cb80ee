"""Context variables that the code sets: put back on every path, and refused where they are left set."""

from __future__ import annotations

import contextvars
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.bytecode.segmented import CALLS, agrees
from tests.unit.trace.agreement import N, P, agree, refusal

SETTING: contextvars.ContextVar[float] = contextvars.ContextVar("SETTING", default=1.0)


def set_around_a_branch(x: torch.Tensor) -> torch.Tensor:
    token = SETTING.set(3.0)
    try:
        if x.sum() > 0:
            x = x * SETTING.get()
        else:
            x = x - SETTING.get()
        while x.sum() < 4:
            x = x + SETTING.get()
    finally:
        SETTING.reset(token)
    return x * SETTING.get()


def test_a_context_variable_may_be_set_around_a_branch_and_a_loop() -> None:
    agree(set_around_a_branch, torch.ones(2), -torch.ones(2))


def set_in_each_iteration(x: torch.Tensor) -> torch.Tensor:
    while x.sum() < 4:
        token = SETTING.set(SETTING.get() + 2)
        try:
            x = x + SETTING.get()
        finally:
            SETTING.reset(token)
    return x * SETTING.get()


def test_a_context_variable_that_the_function_has_set_is_not_guarded() -> None:
    static = sg.to_static(set_in_each_iteration, backend="eager")
    for x in (torch.zeros(2), torch.ones(2) * 3, torch.ones(2)):
        assert torch.equal(static(x), set_in_each_iteration(x))
    assert static.cache_info().programs == 1


def test_a_context_variable_that_is_left_set_is_told_of_where_it_is_set() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        token = SETTING.set(1.5)
        SETTING.reset(token)
        while x.sum() < 4:
            SETTING.set(2.0)
            x = x + 1
        return x

    error = refusal(function, P)
    assert "the ContextVar" in str(error)
    assert "SETTING.set(2.0)" in str(error)
    assert SETTING.get() == 1.0


def test_what_is_refused_while_a_context_variable_is_set_is_told_of_itself() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 4:
            token = SETTING.set(2.0)
            try:
                x = x + hash(x.sum() > 0)
            finally:
                SETTING.reset(token)
        return x

    error = refusal(function, P)
    assert "hash(x.sum() > 0)" in str(error)
    assert "ContextVar" not in str(error)
    assert SETTING.get() == 1.0


UNSET: contextvars.ContextVar[Any] = contextvars.ContextVar("UNSET")


def set_where_it_may_raise(x: torch.Tensor) -> torch.Tensor:
    while x.sum() < 4:
        token = UNSET.set(2)
        try:
            if x.max() > 3:
                raise ValueError("too much")
            x = x + UNSET.get()
        finally:
            UNSET.reset(token)
    return x


def set_where_it_is_handled(x: torch.Tensor) -> torch.Tensor:
    token = UNSET.set(SETTING.get() + 2)
    try:
        if x.sum() > 4:
            raise ValueError("too much")
        y = x * UNSET.get()
    except ValueError:
        y = x - UNSET.get()
    finally:
        UNSET.reset(token)
    return y + UNSET.get(5.0)


def put_back_under_a_handler(x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    try:
        token = UNSET.set(x)
        try:
            if x.sum() > 4:
                raise ValueError("too much")
            y = x * UNSET.get()
        finally:
            UNSET.reset(token)
        if x.sum() < 0:
            raise ValueError("too little")
    except ValueError:
        y = x - 1
    return y, UNSET.get(None)


class Active:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __enter__(self) -> None:
        self.token = UNSET.set(self.value)

    def __exit__(self, *_: Any) -> None:
        UNSET.reset(self.token)


def put_back_by_a_manager(x: torch.Tensor) -> torch.Tensor:
    for i in range(2):
        try:
            with Active(x + i):
                if x.sum() > 4:
                    raise ValueError("too much")
                x = x + UNSET.get()
        except ValueError:
            x = x - 4
    return x


@pytest.mark.parametrize(
    "function", [set_where_it_may_raise, set_where_it_is_handled, put_back_under_a_handler, put_back_by_a_manager]
)
def test_a_context_variable_is_put_back_on_every_path(function: Callable[..., Any]) -> None:
    agree(function, torch.zeros(2), torch.tensor([3.5, -1]), torch.ones(2) * 9)
    assert UNSET.get("nothing") == "nothing"


def test_a_context_variable_that_one_path_leaves_set_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            UNSET.set(x)
        return x

    assert "UNSET.set(x)" in str(refusal(function, P))
    assert UNSET.get("nothing") == "nothing"


def test_a_token_of_another_variable_resets_nothing() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        token = UNSET.set(1)
        try:
            SETTING.reset(token)
        except ValueError:
            x = x + 1
        finally:
            UNSET.reset(token)
        return x

    agree(function, P, N)


def test_a_variable_that_is_reset_is_unchanged() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    def function(x: Tensor) -> Tensor:
        token = variable.set(1)
        variable.reset(token)
        return x

    agree(function, P, N)


# ---- tokens from before, and of code that is not rewritten
def test_a_token_from_before_is_not_used_up_by_a_capture() -> None:
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("variable")

    def function(x: torch.Tensor, token: Any) -> torch.Tensor:
        variable.reset(token)
        return x * 2

    static = sg.to_static(function, backend="eager")
    for _ in range(2):
        token = variable.set(1.0)
        with pytest.raises(sg.CaptureError, match="the ContextVar variable is reset by a token from before"):
            static(torch.ones(2), token)
        variable.reset(token)


LIBRARY = """
import contextvars

active = contextvars.ContextVar("active", default=None)


def enter(value):
    return active.set(value)


def leave(token):
    active.reset(token)


def forget(x):
    active.set(x.shape[0])
    return x * 2
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path / "site-packages"
    path.mkdir()
    (path / "library_with_a_context_variable.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(path)
    yield importlib.import_module("library_with_a_context_variable")
    del sys.modules["library_with_a_context_variable"]


def test_what_a_library_leaves_set_is_refused(library: Any) -> None:
    with pytest.raises(sg.CaptureError, match="the ContextVar active is left set"):
        sg.to_static(lambda x: library.forget(x), backend="eager")(torch.ones(2))
    assert library.active.get() is None


def test_a_library_sets_and_resets(library: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        token = library.enter(2.0)
        try:
            return x * library.active.get() if x.sum() > 0 else x - 1
        finally:
            library.leave(token)

    agree(function, P, N)
    agree(lambda x: (function(x), library.active.get()), P, N)


def test_the_token_of_a_library_is_used_by_the_code(library: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        token = library.enter(2.0)
        y = x * library.active.get()
        library.active.reset(token)
        return y if x.sum() > 0 else y - 1

    agree(function, P, N)


def between_steps(enter: Callable[[Any], Any], leave: Callable[[Any], None], active: Any) -> Callable[[Any], Any]:
    def check(x: Any) -> Any:
        if x.sum() < 0:
            raise ValueError("negative")
        return x * active.get()["a"]

    def function(x: Any) -> Any:
        token = enter({"a": 3})
        try:
            print("inside", active.get())
            y = check(x)
        except ValueError:
            y = check(-x) - 1
        finally:
            leave(token)
            print("outside", active.get("nothing"))
        return y * 2

    return function


@pytest.mark.parametrize("before", [None, {"a": 1}])
def test_set_and_reset_in_different_segments(before: Any) -> None:
    def make(record: Any) -> Any:
        variable: contextvars.ContextVar[Any] = contextvars.ContextVar("variable")
        if before is not None:
            variable.set(before)
        return between_steps(variable.set, variable.reset, variable)

    agrees(make, *CALLS)


HEARD: contextvars.ContextVar[Any] = contextvars.ContextVar("heard", default=None)


def noted(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    notes = HEARD.get()
    if notes is not None and "steps" in notes:
        notes["steps"].append(x)
    return x + x[i]


def asked_where_it_is_handled(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    before = HEARD.set(None)
    try:
        HEARD.set({"a": 1})
        x = noted(x, i)
    except IndexError:
        x = x - len(HEARD.get())
    HEARD.reset(before)
    return x


def test_what_a_body_puts_into_one_may_be_lost_to_its_handler() -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(asked_where_it_is_handled)(torch.ones(2), torch.tensor(0))
    assert caught.value.reason.code == "SG203"
    assert "'the ContextVar heard' cannot be handed to the handler" in str(caught.value)


def forgotten_where_it_is_handled(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    before = HEARD.set(None)
    try:
        HEARD.set({"a": 1})
        x = noted(x, i)
    except IndexError:
        x = x - 1
    HEARD.reset(before)
    return x


def test_what_is_lost_is_no_matter_where_nobody_asks() -> None:
    agree(forgotten_where_it_is_handled, *((torch.ones(2), torch.tensor(index)) for index in (0, 5, 1, -7)))


def test_a_library_sets_and_resets_in_different_segments(library: Any) -> None:
    agrees(lambda record: between_steps(library.enter, library.leave, library.active), *CALLS)
    assert library.active.get() is None
