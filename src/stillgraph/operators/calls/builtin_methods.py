"""Calls of functions and bound methods written in C: what is done before one, and in its place."""

from __future__ import annotations

import collections
import contextvars
import functools
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType, MethodType, MethodWrapperType
from typing import Any, NamedTuple

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.calls.binding import is_iterable, takes_one
from stillgraph.operators.calls.making import make, refuse_spread
from stillgraph.operators.calls.python_functions import note_all, note_read
from stillgraph.operators.calls.ways import ANOTHER
from stillgraph.operators.consumers.consumers import join, known_or_list, taken
from stillgraph.operators.consumers.sorting import sort
from stillgraph.operators.containers import entries, table_methods, tables
from stillgraph.operators.containers.drawing import drawn, listed
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import as_index
from stillgraph.operators.objects import part_by_part, searching
from stillgraph.operators.objects.attribute_stores import del_past_class, set_past_class
from stillgraph.operators.objects.changes import CONTAINERS, change, needs_counterparts, note_contents
from stillgraph.operators.objects.namespaces import note_method
from stillgraph.operators.objects.stores import del_item_past_class, promote_item, set_item_past_class
from stillgraph.operators.objects.strings import fill
from stillgraph.operators.outside import randomness
from stillgraph.operators.outside.caches import refuse_counts
from stillgraph.operators.outside.foreign import before_method
from stillgraph.operators.outside.hidden_state import MUTATORS, refuse_hidden_state
from stillgraph.operators.outside.pickling import before_pickling
from stillgraph.operators.torch.functions import apply_function
from stillgraph.operators.torch.plain_arguments import is_torch_builtin
from stillgraph.polyfills import sets
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.both_sides import require_one_object
from stillgraph.trace.control_flow.narrowing import is_optional
from stillgraph.trace.effects import context_variables
from stillgraph.trace.effects.locks import WRITTEN_IN_C
from stillgraph.trace.guards.one_object import is_told_by_identity
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.sources.reads import Failure, variable_value
from stillgraph.trace.torch_rules.tensor_classes import require_plain
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import is_staged, refuse_numbers
from stillgraph.trace.values.entries import are_of_numbers, container_of, holds_unknown
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import METHODS, StagedText

Method = Any  # a BuiltinMethodType or MethodWrapperType
Args = tuple[Any, ...]
Keywords = dict[str, Any]


class Step(NamedTuple):
    """What is done before a method, or in its place.

    Attributes:
        of: the classes of receivers it is for.
        names: of the methods it is for; None for all.
        rule: gives what the call gives, or `ANOTHER`.
    """

    of: Any
    names: frozenset[str] | None
    rule: Callable[[Session, Method, Args, Keywords], Any]


