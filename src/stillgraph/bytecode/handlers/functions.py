"""Calls, the functions that are made, imports, and what a class body is made with."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
from types import BuiltinFunctionType, CellType, CodeType, FunctionType
from typing import Any

from stillgraph.bytecode.code.decode import decode
from stillgraph.bytecode.machine.frame import NULL, Frame, Handler
from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.bytecode.machine.parcels import read
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.calls.arguments import keywords
from stillgraph.operators.calls.calls import call
from stillgraph.operators.consumers.displays import displayed
from stillgraph.operators.objects.variables import evaluated, require_set
from stillgraph.trace.capture.session import session
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.callables import contents


# ---- calls
def _call(frame: Frame, count: int) -> None:
    _called(frame, frame.take(count), {})


def _call_kw(frame: Frame, count: int) -> None:
    names = frame.pop()
    args = frame.take(count)
    split = len(args) - len(names)
    _called(frame, args[:split], dict(zip(names, args[split:])))


def _call_ex(frame: Frame, has_keywords: bool) -> None:
    kwargs = frame.pop() if has_keywords else {}
    args = frame.pop()
    _called(frame, args if is_exactly(args, (tuple, list)) else frame.act(displayed, args), kwargs)


def _called(frame: Frame, args: Any, kwargs: Any) -> None:
    """A call. Its function and first argument are below the arguments, or one of them is nothing."""
    second, first = frame.pop(), frame.pop()
    if first is NULL:
        function = second
    elif second is NULL:
        function = first
    else:
        function, args = first, [second, *args]
    if session() is None and type(args) is list and any(type(each) is Iteration for each in args):
        args = [each.iterator() if type(each) is Iteration else each for each in args]  # of a generator's expression
    own = _of_the_frame(frame, function, args, kwargs)
    if own is not None:
        frame.push(frame.act(own))
        return
    if session() is None or not (hasattr(type(args), "__iter__") or hasattr(type(args), "__getitem__")):
        frame.push(frame.line("call")(function, args, kwargs))
    else:
        frame.push(frame.act(call, function, *args, **keywords(kwargs)))


def _of_the_frame(frame: Frame, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What does the work of a built-in function that looks at the frame which calls it; None for any other."""
    if function is super and not args and not kwargs:
        return functools.partial(_super, frame)
    if not isinstance(function, BuiltinFunctionType):
        return None
    known: Any = function
    if known in (builtins.eval, builtins.exec) and is_exactly(args, (list, tuple)) and args:
        source, names, variables = (*args, None, None)[:3]
        if names is None and "globals" not in kwargs and len(args) <= 3:
            variables = frame.namespace() if variables is None and "locals" not in kwargs else variables
            given = (source, frame.globals) if "locals" in kwargs else (source, frame.globals, variables)
            return functools.partial(known, evaluated(given[0]), *given[1:], **kwargs)
        return None
    if kwargs:
        return None
    if known is builtins.globals and not args:
        return lambda: frame.globals
    if known in (builtins.locals, builtins.vars) and not args:
        return frame.namespace
    if known is builtins.dir and not args:
        return lambda: sorted(frame.namespace())
    return None


def _super(frame: Frame) -> Any:
    """``super()``, asked in the order in which Python asks."""
    code, names = frame.code, frame.prepared.decoded.slots
    if not code.co_argcount:
        raise RuntimeError("super(): no arguments")
    receiver = read(contents(frame.slots[0]))
    if code.co_varnames[0] in code.co_cellvars and receiver is not MISSING:
        receiver = read(contents(receiver))
    if receiver is MISSING:
        raise RuntimeError("super(): arg[0] deleted")
    if "__class__" not in names:
        raise RuntimeError("super(): __class__ cell not found")
    cell = read(contents(frame.slots[names.index("__class__")]))
    kind = MISSING if cell is MISSING else contents(cell)
    if kind is MISSING:
        raise RuntimeError("super(): empty __class__ cell")
    return super(kind, receiver)


