"""From a function to one that is interpreted: it takes the same arguments and stands in Python's stack as the user's.

Binding arguments to parameters, with the errors for those that do not fit, is left to Python: the function that is made
has the parameters of the user's. Its body hands their values to a frame.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from stillgraph.bytecode.between.resuming import run_in
from stillgraph.bytecode.code.decode import UnknownInstruction
from stillgraph.bytecode.code.lines import labelled
from stillgraph.bytecode.code.prepared import Prepared, prepared
from stillgraph.bytecode.interpreter.interpreter import finished, resume, run
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.machine.table import REFUSED
from stillgraph.bytecode.segments.segments import Segment
from stillgraph.core.diagnostics import refuse
from stillgraph.core.identity_cache import IdentityCache
from stillgraph.core.location import start_of
from stillgraph.core.rewritten import HELD, RESUMES, REWRITTEN
from stillgraph.operators.calls.arguments import received
from stillgraph.trace.capture.session import session

_GENERATOR = inspect.CO_GENERATOR
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_BEGIN, _RUN, _EMIT = "stillgraph_begin", "stillgraph_run", "stillgraph_emit"


def convert(function: FunctionType, segment: Segment | None = None) -> FunctionType:
    """A function that runs another one in the interpreter.

    Args:
        function: of the user's, with source or without.
        segment: what it is run for, if Python may take over in between.

    Raises:
        CaptureError: SG103 for a coroutine, SG106 for an instruction that no handler knows.
    """
    _require_known(function)
    is_generator = bool(function.__code__.co_flags & _GENERATOR)
    begin = _beginning(function, segment)
    finish: Callable[[Frame], Any] = resume if is_generator else _finish
    return _bound(function, _entry(function.__code__, is_generator, False), begin, finish)


def convert_generator(
    function: FunctionType, segment: Segment | None, manages: bool
) -> tuple[FunctionType, str] | None:
    """A generator turned inside out: a function that hands what it yields to the keyword argument of the name given.

    None where that cannot be done: of a loop's, values are sent to it, or it yields inside ``try`` or ``with``; that of
    a context manager (``manages``) takes values from another generator.
    """
    _require_known(function)
    if not (_may_manage if manages else _can_be_turned)(prepared(function.__code__)):
        return None
    begin = _beginning(function, segment, manages)
    return _bound(function, _entry(function.__code__, False, True), begin, _finish), _EMIT


def _can_be_turned(code: Prepared) -> bool:
    decoded = code.decoded
    instructions = decoded.instructions
    delegated = {index for begin, end in code.delegations.items() for index in range(begin + 1, end)}
    for index, each in enumerate(instructions):
        if index in delegated or each.name not in ("YIELD_VALUE", "GET_YIELD_FROM_ITER", "SEND"):
            continue
        handler = decoded.handler(index)
        if handler is not None and instructions[handler.target].name != "STOPITERATION_ERROR":
            return False
        if index not in code.delegations and (each.name != "YIELD_VALUE" or instructions[index + 1].name != "POP_TOP"):
            return False
    return True


def _may_manage(code: Prepared) -> bool:
    return all(each.name not in ("GET_YIELD_FROM_ITER", "SEND") for each in code.decoded.instructions)


def resuming(code: CodeType, action: Callable[..., Any], is_rewritten: bool) -> FunctionType:
    """A function of any values, by the name and in the file of the user's, that does something of ours."""

    def entry(*values: Any) -> Any:
        return action(*values)

    marks = (REWRITTEN if is_rewritten else RESUMES,)
    made = FunctionType(labelled(entry.__code__, code, None, marks), _NAMES, code.co_name, None, entry.__closure__)
    made.__qualname__ = code.co_qualname
    return made


_NAMES = {"__name__": "stillgraph.bytecode.entry.convert", "__builtins__": __builtins__}


