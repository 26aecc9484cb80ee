"""What a function asks of the world outside the program: clocks, files, settings, other programs, chance.

A clock is read at every call of the program. A question with a plain answer (does a file exist, what is in it, is a
level logged) is asked again before the program is used. What has no such form is refused where the user's own code does
it; libraries are left alone, which look at files and clocks for caches and messages of their own.
"""

from __future__ import annotations

import builtins
import copy
import datetime
import decimal
import glob
import inspect
import logging
import os
import pathlib
import secrets
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import numpy
import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_library, is_ours, is_standard_library
from stillgraph.core.tracebacks import chain_of
from stillgraph.operators.outside.process_state import MOMENTARY, SETTINGS, members
from stillgraph.program.operations import invoke
from stillgraph.program.sources import Attribute, Global, Item, Source
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.code.chance import CLOCKS
from stillgraph.trace.code.frames import here, user_frame
from stillgraph.trace.sources.reads import Failure
from stillgraph.trace.values.containers import holds_staged

Meaning = Callable[..., Any]


# ---- done by the program, at every call
def at_run_time(function: Meaning, kind: type) -> Meaning:
    """A function of Python's whose result differs at every call: it is called by the program."""

    def recorded(*args: Any, **kwargs: Any) -> Any:
        capture = capturing()
        return capture.fresh_result(kind, capture.emit("call_function", invoke, (function, args, kwargs), {}))

    return recorded


def _sleep(seconds: Any) -> None:
    """``time.sleep``: the program waits."""
    capturing().emit("call_function", invoke, (time.sleep, (seconds,), {}), {})


