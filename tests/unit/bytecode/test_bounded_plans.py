"""A plan that does not settle is given up, and so is one in which something of ours fails: calls stay right."""

from __future__ import annotations

import io
import logging
import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.api import bounds, parts, plan
from stillgraph.bytecode.between import between
from stillgraph.bytecode.machine import table
from stillgraph.runtime.calls import static_function
from stillgraph.trace.capture import attempt
from stillgraph.trace.capture.session import session
from tests.unit.bytecode.segmented import X, count, segments, stepwise, to_partial


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the segments that are captured, one for each capture."""
    made: list[str] = []
    real = parts.Part._capture_call

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(self._name)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(parts.Part, "_capture_call", noted)
    return made


def called(function: Callable[..., Any], *args: Any) -> tuple[Any, list[str]]:
    """What a call gives, and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args)
    assert all(each.filename == __file__ for each in caught), [each.filename for each in caught]
    return result, [str(each.message) for each in caught]


# ---- what keeps changing
HINT = (
    "Leave its sizes open, with InputSpec({}, 'float32') in input_spec: "
    "if something takes one size alone, an error says what."
)


@pytest.mark.parametrize("strict", [False, True])
def test_a_function_that_keeps_changing_is_called_in_plain_pytorch(captures: list[str], strict: bool) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        print(y.sum().item())
        return y + 1

    static = to_partial(f, strict=strict, dynamic=False)
    told: list[str] = []
    for size in range(1, 40):
        result, texts = called(static, torch.ones(size))
        torch.testing.assert_close(result, torch.full((size,), 3.0))
        told += texts
    (text,) = told
    assert "f is called in plain PyTorch from now on: each call needs another program: " in text
    assert "x.shape[0] should be " in text
    assert text.endswith(HINT.format("[None]"))
    before = len(captures)
    for size in range(1, 40):
        called(static, torch.ones(size))
    assert len(captures) == before <= 4 * bounds.MOST_DROPPED
    assert static.cache_info().programs == 0
    assert str(static.explain()).splitlines()[1].startswith("calls are made in plain PyTorch from now on: each call")


def test_what_the_warning_says_helps() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * 2 + y
        print(z.sum().item())
        return z + 1

    told = []
    for spec in (None, [sg.InputSpec([None, 2]), None]):
        static = to_partial(f, input_spec=spec, dynamic=None if spec else False)
        for size in range(2, 40):
            result, texts = called(static, torch.ones(size, 2), torch.ones(2))
            torch.testing.assert_close(result, torch.full((size, 2), 4.0))
            told += texts
    (text,) = told
    assert text.endswith(HINT.format("[None, 2]"))
    assert static.cache_info().misses == 3  # one of the first segment, and two of the next


@pytest.mark.parametrize("calls", [12, 16, 30])
def test_kinds_of_calls_that_come_again(calls: int) -> None:
    whole = (torch.int64, torch.int32, torch.int16, torch.int8)
    kinds = (torch.float32, torch.float64, torch.bfloat16, torch.bool, *whole)
    tensors = [torch.ones(shape, dtype=dtype) for dtype in kinds for shape in ((3,), (2, 2))]
    every = [(each, flag) for flag in (True, False) for each in tensors][:calls]

    def f(x: Any, flag: bool) -> Any:
        y = x * 2
        print(x.dtype)
        return y + 1 if flag else y

    static = to_partial(f)
    made = []
    for _ in range(3):
        for x, flag in every:
            result, texts = called(static, x, flag)
            torch.testing.assert_close(result, x * 2 + 1 if flag else x * 2)
            assert not texts
        made.append(static.cache_info().misses)
    assert made == [count(static)] * 3
    assert static.plan.gave_up is None


def test_kinds_do_not_make_room_for_ever() -> None:
    def f(x: Any, given: Any) -> Any:
        y = x * 2
        print("a")
        return y

    static = to_partial(f, cache_size=2)
    for number in range(200):
        called(static, torch.ones([1] * (number % 20)), type(f"A{number}", (), {})())
    assert count(static) <= 2 * bounds.MOST_KINDS * segments(static)


def test_after_that_the_function_itself_is_called(captures: list[str]) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(session())
        return x + 1

    static = to_partial(f)
    static.plan.gave_up = "of a test"
    called(static, X)
    assert (seen, captures) == ([None], [])


def test_too_many_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_PARTS", 2)
    done: list[int] = []

    def f(x: Any) -> Any:
        print("a")
        x = x + 1
        print("b")
        x = x * 2
        print("c")
        x = x + 1
        done.append(1)
        return x

    static = to_partial(f, strict=False)
    result, texts = called(static, X)
    torch.testing.assert_close(result, (X + 1) * 2 + 1)
    assert done == [1]
    assert len(texts) == 1
    assert "programs would begin at more than 2 places" in texts[0]
    assert called(static, X)[1] == []


