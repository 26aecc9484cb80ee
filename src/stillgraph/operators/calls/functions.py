"""Functions of Python's and torch's that call, store, draw from or ask what only the run knows."""

from __future__ import annotations

import collections
import functools
import operator
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.distributions.kl import _dispatch_kl, kl_divergence

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member
from stillgraph.operators.calls.attribute_functions import all_attributes, getattr_, hasattr_
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.consumers.consumers import keyed
from stillgraph.operators.consumers.folding import fold
from stillgraph.operators.consumers.sorting import sorted_
from stillgraph.operators.control_flow.generators import filtered
from stillgraph.operators.dispatch import asked, call, own_items, raised
from stillgraph.operators.objects import namespaces
from stillgraph.operators.objects.attribute_stores import del_attr, del_past_class, set_attr, set_past_class
from stillgraph.operators.objects.booleans import not_
from stillgraph.operators.objects.comparisons import eq, in_, ne, ordered
from stillgraph.operators.objects.identity import is_
from stillgraph.operators.objects.stores import del_item, set_item
from stillgraph.operators.objects.subscripts import item
from stillgraph.operators.outside.outside import OUTSIDE, at_run_time
from stillgraph.operators.outside.randomness import RANDOMNESS
from stillgraph.operators.python import complexes, copying, iterators
from stillgraph.operators.torch import checkpointing, optimizers, polyfilled, torchscript, trees, whole_operators
from stillgraph.trace.capture.concretization import ask_for_the_object
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.frames import here, module_here
from stillgraph.trace.control_flow.both_sides import require_one_object
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.guards.one_object import is_told_by_value
from stillgraph.trace.torch_rules.tensor_classes import make_subclass
from stillgraph.trace.torch_rules.tensor_construction import from_data
from stillgraph.trace.values.entries import container_of, table_of
from stillgraph.trace.values.numbers import Staged, StagedBool, StagedNumber


def _exit(status: Any = None, /) -> NoReturn:
    """`sys.exit`, as the ``raise`` that it is."""
    if isinstance(status, SystemExit):
        error: Any = status
    else:
        error = SystemExit(*(() if status is None else status if isinstance(status, tuple) else (status,)))
    raise raised(error)


def _filter(function: Any, iterable: Any) -> Any:
    test = (lambda value: value) if function is None else (lambda value: call(function, value))
    return filtered(iterable if method_of(iterable, "__next__") is None else own_items(iterable), test)


def _reduce(function: Any, iterable: Any, *initial: Any) -> Any:
    if isinstance(iterable, torch.Tensor) and not iterable.dim():
        raise TypeError("reduce() arg 2 must support iteration")  # in place of what the tensor says
    return fold(lambda total, value: call(function, total, value), iterable, *initial)


def _sorted(iterable: Any, *, key: Any = None, reverse: bool = False) -> Any:
    table = table_of(iterable) if isinstance(iterable, (set, frozenset)) else None
    iterable = iterable if table is None else table.keys
    return sorted_(iterable, key=key, reverse=reverse)


def _divergence(p: Any, q: Any) -> Any:
    """`torch.distributions.kl_divergence`: by the function registered for the two classes, if there is one.

    torch remembers what it found, which nothing that a program guards may depend on.
    """
    capture = capturing()
    capture.conversion.before_distribution()
    classes = (type(p), type(q))
    function = _dispatch_kl(*classes)
    capture.reads.settings.append((_dispatch_kl, classes, function))
    return kl_divergence(p, q) if function is NotImplemented else call(function, p, q)  # the former says what is wrong


def _id(value: Any) -> int:
    """``id``: of what is made in the run, only the run knows it."""
    capture = session()
    if isinstance(value, Staged) or is_fake(value):
        ask_for_the_object(capture, value)
        raise refuse("SG301", "the id of a value is asked for that only the run knows", location=here())
    if capture is not None:
        require_one_object(value)
        capture.compared = True
        value = capture.original(value)
        capture.reads.identified[id(value)] = value
        capture.values_compared = capture.values_compared or is_told_by_value(value)
        if isinstance(value, torch.Tensor):
            capture.executed.hashed.append(value)
    return id(value)


def _hash(value: Any) -> int:
    """``hash``: that of a tensor is where it is in memory."""
    capture = capturing()
    if capture.may_be_none(value):
        return capture.with_or_without(value, _hash)  # type: ignore[no-any-return]  # of Any
    if is_fake(value):
        raise refuse("SG301", "the hash of a value is asked for that only the run knows", location=here())
    if container_of(value) is not None:
        raise refuse_unknown("SG211", "the hash of such a set is asked for", value)
    if class_member(type(value), "__hash__") is class_member(object, "__hash__"):  # it is made of the id
        require_one_object(value)
        capture.reads.identified[id(value)] = value
    return hash(value) if method_of(value, "__hash__") is None else _hash(asked(value, "__hash__"))


def _is(left: Any, right: Any) -> Any:
    """``operator.is_``."""
    capture = capturing()
    capture.compared = True
    return is_(left, right)


def _is_not(left: Any, right: Any) -> Any:
    return not_(_is(left, right))


