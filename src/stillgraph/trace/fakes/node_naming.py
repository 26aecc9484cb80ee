"""How a torch call is spelled as a node of the graph, and named in messages."""

from __future__ import annotations

import inspect
import keyword
import operator
from collections.abc import Callable
from typing import Any

import torch

from stillgraph.core.files import is_our_module
from stillgraph.program.facts.schemas import parameters_of

_T = torch.Tensor

_OPERATORS: dict[Any, Callable[..., Any]] = {
    _T.__getitem__: operator.getitem,
    _T.__setitem__: operator.setitem,
    _T.__eq__: operator.eq,
    _T.__invert__: operator.invert,
    _T.__and__: operator.and_,
    _T.__or__: operator.or_,
    _T.__xor__: operator.xor,
    _T.__floordiv__: operator.floordiv,
    _T.__pow__: operator.pow,
}
BINARY_METHODS: dict[Any, Callable[..., Any]] = {
    _T.add: operator.add,
    _T.sub: operator.sub,
    _T.mul: operator.mul,
    _T.matmul: operator.matmul,
    _T.gt: operator.gt,
    _T.ge: operator.ge,
    _T.lt: operator.lt,
    _T.le: operator.le,
    _T.ne: operator.ne,
    _T.div: operator.truediv,
    _T.pow: operator.pow,
}
_REFLECTED: dict[Any, Callable[..., Any]] = {
    getattr(_T, f"__{name}__"): function
    for name, function in {
        "rsub": operator.sub,
        "rdiv": operator.truediv,
        "rtruediv": operator.truediv,
        "rpow": operator.pow,
        "rfloordiv": operator.floordiv,
        "rmod": operator.mod,
        "rmatmul": operator.matmul,
        "rlshift": operator.lshift,
        "rrshift": operator.rshift,
        "rand": operator.and_,
        "ror": operator.or_,
        "rxor": operator.xor,
    }.items()
    if hasattr(_T, f"__{name}__")
}


def decides_itself(kind: type) -> bool:
    """Whether a class of the user's, which is no tensor, says what torch's functions do with its objects."""
    if issubclass(kind, torch.Tensor) or str(kind.__module__).startswith("torch.") or is_our_module(kind.__module__):
        return False
    return isinstance(inspect.getattr_static(kind, "__torch_function__", None), (classmethod, staticmethod))


def as_node(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, tuple[Any, ...]]:
    """``(op, target, args)`` of the fx node for a torch call."""
    if func in _REFLECTED and len(args) == 2:
        return "call_function", _REFLECTED[func], (args[1], args[0])
    if func in _OPERATORS:
        return "call_function", _OPERATORS[func], args
    if func in BINARY_METHODS and len(args) == 2 and not kwargs:
        return "call_function", BINARY_METHODS[func], args
    name = getattr(func, "__name__", "")
    if getattr(_T, name, None) is func:
        return "call_method", name, args
    return "call_function", func, args


def by_position(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, of which none has a keyword of Python's for a name: code cannot spell ``from=0``."""
    if not any(map(keyword.iskeyword, kwargs)):
        return args, kwargs
    for names, defaults in parameters_of(func):
        moved = names[len(args) : max(map(names.index, filter(keyword.iskeyword, names)), default=-1) + 1]
        known = defaults | kwargs
        if any(map(keyword.iskeyword, moved)) and known.keys() >= {*moved}:
            rest = {name: value for name, value in kwargs.items() if name not in moved}
            return (*args, *(known[name] for name in moved)), rest
    return args, kwargs


def is_autograd_function(func: Any) -> bool:
    """Whether a callable is a method of a ``torch.autograd.Function``, such as ``apply``."""
    owner = getattr(func, "__self__", None)
    return isinstance(owner, type) and issubclass(owner, torch.autograd.Function)


def name_of(func: Any) -> str:
    """How a message names a torch function."""
    if is_autograd_function(func):
        return f"the forward of {func.__self__.__name__}, a torch.autograd.Function,"
    return f"torch's {getattr(func, '__name__', func)}"
