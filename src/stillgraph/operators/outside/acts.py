"""What user code does to the world outside: it logs, warns, writes to streams and files.

None of it is done during a capture. It becomes a step of the program (`program.acts`), carried out in order by each
call that comes by it, with the values of that call; or it is refused before anything is done. One table says which.
"""

from __future__ import annotations

import contextlib
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
import time
import warnings
from collections.abc import Iterable
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, NoReturn

import numpy
import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_standard_library
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.outside.adapters import call_of_adapted, log_by
from stillgraph.operators.outside.handed_out import handed, shown, stored
from stillgraph.operators.outside.logged import logged
from stillgraph.operators.outside.process_state import QUERIES_WITHOUT, SETTERS
from stillgraph.operators.outside.steps import (
    NOT_AN_ACT,
    Act,
    anything,
    changes_files,
    emit,
    name_of,
    nothing,
    number,
    of_writer,
    recorded,
)
from stillgraph.operators.outside.streams import of_stream, refuse_reading, standard_stream
from stillgraph.program.acts import Calling, Logging, Warning_
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here, places_here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.effects.threads import concerns_others, refused
from stillgraph.trace.values.outcome import Outcome

_OUTSIDE = "Do it outside the static function, with what the function returns."


def call_cached(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    """A function with a cache that does something outside: the program calls it, and its cache decides whether."""
    capture.before_raise(None)
    emit(capture, Calling(function), args, kwargs, handed)
    return Outcome(name_of(function))


def _waits(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    emit(capture, Calling(function), args, kwargs, stored)


def _logs(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``logger.info(…)``: the logger's level and its handlers at the time of the call decide."""
    _require_no_stack(function, kwargs)
    capture.side_effects.before_act()
    recorded(capture, Logging(function, places_here()), *logged(capture, function.__name__, args, kwargs))


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
    emit(capture, Calling(function), args, kwargs, handed)


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
    emit(capture, Warning_(places_here()), args, kwargs, shown)


def _refused(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    what = f"{name_of(function)} changes what is outside the program"
    raise refuse("SG305", what, location=here(), hint=_OUTSIDE)


def _enters(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A manager that is entered without a ``with`` of its own, by a stack or another manager: its end is not seen."""
    given = (*([function.__self__] if isinstance(function, MethodType) else []), *args, *kwargs.values())
    manager = given[-1] if given else None
    if not isinstance(manager, (warnings.catch_warnings, contextlib._RedirectStream)):
        return NOT_AN_ACT
    kind = type(manager).__name__
    hint = f"Enter it by a with statement of its own: with {kind}(…):"
    raise refuse("SG305", f"{kind} is entered by other code than a with statement", location=here(), hint=hint)


def _concerns_others(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    raise refused(function)


def _sets(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What sets something for the whole process; some functions only tell what is set when they are given nothing."""
    least = QUERIES_WITHOUT.get(function)
    if least is not None and len(args) <= least and not kwargs:
        return NOT_AN_ACT
    what = f"{name_of(function)} sets what the whole process shares"
    raise refuse("SG305", what, location=here(), hint=_OUTSIDE)


def _collects(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return number(capture, emit(capture, Calling(function), args, kwargs, stored), name_of(function))


def _opens(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``open``: for writing it is refused, before it empties the file."""
    given = args[1:] if function in (open, io.open) or isinstance(function, FunctionType) else args
    mode = kwargs.get("mode", given[0] if given else "r")
    if isinstance(mode, str) and not set(mode) & set("wax+"):
        return NOT_AN_ACT
    hint = "Write with Path.write_text, torch.save or logging, which become steps of the program, or outside."
    raise refuse("SG305", "a file is opened for writing", location=here(), hint=hint)


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
    **_all(changes_files(nothing), _named(os, *_FILES)),
    **_all(changes_files(number), _named(os, "system", "write")),
    **_all(changes_files(nothing), [shutil.rmtree, shutil.chown, shutil.copymode, shutil.copystat]),
    **_all(
        changes_files(anything),
        [shutil.copy, shutil.copy2, shutil.copyfile, shutil.copytree, shutil.move, shutil.make_archive],
    ),
    **_all(changes_files(anything), [subprocess.run, subprocess.check_call, subprocess.call]),
    **_all(
        changes_files(nothing),
        _named(_PATH, "unlink", "mkdir", "rmdir", "touch", "chmod", "symlink_to", "hardlink_to"),
    ),
    **_all(changes_files(number), [_PATH.write_text, _PATH.write_bytes]),
    **_all(changes_files(anything), [_PATH.rename, _PATH.replace]),
    **_all(changes_files(nothing), [torch.save, pickle.dump, json.dump]),
    **_all(changes_files(nothing), [numpy.save, numpy.savez, numpy.savez_compressed, numpy.savetxt]),
    **_all(of_writer(number), [csv.DictWriter.writerow, csv.DictWriter.writeheader]),
    csv.DictWriter.writerows: of_writer(nothing),
    time.sleep: _waits,
    **_all(_logs, [getattr(logging, name) for name in _LEVELS]),
    **_all(_configures, [logging.basicConfig, logging.disable, logging.captureWarnings]),
    warnings.warn: _warns,
    **_all(_filters, [warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings]),
    **_all(_enters, [warnings.catch_warnings.__enter__, contextlib._RedirectStream.__enter__]),
    contextlib.ExitStack.enter_context: _enters,
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
    ("tqdm.std", "tqdm.write"): changes_files(nothing),
}
_OF_LOGGERS: dict[str, Act] = {
    **_all(_logs, _LEVELS),
    **_all(_configures, ("setLevel", "addHandler", "removeHandler", "addFilter", "removeFilter")),
    **_all(_asks, _ASKING),
}
_SUMMARIES = ("torch.utils.tensorboard.writer", "SummaryWriter.")


def act_of(function: Any) -> Act | None:
    """How a call of a function reaches outside, if it does."""
    capture = session()
    if capture is None:
        return _act_of(function)
    with capture.executed.paused():
        return _concerns_others if concerns_others(function, capture.elsewhere) else _act_of(function)


def _act_of(function: Any) -> Act | None:
    inner = _inner(function)
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
    if isinstance(receiver, io.IOBase) or (receiver is not None and standard_stream(receiver) is not None):
        return of_stream
    if isinstance(receiver, socket.socket):
        return _refused
    if isinstance(receiver, _CSV_WRITER):
        return of_writer(number)
    return _of_library(getattr(function, "__func__", function))


_CSV_WRITER = type(csv.writer(io.StringIO()))


def _of_library(function: Any) -> Act | None:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module == _SUMMARIES[0] and name.startswith(_SUMMARIES[1]) and name != "SummaryWriter.__init__":
        return changes_files(nothing)
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
        refuse_reading(name_of(inner))
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
