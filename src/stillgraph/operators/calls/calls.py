"""Calls: followed into every Python function that may meet a staged value; torch's and Python's own run as they are."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import dis
import functools
import sys
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, CodeType, FunctionType, MethodDescriptorType, MethodType, MethodWrapperType
from typing import Any

import torch

from stillgraph.core.diagnostics import DemandError, Refusal, refuse
from stillgraph.core.files import is_distributions, is_standard_library
from stillgraph.core.lookup import class_member
from stillgraph.core.weak_cache import weakly_cached
from stillgraph.operators import dispatch
from stillgraph.operators.calls.binding import call_python, fails_to_bind, is_iterable, takes_one
from stillgraph.operators.calls.cached import call_cached
from stillgraph.operators.calls.functions import OTHERS
from stillgraph.operators.calls.making import construct, make, refuse_spread
from stillgraph.operators.calls.number_methods import is_declined, on_staged
from stillgraph.operators.calls.some_keywords import has_some, on_each_path, settled
from stillgraph.operators.containers import entries, lists, tables
from stillgraph.operators.containers.consumers import join, known_or_list, taken
from stillgraph.operators.containers.drawing import begun, drawing_call
from stillgraph.operators.containers.indices import as_index
from stillgraph.operators.containers.sorting import sort
from stillgraph.operators.containers.stores import (
    CONTAINERS,
    del_item_past_class,
    del_past_class,
    is_method_of_container,
    note_contents,
    promote_item,
    set_item_past_class,
    set_past_class,
)
from stillgraph.operators.control_flow.generators import call_generator
from stillgraph.operators.control_flow.recursion import call_recursive
from stillgraph.operators.names.methods import method_of
from stillgraph.operators.names.namespaces import note_method
from stillgraph.operators.names.registries import TablesSeen, before_tables
from stillgraph.operators.names.strings import fill
from stillgraph.operators.python import acts, draws, randomness
from stillgraph.operators.python.caches import refuse_counts
from stillgraph.operators.python.debugging import stop_for
from stillgraph.operators.python.foreign import before_method
from stillgraph.operators.python.hidden_state import MUTATORS, refuse_hidden_state, refuse_weak
from stillgraph.operators.python.misread import name_demand, refuse_misread
from stillgraph.operators.python.numbers import MEANINGS
from stillgraph.operators.python.outside import OUTSIDE
from stillgraph.operators.python.pickling import before_pickling
from stillgraph.operators.python.unseen import with_each
from stillgraph.operators.python.weak import before_weak_call
from stillgraph.operators.torch import torchscript
from stillgraph.operators.torch.modules import call_in_turn, call_module, follow_parametrizations
from stillgraph.operators.torch.optimizers import call_optimizer, is_optimizers, note_made
from stillgraph.operators.torch.plain_arguments import is_torch_builtin, takes_key, wants_plain_arguments
from stillgraph.operators.torch.wrappers import WRAPPERS, refuse_unseen
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.compiled import behind_compiler
from stillgraph.trace.code.frames import here, is_transform, mode_decorated
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.both_sides import several_in
from stillgraph.trace.control_flow.maybe_none import is_read_first
from stillgraph.trace.control_flow.maybe_number import call_method, may_be_number
from stillgraph.trace.control_flow.narrowing import exchanged, is_optional, leaves
from stillgraph.trace.control_flow.unjoined import Unjoined, UnjoinedMethod
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.effects import context_variables
from stillgraph.trace.effects.lent import Lending
from stillgraph.trace.effects.locks import WRITTEN_IN_C
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.guards.one_object import is_told_by_identity
from stillgraph.trace.heap.journal import MISSING, CellPlace
from stillgraph.trace.sources.reads import Failure, variable_value
from stillgraph.trace.torch_rules.special import HANDLERS
from stillgraph.trace.torch_rules.tensor_classes import require_plain
from stillgraph.trace.values.arrays import StagedArray, call_numpy, is_array, is_numpy, refuse_numbers
from stillgraph.trace.values.entries import MaybeKey, Table, container_of, holds_unknown
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import StagedNumber


@dispatch.call.defined
def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``."""
    capture = session()
    if capture is None:
        return function(*args, **kwargs)
    if isinstance(function, UnjoinedMethod):
        return function.value.either(lambda value: call(getattr(value, function.name), *args, **kwargs))
    if isinstance(function, Unjoined):
        return function.either(lambda chosen: call(chosen, *args, **kwargs))
    if kwargs and has_some(kwargs):
        on_all_paths = None if has_meaning(function) else settled(capture, function, args, kwargs)
        if on_all_paths is None:
            return on_each_path(capture, call, function, args, kwargs)
        kwargs = on_all_paths
    if any(type(value) is kind for value in (*args, *kwargs.values()) for kind in _SEVERAL):
        message = "only the run knows how many arguments a call has: a list of unknown length stands behind its '*'"
        raise refuse("SG210", message, location=here())
    if capture.stale and not capture.settling.clears(function):
        for each in (getattr(function, "__self__", None), *args, *kwargs.values()):
            capture.settling.require_current(each)
    if capture.has_optionals and is_read_first(function) and capture.may_be_none(function.__self__):
        return capture.with_or_without(
            function.__self__, lambda value: call(getattr(value, function.__name__), *args, **kwargs)
        )
    if is_read_first(function) and may_be_number(function.__self__):
        return call_method(capture, function, args, kwargs)
    if isinstance(function, (FunctionType, MethodType)) and function.__name__ == "set_trace":
        stop = stop_for(capture, function, sys._getframe(1))
        if stop is not None:
            return stop(*args, **kwargs)
    meaning = _meaning(function)
    if meaning is None and is_method_of_container(function) and args and isinstance(args[0], function.__objclass__):
        return call(function.__get__(args[0]), *args[1:], **kwargs)  # ``dict.update(d, …)`` is ``d.update(…)``
    if acts.act_of(function) is not None or wants_plain_arguments(function, meaning):
        unjoined = next((a for a in (*args, *kwargs.values()) if isinstance(a, Unjoined)), None)
        if unjoined is not None:
            return unjoined.either(lambda value: _call_with(function, args, kwargs, unjoined, value))
        in_key = several_in(args[:1]) if takes_key(function) else None
        if in_key is not None:
            return in_key.either(lambda each: call(function, exchanged(args[0], in_key, each), *args[1:], **kwargs))
    if meaning is None and capture.has_optionals:
        for_each = with_each(capture, call, function, args, kwargs)
        if for_each is not None:
            return for_each[0]
    given = acts.carry_out(capture, function, args, kwargs)
    if given is not acts.NOT_AN_ACT:
        return given
    if meaning is None and is_numpy(function) and any(map(_is_staged, torch.utils._pytree.tree_leaves((args, kwargs)))):
        uncertain = next(filter(capture.may_be_none, leaves((args, kwargs))), None) if capture.has_optionals else None
        if uncertain is None:
            return call_numpy(function, args, kwargs)
        return capture.with_or_without(
            uncertain, lambda value: _call_exchanged(function, (args, kwargs), uncertain, value)
        )
    args = begun(function, args)
    function, args, kwargs = drawing_call(capture, function, meaning is not None, args, kwargs)
    is_bound = True
    try:
        result = _call_other(capture, function, args, kwargs) if meaning is None else meaning(*args, **kwargs)
    except Exception as error:  # of any kind: whatever Python's own code says to what it does not know
        is_bound = not fails_to_bind(function, meaning, error)
        if is_bound:
            refuse_misread(capture, function, error, meaning is None, (args, kwargs))
            raise
    except Refusal as refused:
        if isinstance(refused.error, DemandError):
            name_demand(function, refused)
        raise
    if not is_bound:
        result = call_python(capture, function, args, kwargs)
    if capture.memory.watched:
        capture.memory.require_unchanged(location=here())
    if isinstance(result, Iterator):
        capture.iterators.made(result, (args, kwargs))
    acts.note_stream(capture, result)
    return result


