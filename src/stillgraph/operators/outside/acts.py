"""What user code does to the world outside: it logs, warns, writes to streams and files.

None of it is done during a capture. It becomes a step of the program (`program.acts`), carried out in order by each
call that comes by it, with the values of that call; or it is refused before anything is done. One table says which.
"""

from __future__ import annotations

import csv
import gc
import io
import json
import logging
import os
import pathlib
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, NoReturn

import numpy
import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_library, is_standard_library
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.outside.adapters import call_of_adapted, log_by
from stillgraph.operators.outside.handed_out import handed, shown, stored
from stillgraph.operators.outside.logged import logged
from stillgraph.operators.outside.process_state import QUERIES_WITHOUT, SETTERS
from stillgraph.program.acts import Calling, Logging, Method, StandardStream, Warning_
from stillgraph.program.operations import act
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here, places_here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.effects.threads import concerns_others, refused
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.outcome import Outcome

Act = Callable[[Session, Any, tuple[Any, ...], dict[str, Any]], Any]
Part = Callable[[Session, Any], Any]
Result = Callable[[Session, Any, str], Any]

_OUTSIDE = "Do it outside the static function, with what the function returns."


# ---- steps
def _emit(capture: Session, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any], part: Part) -> Any:
    """Record a step; gives its node."""
    capture.side_effects.before_act()
    given = tuple(part(capture, value) for value in args)
    return _recorded(capture, step, given, {name: part(capture, value) for name, value in kwargs.items()})


