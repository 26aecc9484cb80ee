"""What is called and was made on a path (functions, methods, partials), taken apart for a join."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any

from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.containers import Parts


@dataclass(frozen=True)
class _Made:
    """What two functions have to have in common to be one with other variables."""

    code: CodeType
    globals: int  # the id of the namespace
    name: str
    qualname: str
    doc: str | None
    module: str
    defaults: int  # how many
    keywords: tuple[str, ...] | None  # the parameters by keyword that have defaults
    attributes: tuple[str, ...]


def callable_parts(value: Any) -> Parts | None:
    """The parts of a function, a variable that functions share, a method or a partial; None for anything else."""
    split = _SPLIT.get(type(value))
    return None if split is None else split(value)


def cell_parts(contents: Any) -> Parts:
    """The one part of a variable that functions share: what it holds, or `MISSING`."""
    return Parts(CellType, None, ("",), (contents,), lambda new: CellType() if new[0] is MISSING else CellType(new[0]))


def _method_parts(method: MethodType) -> Parts:
    names, children = (".__func__", ".__self__"), (method.__func__, method.__self__)
    return Parts(MethodType, None, names, children, lambda new: MethodType(*new), attributes=True)


def _partial_parts(partial: functools.partial[Any]) -> Parts:
    count, keywords, attributes = len(partial.args), tuple(partial.keywords), tuple(vars(partial))

    def rebuild(children: list[Any]) -> functools.partial[Any]:
        function, *rest = children
        named = dict(zip(keywords, rest[count:]))
        made = functools.partial(function, *rest[:count], **named)
        vars(made).update(zip(attributes, rest[count + len(keywords) :]))
        return made

    parts = partial.func, *partial.args, *partial.keywords.values(), *vars(partial).values()
    positions = [f".args[{number}]" for number in range(count)]
    names = ".func", *positions, *(f".{name}" for name in (*keywords, *attributes))
    return Parts(functools.partial, (count, keywords, attributes), names, parts, rebuild, attributes=True)


def contents(cell: CellType) -> Any:
    """What a cell holds, or `MISSING`."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _function_parts(function: FunctionType) -> Parts:
    code, names = function.__code__, function.__code__.co_freevars
    defaults, keywords, attributes = function.__defaults__ or (), function.__kwdefaults__, function.__dict__
    cells, count = function.__closure__ or (), len(defaults)
    context = _Made(
        code,
        id(function.__globals__),
        function.__name__,
        function.__qualname__,
        function.__doc__,
        function.__module__,
        count,
        None if keywords is None else tuple(keywords),
        tuple(attributes),
    )

    def rebuild(children: list[Any]) -> FunctionType:
        closure, rest = tuple(children[: len(cells)]), children[len(cells) :]
        made = FunctionType(code, function.__globals__, context.name, tuple(rest[:count]) or None, closure or None)
        for attribute in functools.WRAPPER_ASSIGNMENTS:  # annotations, and type parameters from Python 3.12
            setattr(made, attribute, getattr(function, attribute))
        made.__name__, made.__qualname__ = context.name, context.qualname
        made.__doc__, made.__module__ = context.doc, context.module
        if context.keywords is not None:
            made.__kwdefaults__ = dict(zip(context.keywords, rest[count:]))
        made.__dict__.update(zip(context.attributes, rest[count + len(keywords or ()) :]))
        return made

    parts = *cells, *defaults, *(keywords or {}).values(), *attributes.values()
    kept = *names, *(f"default {number}" for number in range(count)), *(keywords or ()), *attributes
    return Parts(FunctionType, context, tuple(f".{name}" for name in kept), parts, rebuild, attributes=True)


_SPLIT: Mapping[type, Callable[[Any], Parts]] = MappingProxyType(
    {
        CellType: lambda cell: cell_parts(contents(cell)),
        FunctionType: _function_parts,
        MethodType: _method_parts,
        functools.partial: _partial_parts,
    }
)

CALLABLES = frozenset(_SPLIT)


def are_unlike(first: Parts, second: Parts) -> bool:
    """Whether two things that may be called are functions of other code, or methods of other classes."""
    return first.type in CALLABLES and first.context != second.context
