"""What waits for other threads or processes, tells them something, or asks about them: one table.

A capture must do none of it. While it waited, what the others do would be taken for its own and put back; what it takes
out of a queue is gone; and a thread that itself calls a static function waits for the capture. What the function makes
and nobody else has yet, a queue say, is its own affair, for as long as it need not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinMethodType, FrameType, FunctionType, MethodDescriptorType, MethodType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_dependency
from stillgraph.trace.code.frames import here
from stillgraph.trace.effects.elsewhere import Elsewhere

_NAMES = {
    "threading.Thread": "start join is_alive",
    "threading.Timer": "cancel",
    "threading.Event": "wait is_set isSet set clear",
    "threading.Condition": "wait wait_for notify notify_all notifyAll __enter__ __exit__",
    "threading.Semaphore": "acquire release __exit__",
    "threading.BoundedSemaphore": "release",
    "threading.Barrier": "wait reset abort",
    "queue.Queue": "get get_nowait put put_nowait join task_done empty full qsize shutdown",
    "_queue.SimpleQueue": "get get_nowait put put_nowait empty qsize",
    "concurrent.futures._base": "wait as_completed",
    "concurrent.futures._base.Executor": "submit map shutdown __enter__ __exit__",
    "concurrent.futures._base.Future": (
        "result exception done running cancel cancelled add_done_callback set_result set_exception "
        "set_running_or_notify_cancel"
    ),
    "concurrent.futures.thread.ThreadPoolExecutor": "submit shutdown",
    "concurrent.futures.process.ProcessPoolExecutor": "submit map shutdown",
    "multiprocessing.connection": "wait Client",
    "multiprocessing.connection._ConnectionBase": "send send_bytes recv recv_bytes recv_bytes_into poll close",
    "multiprocessing.context.BaseContext": "Pool Manager",
    "multiprocessing.managers.BaseManager": "start connect shutdown __enter__ __exit__",
    "multiprocessing.managers.BaseProxy": "_callmethod _getvalue",
    "multiprocessing.pool.Pool": (
        "apply apply_async map map_async starmap starmap_async imap imap_unordered close terminate join "
        "__enter__ __exit__"
    ),
    "multiprocessing.pool.ApplyResult": "get wait ready successful",
    "multiprocessing.pool.IMapIterator": "next",
    "multiprocessing.process.BaseProcess": "start join is_alive terminate kill close",
    "multiprocessing.queues.Queue": "get get_nowait put put_nowait empty full qsize close join_thread",
    "multiprocessing.queues.JoinableQueue": "put task_done join",
    "multiprocessing.queues.SimpleQueue": "get put empty close",
    "multiprocessing.synchronize.Condition": "wait wait_for notify notify_all __enter__ __exit__",
    "multiprocessing.synchronize.Event": "wait is_set set clear",
    "multiprocessing.synchronize.Semaphore": "get_value",
    "torch.multiprocessing.spawn": "spawn start_processes",
    "torch.multiprocessing.spawn.ProcessContext": "join",
}
_FUNCTIONS = frozenset(f"{owner}.{name}" for owner, names in _NAMES.items() for name in names.split())
"""By the names that they were defined with: the modules of most need not be loaded."""

_MODULES = frozenset(name for owner in _NAMES for name in (owner, owner.rpartition(".")[0]))
_SHORT = frozenset(name.rpartition(".")[2] for name in _FUNCTIONS)
_CALLABLES = (FunctionType, BuiltinMethodType, MethodDescriptorType)

_RUNNERS = frozenset(
    {
        *("threading.Thread", "concurrent.futures._base.Executor", "multiprocessing.pool.Pool"),
        *("multiprocessing.process.BaseProcess", "multiprocessing.managers.BaseManager"),
    }
)
"""Classes whose objects run something beside the call: they are numbered as they are made, or begin at once."""

_WAITS: dict[str, Callable[[Any, str, dict[str, Any]], bool]] = {
    "threading.Event": lambda event, name, given: name == "wait" and not event.is_set(),
    "threading.Condition": lambda condition, name, given: name.startswith("wait"),
    "threading.Semaphore": lambda semaphore, name, given: (
        name == "acquire" and given.get("blocking", True) and not semaphore._value
    ),
    "threading.BoundedSemaphore": lambda semaphore, name, given: False,
    "queue.Queue": lambda queue, name, given: (
        (name == "get" and given.get("block", True) and not queue._qsize())
        or (name == "put" and given.get("block", True) and 0 < queue.maxsize <= queue._qsize())
        or (name == "join" and queue.unfinished_tasks > 0)
    ),
    "_queue.SimpleQueue": lambda queue, name, given: name == "get" and queue.empty(),
    "concurrent.futures._base.Future": lambda future, name, given: (
        name in ("result", "exception") and not future.done()
    ),
}
"""Whether a method of an object that nobody else has would wait, by its arguments; of other classes, all do."""

_HINT = "Call it outside the static function, and pass what it gives."


def concerns_others(function: Any, elsewhere: Elsewhere) -> bool:
    """Whether a call has to do with other threads or processes.

    Args:
        function: what is called.
        elsewhere: tells what was there before the capture.
    """
    if isinstance(function, type):
        return any(f"{each.__module__}.{each.__qualname__}" in _RUNNERS for each in function.__mro__)
    inner = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(inner, _CALLABLES) or inner.__name__ not in _SHORT or _name(inner) not in _FUNCTIONS:
        return False
    receiver, name = getattr(function, "__self__", None), _name(inner)
    if not _is_own(name, receiver, elsewhere):
        return True
    return isinstance(inner, BuiltinMethodType) and _waits(name, receiver, {})  # of others, `before_unseen` is told


def before_unseen(frame: FrameType, elsewhere: Elsewhere) -> bool:
    """To be called before code that nobody follows runs.

    Returns:
        Whether this is to be called each time the code runs.

    Raises:
        CaptureError: it has to do with other threads or processes.
    """
    name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
    caller = frame.f_back
    if name not in _FUNCTIONS or caller is None:
        return False
    if caller.f_globals.get("__name__") in _MODULES:
        return True  # the outermost one tells what it is for
    if name == "threading.Thread.start" and is_dependency(caller.f_code.co_filename):
        return True  # a library's own, which shows how far a loop is, say
    code, given = frame.f_code, frame.f_locals
    receiver = given[code.co_varnames[0]] if code.co_argcount else None
    if not _is_own(name, receiver, elsewhere) or _waits(name, receiver, given):
        raise refused(name)
    return True


def refused(function: Any) -> BaseException:
    """The error for a call that has to do with others, or for a function of that name."""
    name = function if isinstance(function, str) else _name(function)
    short = ".".join(name.split(".")[-2:])
    message = f"{short} has to do with other threads or processes, which go on beside a capture"
    return refuse("SG305", message, location=here(), hint=_HINT)


def _name(function: Any) -> str:
    """The module that defines a function, or a class, and its name there."""
    inner = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(inner, (BuiltinMethodType, MethodDescriptorType)):
        owner = getattr(inner, "__objclass__", type(getattr(inner, "__self__", None)))
        return f"{owner.__module__}.{owner.__qualname__}.{inner.__name__}"
    return f"{getattr(inner, '__module__', None)}.{getattr(inner, '__qualname__', inner)}"


def _is_own(name: str, receiver: Any, elsewhere: Elsewhere) -> bool:
    """Whether a method is of an object that nobody but the capture has."""
    return name.rpartition(".")[0] in _WAITS and receiver is not None and not elsewhere.was_there(receiver)


def _waits(name: str, receiver: Any, given: dict[str, Any]) -> bool:
    owner, _, method = name.rpartition(".")
    return _WAITS[owner](receiver, method, given)