# ---- asked again before a program is used
def setting(function: Meaning, reading: Meaning | None = None) -> Meaning:
    """A function that reads what no object holds: what it gives is guarded.

    Args:
        function: what the user calls.
        reading: what tells the answers apart where they are no constants; the function itself by default.
    """

    def read(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not all(map(_is_plain, args)):
            return _refused(function, f"{_name(function)} is called with what a guard cannot keep")(*args, **kwargs)
        settings = capturing().reads.settings
        try:
            value = function(*args)
        except Exception as error:  # of any kind: the guard compares it
            settings.append((Failure(function), args, type(error)))
            raise
        settings.append((reading or function, args, value if reading is None else reading(*args)))
        return copy.copy(value)  # what the user's code does to it is none of the guard's business

    return read


def _is_plain(value: Any) -> bool:
    plain = (str, bytes, int, float, type(None), pathlib.PurePath, logging.Logger)
    return isinstance(value, plain) or (isinstance(value, tuple) and all(map(_is_plain, value)))


def _state_of_file(path: Any) -> tuple[Any, ...]:
    found = os.stat(path)
    return (*found, found.st_mtime_ns, found.st_ctime_ns)


def _state_of_link(path: Any) -> tuple[Any, ...]:
    found = os.lstat(path)
    return (*found, found.st_mtime_ns, found.st_ctime_ns)


def _logger(name: Any = None) -> Any:
    """``logging.getLogger``: what the code asks of the logger, its level, say, is guarded where all calls find it."""
    logger = logging.getLogger(name)
    source: Source = Global("logging", "root")
    if logger is not logging.root:
        source = Item(Attribute(Attribute(source, "manager"), "loggerDict"), logger.name)
    capturing().finder.add(logger, source)
    return logger


def _from_folder(function: Meaning) -> Meaning:
    """A function that asks for the current folder, unless it is given a whole path."""
    guarded = setting(function)

    def made(path: Any) -> Any:
        return function(path) if os.path.isabs(path) else guarded(path)

    return made


def _in_local_time(function: Meaning) -> Meaning:
    """A method that asks which time zone the process is in, unless it is given one."""
    guarded = setting(function)

    def made(*args: Any, **kwargs: Any) -> Any:
        has_zone = any(each is not None for each in (*args[1:], kwargs.get("tz")))
        return function(*args, **kwargs) if has_zone else guarded(*args)

    return made


def _thread() -> tuple[Any, ...]:
    return threading.get_ident(), threading.current_thread().name


def _decimals() -> tuple[Any, ...]:
    context = decimal.getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp


def _autocast(kind: Any, device: str | None) -> Meaning:
    """A block of autocast, whose dtype is a setting of torch's where the code does not say it."""

    def made(*args: Any, **kwargs: Any) -> Any:
        of = device or kwargs.get("device_type", args[0] if args else None)
        if isinstance(of, str):
            capturing().reads.settings.append((torch.get_autocast_dtype, (of,), torch.get_autocast_dtype(of)))
        return kind(*args, **kwargs)

    return made


# ---- refused
_FILES = "Do it before the call, and pass what the function needs."
_CLOCK = "Take the time before the call and pass it, or use time.time(), which the program reads at every call."
_CHANCE = "Use torch.rand or random.random, which the program draws at every call, or pass the value."
_MOMENT = "Ask outside the static function, and pass what it gives."
_TEXT = "Use the text of the exception itself: str(error)."
_FRAMES = "Pass the values explicitly."


def _refused(
    function: Any, message: str, hint: str = _FILES, code: str = "SG305", least: int = 0, named: str = ""
) -> Meaning:
    """A function that the user's code may not call without the first ``least`` arguments, or with 0 at all.

    The first may be ``named``. What is None counts as not given.

    A library's may, but for what it draws at random: that is part of what it computes.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        frame = user_frame() if code != "SG104" or _is_asked_by_user() else None
        is_allowed = frame is None or (is_library(frame.f_code.co_filename) and hint != _CHANCE)
        given = (*args, kwargs[named]) if named in kwargs else args
        if is_allowed or (least and sum(each is not None for each in given[:least]) >= least):
            return function(*args, **kwargs)
        raise refuse(code, message, location=here(), hint=hint)

    return called


def _of_known(function: Meaning) -> Meaning:
    """A function that makes texts of exceptions, and says itself what it could not make a text of."""

    def told(*args: Any, **kwargs: Any) -> Any:
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, BaseException)]
        held = [part for error in given for each in chain_of(error) for part in (each.args, vars(each))]
        if any(map(holds_staged, held)):
            message = f"{_name(function)} tells an exception with a value that only the run knows"
            raise refuse("SG302", message, location=here(), hint=_TEXT)
        return function(*args, **kwargs)

    return told


def _zone(function: Meaning) -> Meaning:
    """A function that reads the clock without an argument, and the time zone of the process with one."""
    now, guarded = _refused(function, f"{_name(function)} reads the clock", _CLOCK), setting(function)

    def told(*args: Any) -> Any:
        return guarded(*args) if args else now()

    return told


def _is_asked_by_user() -> bool:
    """Whether it is not the standard library that asks: a ``namedtuple`` looks for the module it is made in."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is None or not is_standard_library(frame.f_code.co_filename)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))


def _all_refused(functions: Iterable[Any], what: str, hint: str = _FILES, code: str = "SG305") -> dict[Any, Meaning]:
    return {f: _refused(f, f"{_name(f)} {what}", hint, code) for f in functions}


OF_EXCEPTIONS = frozenset(
    members(traceback, "print_exc print_exception print_tb format_exc format_exception format_tb extract_tb")
)
"""They tell where an exception has come by."""
OUTSIDE: dict[Any, Meaning] = {
    **{function: at_run_time(function, kind) for function, kind in CLOCKS.items()},
    time.sleep: _sleep,
    **{function: setting(function) for function in SETTINGS},
    **{f: setting(f, _state_of_file) for f in (os.stat, pathlib.Path.stat)},
    **{f: setting(f, _state_of_link) for f in (os.lstat, pathlib.Path.lstat)},
    **{f: _from_folder(f) for f in (os.path.abspath, pathlib.Path.absolute)},
    **{kind.fromtimestamp: _in_local_time(kind.fromtimestamp) for kind in (datetime.date, datetime.datetime)},
    logging.getLogger: _logger,
    threading.current_thread: setting(threading.current_thread, _thread),
    decimal.getcontext: setting(decimal.getcontext, _decimals),
    torch.autocast: _autocast(torch.autocast, None),
    torch.cpu.amp.autocast_mode.autocast: _autocast(torch.cpu.amp.autocast_mode.autocast, "cpu"),
    torch.cuda.amp.autocast_mode.autocast: _autocast(torch.cuda.amp.autocast_mode.autocast, "cuda"),
    **_all_refused(
        (
            builtins.open,
            *members(os, "open popen walk scandir readlink"),
            *members(pathlib.Path, "open iterdir glob rglob walk readlink samefile"),
            *members(glob, "glob iglob"),
            *members(numpy, "load loadtxt genfromtxt fromfile memmap"),
            torch.load,
        ),
        "reads files",
    ),
    builtins.input: _refused(builtins.input, "input waits for a person"),
    **_all_refused(
        (
            *(getattr(datetime.datetime, name) for name in ("now", "utcnow", "today")),
            datetime.date.today,
        ),
        "reads the clock",
        _CLOCK,
    ),
    numpy.random.SeedSequence: _refused(
        numpy.random.SeedSequence, "a SeedSequence without a seed", _CHANCE, least=1, named="entropy"
    ),
    **{
        function: _refused(function, f"{_name(function)} reads the clock", _CLOCK, least=least)
        for function, least in (
            (time.strftime, 2),
            (time.gmtime, 1),
            (time.asctime, 1),
        )
    },
    **{f: _zone(f) for f in (time.localtime, time.ctime)},
    **_all_refused(MOMENTARY, "tells how things stand at the moment, which each call would find otherwise", _MOMENT),
    **_all_refused(
        members(sys, "exc_info exception"),
        "tells which exception is being handled",
        "Name the exception where it is caught: except ValueError as error.",
    ),
    **_all_refused(
        OF_EXCEPTIONS,
        "shows the frames of the capture",
        _TEXT,
    ),
    **{f: _of_known(f) for f in (traceback.format_exception_only, traceback.TracebackException)},
    traceback.TracebackException.from_exception.__func__: _of_known(  # type: ignore[attr-defined]  # not in the stubs
        traceback.TracebackException.from_exception.__func__  # type: ignore[attr-defined]  # as above
    ),
    **_all_refused(
        (
            *members(uuid, "uuid1 uuid4"),
            *members(os, "urandom getrandom"),
            *members(secrets, "token_bytes token_hex token_urlsafe randbelow"),
        ),
        "draws at random",
        _CHANCE,
    ),
    **_all_refused(
        (
            *(sys._getframe, *members(inspect, "currentframe stack trace getouterframes")),
            *members(traceback, "extract_stack format_stack print_stack walk_stack"),
        ),
        "sees the frames of the capture",
        _FRAMES,
        "SG104",
    ),
}
"""What such functions, and methods by the functions they are of, mean when rewritten code calls them."""
