"""Functions that look at the frames of their callers, which the interpreter has not as a call of them has."""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg


def warn_about_caller() -> None:
    warnings.warn("careful", stacklevel=2)


def warn_further_out() -> None:
    _deeper()


def _deeper() -> None:
    warnings.warn("deep", stacklevel=3)


def by_frame() -> Any:
    return sys._getframe(1).f_code.co_name


def by_current() -> Any:
    frame = inspect.currentframe()
    assert frame is not None
    return frame.f_back


def by_stack() -> Any:
    return [each.function for each in inspect.stack()]


def by_traceback() -> Any:
    return traceback.extract_stack()


def by_text() -> Any:
    return traceback.format_stack()


def of_an_exception(x: Any) -> Any:
    try:
        raise ValueError(f"bad {x.sum().item()}")
    except ValueError as error:
        names = [each.name for each in traceback.extract_tb(error.__traceback__)]
        return x + 1, traceback.format_exc(), names, sys.exc_info()[2] is error.__traceback__


def _partial(look: Callable[[], Any], **options: Any) -> Any:
    def function(x: Any) -> Any:
        print(x.sum().item())
        look()
        return x + 1

    return function, sg.to_static(function, full_graph=False, backend="eager", **options)


@pytest.mark.parametrize("warn", [warn_about_caller, warn_further_out])
def test_a_warning_is_about_the_users_line(warn: Callable[[], None]) -> None:
    function, static = _partial(warn, strict=True)
    places = []
    for called in (function, static, static):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            called(torch.ones(2))
        places.append([(str(each.message), each.filename, each.lineno) for each in told])
    line = function.__code__.co_firstlineno + 2
    assert places == [[(places[0][0][0], __file__, line)]] * 3


@pytest.mark.parametrize("look", [by_frame, by_current, by_stack, by_traceback, by_text])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.filterwarnings("ignore:.*sees the frames")
def test_what_sees_frames_is_refused(look: Callable[[], Any], strict: bool) -> None:
    """Not called with the wrong ones: behind the print, the call has none of its own any more."""
    _, static = _partial(look, strict=strict)
    with pytest.raises(sg.CaptureError, match="frame introspection"):
        static(torch.ones(2))


def looking_behind_a_break(x: Any) -> Any:
    print("a")
    return x + sys._getframe(0).f_lineno


def calling_what_looks(x: Any) -> Any:
    print("a")
    return x + 1, by_frame()


@pytest.mark.parametrize("function", [looking_behind_a_break, calling_what_looks])
def test_later_calls_are_made_in_plain_pytorch(function: Callable[[Any], Any], capsys: Any) -> None:
    """The first one has come too far for that, and its warning is the only one."""
    static = sg.to_static(function, full_graph=False, backend="eager")
    with pytest.warns(RuntimeWarning, match="in plain PyTorch from now on: .* sees the frames"):  # noqa: SIM117
        with pytest.raises(sg.CaptureError, match="frame introspection"):
            static(torch.ones(2))
    capsys.readouterr()
    for value in (1.0, 2.0):
        x = torch.full((2,), value)
        assert str(static(x)) == str(function(x))
        assert capsys.readouterr().out == "a\na\n"


def test_where_an_exception_has_come_by_is_as_in_eager() -> None:
    static = sg.to_static(of_an_exception, full_graph=False, strict=True, backend="eager")
    for value in (1.0, 2.0, 3.0):
        x = torch.full((2,), value)
        expected, actual = of_an_exception(x), static(x)
        torch.testing.assert_close(actual[0], expected[0])
        assert actual[1:] == expected[1:]


def test_a_whole_call_is_made_in_plain_pytorch() -> None:
    def function(x: Any) -> Any:
        return x + 1, by_frame()

    with pytest.warns(RuntimeWarning, match="frame introspection"):
        assert sg.to_static(function, full_graph=False, backend="eager")(torch.ones(2))[1] == "function"


def test_full_graphs_refuse_texts_of_frames() -> None:
    def function(x: Any) -> Any:
        return x + 1, traceback.format_stack()

    with pytest.raises(sg.CaptureError, match="format_stack sees the frames of the capture"):
        sg.to_static(function, backend="eager")(torch.ones(2))