def _call_other(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    before_weak_call(capture, function, args, kwargs)
    if (by_slot := on_staged(function, args, kwargs)) is not None:
        return by_slot()
    if is_optimizers(function):
        return call_optimizer(capture, function, args, kwargs)
    if capture.scripting:
        if torchscript.is_left_to_python(function):
            return torchscript.left_to_python(capture, call, function, args, kwargs)
        kwargs = torchscript.with_float_defaults(function, args, kwargs)
    if function is torch.nn.Module.__call__ and args:
        return call_module(capture, call, args[0], args[1:], kwargs)
    if isinstance(function, FunctionType):
        return call_function(capture, function, args, kwargs)
    if isinstance(function, MethodType):
        return _call_method(capture, function, args, kwargs)
    if isinstance(function, (BuiltinMethodType, MethodWrapperType)):
        return _call_builtin(function, args, kwargs)
    if isinstance(function, MethodDescriptorType):
        if args and isinstance(args[0], function.__objclass__):
            before_method(capture, function.__get__(args[0]), args[1:], kwargs)
        refuse_spread(function, args)
        note_all(args)
        return function(*args, **kwargs)
    if function is _MAKING and args and isinstance(args[0], type):
        return call(function.__get__(args[0]), *args[1:], **kwargs)
    if isinstance(function, functools._lru_cache_wrapper):
        return call_cached(capture, call, function, args, kwargs)
    if isinstance(function, functools.partial):
        return call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
    if isinstance(function, torch.nn.Module):
        return _call_module(capture, function, args, kwargs)
    if isinstance(function, type):
        instance = capture.made_modules.add(construct(capture, function, args, kwargs))
        if isinstance(instance, torch.optim.Optimizer):
            note_made(capture, instance, args, kwargs)
        return instance
    behind = getattr(type(function), "__stillgraph_behind__", None)
    if behind is not None:
        return call(behind(function), *args, **kwargs)
    if isinstance(function, torch.jit.ScriptFunction):
        return torchscript.call_compiled(capture, call, function, args, kwargs)
    if isinstance(function, torch.ScriptMethod):
        raise torchscript.refuse_module(function)
    method = class_member(type(function), "__call__")
    if isinstance(method, FunctionType):
        return call_function(capture, method, (function, *args), kwargs)
    before_method(capture, function, args, kwargs)
    refuse_hidden_state(function)
    note_all(args)
    if function is object.__getattribute__ and args:
        capture.dictionaries.shown(args[0])
    return function(*args, **kwargs)


_MAKING = type.__dict__["__call__"]


def _is_staged(value: Any) -> bool:
    return isinstance(value, (StagedArray, StagedNumber)) or is_fake(value)


def _call_exchanged(function: Any, arguments: Any, old: Any, new: Any) -> Any:
    args, kwargs = exchanged(arguments, old, new)
    return call(function, *args, **kwargs)


def _call_with(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], old: Any, new: Any) -> Any:
    """A call with one argument exchanged."""
    swapped = {name: new if value is old else value for name, value in kwargs.items()}
    return call(function, *(new if value is old else value for value in args), **swapped)


