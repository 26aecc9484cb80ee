"""Which callables may draw from the iterators that they are given, without the capture seeing it."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Iterator
from types import BuiltinMethodType, FunctionType, MethodDescriptorType, MethodWrapperType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_standard_library
from stillgraph.core.lookup import class_member, is_exactly
from stillgraph.operators.conditions.given import tells_length
from stillgraph.operators.conditions.methods import keeps_unknown, method_of
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.watched import iterated, run_over
from stillgraph.operators.dispatch import call, own_items
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.effects.iterators import Fresh, is_advanced_unseen, lists_behind, require_known
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import StagedNumber, kind_of

_LOOKS = (
    *(isinstance, issubclass, type, id, hasattr, getattr, setattr, delattr, callable, repr, str, ascii, format, hash),
    *(iter, vars, dir, print, super, bool, len, operator.is_, operator.is_not, operator.not_, operator.truth),
    functools.partial,
)
_STORES = frozenset(
    {
        *("append", "appendleft", "insert", "add", "setdefault", "get", "pop", "put", "put_nowait", "__setitem__"),
        *("remove", "discard", "index", "count", "__setattr__", "__eq__", "__ne__", "__contains__"),
    }
)
_ADVANCES = frozenset({"__next__", "send", "throw", "close"})
_LOOKING = (copy.copy, copy.deepcopy, operator.length_hint)
_OF_PYTHON = ("builtins", "itertools", "collections", "functools", "array")
_PASSES_ON = ("typing", "inspect", "types", "copy", "contextlib", "functools", "logging", "warnings", "weakref")


def iterable_of(value: Any) -> Any:
    """What may be None where it is something else; where it is None, the program raises what Python raises."""
    capture = session()
    if capture is None or not capture.has_optionals or not capture.may_be_none(value):
        return value
    return capture.with_or_without(value, functools.partial(_required, capture))


def _required(capture: Session, value: Any) -> Any:
    if value is not None and not isinstance(value, StagedNumber):
        return value
    kind = type(None) if value is None else kind_of(value)
    emit_raise(capture, TypeError(f"'{kind.__name__}' object is not iterable"))
    raise Diverged


def drawn(values: Any) -> Any:
    """What Python runs over as a whole, for ``[*values]``, ``f(*values)`` and ``a, b = values``.

    Raises:
        CaptureError: it is an iterator, or an object of the user's that gives one, and not the capture's to advance.
    """
    capture = session()
    if capture is None:
        return values
    method = method_of(values, "__iter__")
    if method is not None:
        values = call(method, values)
    values = run_by_loop(values)
    if method_of(values, "__next__") is not None:
        found = ByMethod(values)
        capture.iterators.made(found, ())
        return found
    return capture.iterators.to_draw_from(values)


def run_by_loop(iterator: Any) -> Any:
    """A generator in the place of an iterator of the user's of which only the run knows the end; else itself."""
    method, capture = method_of(iterator, "__next__"), session()
    if method is None and class_member(type(iterator), "__iter__") is None and keeps_unknown(iterator):
        return own_items(iterator) if method_of(iterator, "__getitem__") is not None else iterator
    known = method is None or capture is None or method.__code__ not in capture.knowledge.iterators
    return iterator if known else own_items(iterator)


def listed(values: Any) -> Any:
    """As `drawn`, for what Python makes a list or tuple of: it asks first how much that will be."""
    found = drawn(values)
    if session() is None or not tells_length(values):
        return found
    call(operator.length_hint, values)
    return found if isinstance(found, (Indexed, Fresh)) else items_of(found)


def items(values: Any) -> Any:
    """What a loop runs over that stays Python's: each element by itself, of a list of unknown length as well.

    Raises:
        CaptureError: as `drawn`; in the loop, where only the run knows whether there is another element.
    """
    if session() is None or isinstance(values, torch.Tensor):
        return values
    if is_exactly(values, (list, tuple)):
        return _each(values)
    sequence = run_over(values)
    return drawn(values) if sequence is None else sequence.begin()


def _each(values: Any) -> Iterator[Any]:
    for value in values:
        if type(value) is StagedSpread:
            message = "the number of iterations is only known at run time here"
            raise refuse("SG206", message, location=here(), hint="Loop over a list of it: list(...).")
        yield value


