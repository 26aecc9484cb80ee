"""Where in the user's source a capture is: frames of ours and of torch's are skipped."""

from __future__ import annotations

import contextlib
import dis
import linecache
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Set
from contextlib import AbstractContextManager
from dataclasses import replace
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

import torch

from stillgraph.core.files import is_ours, is_package, is_torch, is_torch_layer, is_users, path_in_torch
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.core.location import Location, start_of
from stillgraph.core.rewritten import variables_of
from stillgraph.core.tracebacks import chained, entries_of, full_traceback, let_go
from stillgraph.program.acts import Place
from stillgraph.trace.code.call_chain import Call, Step, calls, caught_in, runs_a_block

_TRANSFORMS = (
    *(path_in_torch("_functorch", f"{name}.py") for name in ("apis", "eager_transforms", "vmap")),
    path_in_torch("_vmap_internals.py"),
)


def is_transform(function: FunctionType) -> bool:
    """Whether a function is, or was made by, a transform of `torch.func`."""
    return function.__code__.co_filename in _TRANSFORMS


_OF_MODES = ("decorate_context", "decorate_autocast")


def surrounds_with_mode(code: CodeType) -> bool:
    """Whether it is what a mode of torch's makes of a function that it decorates, as ``@torch.no_grad()`` does."""
    return code.co_name in _OF_MODES and is_torch(code.co_filename)


def unwrapped(function: FunctionType) -> FunctionType:
    """The function that modes of torch's surround."""
    while surrounds_with_mode(function.__code__):
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        inner = cells["func"].cell_contents if "func" in cells else None
        if not isinstance(inner, FunctionType):
            break
        function = inner
    return function


_FUNCTIONS = path_in_torch("autograd", "function.py")


def in_autograd_function(is_rewritten: Callable[[CodeType], bool]) -> bool:
    """Whether a ``torch.autograd.Function`` is being applied by code that is not rewritten.

    ``apply`` is C's own from torch 2.14 on, and has no frame: then ``forward`` tells.
    """
    running: set[CodeType] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_rewritten(frame.f_code):
        code = frame.f_code
        if code.co_name == "apply" and code.co_filename == _FUNCTIONS:
            return True
        if not is_ours(code.co_filename):
            running.add(code)
        frame = frame.f_back
    return bool(running) and not running.isdisjoint(_forwards(torch.autograd.Function))


def _forwards(kind: type[torch.autograd.Function]) -> Iterator[CodeType]:
    """The code of the ``forward`` of a class and of those derived from it."""
    code = getattr(kind.forward, "__code__", None)
    if code is not None:
        yield code
    for each in type.__subclasses__(kind):
        yield from _forwards(each)


_LOADERS = path_in_torch("utils", "data", "")


def in_loader() -> bool:
    """Whether a value is asked for by torch's code for data sets and their loaders."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_ours(frame.f_code.co_filename) or is_torch(frame.f_code.co_filename)):
        if frame.f_code.co_filename.startswith(_LOADERS):
            return True
        frame = frame.f_back
    return False


_GENERATOR = 0x20  # CO_GENERATOR


def generator_asking() -> CodeType | None:
    """The generator of the user's, run by Python, that asks for a value in its own code."""
    frame = user_frame()
    return frame.f_code if frame is not None and frame.f_code.co_flags & _GENERATOR else None


def asking_frame() -> FrameType | None:
    """The frame that has made the torch call that is being handled."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_asked_by(code: CodeType) -> bool:
    """Whether a piece of code has made the torch call that is being handled."""
    frame = asking_frame()
    return frame is not None and frame.f_code is code


def asked_by_layer() -> bool:
    """Whether it is torch's code around layers that asks for a value: a ``ModuleList`` for an index."""
    frame = asking_frame()
    return frame is not None and is_torch_layer(frame.f_code.co_filename)


