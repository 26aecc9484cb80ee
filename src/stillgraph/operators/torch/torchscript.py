"""What TorchScript made, when captured code calls it: the Python behind it is followed, where torch keeps it.

With `trace.compiled`, the one module that knows where torch.jit keeps what it compiled.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import torch
from torch._jit_internal import FunctionModifiers, is_scripting
from torch.jit._script import RecursiveScriptModule
from torch.jit._trace import TracedModule

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_torch
from stillgraph.operators.dispatch import call
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.code.compiled import original_of
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.values.containers import split
from stillgraph.trace.values.lists import StagedList, StagedSpread
from stillgraph.trace.values.numbers import StagedNumber, kind_of

Call = Callable[..., Any]

_HINT = "Give stillgraph the Python that was compiled: "


# ---- what torch.jit made
def class_behind(module: Any) -> type | None:
    """The Python class that a scripted module was made of, if that happened in this process."""
    if not isinstance(module, RecursiveScriptModule):
        return type(module) if isinstance(module, torch.jit.ScriptModule) else None
    found = getattr(module.__dict__.get("_concrete_type"), "py_class", None)
    return found if isinstance(found, type) else None


def refuse_module(module: Any) -> BaseException:
    """The error that says what to give instead of a module, or method of one, that torch.jit made."""
    name, hint = _told(module)
    location = here() if session() is not None else None
    known = location if location is not None and not location.file.startswith("<unknown") else None
    message = f"{name} is called: its Python is gone, and what it holds is out of sight"
    return refuse("SG105", message, location=known, hint=hint)


def _told(module: Any) -> tuple[str, str]:
    """What a module is, and what to give instead of it."""
    if isinstance(module, torch.ScriptMethod):
        name = module.owner._type().qualified_name().rpartition(".")[2]
        return f"the method {module.name} of a scripted {name}", f"{_HINT}{name} without torch.jit.script."
    if not isinstance(module, (RecursiveScriptModule, TracedModule)):
        hint = "Derive the class from torch.nn.Module, and leave out @torch.jit.script_method."
        return f"{type(module).__name__}, which derives from torch.jit.ScriptModule,", hint
    name, found = module.original_name, class_behind(module)
    made = "torch.jit.trace" if isinstance(module, TracedModule) else "torch.jit.script"
    own = f"the {name} of {found.__module__}" if found is not None and made != "torch.jit.trace" else f"the {name}"
    hint = f"{_HINT}{own}, without {made}; load_state_dict(scripted.state_dict()) gives it the weights."
    return f"what {made} made of a module of the class {name}", hint


# ---- calls
def call_compiled(
    capture: Session, function: torch.jit.ScriptFunction[Any, Any], args: Any, kwargs: Any
) -> Any:
    """Call what ``torch.jit.script`` or ``torch.jit.trace`` made of a function."""
    original = original_of(function)
    if original is not None:
        bound = _bound(capture, function, original, args, kwargs)
        with _scripting(capture, True):
            return call(original, *bound.args, **bound.kwargs)
    name = function.qualified_name.rpartition(".")[2]
    for value in (*args, *kwargs.values()):
        _refuse_staged_inside(value, name)
    try:
        return function(*args, **kwargs)
    except RuntimeError as error:
        message = f"what torch.jit made of '{name}' decides by a tensor, and only its compiled code is there"
        raise refuse("SG105", message, location=here(), hint=f"{_HINT}the function itself.") from error


@contextlib.contextmanager
def _scripting(capture: Session, on: bool) -> Iterator[None]:
    before, capture.scripting = capture.scripting, on
    try:
        yield
    finally:
        capture.scripting = before


def left_to_python(capture: Session, function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function marked with ``torch.jit.ignore`` or ``unused`` from one that TorchScript compiled."""
    if modifier(function) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP):
        message = f"'{function.__name__}' is marked torch.jit.unused, which TorchScript raises an error for"
        raise refuse("SG105", message, location=here(), hint="Leave out torch.jit.script: Python then calls it.")
    with _scripting(capture, False):
        return call(function, *map(_copied, args), **{name: _copied(value) for name, value in kwargs.items()})


def modifier(function: Any) -> Any:
    """What ``torch.jit.unused``, ``ignore`` or ``export`` left on a function; None if nothing did."""
    return getattr(function, "_torchscript_modifier", None)


def exported_methods(module: Any) -> list[str]:
    """The names of a module's methods that are marked with ``torch.jit.export``, in the order of the source."""
    kind = class_behind(module) or type(module)
    methods = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return [name for name, value in methods.items() if modifier(value) is FunctionModifiers.EXPORT]