def items_of(iterable: Any) -> Iterator[Any]:
    """What a loop draws from an iterable: by the method of an object of the user's, followed like any other."""
    iterator = iter(iterable)
    if method_of(iterator, "__next__") is not None:
        return ByMethod(iterator)
    is_asked = session() is not None and is_advanced_unseen(iterable) and bool(lists_behind(iterable))
    return _from_lists(iterator) if is_asked else iterator


def _from_lists(iterator: Iterator[Any]) -> Iterator[Any]:
    while True:
        require_known(iterator)
        try:
            item = next(iterator)
        except StopIteration:
            return
        yield item


class ByMethod(Fresh):
    """What draws from an iterator of the user's: its method is followed."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next_of(self._iterator)


def next_of(iterator: Any) -> Any:
    """The next item of an iterator.

    Raises:
        Restart: the run may raise something each time, for many times: a loop that can be staged is to draw them.
    """
    method = method_of(iterator, "__next__")
    capture = session()
    if method is None or capture is None:
        if capture is not None and is_advanced_unseen(iterator):
            require_known(iterator)
        return next(iterator)
    raises = capture.raises
    capture.iterators.asking.append(method.__code__)
    try:
        item = call(method, iterator)
    finally:
        capture.iterators.asking.pop()
    if capture.raises > raises:
        capture.iterators.may_raise(method.__code__)
    return item


def begun(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call, with generators for objects that it would ask for these: their code is followed, then.

    So is what ``iter(function, sentinel)`` calls.

    Args:
        function: what is called.
        args: what it is given.
    """
    if function is iter and len(args) == 2 and callable(args[0]):
        return (_called_until(*args),)
    first = next((number for each, number in _ASKING if function is each), None)
    if first is None:
        return args
    return (*args[:first], *map(_generator_of, args[first:]))


def _called_until(function: Any, sentinel: Any) -> Iterator[Any]:
    while True:
        item = call(function)
        if sentinel is item or sentinel == item:
            return
        yield item


def _generator_of(value: Any) -> Any:
    method = method_of(value, "__iter__")
    return iterated(value) if method is None else call(method, value)


_ASKING = ((enumerate, 0), (zip, 0), (iter, 0), (map, 1), (filter, 1))  # from which argument on they ask for iterators


Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""What is called, and what it is given."""


def drawing_call(
    capture: Session, function: Any, has_meaning: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """A call of Python's own code that is given values, or of a method of an iterator, as the capture makes it.

    Args:
        capture: the session.
        function: what is called.
        has_meaning: whether the capture has an operator for it.
        args, kwargs: what it is given.

    Returns:
        The call, with what stands for iterators from outside.

    Raises:
        CaptureError: it may advance an iterator that is not the capture's to advance.
    """
    draw = capture.iterators.to_draw_from
    if isinstance(function, (BuiltinMethodType, MethodWrapperType)):
        capture.iterators.require_known(function.__self__)
        if function.__name__ in _ADVANCES:
            function = getattr(draw(function.__self__), function.__name__)
        elif function.__name__ != "__iter__":
            capture.iterators.before_looking(function.__self__)
    if any(function is each for each in _LOOKING):
        capture.iterators.require_known(*args)
        for each in args:
            capture.iterators.before_looking(each)
    elif _may_draw(capture, function, has_meaning):
        return function, tuple(map(draw, args)), {name: draw(value) for name, value in kwargs.items()}
    return function, args, kwargs


def _may_draw(capture: Session, function: Any, has_meaning: bool) -> bool:
    if function is next or any(function is each for each in _LOOKS):  # the former sees to it itself
        return False
    if isinstance(function, type):
        return function.__module__ in _OF_PYTHON
    if isinstance(function, (BuiltinMethodType, MethodDescriptorType, MethodWrapperType)):
        return function.__name__ not in _STORES
    if isinstance(function, FunctionType) and not has_meaning:
        library = is_standard_library(function.__code__.co_filename)
        return library and function.__module__ not in _PASSES_ON and not capture.conversion.wants(function)
    return has_meaning