def user_frame() -> FrameType | None:
    """The innermost frame that is neither ours, nor torch's, nor the standard library's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def library_waits(is_rewritten: Callable[[CodeType], bool]) -> bool:
    """Whether a package's code that is not rewritten has called rewritten code, and waits for what that gives."""
    waits = False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (waits and is_rewritten(frame.f_code)):
        waits = waits or (is_package(frame.f_code.co_filename) and not is_rewritten(frame.f_code))
        frame = frame.f_back
    return frame is not None


def module_here() -> str | None:
    """The name of the module whose code runs: Python notes it in the classes that are made there."""
    frame = user_frame()
    return None if frame is None else frame.f_globals.get("__name__")


def _is_not_ours(file: str) -> bool:
    return not is_ours(file)


def places_here() -> tuple[Place, ...]:
    """The lines of the captured functions that are being called, the innermost first."""
    return tuple(
        Place(call.file, call.inside[0].f_lineno, call.function, call.outside.f_globals)
        for call in calls(_running(), _is_not_ours)
    )


def _running(start: FrameType | None = None) -> Iterator[Step]:
    """The frames that are running, the innermost first, or from one of them on."""
    frame: FrameType | None = start or sys._getframe(1)
    while frame is not None:
        yield frame, frame.f_lasti
        frame = frame.f_back


def _until_raised(error: BaseException) -> Generator[Step]:
    """The frames that led to an error which has been caught and is being looked at, the innermost first."""
    passed = _passed(error)
    order = {id(frame): index for index, (frame, _) in enumerate(passed)}
    around = list(_running())
    meet = next((index for index in reversed(range(len(around))) if id(around[index][0]) in order), None)
    try:
        if meet is None:
            yield from around
            return
        yield from reversed(passed[order[id(around[meet][0])] :])
        yield from around[meet + 1 :]
    finally:
        around.clear()  # this frame is among them


def _passed(error: BaseException) -> list[Step]:
    """The frames that an error has gone through, the outermost first, down to the last one of the user's."""
    trace = object.__getattribute__(error, "__traceback__")  # what stands for a caught one shows it to nobody else
    passed = [(each.tb_frame, each.tb_lasti) for each in entries_of(trace)]
    while passed and not is_users(passed[-1][0].f_code.co_filename):
        passed.pop()
    return passed


def show_as_written(error: BaseException) -> None:
    """Let the traceback of an error that ends a capture show the user's functions, not the blocks made of them.

    The frames that it does not show let go of what they hold.
    """
    if full_traceback():
        return
    passed = _passed(error)
    shown = [_entry(call) for call in reversed(calls(reversed(passed), is_users, caught_in(passed)))]
    try:
        let_go(error)
        error.__traceback__ = chained(shown)
    finally:
        del error, passed, shown  # frames that were made hold this one


def _entry(call: Call) -> TracebackType | Location:
    """The entry of a call in a traceback: its frame, or where that is a block's, the place in the function."""
    frame, offset = call.inside
    place = _located(frame.f_code, offset, call.function, ())
    is_own = frame is call.outside and call.function == frame.f_code.co_name
    return TracebackType(None, frame, offset, place.line) if is_own else place


def function_frame(frame: FrameType) -> FrameType:
    """The frame of the function that a frame belongs to: its own, unless it runs a block of a rewritten function."""
    back = frame.f_back
    while back is not None and not is_ours(frame.f_code.co_filename) and runs_a_block(back.f_code):
        while back is not None and is_ours(back.f_code.co_filename):
            back = back.f_back
        if back is None:
            return frame
        frame, back = back, back.f_back
    return frame


def attribute_read(frame: FrameType | None) -> set[str]:
    """The name of the attribute that a frame is reading, if it is."""
    if frame is None:
        return set()
    reading = (i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti)
    return {i.argval for i in reading if i.opname == "LOAD_ATTR" and isinstance(i.argval, str)}