def has_meaning(function: Any) -> bool:
    """Whether a callable of Python's or torch's is more than called."""
    return _meaning(function) is not None or acts.act_of(function) is not None


def _meaning(function: Any) -> Callable[..., Any] | None:
    original = randomness.unwrapped_seed(function)
    if method_of(original, "__hash__") is not None:
        return None
    try:
        known = MEANINGS.get(original) or OTHERS.get(original) or WRAPPERS.get(original)
    except TypeError:  # not hashable
        return None
    return known or draws.meaning_of(original)


@dispatch.call_function.defined
def call_function(capture: Session, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python function, rewritten if it may meet a staged value."""
    if is_transform(function):
        hint = "Use torch.autograd.grad with create_graph=True, or transform outside the static function."
        raise refuse("SG304", "a transform of torch.func is used inside the function", location=here(), hint=hint)
    behind = behind_compiler(function)
    if behind is not None:
        return call(behind, *args, **kwargs)
    refuse_unseen(function)
    before_tables(capture, function, args, kwargs)
    if is_distributions(function.__code__.co_filename):
        capture.before_distribution()
    inner = mode_decorated(function)
    if inner is not None and not capture.wants_conversion(function):
        factory, decorated = inner
        with factory():
            return call(decorated, *args, **kwargs)
    if function.__code__ is _DISPATCHING and args:
        cells = dict(zip(function.__code__.co_freevars, (c.cell_contents for c in function.__closure__ or ())))
        return call(cells["dispatch"](call(type, args[0])), *args, **kwargs)
    manager = _context_manager(function)
    if manager is not None and capture.wants_conversion(manager):
        return contextlib._GeneratorContextManager(capture.convert(manager), args, kwargs)
    original = function
    produced = call_generator(capture, function, args, kwargs)
    if produced is not None:
        return produced
    if capture.wants_conversion(function):
        function = capture.convert(function)
    elif is_standard_library(function.__code__.co_filename):
        refuse_spread(function, args)
        note_all(args)
        refuse_weak(function, args)
        _refuse_callback(function, args)
    elif any(lists.is_spread(argument) for argument in args) and not capture.is_rewritten(function.__code__):
        capture.before_unknown_length()
    if original.__code__ in capture.knowledge.recursive:
        return call_recursive(capture, original, function, args, kwargs, note_outer_variables)
    if capture.skipped(function):
        run = functools.partial(_call_noted, capture, original, function)
        return Lending(capture, function, (*args, *kwargs.values())).call(run, args, kwargs)
    return _call_noted(capture, original, function, args, kwargs)


def _call_noted(
    capture: Session, original: FunctionType, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    note_outer_variables(capture, original)
    capture.depth.enter()
    try:
        with TablesSeen(capture, function, args), capture.depth.of(function.__code__, capture.is_rewritten):
            arm = capture.in_arm
            return _call_in_arm(capture, original, function, args, kwargs) if arm else function(*args, **kwargs)
    finally:
        capture.depth.leave()


_SEVERAL = (StagedSpread, MaybeKey, Table)
"""What stands for elements of which only the run knows how many there are."""

_DEEPEST = 12  # how often a function may be inside itself, under conditions that only the run knows


def _call_in_arm(
    capture: Session, original: FunctionType, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    code = original.__code__
    capture.calls[code] += 1
    try:
        if capture.calls[code] > _DEEPEST:
            if code in capture.knowledge.recursive or not capture.is_rewritten(function.__code__):
                raise refuse("SG207", f"'{function.__name__}' calls itself under a staged condition", location=here())
            raise Restart("recursive", code)
        return function(*args, **kwargs)
    finally:
        capture.calls[code] -= 1


def note_outer_variables(capture: Session, function: FunctionType) -> None:
    """To be called before a function that assigns variables of those around it."""
    if not function.__code__.co_freevars:
        return
    with capture.witness.paused():
        names = assigned_outer_variables(function.__code__)
    for name in names:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        capture.journal.note(CellPlace(cell, name))


@weakly_cached
def assigned_outer_variables(code: CodeType) -> tuple[str, ...]:
    """The free variables of a function that it, or a function inside it, assigns or deletes."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(assigned_outer_variables(constant))
    return tuple(name for name in code.co_freevars if name in names)


_DISPATCHING = functools.singledispatch(id).__code__  # type: ignore[attr-defined]  # of what it makes, a function


def _context_manager(function: FunctionType) -> FunctionType | None:
    """The generator function behind a ``@contextlib.contextmanager``."""
    wrapped = getattr(function, "__wrapped__", None)
    if function.__code__.co_filename == contextlib.__file__ and isinstance(wrapped, FunctionType):
        return wrapped if function.__code__.co_name == "helper" else None
    return None


def _call_method(capture: Session, method: MethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function, receiver = method.__func__, method.__self__
    if is_declined(method, args):
        return NotImplemented
    if function is torch.nn.Module.__setattr__:
        return set_past_class(function, receiver, *args, **kwargs)
    if function is torch.nn.Module.__delattr__:
        return del_past_class(function, receiver, *args, **kwargs)
    if function is torch.nn.Sequential.forward:
        return call_in_turn(call, receiver, *args, **kwargs)
    if function in (torch.nn.Module.train, torch.nn.Module.eval, torch.nn.Module.zero_grad):
        return OTHERS[function](receiver, *args, **kwargs)
    if function in OUTSIDE:
        return OUTSIDE[function](receiver, *args, **kwargs)
    if function in WRAPPERS:
        return WRAPPERS[function](receiver, *args, **kwargs)
    if isinstance(receiver, torch.amp.GradScaler) and method.__name__ in ("unscale_", "step", "update"):
        message = f"GradScaler.{method.__name__} decides by gradients; call it outside the static function"
        hint = "Keep scaler.scale(loss).backward() in the function, and step after it: scaler.step(optimizer)."
        raise refuse("SG305", message, location=here(), hint=hint)
    if isinstance(receiver, torch.Tensor) and method.__name__ == "tolist":  # whose rows are to be recorded
        return HANDLERS[torch.Tensor.tolist](capture, torch.Tensor.tolist, (receiver, *args), kwargs)
    if isinstance(receiver, type) and issubclass(receiver, torch.autograd.Function) and method.__name__ == "apply":
        return capture.record(method, args, kwargs)
    if isinstance(receiver, torch.nn.Module) and function is torch.nn.Module.__call__:  # ``super().__call__``
        return call_module(capture, call, receiver, args, kwargs)
    if isinstance(function, FunctionType):
        if isinstance(receiver, torch.nn.Module):
            follow_parametrizations(capture, receiver)
        refuse_hidden_state(method)
        return call_function(capture, function, (receiver, *args), kwargs)
    return call(function, receiver, *args, **kwargs)


def _call_builtin(method: BuiltinMethodType | MethodWrapperType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    receiver = method.__self__
    refuse_counts(method)
    before_pickling(_session(), method, args)
    if is_array(receiver):
        refuse_numbers((args, kwargs))
    if method.__name__ == "__call__" and isinstance(method, MethodWrapperType) and isinstance(receiver, type):
        return make(_session(), method, receiver, args, kwargs)  # ``super().__call__`` of a metaclass
    if method.__name__ == "__setattr__" and isinstance(method, MethodWrapperType):  # ``super().__setattr__``
        return set_past_class(type.__setattr__ if isinstance(receiver, type) else object.__setattr__, receiver, *args)
    if method.__name__ == "__delattr__" and isinstance(method, MethodWrapperType):
        return del_past_class(type.__delattr__ if isinstance(receiver, type) else object.__delattr__, receiver, *args)
    if isinstance(receiver, CONTAINERS) and method.__name__ in _ITEM_METHODS:
        return _ITEM_METHODS[method.__name__](receiver, *args)
    if isinstance(receiver, torch.Generator):
        return randomness.call_method(_session(), receiver, method.__name__, (*args, *kwargs.values()))
    if isinstance(receiver, str) and method.__name__ == "join" and takes_one(args, kwargs) and is_iterable(args[0]):
        return join(call, method, args[0])
    if isinstance(receiver, str) and method.__name__ == "format":
        return fill(receiver, args, kwargs)
    if isinstance(receiver, list) and method.__name__ == "sort" and not args and kwargs.keys() <= {"key", "reverse"}:
        sort(call, receiver, **kwargs)
        return None
    if isinstance(receiver, torch.Tensor) and method.__name__ == "as_subclass":
        require_plain(_session(), *args)
    if isinstance(receiver, torch.autograd.graph.Node) and method.__name__.startswith("register_"):
        hint = "Put the hook on the tensor: tensor.register_hook(hook)."
        raise refuse("SG305", "a hook is put on a node of autograd's graph", location=here(), hint=hint)
    capture = _session()
    if type(receiver) is list and method.__name__ == "append" and takes_one(args, kwargs):
        capture.list_grows(receiver, *args)
    if isinstance(receiver, dict) and method.__name__ == "update":
        for key, value in {**dict(*args), **kwargs}.items() if all(isinstance(a, dict) for a in args) else ():
            promote_item(capture, receiver, key, value)
    if isinstance(receiver, CONTAINERS) and method.__name__ in MUTATORS:
        note_contents(receiver, method=(method.__name__, args))
    if isinstance(receiver, CONTAINERS) and taken(receiver, method.__name__, args, kwargs):
        return receiver if method.__name__.startswith("__i") else None
    looked_through = isinstance(receiver, CONTAINERS) and method.__name__ in ("count", "index", "remove")
    capture.compared = capture.compared or (looked_through and any(map(is_told_by_identity, args)))
    searched = args if isinstance(receiver, set) else (receiver, *args)  # a set finds its elements itself
    if looked_through and any(map(holds_unknown, searched)):
        message = "a list is looked through in which a dict or set has a key on some paths only"
        raise refuse("SG211", message, location=here())
    if isinstance(receiver, dict) and method.__name__ == "get" and args and entries.is_staged_key(receiver, args[0]):
        return entries.get(capture, receiver, *args)
    if not kwargs and tables.takes(receiver, method.__name__, args):
        return tables.call_method(capture, receiver, method.__name__, args)
    note_method(receiver, method.__name__, args)
    is_filled = method.__name__ == "update" and isinstance(receiver, (dict, set)) and not kwargs
    if container_of(receiver) is not None or (is_filled and any(container_of(each) is not None for each in args)):
        return entries.call_method(capture, receiver, method.__name__, args, kwargs)
    if isinstance(receiver, (set, frozenset)) and (
        method.__name__ in ("issubset", "issuperset", "isdisjoint") or any(map(tables.is_by_table, args))
    ):
        refuse_spread(method, args)
    is_plain = type(receiver) is list or type(receiver) is tuple
    if is_plain and method.__name__ in ("pop", "insert") and args:
        args = (as_index(capture, args[0]), *args[1:])
    looked_up = is_plain and bool(args) and _decided_in_the_run(method.__name__, args[0], receiver)
    if looked_up or (lists.is_spread(receiver) and method.__name__ not in lists.SAFE_METHODS):
        return lists.call_method(_session(), receiver, method.__name__, args, kwargs)
    if isinstance(receiver, collections.deque) and receiver.maxlen is not None and lists.is_spread(receiver):
        raise refuse_unknown("SG210", "a deque with a maximal length that only the run fills", receiver)
    if isinstance(receiver, CONTAINERS):
        args = tuple(known_or_list(a) for a in args) if method.__name__ in ("extend", "extendleft") else args
    if not isinstance(receiver, CONTAINERS):
        if not isinstance(method, BuiltinMethodType) or not is_torch_builtin(method):
            refuse_spread(method, args)
        note_all(args)
        refuse_hidden_state(method)
        before_method(capture, method, args, kwargs)
    if isinstance(receiver, contextvars.ContextVar) and variable_value(receiver) is MISSING:
        capture.reads.settings.append((Failure(receiver.get), (), LookupError))
    if isinstance(receiver, contextvars.ContextVar) and method.__name__ in context_variables.METHODS and len(args) == 1:
        return context_variables.change(capture, receiver, method.__name__, *args)
    result = method(*args, **kwargs)
    if isinstance(receiver, WRITTEN_IN_C) and result is False:
        capture.locks.not_taken(receiver)
    given = isinstance(receiver, contextvars.ContextVar) and capture.memory.is_as_given(receiver)
    if given and method.__name__ == "get":
        capture.reads.settings.append((method, args, result))
    return result


_ITEM_METHODS: dict[str, Callable[..., None]] = {"__setitem__": set_item_past_class, "__delitem__": del_item_past_class}


def _session() -> Session:
    capture = session()
    assert capture is not None
    return capture


def _decided_in_the_run(name: str, argument: Any, receiver: Any) -> bool:
    """Whether only the run knows where in a list a method finds, puts or takes something."""
    if name in ("pop", "insert"):
        return isinstance(argument, StagedNumber)
    if name not in ("remove", "index", "count"):
        return False
    return any(map(_is_staged, (argument, *receiver))) or (argument is None and any(map(is_optional, receiver)))


def note_all(args: tuple[Any, ...]) -> None:
    """To be called before code that is not rewritten gets containers which it might change, and objects it may read."""
    capture = session()
    for argument in args:
        note_contents(argument, certain=False)
        if capture is not None and not isinstance(argument, _NOT_LOOKED_INTO):
            capture.reads.whole[id(argument)] = argument


_NOT_LOOKED_INTO = (torch.Tensor, torch.nn.Module, str, int, float, bool, type(None))
def _refuse_callback(function: FunctionType, args: tuple[Any, ...]) -> None:
    """Refuse to leave to an ``ExitStack`` what the program has to do: nobody looks on when it is called."""
    if function not in (contextlib.ExitStack.callback, contextlib.ExitStack.push) or len(args) < 2:
        return
    if has_meaning(args[1]):
        name = getattr(args[1], "__name__", type(args[1]).__name__)
        hint = "Use try and finally."
        raise refuse("SG305", f"an ExitStack is to call {name} in the end", location=here(), hint=hint)


def _call_module(capture: Session, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(module, torch.jit.ScriptModule):
        raise torchscript.refuse_module(module)
    if type(module).__call__ is not torch.nn.Module.__call__:
        own: Any = type(module).__call__
        return call_function(capture, own, (module, *args), kwargs)
    return call_module(capture, call, module, args, kwargs)