def test_captures_that_fail_are_not_tried_for_ever(captures: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_ATTEMPTS", 1)

    def f(x: Any) -> Any:
        def hook(t: Any) -> Any:
            return t * 2 + x * 0

        print("a")
        return hook(x)

    static = to_partial(f, strict=False)
    told = [text for _ in range(6) for text in called(static, X)[1]]
    assert len(told) == 1
    assert "a capture has begun anew 1 times" in told[0]
    before = len(captures)
    torch.testing.assert_close(static(X), X * 2)
    assert len(captures) == before < 6


# ---- what each call makes anew, at the entry
@pytest.mark.parametrize("make", [io.StringIO, threading.Lock, lambda: iter([1, 2, 3]), lambda: (i for i in range(3))])
def test_what_only_python_works_with_as_an_argument(make: Callable[[], Any]) -> None:
    def f(x: Any, given: Any) -> Any:
        y = x * 2
        if isinstance(given, io.StringIO):
            given.write("a")
        elif isinstance(given, Iterator):
            y = y + next(given) + sum(given)
        else:
            with given:
                y = y + 1
        return y * 3

    static = to_partial(f)
    for number in range(12):
        one, other = make(), make()
        torch.testing.assert_close(static(X * number, one), f(X * number, other))
        if number == 7:
            before = count(static)
    assert count(static) == before
    assert before <= segments(static) + 1


# ---- faults of ours
def in_capture(real: Callable[..., Any], only: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
    """A function that fails in captures."""

    def failing(*args: Any, **kwargs: Any) -> Any:
        if session() is not None and only(*args):
            raise AssertionError("broken")
        return real(*args, **kwargs)

    return failing


def broken_handler(patch: pytest.MonkeyPatch) -> None:
    handlers = {**table.HANDLERS, "BINARY_OP": ours(table.HANDLERS)}
    patch.setattr("stillgraph.bytecode.interpreter.interpreter.HANDLERS", handlers)


def ours(handlers: Any) -> Callable[..., Any]:
    """A handler that fails in captures, as if a line of ours did."""
    namespace: dict[str, Any] = {"session": session, "real": handlers["BINARY_OP"]}
    file = static_function.__file__
    text = "def handler(frame, argument):\n    assert session() is None, 'broken'\n    real(frame, argument)\n"
    exec(compile(text, file, "exec"), namespace)
    return namespace["handler"]  # type: ignore[no-any-return]  # of Any


def broken(module: Any, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def patched(patch: pytest.MonkeyPatch) -> None:
        namespace: dict[str, Any] = {}
        text = "def failing(*args, **kwargs):\n    raise AssertionError('broken')\n"
        exec(compile(text, static_function.__file__, "exec"), namespace)
        patch.setattr(module, name, namespace["failing"])

    return patched


PLACES = {
    "handler": broken_handler,
    "guards": broken(static_function, "compile_guards"),
    "lowering": broken(static_function, "compile_result"),
    "assumptions": broken(attempt.Assumptions, "guards"),
    "route": broken(between, "route_of"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_fault_is_told_once_and_the_call_is_made(
    place: str, monkeypatch: pytest.MonkeyPatch, captures: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stillgraph.plan")
    static = to_partial(stepwise, strict=False)
    PLACES[place](monkeypatch)
    told: list[str] = []
    for _ in range(4):
        seen: list[int] = []
        result, texts = called(static, X, seen)
        torch.testing.assert_close(result, X * 2 + 1)
        assert seen == [1, 2]
        told += texts
    (text,) = told
    assert text.startswith("stepwise is called in plain PyTorch from now on: an internal error of stillgraph (")
    assert "at stillgraph/runtime/calls/static_function.py:" in text
    assert "Please report it" in text
    (record,) = [each for each in caplog.records if each.event == "fault"]
    assert "Traceback" in record.getMessage()
    before = len(captures)
    called(static, X, [])
    assert len(captures) == before


@pytest.mark.parametrize("place", PLACES)
def test_a_fault_is_raised_where_that_is_asked_for(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    static = to_partial(stepwise, strict=True)
    PLACES[place](monkeypatch)
    calls = [lambda: static(X, [])] * 3
    with pytest.raises(AssertionError, match="broken"):
        list(map(operator.call, calls))


def test_a_fault_in_a_later_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    static = to_partial(stepwise, strict=False)
    real = parts.Part._first_call

    def second(self: Any, *args: Any) -> Any:
        if self is not static.plan.entry:
            broken_handler(monkeypatch)
        return real(self, *args)

    monkeypatch.setattr(parts.Part, "_first_call", second)
    seen: list[int] = []
    result, texts = called(static, X, seen)
    torch.testing.assert_close(result, X * 2 + 1)
    assert (seen, len(texts)) == ([1, 2], 1)


def test_the_users_own_handler_does_not_get_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        try:
            return x * 2
        except AssertionError:
            return x

    static = to_partial(f, strict=False)
    broken_handler(monkeypatch)
    result, texts = called(static, X)
    torch.testing.assert_close(result, X * 2)
    assert len(texts) == 1


def test_the_users_own_assertions_are_the_users() -> None:
    def f(x: Any) -> Any:
        print("a")
        try:
            if x.sum().item() < 0:
                raise AssertionError("small")
        except AssertionError as error:
            return x, str(error)
        return x + 1, ""

    static = to_partial(f)
    for x in (X, -X, X):
        torch.testing.assert_close(static(x)[0], f(x)[0])
    assert sg.to_static(f, backend="eager", full_graph=False, strict=True)(-X)[1] == "small"