def _located(code: CodeType, offset: int, function: str, callers: tuple[Location, ...]) -> Location:
    line, end_line, column, end_column = _positions(code)[offset // 2]
    if line is None or (line == code.co_firstlineno and function == code.co_name and _is_decorator(code, line)):
        return replace(start_of(code), function=function, callers=callers)
    return Location(code.co_filename, line, column, end_column if end_line == line else None, function, callers)


def line_of(code: CodeType, offset: int) -> int:
    """The line of an instruction."""
    return _positions(code)[offset // 2][0] or code.co_firstlineno
def _is_decorator(code: CodeType, line: int) -> bool:
    return linecache.getline(code.co_filename, line).lstrip().startswith("@")


@weakly_cached
def _positions(code: CodeType) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    return tuple(code.co_positions())


class Locator:
    """Finds the user's line being run; what it has found before, it knows.

    Attributes:
        beginning: the function that is captured: it stands for what is done before or after its lines.
        quietly: gives a context in which what runs is not noted as code that the capture runs.
    """

    def __init__(
        self,
        beginning: Location | None = None,
        quietly: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> None:
        self.beginning = beginning
        self._quietly = quietly
        self._known: dict[tuple[tuple[int, int, str], ...], tuple[Location, tuple[CodeType, ...]]] = {}  # by id

    def here(self, frame: FrameType | None = None) -> Location | None:
        """The user's line and columns that a frame is at, or are being run, with those that have called it."""
        with self._quietly():
            return self._located(_running(frame))

    def raised_at(self, error: BaseException) -> Location | None:
        """The user's line that raised an error which has just been caught, with those that had called it."""
        steps = _until_raised(error)
        try:
            return self._located(steps, caught_in(_passed(error)))
        finally:
            steps.close()  # which has the frames that hold it among its own

    def _located(self, steps: Iterable[Step], twice: Set[int] = frozenset()) -> Location | None:
        stack = [(call.inside[0].f_code, call.inside[1], call.function) for call in calls(steps, is_users, twice)]
        if not stack:
            return self.beginning
        key = tuple([(id(code), offset, function) for code, offset, function in stack])
        known = self._known.get(key)
        if known is None:
            callers: tuple[Location, ...] = ()
            for code, offset, function in reversed(stack):
                found = _located(code, offset, function, callers)
                callers = (*callers, found)
            known = self._known[key] = found, tuple(code for code, _, _ in stack)
        return known[0]


def here() -> Location | None:
    """The user's line and columns being run, with those that have called it."""
    return Locator().here()


def location_of(frame: FrameType | None) -> Location | None:
    """The user's line and columns that a frame is at, with those that have called it."""
    return None if frame is None else Locator().here(frame)


def function_here() -> CodeType | None:
    """The rewritten code of the user's function that is being run."""
    return next((call.outside.f_code for call in calls(_running(), is_users)), None)


def called(value: Any) -> str:
    """An object by the variable that has it, as messages name it."""
    name = name_of(value)
    return "what is given" if name is None else f"'{name}'"


def name_of(value: Any) -> str | None:
    """The variable of the function that is being run which has an object, if one has."""
    for call in calls(_running(), is_users)[:1]:
        frame: FrameType | None = call.inside[0]
        while frame is not None:
            if is_users(frame.f_code.co_filename):
                found = next((name for name, held in variables_of(frame).items() if held is value), None)
                if found is not None:
                    return found
            frame = None if frame is call.outside else frame.f_back
    return None


def mode_decorated(function: FunctionType) -> tuple[Any, Any] | None:
    """What is behind a function that a torch mode decorates (``@torch.no_grad()``): the mode and the function."""
    code = function.__code__
    if not surrounds_with_mode(code):
        return None
    cells = dict(zip(code.co_freevars, (c.cell_contents for c in function.__closure__ or ())))
    if {"autocast_instance", "func"} <= cells.keys():
        return lambda: cells["autocast_instance"], cells["func"]
    return (cells["ctx_factory"], cells["func"]) if {"ctx_factory", "func"} <= cells.keys() else None


def stack(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, and those that have called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back