def call_builtin(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """``method(*args, **kwargs)``, of a function or a bound method that is written in C."""
    receiver, name = method.__self__, method.__name__
    for of, names, rule in _STEPS:
        if (names is None or name in names) and isinstance(receiver, of):
            given = rule(capture, method, args, kwargs)
            if given is not ANOTHER:
                return given
    of = _of_elements if isinstance(receiver, _OF_ELEMENTS) else _of_no_container
    return of(capture, method, args, kwargs)


_OF_ELEMENTS = (*CONTAINERS, tuple)


def _of_elements(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    receiver, name = method.__self__, method.__name__
    is_plain = type(receiver) is list or type(receiver) is tuple
    if is_plain and name in ("pop", "insert") and args:
        args = (as_index(capture, args[0]), *args[1:])
    looked_up = is_plain and bool(args) and _decided_in_the_run(name, args[0], receiver)
    if looked_up or (lists.is_spread(receiver) and name not in lists.SAFE_METHODS):
        return lists.call_method(capture, receiver, name, args, kwargs)
    if not isinstance(receiver, CONTAINERS):
        return _of_no_container(capture, method, args, kwargs)
    if name in ("extend", "extendleft"):
        draw = listed if isinstance(receiver, list) else drawn
        args = tuple(known_or_list(each, draw) for each in args)
    return method(*args, **kwargs)


def _of_no_container(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if isinstance(method, BuiltinMethodType) and is_torch_builtin(method):
        note_read(args)  # torch's own functions change no list that they are given
    else:
        refuse_spread(method, args)
        note_all(args)
    refuse_hidden_state(method)
    before_method(capture, method, args, kwargs)
    if isinstance(method.__self__, contextvars.ContextVar):
        return _of_variable(capture, method, args, kwargs)
    result = method(*args, **kwargs)
    if isinstance(method.__self__, WRITTEN_IN_C) and result is False:
        capture.locks.not_taken(method.__self__)
    return result


def _of_variable(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    variable: contextvars.ContextVar[Any] = method.__self__
    if variable_value(variable) is MISSING:
        capture.reads.settings.append((Failure(variable.get), (), LookupError))
    if method.__name__ in context_variables.METHODS and len(args) == 1:
        return context_variables.change(capture, variable, method.__name__, *args)
    result = method(*args, **kwargs)
    if method.__name__ == "get" and capture.memory.is_as_given(variable):
        capture.reads.settings.append((method, args, result))
    return result


# ---- steps
def _ask(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    refuse_counts(method)
    before_pickling(capture, method, args)
    if is_array(method.__self__):
        refuse_numbers((args, kwargs))
    return ANOTHER


def _of_class(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """``super().__call__`` of a metaclass."""
    is_slot = isinstance(method, MethodWrapperType)
    return make(capture, method, method.__self__, args, kwargs) if is_slot else ANOTHER


def _call_receiver(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """``f.__call__(…)``, and ``super().__call__`` of a class derived from `functools.partial`."""
    receiver = method.__self__
    if not isinstance(method, MethodWrapperType):
        return ANOTHER
    if isinstance(receiver, functools.partial):
        return call_partial(receiver, args, kwargs)
    return call(receiver, *args, **kwargs) if isinstance(receiver, _FUNCTIONS) else ANOTHER


_FUNCTIONS = (FunctionType, MethodType, BuiltinMethodType)


def call_partial(function: functools.partial[Any], args: Args, kwargs: Keywords) -> Any:
    """What `functools.partial` itself does, whatever a class derived from it has under the names of its parts."""
    inner, given, named = (part.__get__(function) for part in _PARTS)
    return call(inner, *given, *args, **{**named, **kwargs})


_PARTS = tuple(vars(functools.partial)[name] for name in ("func", "args", "keywords"))


def _apply_function(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """``apply`` of a ``torch.autograd.Function``, which is C's own from torch 2.14 on."""
    is_function = issubclass(method.__self__, torch.autograd.Function)
    return apply_function(capture, method, args, kwargs) if is_function else ANOTHER


def _set_attribute(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """``super().__setattr__``."""
    if not isinstance(method, MethodWrapperType):
        return ANOTHER
    kind: Any = type if isinstance(method.__self__, type) else object
    return set_past_class(kind.__setattr__, method.__self__, *args)


def _delete_attribute(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if not isinstance(method, MethodWrapperType):
        return ANOTHER
    kind: Any = type if isinstance(method.__self__, type) else object
    return del_past_class(kind.__delattr__, method.__self__, *args)


def _with_counterparts(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    given = (*args, *kwargs.values())
    if not needs_counterparts(capture, method.__self__, method.__name__, given):
        return ANOTHER
    return change(method.__self__, method.__name__, given, lambda: call_builtin(capture, method, args, kwargs))


def _set_item(capture: Session, method: Method, args: Args, kwargs: Keywords) -> None:
    set_item_past_class(method.__self__, *args)


def _delete_item(capture: Session, method: Method, args: Args, kwargs: Keywords) -> None:
    del_item_past_class(method.__self__, *args)


def _draw(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    return randomness.call_method(capture, method.__self__, method.__name__, (*args, *kwargs.values()))


def _with_text(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """A method of a known text that is given one of the run."""
    text = next((each for each in args if isinstance(each, StagedText)), None)
    if text is None or kwargs or method.__name__ not in METHODS:
        return ANOTHER
    return text.stillgraph_computed(vars(str)[method.__name__], method.__self__, *args)


def _join(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    return join(method, args[0]) if takes_one(args, kwargs) and is_iterable(args[0]) else ANOTHER


def _format(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    return fill(method.__self__, args, kwargs)


def _sort(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if args or not kwargs.keys() <= {"key", "reverse"}:
        return ANOTHER
    sort(method.__self__, **kwargs)
    return None


def _require_plain(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    require_plain(capture, *args)
    return ANOTHER


def _refuse_hook(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if method.__name__.startswith("register_"):
        hint = "Put the hook on the tensor: tensor.register_hook(hook)."
        raise refuse("SG305", "a hook is put on a node of autograd's graph", location=here(), hint=hint)
    return ANOTHER


def _append(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if type(method.__self__) is list and takes_one(args, kwargs):
        capture.list_grows(method.__self__, *args)
    return ANOTHER


def _put_into_deque(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if not takes_one(args, kwargs) or not lists.is_spread(method.__self__):
        return ANOTHER
    lists.put_into_deque(capture, method.__self__, args[0], at_left=method.__name__ == "appendleft")
    return None


def _promote(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    for key, value in {**dict(*args), **kwargs}.items() if all(isinstance(a, dict) for a in args) else ():
        promote_item(capture, method.__self__, key, value)
    return ANOTHER


def _note(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    note_contents(method.__self__, method=(method.__name__, args))
    return ANOTHER


def _take(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if not taken(method.__self__, method.__name__, args, kwargs):
        return ANOTHER
    return method.__self__ if method.__name__.startswith("__i") else None


def _look_through(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    receiver = method.__self__
    capture.compared = capture.compared or any(map(is_told_by_identity, args))
    searched = args if isinstance(receiver, set) else (receiver, *args)  # a set finds its elements itself
    if any(map(holds_unknown, searched)):
        message = "a list is looked through in which a dict or set has a key on some paths only"
        raise refuse("SG211", message, location=here())
    return ANOTHER


def _ask_for_key(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """Methods of dicts, which look up the first of what they are given."""
    require_one_object(args[:1])
    return ANOTHER


def _ask_for_elements(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """Methods of sets, and ``dict.fromkeys``, for which all that they are given is looked up, or put in."""
    for given in args:
        require_one_object([*given] if is_exactly(given, (list, tuple, dict, set, frozenset)) else given)
    return ANOTHER


def _search(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if kwargs or not searching.is_searched(method.__self__, args):
        return ANOTHER
    return searching.METHODS[method.__name__](capture, method.__self__, *args)


def _get(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    is_staged_key = args and entries.is_staged_key(method.__self__, args[0])
    return entries.get(capture, method.__self__, *args) if is_staged_key else ANOTHER


def _by_table(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    container, name = method.__self__, method.__name__
    if (kwargs and name not in table_methods.BY_ORDER) or not table_methods.takes(container, name, args):
        return ANOTHER
    return table_methods.call_method(capture, container, name, args, kwargs)


def _of_entries(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    receiver, name = method.__self__, method.__name__
    note_method(receiver, name, args)
    is_filled = name == "update" and isinstance(receiver, (dict, set)) and not kwargs
    if container_of(receiver) is not None or (is_filled and any(container_of(each) is not None for each in args)):
        return entries.call_method(capture, receiver, name, args, kwargs)
    return ANOTHER


def _compare_sets(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    if method.__name__ in part_by_part.METHODS and len(args) == 1:
        sides = (method.__self__, *args)
        if any(container_of(each) is not None for each in sides) and part_by_part.is_compared(*sides):
            return part_by_part.METHODS[method.__name__](capture, *sides)
    if method.__name__ in ("issubset", "issuperset", "isdisjoint") or any(map(tables.is_by_table, args)):
        refuse_spread(method, args)
    return ANOTHER


def _of_numbers(capture: Session, method: Method, args: Args, kwargs: Keywords) -> Any:
    """A method of a set and other sets, of one of which only the run knows the elements."""
    receiver, name = method.__self__, method.__name__
    if kwargs or not args or not are_of_numbers(receiver, *args) or not isinstance(receiver, set):
        return ANOTHER
    if name in sets.METHODS:
        return call(sets.METHODS[name], receiver, *args)
    if name in sets.IN_PLACE:
        call(sets.IN_PLACE[name], receiver, *args)
        return None
    return ANOTHER


def _decided_in_the_run(name: str, argument: Any, receiver: Any) -> bool:
    """Whether only the run knows where in a list a method finds, puts or takes something."""
    if name in ("pop", "insert"):
        return isinstance(argument, StagedNumber)
    if name not in ("remove", "index", "count"):
        return False
    return any(map(is_staged, (argument, *receiver))) or (argument is None and any(map(is_optional, receiver)))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BY_KEY = _names("get pop setdefault __contains__ __getitem__")

_STEPS: tuple[Step, ...] = (
    Step(object, None, _ask),
    Step(type, _names("__call__"), _of_class),
    Step(object, _names("__call__"), _call_receiver),
    Step(type, _names("apply"), _apply_function),
    Step(object, _names("__setattr__"), _set_attribute),
    Step(object, _names("__delattr__"), _delete_attribute),
    Step(CONTAINERS, _names("__setitem__"), _set_item),
    Step(CONTAINERS, _names("__delitem__"), _delete_item),
    Step(torch.Generator, None, _draw),
    Step(str, None, _with_text),
    Step(str, _names("join"), _join),
    Step(str, _names("format"), _format),
    Step(set, None, _of_numbers),
    Step(CONTAINERS, frozenset(MUTATORS), _with_counterparts),
    Step(list, _names("sort"), _sort),
    Step(torch.Tensor, _names("as_subclass"), _require_plain),
    Step(torch.autograd.graph.Node, None, _refuse_hook),
    Step(list, _names("append"), _append),
    Step(dict, _names("update"), _promote),
    Step(CONTAINERS, frozenset(MUTATORS), _note),
    Step(collections.deque, _names("append appendleft"), _put_into_deque),
    Step(CONTAINERS, None, _take),  # before the container is asked: what is drawn from may change it
    Step(dict, _BY_KEY, _ask_for_key),
    Step((set, frozenset), None, _ask_for_elements),
    Step(type, _names("fromkeys"), _ask_for_elements),
    Step(CONTAINERS, _names("count index remove"), _look_through),
    Step(_OF_ELEMENTS, _names("count index remove"), _search),
    Step(dict, _names("get"), _get),
    Step(object, None, _by_table),
    Step((set, frozenset), None, _compare_sets),  # before it is refused
    Step(object, None, _of_entries),
)
"""In the order in which they are tried."""
