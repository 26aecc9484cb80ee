"""Functions that get attributes: calls that share one would find what others have set."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from stillgraph.bytecode.machine.frame import Frame
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.trace.capture.session import session

_MARKED = (FunctionType, functools.partial, staticmethod, classmethod)
_SETTING = frozenset(
    {"setattr", "delattr", "vars", "wraps", "update_wrapper", "__dict__", "__setattr__", "__delattr__"}
)


def may_be_marked(value: Any, frames: Iterable[Frame]) -> bool:
    """Whether a function that a segment has made may get an attribute behind it, in the frames or what they name.

    Others are one object in all calls: a program can call what it knows.
    """
    capture = session()
    if not isinstance(value, _MARKED) or capture is None or not capture.is_new(value):
        return False
    return any(map(_marks, _codes(frames)))


def _codes(frames: Iterable[Frame]) -> Iterator[CodeType]:
    for frame in frames:
        yield frame.code
        for code in _within(frame.code):
            named = (frame.globals.get(name) for name in code.co_names)
            yield from (each.__code__ for each in named if isinstance(each, FunctionType))


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _within(each)


@weakly_cached
def _marks(code: CodeType) -> bool:
    """Whether code sets attributes of what may be a function: of anything but ``self``."""
    return any(not _SETTING.isdisjoint(each.co_names) or _stores(each) for each in _within(code))


def _stores(code: CodeType) -> bool:
    before = None
    for each in dis.get_instructions(code):
        of_self = before is not None and (before.opname, before.argval) == ("LOAD_FAST", "self")
        if each.opname in ("STORE_ATTR", "DELETE_ATTR") and not of_self:
            return True
        if each.opname not in ("CACHE", "EXTENDED_ARG"):
            before = each
    return False