# ---- functions
def _make_function(frame: Frame, _: Any) -> None:
    code: CodeType = frame.pop()
    made = FunctionType(code, frame.globals, code.co_name, None, tuple([CellType() for _ in code.co_freevars]))
    _note_made(made)
    frame.push(made)


def _note_made(function: FunctionType) -> None:
    capture = session()
    if capture is not None:
        capture.conversion.made_functions.add(function)


def _set_function_attribute(frame: Frame, kind: int) -> None:
    function, value = frame.pop(), frame.pop()
    if _is_from_before(function):  # a segment has begun to make it: what is written to it here, no program writes
        function = _closed(function, function.__closure__ or ())
        _note_made(function)
    if kind == 1:
        function.__defaults__ = value
    elif kind == 2:
        function.__kwdefaults__ = value
    elif kind == 4:
        pairs = zip(value[::2], value[1::2]) if isinstance(value, tuple) else value
        function.__annotations__ = dict(pairs)
    else:
        if _is_of_a_class(function.__code__):  # which Python runs
            read_at_once = _read_at_once(function.__code__)
            cells = zip(function.__code__.co_freevars, value)
            require_set({name: contents(cell) for name, cell in cells if name in read_at_once}, "the body of a class")
        function = _closed(function, value)
        _note_made(function)
    frame.push(function)


def _is_of_a_class(code: CodeType) -> bool:
    return not code.co_flags & inspect.CO_NEWLOCALS


def _read_at_once(code: CodeType) -> set[str]:
    """The variables of cells that the body of a class reads as it is run, in its comprehensions and classes as well."""
    decoded = decode(code)
    found = {decoded.slots[each.argument] for each in decoded.instructions if each.name in _READS_OF_CELLS}
    inside = (each for each in code.co_consts if isinstance(each, CodeType))
    return found.union(*(_read_at_once(c) for c in inside if _is_of_a_class(c) or c.co_name in _COMPREHENSIONS))


_READS_OF_CELLS = frozenset({"LOAD_FROM_DICT_OR_DEREF", "LOAD_DEREF"})
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def _is_from_before(function: FunctionType) -> bool:
    capture = session()
    return capture is not None and function not in capture.conversion.made_functions


def _closed(function: FunctionType, closure: tuple[Any, ...]) -> FunctionType:
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
    made.__kwdefaults__ = function.__kwdefaults__
    if function.__annotations__:
        made.__annotations__ = function.__annotations__
    return made


def _load_build_class(frame: Frame, _: Any) -> None:
    frame.push(builtins.__build_class__)


# ---- imports
def _import_name(frame: Frame, name: str) -> None:
    names, level = frame.pop(), frame.pop()
    frame.push(frame.act(_imported, frame, name, names, level))


def _imported(frame: Frame, name: str, names: Any, level: int) -> Any:
    make = frame.builtins.get("__import__", importlib.__import__)
    return make(name, frame.globals, None, names, level)


def _import_from(frame: Frame, name: str) -> None:
    frame.push(frame.act(_member, frame.peek(), name))


def _member(module: Any, name: str) -> Any:
    """What ``from module import name`` finds in a module that has been imported: Python does it, asked for that one."""
    namespace = {"__builtins__": {"__import__": lambda *_: module}}
    return FunctionType(_importing(name), namespace)()


@functools.lru_cache(maxsize=256)
def _importing(name: str) -> CodeType:
    text = f"def member():\n    from module import {name} as found\n    return found"
    made = compile(text, f"{__file__}: an import", "exec")
    return next(each for each in made.co_consts if isinstance(each, CodeType))


HANDLERS: dict[str, Handler] = {
    "CALL": _call,
    "CALL_KW": _call_kw,
    "CALL_FUNCTION_EX": _call_ex,
    "MAKE_FUNCTION": _make_function,
    "SET_FUNCTION_ATTRIBUTE": _set_function_attribute,
    "LOAD_BUILD_CLASS": _load_build_class,
    "IMPORT_NAME": _import_name,
    "IMPORT_FROM": _import_from,
}
