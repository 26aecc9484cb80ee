"""What code that is not rewritten does to the world outside while a capture runs it: refused, before it is done.

Rewritten code has operators for such calls. Libraries, Python's own modules and functions that are left as they are
have none, so Python itself is asked to tell: it announces to its audit hooks what it is about to do. A hook stays for
as long as the process lives and costs a little wherever Python announces something, so there is none before code that
a capture runs has called what might change something.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_dependency, is_our_module, is_ours, is_standard_library, is_torch
from stillgraph.trace.code.executed_code import IN_USERS_PLACE, is_of_named_tuple
from stillgraph.trace.code.finalised import close
from stillgraph.trace.code.frames import here
from stillgraph.trace.graph.current import current
from stillgraph.trace.graph.recorder import Recorder

_CHANGES = frozenset(
    {
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.truncate", "os.utime"),
        *("os.symlink", "os.link", "os.chdir", "os.kill", "os.killpg", "os.system"),
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "subprocess.Popen"),
        *("shutil.rmtree", "shutil.move", "shutil.make_archive", "shutil.unpack_archive", "shutil.chown"),
        *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "sqlite3.connect", "urllib.Request"),
        *("signal.pthread_kill", "webbrowser.open"),
    }
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ON_THEIR_OWN = ("logging", "importlib", "platform.py", "ctypes", "weakref.py", "multiprocessing")
_SAVING = os.path.join("torch", "serialization.py")
_DECORATING = os.path.join("torch", "utils", "_contextlib.py")  # generators: what they do is the user's
_READING_SOURCE = tuple(
    os.path.join("stillgraph", *path.split("/"))
    for path in (
        *("source/", "core/location.py", "core/raised.py", "core/tracebacks.py"),
        *("trace/heap/assigned.py", "trace/code/frames.py", "trace/code/watch.py"),
    )
)
_HINT = "Make the call in the static function itself, or outside of it."


def before_capture() -> None:
    """Listen where a module is loaded that changes what is outside by ways that no call tells of."""
    if "_sqlite3" in sys.modules:
        _listen()


def before_reaching(frame: FrameType) -> None:
    """Told that a frame is about to call what may change something."""
    recorder = current()
    if recorder is not None and _is_users(recorder, frame):
        _listen()


@functools.cache
def _listen() -> None:
    """Listen from now on; Python has no way to stop that, so between captures the hook gives up at once."""
    sys.addaudithook(_before)


def _before(event: str, args: tuple[Any, ...]) -> None:
    if event not in _CHANGES and event != "open":
        return
    recorder = current()
    if recorder is None or not recorder.executed.is_watching or (event == "open" and not _is_for_writing(args)):
        return
    if event == "sqlite3.connect" and args and args[0] == ":memory:":
        return
    caller: FrameType | None = sys._getframe(1)
    if _is_users(recorder, caller):
        what = f"{event}({args[0]!r})" if args else event
        while caller is not None and is_ours(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is not None and recorder.is_rewritten(caller.f_code):
            message = f"{what} changes what is outside the program"
            hint = "Make the call outside of the static function."
            raise recorder.executed.noted(refuse("SG305", message, location=here(), hint=hint))
        message = f"{what}, which changes what is outside the program, is called by code that is not rewritten"
        raise recorder.executed.noted(refuse("SG305", message, location=here(), hint=_HINT))


def _is_for_writing(args: tuple[Any, ...]) -> bool:
    path, _, flags = args
    return path != os.devnull and isinstance(flags, int) and bool(flags & _WRITING)


def _is_users(recorder: Recorder, frame: FrameType | None) -> bool:
    """Whether something is done on behalf of rewritten code, and not by Python, torch or us on our own account."""
    while frame is not None and not recorder.is_rewritten(frame.f_code) and frame.f_code is not close.__code__:
        if is_machinery(frame.f_code) or frame.f_code is _APPLYING:
            return False
        frame = frame.f_back
    return frame is not None


_APPLYING = Recorder.run_function.__code__  # which runs ``forward`` on behalf of autograd


def is_users(frame: FrameType) -> bool:
    """Whether a frame of a capture does its work on behalf of rewritten code; the user's own does by whatever way."""
    recorder = current()
    return recorder is not None and (_is_users(recorder, frame) or is_called_back(frame))


def is_called_back(frame: FrameType | None) -> bool:
    """Whether a frame is of the user's project, and torch or a library has called it in its work for rewritten code."""
    recorder = current()
    if recorder is None or frame is None or not is_of_users_project(frame.f_code, frame.f_globals):
        return False
    while frame is not None and not recorder.is_rewritten(frame.f_code):
        module = str(frame.f_globals.get("__name__"))
        at_our_service = is_our_module(module) and not module.startswith(IN_USERS_PLACE)
        if at_our_service or (is_machinery(frame.f_code) and not is_torch(frame.f_code.co_filename)):
            return False
        frame = frame.f_back
    return frame is not None


def is_of_users_project(code: CodeType, globals: Mapping[str, Any]) -> bool:
    """Whether code with these globals is the user's own; what `dataclass`, torch and the like have written is not."""
    if is_dependency(code.co_filename) or is_of_named_tuple(code, globals):
        return False
    if not code.co_filename.startswith("<"):
        return True
    is_generated = code.co_name.startswith("__") and code.co_name.endswith("__")
    return not is_generated and not is_our_module(globals.get("__name__", ""))


def is_machinery(code: CodeType) -> bool:
    file = code.co_filename
    if is_standard_library(file):
        parts = file.replace("<frozen ", os.sep).replace(".", os.sep).split(os.sep)
        return any(each.removesuffix(".py") in parts for each in _ON_THEIR_OWN)
    if is_ours(file):
        return any(each in file for each in _READING_SOURCE)
    return code.co_name == "__del__" or (is_torch(file) and not file.endswith((_SAVING, _DECORATING)))