def _recorded(capture: Session, step: Any, given: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    with capture.calling_python(_listeners(step), repr(step)):
        return capture.emit("call_function", act, (step, given, keywords), {})


def _listeners(step: Any) -> list[Any]:
    """The user's code that a step leads to: the handlers of a logger, and those of the loggers above it."""
    if isinstance(step, Warning_):
        return [] if isinstance(warnings.showwarning, BuiltinMethodType) else [warnings.showwarning]
    if not isinstance(step, Logging):
        return []
    receiver = getattr(step.function, "__self__", logging.root)
    logger = receiver.logger if isinstance(receiver, logging.LoggerAdapter) else receiver
    found: list[Any] = [receiver, logging.getLogRecordFactory()]
    while isinstance(logger, logging.Logger):
        found += (*logger.filters, *logger.handlers)
        for handler in logger.handlers:
            found += (*handler.filters, handler.formatter, getattr(handler, "stream", None))
        logger = logger.parent
    return [each for each in found if not is_library(_file_of(type(each)))]


def _file_of(kind: type) -> str:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")


def _nothing(capture: Session, node: Any, what: str) -> None:
    return None


def _number(capture: Session, node: Any, what: str) -> Any:
    return capture.fresh_result(int, node)


def _anything(capture: Session, node: Any, what: str) -> Outcome:
    return Outcome(what)


def _changes_files(result: Result) -> Act:
    """A function that changes what is on a disk or runs something; the code may go on to read that."""

    def staged(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        capture.before_raise(None)
        node = _emit(capture, Calling(function), args, kwargs, stored)
        capture.side_effects.acted = True
        return result(capture, node, _name(function))

    return staged


def _of_writer(result: Result) -> Act:
    """A method of an object that writes to a file it knows; the object has to be there at every call."""
    staged = _changes_files(result)

    def written(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        writer = getattr(function, "__self__", None)
        if writer is None or not capture.is_outer(writer):
            message = f"{_name(function)}, of a writer that is made inside the function, is called"
            raise refuse("SG305", message, location=here(), hint="Make the writer outside the function.")
        return staged(capture, function, args, kwargs)

    return written


def call_cached(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    """A function with a cache that does something outside: the program calls it, and its cache decides whether."""
    capture.before_raise(None)
    _emit(capture, Calling(function), args, kwargs, handed)
    return Outcome(_name(function))


def _waits(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _emit(capture, Calling(function), args, kwargs, stored)


def _logs(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``logger.info(…)``: the logger's level and its handlers at the time of the call decide."""
    _require_no_stack(function, kwargs)
    capture.side_effects.before_act()
    _recorded(capture, Logging(function, places_here()), *logged(capture, function.__name__, args, kwargs))


def _require_no_stack(function: Any, kwargs: dict[str, Any]) -> None:
    if kwargs.get("exc_info") or kwargs.get("stack_info") or function.__name__ == "exception":
        hint = "Log the exception itself: logger.error('…: %s', error)."
        raise refuse("SG305", "what is logged shows the stack of the call", location=here(), hint=hint)


def _by_adapter(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of an adapter: of one from before the call as that of a logger, of another what `logging` does in it."""
    adapter, name = function.__self__, function.__name__
    if capture.is_outer(adapter):
        return _OF_LOGGERS[name](capture, function, args, kwargs)
    if not is_standard_library(function.__func__.__code__.co_filename):
        return NOT_AN_ACT
    if name in _LEVELS:
        _require_no_stack(function, kwargs)
        return log_by(adapter, name, args, kwargs)
    return call_of_adapted(adapter, name, args, kwargs)


def _configures(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What decides which records are shown, and where."""
    _emit(capture, Calling(function), args, kwargs, handed)


def _filters(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What decides which warnings are shown; inside ``catch_warnings`` it is of the capture."""
    return NOT_AN_ACT if capture.catching_warnings else _configures(capture, function, args, kwargs)


def _asks(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a logger answers is guarded."""
    value = function(*args, **kwargs)
    capture.reads.settings.append((function, (*args, *kwargs.values()), value))
    return value


def _warns(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``warnings.warn``; inside ``catch_warnings`` it is of the capture, as the filters are that it meets."""
    if capture.catching_warnings:
        if capture.in_arm:
            message = "a warning is given in a branch or loop inside warnings.catch_warnings()"
            raise refuse("SG305", message, location=here(), hint="Leave out catch_warnings(), or warn behind it.")
        function(*args, **kwargs)
        return
    category = next((each for each in (*args, *kwargs.values()) if isinstance(each, type)), UserWarning)
    capture.before_raise(category if issubclass(category, Warning) else UserWarning)
    _emit(capture, Warning_(places_here()), args, kwargs, shown)


def _refused(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    what = f"{_name(function)} changes what is outside the program"
    raise refuse("SG305", what, location=here(), hint=_OUTSIDE)


def _concerns_others(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    raise refused(function)


def _sets(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What sets something for the whole process; some functions only tell what is set when they are given nothing."""
    least = QUERIES_WITHOUT.get(function)
    if least is not None and len(args) <= least and not kwargs:
        return NOT_AN_ACT
    what = f"{_name(function)} sets what the whole process shares"
    raise refuse("SG305", what, location=here(), hint=_OUTSIDE)


def _collects(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _number(capture, _emit(capture, Calling(function), args, kwargs, stored), _name(function))


def _opens(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``open``: for writing it is refused, before it empties the file."""
    given = args[1:] if function in (open, io.open) or isinstance(function, FunctionType) else args
    mode = kwargs.get("mode", given[0] if given else "r")
    if isinstance(mode, str) and not set(mode) & set("wax+"):
        return NOT_AN_ACT
    hint = "Write with Path.write_text, torch.save or logging, which become steps of the program, or outside."
    raise refuse("SG305", "a file is opened for writing", location=here(), hint=hint)


NOT_AN_ACT = object()
"""What an `Act` gives for a call that is none: it goes the way of any other."""


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None)
    name = str(getattr(function, "__qualname__", function))
    shown_module = {"posix": "os", "nt": "os", "_warnings": "warnings"}.get(str(module), module)
    return name if module in (None, "builtins", "pathlib") else f"{shown_module}.{name}"


# ---- streams
_WRITES: dict[str, Result] = {
    "write": _number,
    "writelines": _nothing,
    "truncate": _number,
    "flush": _nothing,
    "close": _nothing,
}
_ASKS = frozenset({"isatty", "fileno", "readable", "writable", "seekable", "__enter__", "__exit__"})


def _standard_stream(receiver: Any) -> str | None:
    return next((name for name in ("stdout", "stderr") if getattr(sys, name) is receiver), None)


def _of_stream(capture: Session, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a stream: one that writes becomes a step, if the stream is one that each call finds."""
    receiver, name = method.__self__, method.__name__
    standard = _standard_stream(receiver)
    if name not in _WRITES:
        if capture.side_effects.acted and name not in _ASKS and id(receiver) not in capture.own_streams:
            _refuse_reading(f"{type(receiver).__name__}.{name}")
        if name not in _ASKS and standard is None and capture.is_outer(receiver):
            called = f"{type(receiver).__name__}.{name} is called of a stream from outside"
            message = f"{called}, whose contents no guard follows"
            raise refuse("SG305", message, location=here(), hint="Read it outside, and pass what it gives.")
        return NOT_AN_ACT
    if standard is None and not capture.is_outer(receiver):
        return _of_own_stream(capture, method, args)
    capture.before_raise(None)
    step = Method(weakref.ref(receiver), name) if standard is None else StandardStream(standard, name)
    node = _emit(capture, step, args, kwargs, stored)
    capture.side_effects.acted = capture.side_effects.acted or standard is None
    return _WRITES[name](capture, node, f"{type(receiver).__name__}.{name}")


def _of_own_stream(capture: Session, method: Any, args: tuple[Any, ...]) -> Any:
    kind = type(method.__self__).__name__
    if id(method.__self__) not in capture.own_streams and method.__name__ not in ("close", "flush"):
        message = f"a {kind} is written to that the function gets from elsewhere"
        raise refuse("SG305", message, location=here(), hint="Hand the stream in, or write to it outside.")
    if any(map(holds_staged, args)):
        raise refuse("SG302", f"a {kind} is filled with what only the run knows", location=here())
    return NOT_AN_ACT


def note_stream(capture: Session, result: Any) -> None:
    """Told what a call gives: streams in memory that the function makes are its own affair."""
    if isinstance(result, (io.StringIO, io.BytesIO)):
        capture.own_streams[id(result)] = result


def may_print_to(capture: Session, file: Any) -> bool:
    """Whether the program can print to a stream: one of Python's, or of a file that was there before the call."""
    standard = file is None or _standard_stream(file) is not None
    return standard or (isinstance(file, io.IOBase) and capture.is_outer(file))


def _refuse_reading(what: str) -> NoReturn:
    message = f"{what} reads what the program writes when it runs"
    raise refuse("SG305", message, location=here(), hint="Read it outside the static function, after the call.")


# ---- the table
def _named(module: Any, *names: str) -> list[Any]:
    """Those of a module's functions that there are on this system."""
    return [getattr(module, name) for name in names if hasattr(module, name)]


def _all(act_: Act, functions: Iterable[Any]) -> dict[Any, Act]:
    return dict.fromkeys(functions, act_)


_LEVELS = ("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log")
_LEVEL_OF = {name: getattr(logging, name.upper()) for name in _LEVELS if name not in ("exception", "log")}
_ASKING = ("isEnabledFor", "getEffectiveLevel", "hasHandlers")
_PATH = pathlib.Path
_FILES = (
    *("remove", "unlink", "rename", "renames", "replace", "mkdir", "makedirs", "rmdir", "removedirs"),
    *("symlink", "link", "chmod", "chown", "utime", "truncate", "ftruncate", "fsync", "mkfifo"),
)
ACTS: dict[Any, Act] = {
    **_all(_changes_files(_nothing), _named(os, *_FILES)),
    **_all(_changes_files(_number), _named(os, "system", "write")),
    **_all(_changes_files(_nothing), [shutil.rmtree, shutil.chown, shutil.copymode, shutil.copystat]),
    **_all(
        _changes_files(_anything),
        [shutil.copy, shutil.copy2, shutil.copyfile, shutil.copytree, shutil.move, shutil.make_archive],
    ),
    **_all(_changes_files(_anything), [subprocess.run, subprocess.check_call, subprocess.call]),
    **_all(
        _changes_files(_nothing),
        _named(_PATH, "unlink", "mkdir", "rmdir", "touch", "chmod", "symlink_to", "hardlink_to"),
    ),
    **_all(_changes_files(_number), [_PATH.write_text, _PATH.write_bytes]),
    **_all(_changes_files(_anything), [_PATH.rename, _PATH.replace]),
    **_all(_changes_files(_nothing), [torch.save, pickle.dump, json.dump]),
    **_all(_changes_files(_nothing), [numpy.save, numpy.savez, numpy.savez_compressed, numpy.savetxt]),
    **_all(_of_writer(_number), [csv.DictWriter.writerow, csv.DictWriter.writeheader]),
    csv.DictWriter.writerows: _of_writer(_nothing),
    time.sleep: _waits,
    **_all(_logs, [getattr(logging, name) for name in _LEVELS]),
    **_all(_configures, [logging.basicConfig, logging.disable, logging.captureWarnings]),
    warnings.warn: _warns,
    **_all(_filters, [warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings]),
    **_all(_opens, [open, io.open, _PATH.open]),
    **_all(_refused, _named(os, "open", "popen", "kill", "killpg", "putenv", "unsetenv", "chdir", "umask", "fork")),
    **_all(_refused, _named(os, *(f"exec{kind}" for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")))),
    **_all(_refused, _named(os, *(f"spawn{kind}" for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")))),
    **_all(_refused, _named(signal, "signal", "alarm", "setitimer", "raise_signal", "pthread_kill")),
    **_all(_refused, [subprocess.Popen, subprocess.check_output, subprocess.getoutput, subprocess.getstatusoutput]),
    **_all(_sets, SETTERS),
    gc.collect: _collects,
    **_all(_refused, [socket.socket, socket.create_connection]),
}
"""What is done with each function and method that reaches outside."""

_READING = (
    *_named(os, "stat", "lstat", "listdir", "scandir", "access", "walk", "readlink"),
    *_named(os.path, "exists", "lexists", "isfile", "isdir", "islink", "getsize", "getmtime", "samefile"),
    *_named(_PATH, "exists", "is_file", "is_dir", "stat", "iterdir", "glob", "rglob", "read_text", "read_bytes"),
    *(open, io.open, _PATH.open, torch.load, numpy.load, pickle.load, json.load),
)
"""What reads what a step before it may have changed: the capture would read it too early."""

_LIBRARIES: dict[tuple[str, str], Act] = {
    ("tqdm.std", "tqdm.write"): _changes_files(_nothing),
}
_OF_LOGGERS: dict[str, Act] = {
    **_all(_logs, _LEVELS),
    **_all(_configures, ("setLevel", "addHandler", "removeHandler", "addFilter", "removeFilter")),
    **_all(_asks, _ASKING),
}
_SUMMARIES = ("torch.utils.tensorboard.writer", "SummaryWriter.")


def act_of(function: Any) -> Act | None:
    """How a call of a function reaches outside, if it does."""
    capture, inner = session(), _inner(function)
    if capture is not None and concerns_others(function, capture.elsewhere):
        return _concerns_others
    found = _look_up(inner)
    if found is not None or not isinstance(function, (FunctionType, MethodType, BuiltinMethodType)):
        return found
    return _of_receiver(function, function.__self__) if hasattr(function, "__self__") else _of_library(inner)


def is_silent(function: Any) -> bool:
    """Whether a method of a logger only asks, or logs what nobody listens to now: a program can have that as a step."""
    logger, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    inner = logger.logger if isinstance(logger, logging.LoggerAdapter) else logger
    code = getattr(_inner(function), "__code__", None)  # one with a cache has none
    if not isinstance(inner, logging.Logger) or code is None or not is_standard_library(code.co_filename):
        return False
    asking: Any = type(inner).isEnabledFor
    if name in _ASKING or asking is not logging.Logger.isEnabledFor:
        return name in _ASKING
    return name in _LEVEL_OF and not inner.isEnabledFor(_LEVEL_OF[name])


def _inner(function: Any) -> Any:
    """The function of a bound method; an object of the user's is not asked, for its ``__getattr__`` is the user's."""
    return function.__func__ if isinstance(function, MethodType) else function


def _look_up(function: Any) -> Act | None:
    try:
        return None if method_of(function, "__hash__") is not None else ACTS.get(function)
    except TypeError:  # not hashable
        return None


def _of_receiver(function: Any, receiver: Any) -> Act | None:
    name = getattr(function, "__name__", "")
    if isinstance(receiver, logging.LoggerAdapter) and _OF_LOGGERS.get(name) is not None:
        return _by_adapter
    if isinstance(receiver, (logging.Logger, logging.LoggerAdapter)):
        return _logs if name.endswith("_once") else _OF_LOGGERS.get(name)
    if isinstance(receiver, io.IOBase) or (receiver is not None and _standard_stream(receiver) is not None):
        return _of_stream
    if isinstance(receiver, socket.socket):
        return _refused
    if isinstance(receiver, _CSV_WRITER):
        return _of_writer(_number)
    return _of_library(getattr(function, "__func__", function))


_CSV_WRITER = type(csv.writer(io.StringIO()))


def _of_library(function: Any) -> Act | None:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module == _SUMMARIES[0] and name.startswith(_SUMMARIES[1]) and name != "SummaryWriter.__init__":
        return _changes_files(_nothing)
    return _LIBRARIES.get((str(module), name))


def carry_out(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that reaches outside, as a step of the program.

    Returns:
        What the call gives, or `NOT_AN_ACT`: it is to be made like any other.

    Raises:
        CaptureError: it cannot be a step; nothing has been done.
    """
    inner = _inner(function)
    if capture.side_effects.acted and any(inner is each for each in _READING):
        _refuse_reading(_name(inner))
    found = act_of(function)
    if found is None:
        return NOT_AN_ACT
    several = next((value for value in (*args, *kwargs.values()) if isinstance(value, Unjoined)), None)
    if several is None:
        return found(capture, function, args, kwargs)
    return _each(capture, function, args, kwargs, several)


def _each(
    capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], several: Unjoined
) -> Any:
    """A call that is given a value that is another one on each path: each path makes its own."""

    def one(value: Any) -> Any:
        given = tuple(value if each is several else each for each in args)
        keywords = {name: value if each is several else each for name, each in kwargs.items()}
        return carry_out(capture, function, given, keywords)

    return several.either(one)


__all__ = ["NOT_AN_ACT", "act_of", "carry_out", "may_print_to", "note_stream"]
