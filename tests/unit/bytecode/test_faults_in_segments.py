"""Errors of ours between programs and in making them: told once and the call made once; the user's stay the user's."""

from __future__ import annotations

import importlib
import logging
import operator
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.api import passing, plan
from stillgraph.bytecode.between import between, resuming
from stillgraph.bytecode.handlers import values
from stillgraph.bytecode.segments import segments
from stillgraph.core.reasons import REASONS
from stillgraph.operators.objects import stores
from stillgraph.passes import pipeline
from stillgraph.runtime.calls import static_function
from stillgraph.trace.capture import attempt
from stillgraph.trace.capture.session import session
from tests.unit.bytecode.segmented import X, count, reasons, stepwise, to_partial
from tests.unit.bytecode.test_bounded_plans import called

# ---- what of ours may fail, and how
RAISING = {
    KeyError: "{}['broken']",
    TypeError: "None + 1",
    AttributeError: "None.broken",
    AssertionError: "assert False, 'broken'",
    NameError: "broken",
}
"""A line that fails, by what it raises."""

PLACES: dict[str, tuple[Any, str]] = {
    "guards": (static_function, "compile_guards"),
    "lowering": (static_function, "compile_result"),
    "assumptions": (attempt.Assumptions, "guards"),
    "what is learned of a call": (passing.Passing, "learn_to_close"),
    "before an instruction": (segments.Segment, "before"),
    "behind an instruction": (segments.Segment, "after"),
    "handing out": (resuming, "hand_out"),
    "what is done by hand": (resuming, "_is_by_hand"),
    "frames behind a step": (between, "suspended"),
    "the way to the next program": (between, "route_of"),
    "values on their way": (plan, "packed"),
    "numbers of ends": (plan.Plan, "number"),
    "the place of an end": (plan.Plan, "part"),
}
"""Where: before anything of a call is done, and behind what Python has done already."""


def broken(owner: Any, name: str, raises: str, where: str = "True") -> Any:
    """What stands in a module or class, made to fail by a line of that module's file."""
    module = importlib.import_module(getattr(owner, "__module__", owner.__name__))
    names: dict[str, Any] = {"session": session, "real": getattr(owner, name)}
    text = f"def failing(*args, **kwargs):\n    if {where}:\n        {raises}\n    return real(*args, **kwargs)\n"
    exec(compile(text, str(module.__file__), "exec"), names)
    return names["failing"]


@pytest.mark.parametrize("kind", RAISING)
@pytest.mark.parametrize("place", PLACES)
def test_it_is_told_once_and_the_call_is_made_once(
    place: str,
    kind: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO, "stillgraph.plan")
    monkeypatch.setattr(*PLACES[place], broken(*PLACES[place], RAISING[kind]))
    static = to_partial(stepwise, strict=False)
    told: list[str] = []
    for _ in range(3):
        seen: list[Any] = []
        result, texts = called(static, X, seen)
        torch.testing.assert_close(result, X * 2 + 1)
        assert (seen, capsys.readouterr().out) == ([1, 2], "a\nb\n")
        told += texts
    (text,) = told
    begin = "stepwise is called in plain PyTorch from now on: an internal error of stillgraph ("
    assert text.startswith(f"{begin}{kind.__name__}")
    assert "Please report it" in text
    (record,) = [each for each in caplog.records if each.event == "fault"]  # type: ignore[attr-defined]  # of ours
    assert "in failing" in record.getMessage()


@pytest.mark.parametrize("place", PLACES)
def test_it_is_raised_where_that_is_asked_for(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(*PLACES[place], broken(*PLACES[place], RAISING[KeyError]))
    static = to_partial(stepwise)
    calls = [lambda: static(X, [])] * 3
    with pytest.raises(KeyError, match="broken"):
        list(map(operator.call, calls))
    assert ("a\nb\n" * 3).startswith(capsys.readouterr().out)


def test_a_pass_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(pipeline, "run", broken(pipeline, "run", RAISING[KeyError]))

    def f(x: Any) -> Any:
        print("a")
        while x.sum() < 10:
            x = x * 2
        return x

    static = to_partial(f, strict=False, backend="inductor")
    with torch.no_grad():
        result, texts = called(static, X)
    torch.testing.assert_close(result, X * 2)
    assert capsys.readouterr().out == "a\n"
    (text,) = texts
    assert "an internal error of stillgraph (KeyError: 'broken' at stillgraph/passes/pipeline.py:3)" in text


def test_an_operator_fails_by_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, kept: list[Any]) -> Any:
        try:
            kept[0] = x * 2
        except AttributeError:
            kept.append(x)
        return x + 1

    monkeypatch.setattr(values, "set_item", broken(stores, "set_item", RAISING[AttributeError], "session()"))
    static = to_partial(f, strict=False)
    held = [X]
    result, texts = called(static, X, held)
    torch.testing.assert_close(result, X + 1)
    torch.testing.assert_close(held, [X * 2])
    assert "an internal error of stillgraph (AttributeError: " in texts[0]


# ---- the user's own
def test_what_the_users_code_raises_is_no_fault() -> None:
    def f(x: Any, key: str) -> Any:
        known = {"a": 1}
        try:
            return x + known[key]
        except KeyError as error:
            return x - 1, str(error)

    static = to_partial(f)
    torch.testing.assert_close(static(X, "a"), X + 1)
    assert static(X, "b")[1] == "'b'"
    assert reasons(static) == set()


@pytest.mark.parametrize("kind", [KeyError, TypeError, AttributeError, AssertionError, NotImplementedError, IndexError])
@pytest.mark.parametrize("strict", [False, True])
def test_what_it_does_not_handle_is_raised_once(kind: type[Exception], strict: bool) -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(1)
        print("a")
        y = x * 2
        if kind is KeyError:
            {}["a"] += 1
        if kind is TypeError:
            len(5)  # type: ignore[arg-type]  # that is what it is for
        if kind is AttributeError:
            x.nothing += 1
        if kind is IndexError:
            [][1] += 1
        raise kind("mine") if y is not None else kind

    static = to_partial(f, strict=strict)
    for _ in range(3):
        with pytest.raises(kind):
            static(X)
        assert seen.pop() == 1
        assert not seen
    assert static.plan.gave_up is None


@pytest.mark.parametrize("strict", [False, True])
def test_a_refusal_of_another_static_function_is_the_calls_own(strict: bool) -> None:
    seen: list[str] = []

    def inner(x: Any) -> Any:
        seen.append("inner")
        raise sg.CaptureError(REASONS["SG301"], "of another function", None, None)

    def f(x: Any, where: list[Any]) -> Any:
        print("a")
        seen.append("f")
        return where[0](x)

    static = to_partial(f, strict=strict)
    static(X, [abs])
    seen.clear()
    for _ in range(2):
        with pytest.raises(sg.CaptureError, match="of another function"):
            static(X, [inner])
        assert seen == ["f", "inner"]
        seen.clear()
    assert static.plan.gave_up is None


def test_where_calls_are_not_captured_an_error_of_this_package_is_raised_once() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(1)
        raise sg.CaptureError(REASONS["SG301"], "of the user's", None, None)

    static = to_partial(f, strict=False)
    with sg.enable_to_static(False), pytest.raises(sg.CaptureError, match="of the user's"):
        static(X)
    assert seen == [1]
    assert count(static) == 0