def _train(module: torch.nn.Module, mode: bool = True) -> torch.nn.Module:
    """``module.train(mode)``: every submodule's flag is a place like any other."""
    if not isinstance(mode, (bool, StagedBool)):
        raise ValueError("training mode is expected to be boolean")
    for inner in module.modules():
        set_attr(inner, "training", mode)
    return module


def _eval(module: torch.nn.Module) -> torch.nn.Module:
    return _train(module, False)


def _parameter(*args: Any, **kwargs: Any) -> Any:
    """``torch.nn.Parameter``: made by the program."""
    capture = capturing()
    return capture.record(torch.nn.Parameter, args, kwargs)


def _sized(kind: Any) -> Callable[..., Any]:
    """A class of tensors, called for sizes of the run: its constructor takes numbers that are known before it."""

    def made(*args: Any, **kwargs: Any) -> Any:
        sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
        of_the_run = any(isinstance(size, (StagedNumber, torch.SymInt)) for size in sizes)
        if kwargs or not of_the_run:
            return kind(*args, **kwargs)
        return torch.empty(tuple(sizes), dtype=kind(0).dtype, device="cpu")

    return made


_SIZED = (
    *(torch.Tensor, torch.FloatTensor, torch.DoubleTensor, torch.HalfTensor, torch.BFloat16Tensor, torch.BoolTensor),
    *(torch.ByteTensor, torch.CharTensor, torch.ShortTensor, torch.IntTensor, torch.LongTensor),
)


def _from_numpy(array: Any) -> Any:
    """``torch.from_numpy``, which torch's modes do not see."""
    capture = capturing()
    return from_data(capture, torch.from_numpy, (array,), {})


def _switch(function: Callable[[], Any]) -> Callable[[], Any]:
    """A question about a setting of torch's for the whole process: the program is for this answer."""

    def answered() -> Any:
        capture = capturing()
        capture.asked_for_switches = True
        return function()

    return answered


def _recursion_limit() -> int:
    """``sys.getrecursionlimit``, as it is outside of the capture."""
    capture = capturing()
    capture.reads.settings.append((sys.getrecursionlimit, (), capture.depth.limit))
    return capture.depth.limit


def _cannot_enter(function: Callable[..., Any]) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        message = f"{function.__name__} is a mode of torch's that a program cannot switch"
        raise refuse("SG305", message, location=here())

    return refused


def _namedtuple(*args: Any, **kwargs: Any) -> Any:
    """``collections.namedtuple``, which notes the module that calls it."""
    return collections.namedtuple(*args, **{"module": module_here(), **kwargs})


OTHERS: dict[Any, Callable[..., Any]] = {
    collections.namedtuple: _namedtuple,
    **RANDOMNESS,
    **OUTSIDE,
    torch.nn.Parameter: _parameter,
    **{kind: _sized(kind) for kind in _SIZED},
    **{
        f: _switch(f)
        for f in (
            torch.get_float32_matmul_precision,
            torch.are_deterministic_algorithms_enabled,
            torch.get_deterministic_debug_mode,
            torch.is_anomaly_enabled,
            torch.is_anomaly_check_nan_enabled,
        )
    },
    **{
        f: _cannot_enter(f)
        for f in (
            torch.autograd.forward_ad.dual_level,
            torch.autograd.forward_ad.enter_dual_level,
            torch.autograd.graph.allow_mutation_on_saved_tensors,
        )
    },
    sys.exit: _exit,
    sys.getrecursionlimit: _recursion_limit,
    kl_divergence: _divergence,
    id: _id,
    hash: _hash,
    operator.is_: _is,
    operator.is_not: _is_not,
    **complexes.MEANINGS,
    **iterators.MEANINGS,
    **copying.MEANINGS,
    **optimizers.MEANINGS,
    **namespaces.MEANINGS,
    **trees.MEANINGS,
    **polyfilled.MEANINGS,
    **whole_operators.MEANINGS,
    **checkpointing.MEANINGS,
    **torchscript.MEANINGS,
    torch.nn.Module.train: _train,
    torch.nn.Module.eval: _eval,
    torch.from_numpy: _from_numpy,
    torch.Tensor._make_subclass: make_subclass,
    **{f: at_run_time(f, int) for f in (torch.seed, torch.initial_seed)},
    setattr: set_attr,
    object.__setattr__: functools.partial(set_past_class, object.__setattr__),
    type.__setattr__: functools.partial(set_past_class, type.__setattr__),
    torch.nn.Module.__setattr__: functools.partial(set_past_class, torch.nn.Module.__setattr__),
    delattr: del_attr,
    object.__delattr__: functools.partial(del_past_class, object.__delattr__),
    type.__delattr__: functools.partial(del_past_class, type.__delattr__),
    torch.nn.Module.__delattr__: functools.partial(del_past_class, torch.nn.Module.__delattr__),
    getattr: getattr_,
    hasattr: hasattr_,
    **{function: all_attributes(function) for function in (vars, dir)},
    filter: _filter,
    functools.reduce: _reduce,
    sorted: _sorted,
    **{kind: keyed(kind) for kind in (set, frozenset, dict)},
    **{getattr(operator, name): ordered(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")},
    operator.eq: eq,
    operator.ne: ne,
    operator.not_: not_,
    operator.contains: lambda container, element: in_(element, container),
    operator.getitem: item,
    operator.setitem: set_item,
    operator.delitem: del_item,
}
