"""Calls, the functions that are made, imports, and what a class body is made with."""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from types import BuiltinFunctionType, CellType, CodeType, FunctionType
from typing import Any

from stillgraph.bytecode.frame import NULL, Frame, Handler, contents
from stillgraph.operators.calls import call
from stillgraph.trace.journal import MISSING
from stillgraph.trace.session import session


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
    _called(frame, args, kwargs)


def _called(frame: Frame, args: Any, kwargs: Any) -> None:
    """A call. Its function and first argument are below the arguments, or one of them is nothing."""
    second, first = frame.pop(), frame.pop()
    if first is NULL:
        function = second
    elif second is NULL:
        function = first
    else:
        function, args = first, [second, *args]
    own = _of_the_frame(frame, function, args, kwargs)
    if own is not None:
        frame.push(frame.act(own))
        return
    frame.push(frame.act(_called_with, function, args, kwargs))


def _called_with(function: Any, args: Any, kwargs: Any) -> Any:
    if type(args) not in (list, tuple) and not hasattr(type(args), "__iter__"):
        name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}()"
        raise TypeError(f"{name} argument after * must be an iterable, not {type(args).__name__}")
    return call(function, *args, **kwargs)


def _of_the_frame(frame: Frame, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What does the work of a built-in function that looks at the frame which calls it; None for any other."""
    if function is super and not args and not kwargs:
        return functools.partial(_super, frame)
    if kwargs or not isinstance(function, BuiltinFunctionType):
        return None
    known: Any = function
    if known is builtins.globals and not args:
        return lambda: frame.globals
    if known in (builtins.locals, builtins.vars) and not args:
        return frame.variables
    if known is builtins.dir and not args:
        return lambda: sorted(frame.variables())
    if known in (builtins.eval, builtins.exec) and len(args) == 1:
        return functools.partial(known, args[0], frame.globals, frame.variables())
    return None


def _super(frame: Frame) -> Any:
    names = frame.prepared.decoded.slots
    if "__class__" not in names:
        raise RuntimeError("super(): __class__ cell not found")
    cell = contents(frame.slots[names.index("__class__")])
    kind = MISSING if cell is MISSING else contents(cell)
    if kind is MISSING:
        raise RuntimeError("super(): empty __class__ cell")
    if not frame.code.co_argcount:
        raise RuntimeError("super(): no arguments")
    receiver = contents(frame.slots[0])
    if frame.code.co_varnames[0] in frame.code.co_cellvars and receiver is not MISSING:
        receiver = contents(receiver)
    if receiver is MISSING:
        raise RuntimeError("super(): arg[0] deleted")
    return super(kind, receiver)


# ---- functions
def _make_function(frame: Frame, _: Any) -> None:
    code: CodeType = frame.pop()
    made = FunctionType(code, frame.globals, code.co_name, None, tuple(CellType() for _ in code.co_freevars))
    made.__qualname__ = code.co_qualname
    made.__doc__ = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else None
    _note_made(made)
    frame.push(made)



def _note_made(function: FunctionType) -> None:
    capture = session()
    if capture is not None:
        capture.made_functions.add(function)


def _set_function_attribute(frame: Frame, kind: int) -> None:
    function, value = frame.pop(), frame.pop()
    if kind == 1:
        function.__defaults__ = value
    elif kind == 2:
        function.__kwdefaults__ = value
    elif kind == 4:
        pairs = zip(value[::2], value[1::2]) if isinstance(value, tuple) else value
        function.__annotations__ = dict(pairs)
    else:
        function = _closed(function, value)
        _note_made(function)
    frame.push(function)


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
    try:
        return getattr(module, name)
    except AttributeError:
        own = getattr(module, "__name__", "<unknown module name>")
        found = sys.modules.get(f"{own}.{name}")
        if found is not None:
            return found
        file = getattr(module, "__file__", None) or "unknown location"
        message = f"cannot import name {name!r} from {own!r} ({file})"
        raise ImportError(message, name=own, path=getattr(module, "__file__", None)) from None


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
