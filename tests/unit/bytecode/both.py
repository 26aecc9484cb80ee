"""Runs plain Python both ways, by CPython and by the interpreter, and tells everything that can be seen of each."""

from __future__ import annotations

import contextlib
import copy
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any
from unittest import mock

from stillgraph.bytecode.entry.convert import convert
from stillgraph.bytecode.handlers import functions
from stillgraph.bytecode.machine.frame import NULL, Frame
from stillgraph.core.files import is_ours
from stillgraph.core.rewritten import HELD, is_block, is_rewritten

_PLAIN = (int, float, complex, str, bytes, bytearray, bool, type(None), range, slice, type(...), type(NotImplemented))
_MOST = 50  # values that are drawn from a generator


@dataclass(frozen=True)
class Seen:
    """What a call has done; the same for two calls that cannot be told apart."""

    result: Any
    error: Any
    printed: str
    unraisable: tuple[str, ...]
    warned: tuple[tuple[str, str, str, int], ...]
    args: Any


def seen(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Seen:
    """Call a function with copies of arguments and look at everything."""
    args, kwargs = copy.deepcopy((args, kwargs))
    printed, result, error = io.StringIO(), None, None
    unraisable: list[str] = []
    hook = mock.patch.object(sys, "unraisablehook", lambda told: unraisable.append(repr(told.exc_value)))
    with hook, contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = shown(function(*args, **kwargs))
        except BaseException as raised:
            if isinstance(raised, KeyboardInterrupt):
                raise
            error = shown(raised)
    told = tuple((each.category.__name__, str(each.message), each.filename, each.lineno) for each in warned)
    return Seen(result, error, printed.getvalue(), tuple(unraisable), told, shown((args, kwargs)))


def shown(value: Any, around: tuple[int, ...] = ()) -> Any:
    """A value as something that can be compared: its type, and what it is made of."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind in _PLAIN:
        return name, repr(value)
    if id(value) in around:
        return name, "again", len(around) - around.index(id(value))
    around = (*around, id(value))
    if isinstance(value, BaseException):
        return name, _of_exception(value, around)
    if isinstance(value, (tuple, list)):
        return name, [shown(each, around) for each in value]
    if isinstance(value, dict):
        return name, [(shown(key, around), shown(each, around)) for key, each in value.items()]
    if isinstance(value, (set, frozenset)):
        return name, sorted(map(repr, (shown(each, around) for each in value)))
    if isinstance(value, types.GeneratorType):
        return name, value.__qualname__, [shown(each, around) for each, _ in zip(value, range(_MOST))]
    if isinstance(value, types.ModuleType):
        return name, value.__name__
    if isinstance(value, types.TracebackType):
        return name, lines(value)
    if isinstance(value, type):
        return name, value.__module__, value.__qualname__, sorted(vars(value))
    if isinstance(value, types.CellType):
        return name, shown(value.cell_contents, around)
    if callable(value):
        own = [getattr(value, each, None) for each in ("__defaults__", "__kwdefaults__", "__annotations__")]
        return name, getattr(value, "__qualname__", None), shown(own, around)
    return name, shown(getattr(value, "__dict__", None), around), [repr(getattr(value, "__slots__", None))]


def _of_exception(error: BaseException, around: tuple[int, ...]) -> dict[str, Any]:
    places = lines(error.__traceback__)
    if isinstance(error, UnboundLocalError) and sys.version_info < (3, 12) and places:
        # once a function has run often, two instructions are one, with the place of the first (STORE_FAST__LOAD_FAST)
        places[-1] = places[-1][:2]
    found: dict[str, Any] = {"text": str(error), "lines": places}
    found["suppress_context"] = error.__suppress_context__
    for name in ("args", "__cause__", "__context__", "__notes__", "exceptions", "name", "path", "obj", "value", "code"):
        found[name] = shown(getattr(error, name, None), around)
    return found


def lines(trace: types.TracebackType | None) -> list[tuple[Any, ...]]:
    """The users' places in a traceback: function, line and columns."""
    found = []
    while trace is not None:
        code, after = trace.tb_frame.f_code, trace.tb_next
        only_binds = is_rewritten(code) and not is_block(code) and HELD in code.co_varnames
        is_hidden = only_binds and after is not None and is_ours(after.tb_frame.f_code.co_filename)
        if not is_hidden and not is_ours(code.co_filename) and code.co_filename != __file__:
            positions = list(code.co_positions())[trace.tb_lasti // 2]
            found.append((code.co_filename, code.co_name, trace.tb_lineno, *positions))
        trace = after
    return found


@contextlib.contextmanager
def following(wanted: Callable[[FunctionType], bool]) -> Iterator[None]:
    """What interpreted code calls is interpreted too, if it is a Python function that is wanted."""
    plain = functions._called

    def called(frame: Frame, args: Any, kwargs: Any) -> None:
        second, first = frame.pop(), frame.pop()
        frame.push(first if first is NULL else _followed(first, wanted))
        frame.push(_followed(second, wanted) if first is NULL else second)
        plain(frame, args, kwargs)

    # in a traceback it is the interpreter's
    called.__code__ = called.__code__.replace(co_filename=functions.__file__)
    with mock.patch.object(functions, "_called", called):
        yield


def _followed(function: Any, wanted: Callable[[FunctionType], bool]) -> Any:
    if isinstance(function, FunctionType) and not is_rewritten(function.__code__) and wanted(function):
        return convert(function)
    if isinstance(function, MethodType):
        return MethodType(_followed(function.__func__, wanted), function.__self__)
    return function


def compare(function: FunctionType, *args: Any, **kwargs: Any) -> None:
    """A call gives the same both ways: the function alone interpreted, and with all functions of its file."""
    expected = seen(function, *args, **kwargs)
    assert seen(convert(function), *args, **kwargs) == expected
    file = function.__code__.co_filename
    with following(lambda each: each.__code__.co_filename == file):
        assert seen(convert(function), *args, **kwargs) == expected
