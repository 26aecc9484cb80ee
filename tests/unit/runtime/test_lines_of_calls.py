"""An error is reported with the calls that led to it, whichever way they were made: those of eager PyTorch."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
import tests.unit.runtime.raising_in_calls as calls
import tests.unit.runtime.raising_over_lines as several
from stillgraph.api import static
from stillgraph.runtime.calls.whole import compile_whole
from stillgraph.runtime.native.native import lower
from tests.sampling import crossed
from tests.unit.runtime.raising import as_it_stands

Lines = list[tuple[str, int]]

X, GOOD, BAD = torch.ones(4), torch.tensor(0), torch.tensor(9)


def as_one_graph(program: sg.Program, compile: Any, backend: Any) -> Any:
    """The whole-graph lowering, which compiles nothing."""
    return compile_whole(program, as_it_stands, lower(program, None).run)


def lines(function: Callable[..., Any], *args: Any) -> tuple[type[BaseException], str, Lines]:
    """What is raised, and the functions and numbers of the lines that a traceback shows of the functions there."""
    try:
        function(*args)
    except Exception as error:  # of any kind: the tests say which
        frames = traceback.extract_tb(error.__traceback__)
        here = {Path(calls.__file__)}
        shown = [(frame.name, frame.lineno or 0) for frame in frames if Path(frame.filename) in here]
        return type(error), str(error), shown
    raise AssertionError("nothing is raised")


@pytest.mark.parametrize(("name", "lowering"), crossed(calls.FUNCTIONS, ["native", "regions", "whole"]))
def test_lines(name: str, lowering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = calls.FUNCTIONS[name]
    if lowering == "whole":
        monkeypatch.setattr(static, "compile_program", as_one_graph)
    converted = sg.to_static(function, backend=as_it_stands if lowering == "regions" else "eager")
    with torch.no_grad():
        converted(X, GOOD)
        given, wanted = lines(converted, X, BAD), lines(function, X, BAD)
    assert converted.cache_info().programs == 1
    assert given == wanted
    assert given[2]


IN_THE_RUN = "a_chain_in_a_loop"  # what torch finds wrong only in the values
BY_A_NUMBER = [name for name, each in calls.FUNCTIONS.items() if lines(each, X, 9)[0] is IndexError]
BY_A_NUMBER.remove(IN_THE_RUN)


def refused(function: Callable[..., Any], *args: Any) -> Lines:
    """The lines that a refusal names, the outermost first."""
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager").get_program(*args)
    location = caught.value.location
    assert location is not None
    return [(str(each.function), each.line) for each in (*location.callers, location)]


@pytest.mark.parametrize("name", BY_A_NUMBER)
def test_lines_of_an_error_in_the_capture(name: str) -> None:
    function = calls.FUNCTIONS[name]
    converted = sg.to_static(function, backend="eager")

    def captured_and_run(*args: Any) -> Any:
        converted.get_program(*args)
        return converted(*args)  # what is raised on a path that only the run takes, the program raises

    given, wanted = lines(captured_and_run, X, 9), lines(function, X, 9)
    if given[0] is sg.CaptureError:
        assert refused(function, X, 9) == wanted[2]
    else:
        assert (given[0], given[2]) == (wanted[0], wanted[2])


@pytest.mark.parametrize("function", [calls.refused_in_a_generator, calls.refused_in_a_chain])
def test_lines_of_a_refusal(function: Callable[..., Any]) -> None:
    wanted = lines(function, X, None)
    assert wanted[0] is calls.Refused
    assert refused(function, X, GOOD) == [each for each in wanted[2] if each[0] != "refusing"]


@pytest.mark.parametrize("function", [several.chosen, several.chosen_class, several.asserted, several.asserted_why])
def test_a_statement_over_several_lines_is_shown_from_its_beginning(function: Callable[..., Any]) -> None:
    def beginning(call: Callable[..., Any], x: torch.Tensor) -> Any:
        with pytest.raises((ValueError, KeyError, AssertionError)) as found:
            call(x)
        frame = traceback.extract_tb(found.value.__traceback__)[-1]
        return type(found.value), frame.lineno, frame.colno

    static = sg.to_static(function, backend="eager")
    for value in (X - 3, X, X - 3):
        assert beginning(static, value) == beginning(function, value)
