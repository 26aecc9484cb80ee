"""Values of a frame on their way through a segment: what the segment does not look at, it does not depend on."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import AsyncIterator, Awaitable, Iterator
from types import BuiltinMethodType, FrameType, MethodType, MethodWrapperType, ModuleType, TracebackType
from typing import Any

import torch

from stillgraph.bytecode.machine.frame import Frame
from stillgraph.core.files import is_our_module
from stillgraph.core.parcel import opened
from stillgraph.operators.control_flow.contexts import sees_exceptions
from stillgraph.trace.capture.session import session
from stillgraph.trace.torch_rules.fake_execution import has_no_fake


def read(value: Any) -> Any:
    """What is in a parcel, on which the capture depends from now on; anything else as it is."""
    capture = session()
    return opened(value) if capture is None else capture.unpacked(value)


def is_plain(value: Any) -> bool:
    """Whether a value is passed as it is: a tensor, or what is the same in all programs."""
    if isinstance(value, torch.Tensor):
        return not has_no_fake(value)
    return value is None or value is True or value is False


def is_bound(value: Any) -> bool:
    """Whether a value is a method bound to an object, which may be one of the capture's."""
    if not isinstance(value, (MethodType, BuiltinMethodType, MethodWrapperType)):
        return False
    return not isinstance(value.__self__, (ModuleType, type(None), type))


_OPAQUE = (
    *(Iterator, Awaitable, AsyncIterator, BaseException, FrameType, TracebackType, io.IOBase),
    *(contextlib._GeneratorContextManager, contextlib.ExitStack, contextlib.closing, contextlib.redirect_stdout),
)
_PASSING = frozenset({"_io", "_thread"})  # files and locks


def is_opaque(value: Any) -> bool:
    """Whether only Python can do anything with a value: an open file, an iterator, a coroutine, an exception."""
    if isinstance(value, (MethodType, BuiltinMethodType, MethodWrapperType)):
        receiver = value.__self__
        if isinstance(receiver, (ModuleType, type(None), type)):
            return False
        return is_opaque(receiver) or (hasattr(type(receiver), "__exit__") and not isinstance(receiver, torch.Tensor))
    return isinstance(value, _OPAQUE)


def passes_exceptions(value: Any) -> bool:
    """Whether a value is the ``__exit__`` of a manager that lets each exception of its block pass, without a look."""
    if not isinstance(value, (MethodType, BuiltinMethodType)) or value.__name__ != "__exit__":
        return False
    module = type(value.__self__).__module__
    return module in _PASSING or not (is_our_module(module) or sees_exceptions(value.__self__))


def open_rest(frame: Frame) -> None:
    """Open what stands behind the stars of a function's parameters: what goes through such a tuple is not looked at."""
    code = frame.code
    slot = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        cell = frame.slots[slot]
        cell.cell_contents = tuple([read(each) for each in cell.cell_contents])
        slot += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named = frame.slots[slot].cell_contents
        named.update({name: read(value) for name, value in named.items()})