def _require_known(function: FunctionType) -> None:
    code = function.__code__
    if code.co_flags & _ASYNCHRONOUS:
        hint = "Await outside, and pass what comes of it to a plain function (def), which may be static."
        raise refuse("SG103", f"'{function.__name__}' is asynchronous", location=start_of(code), hint=hint)
    try:
        instructions = prepared(code).decoded.instructions
    except UnknownInstruction as unknown:
        message = f"'{function.__name__}' has an instruction that is not known: {unknown}"
        raise refuse("SG106", message, location=start_of(code)) from None
    for each in instructions:
        if each.name in REFUSED:
            message = f"'{function.__name__}' cannot be interpreted: {REFUSED[each.name]} ({each.name})"
            raise refuse("SG106", message, location=start_of(code))


def _beginning(function: FunctionType, segment: Segment | None, manages: bool = False) -> Callable[..., Frame]:
    def begin(values: tuple[Any, ...], emit: Any = None) -> Frame:
        frame = Frame(function, emit=emit, manages=manages, segment=segment)
        capture = session()
        if capture is not None and frame.is_generator:
            frame.made_in = weakref.ref(capture)
            if segment is not None:
                segment.begins(frame)
        if function.__code__.co_flags & inspect.CO_VARKEYWORDS:  # the last parameter
            values = (*values[:-1], received(values[-1]))
        for cell, value in zip(frame.slots, values):
            cell.cell_contents = value
        return frame

    return begin


def _finish(frame: Frame) -> Any:
    return finished(run(frame)) if frame.segment is None else run_in(frame.segment, frame)


def _bound(function: FunctionType, entry: CodeType, begin: Any, finish: Any) -> FunctionType:
    supplied = {_BEGIN: begin, _RUN: finish}
    closure = tuple([CellType(supplied[name]) for name in entry.co_freevars])
    made = FunctionType(entry, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__doc__, made.__module__ = function.__qualname__, function.__doc__, function.__module__
    made.__dict__.update(function.__dict__)
    return made


_entries: IdentityCache[CodeType, CodeType] = IdentityCache()


def _entry(code: CodeType, is_generator: bool, turned: bool) -> CodeType:
    """The code of the function that is made, kept for as long as the user's code lives."""

    def made() -> CodeType:
        return labelled(_compiled(code, is_generator, turned), code, None, (REWRITTEN,))

    return _entries.get(code, made, (is_generator, turned))


_RETURNS = f"        return {_RUN}({HELD})\n"
_GENERATES = f"""
        while {_RUN}({HELD}):
            try:
                {HELD}.push((yield {HELD}.give()))
            except BaseException as stillgraph_error:
                {HELD}.throw(stillgraph_error)
        return {HELD}.give()
"""


def _compiled(code: CodeType, is_generator: bool, turned: bool) -> CodeType:
    """A function with the parameters of a code object; of a comprehension's, whose one has no name, by another."""
    names = [f"implicit_{name[1:]}" if name.startswith(".") else name for name in code.co_varnames]
    plain, only = code.co_argcount, code.co_kwonlyargcount
    parts = names[:plain]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    count = plain + only
    rest = [""] * 2
    if code.co_flags & inspect.CO_VARARGS:
        rest[0] = names[count]
        count += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        rest[1] = names[count]
        count += 1
    keywords = [*names[plain : plain + only], *([_EMIT] if turned else [])]
    if rest[0] or keywords:
        parts.append(f"*{rest[0]}")
    parts += keywords
    if rest[1]:
        parts.append(f"**{rest[1]}")
    values = "".join(f"{name}, " for name in names[:count])
    emit = f", {_EMIT}" if turned else ""
    text = (
        f"def factory({_BEGIN}, {_RUN}):\n"
        f"    def entry({', '.join(parts)}):\n"
        f"        {HELD} = {_BEGIN}(({values}){emit})\n"
        f"{_GENERATES if is_generator else _RETURNS}"
        f"    return entry\n"
    )
    factory = next(each for each in compile(text, "<entry>", "exec").co_consts if isinstance(each, CodeType))
    return next(each for each in factory.co_consts if isinstance(each, CodeType))