def is_left_to_python(function: Any) -> bool:
    """Whether TorchScript does not compile a function that is called by one it compiles."""
    return modifier(function) in (FunctionModifiers.IGNORE, FunctionModifiers.UNUSED, FunctionModifiers._DROP)


# ---- arguments, as TorchScript takes them
def _bound(
    capture: Session, function: Any, original: FunctionType, args: Any, kwargs: Any
) -> inspect.BoundArguments:
    """The arguments as they reach compiled code: lists and dicts are copies, a declared float is a float.

    Compiled code that calls compiled code hands over what it has; only what is left out is made to fit there.
    """
    bound = inspect.signature(original).bind(*args, **kwargs)
    given = frozenset(bound.arguments) if capture.scripting else frozenset()
    bound.apply_defaults()
    for argument in function.schema.arguments:
        if argument.name not in given:
            value = bound.arguments[argument.name]
            bound.arguments[argument.name] = _taken(argument.type, value, argument.name)
    return bound


def with_float_defaults(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call in compiled code: a declared float is one there, though its default be written ``1``."""
    code = getattr(function, "__code__", None) if isinstance(function, (FunctionType, MethodType)) else None
    if code is None or is_torch(code.co_filename):
        return kwargs
    parameters = list(inspect.signature(function).parameters.values())[len(args) :]
    declared = [each for each in parameters if each.annotation in (float, "float") and type(each.default) is int]
    return {**{each.name: float(each.default) for each in declared}, **kwargs}


def _taken(declared: Any, value: Any, name: str) -> Any:
    kind = declared.kind()
    if kind == "OptionalType":
        return None if value is None else _taken(declared.getElementType(), value, name)
    if isinstance(value, (StagedSpread, StagedList)):
        message = f"a list of unknown length is passed as '{name}' to a function that torch.jit.script compiled"
        raise refuse("SG105", message, location=here(), hint=f"{_HINT}the function itself.")
    if kind == "ListType" and isinstance(value, (list, tuple)):
        return [_taken(declared.getElementType(), item, name) for item in value]
    if kind == "DictType" and isinstance(value, dict):
        return {key: _taken(declared.getValueType(), item, name) for key, item in value.items()}
    if kind == "TupleType" and type(value) is tuple:
        return tuple(_taken(each, item, name) for each, item in zip(declared.elements(), value, strict=True))
    if kind not in _NUMBERS:
        return value
    if isinstance(value, StagedNumber) and capturing().may_be_none(value):
        message = f"'{name}' of a scripted function is given a number that may be None"
        raise refuse("SG105", message, location=here(), hint=f"{_HINT}the function itself.")
    given = kind_of(value) if isinstance(value, StagedNumber) else type(value)
    if given not in _NUMBERS[kind]:
        message = f"'{name}' of a scripted function is declared {declared}, and given {given.__name__}"
        raise refuse("SG105", message, location=here(), hint="Pass what is declared.")
    return value if given is _NUMBERS[kind][0] else call(_NUMBERS[kind][0], value)


_NUMBERS: dict[str, tuple[type, ...]] = {"FloatType": (float, int, bool), "IntType": (int, bool), "BoolType": (bool,)}


def _refuse_staged_inside(value: Any, name: str) -> None:
    """Refuse numbers that only the run knows: compiled code takes tensors and Python's own numbers."""
    if isinstance(value, (StagedNumber, StagedSpread, StagedList)):
        message = f"what torch.jit made of '{name}' is given a number or list that only the run knows"
        raise refuse("SG105", message, location=here(), hint=f"{_HINT}the function itself.")
    parts = None if is_fake(value) else split(value)
    for child in () if parts is None else parts.children:
        _refuse_staged_inside(child, name)


def _copied(value: Any) -> Any:
    """What Python gets of a compiled function's value: lists and dicts are copies."""
    if isinstance(value, (StagedSpread, StagedList)):
        message = "a list of unknown length goes from a scripted function to one that torch.jit.ignore leaves to Python"
        raise refuse("SG105", message, location=here(), hint=f"{_HINT}the function itself.")
    if type(value) is list:
        return [_copied(item) for item in value]
    return {key: _copied(item) for key, item in value.items()} if type(value) is dict else value


# ---- torch.jit's own functions
def _is_scripting() -> bool:
    """``torch.jit.is_scripting()``: False, as in eager PyTorch, but for code that TorchScript compiled."""
    capture = session()
    return capture is not None and capture.scripting


def _fork(function: Any, *args: Any, **kwargs: Any) -> torch.futures.Future[Any]:
    """``torch.jit.fork``: outside of TorchScript it makes the call at once."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(call(function, *args, **kwargs))
    return future


MEANINGS: dict[Any, Call] = {is_scripting: _is_scripting, torch.jit.fork: _fork, torch.jit._fork: _fork}
