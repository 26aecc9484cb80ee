"""Functions of Python's and torch's that call, store, draw from or ask what only the run knows."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import operator
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.distributions.kl import _dispatch_kl, kl_divergence

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.core.lookup import class_member, is_exactly
from stillgraph.operators.calls.attribute_functions import all_attributes, getattr_, hasattr_
from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.consumers.consumers import first, is_looped_over, keyed, known_or_list
from stillgraph.operators.consumers.folding import fold
from stillgraph.operators.consumers.sorting import sorted_
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.ranges import Range, RangeIterator
from stillgraph.operators.containers.sequences import Sliced
from stillgraph.operators.containers.watched import run_over, watched_container
from stillgraph.operators.control_flow.generators import Mapped, Produced, filtered, generator_of, mapped
from stillgraph.operators.dispatch import asked, call, raised
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import as_index
from stillgraph.operators.objects import namespaces
from stillgraph.operators.objects.attribute_stores import del_attr, del_past_class, set_attr, set_past_class
from stillgraph.operators.objects.booleans import not_
from stillgraph.operators.objects.comparisons import eq, in_, ne, ordered
from stillgraph.operators.objects.identity import is_
from stillgraph.operators.objects.stores import del_item, set_item
from stillgraph.operators.objects.subscripts import item
from stillgraph.operators.outside.outside import OUTSIDE, at_run_time
from stillgraph.operators.outside.randomness import RANDOMNESS
from stillgraph.operators.python import complexes, copying
from stillgraph.operators.python.iteration import zip_
from stillgraph.operators.torch import checkpointing, optimizers, polyfilled, torchscript, trees, whole_operators
from stillgraph.trace.capture.concretization import ask_for_the_object
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import called, here, module_here
from stillgraph.trace.code.signals import Diverged, Restart
from stillgraph.trace.control_flow.both_sides import require_one_object
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.guards.one_object import is_told_by_value
from stillgraph.trace.torch_rules.tensor_classes import make_subclass
from stillgraph.trace.torch_rules.tensor_construction import from_data
from stillgraph.trace.values.entries import container_of, some_keys, table_of
from stillgraph.trace.values.numbers import Staged, StagedNumber


def _exit(status: Any = None, /) -> NoReturn:
    """`sys.exit`, as the ``raise`` that it is."""
    if isinstance(status, SystemExit):
        error: Any = status
    else:
        error = SystemExit(*(() if status is None else status if isinstance(status, tuple) else (status,)))
    raise raised(error)


def _iter(*args: Any) -> Any:
    for each in args:
        if lists.is_spread(each):
            raise refuse_unknown("SG210", f"iter is given {called(each)}, a list of unknown length", each)
        if container_of(each) is not None:
            raise refuse_unknown("SG211", f"iter is given {called(each)}, {some_keys(each)}", each)
    if len(args) == 1 and isinstance(args[0], Range):
        return RangeIterator(args[0])
    return iter(*args)


def _map(function: Any, *iterables: Any) -> Any:
    if len(iterables) == 1 and isinstance(iterables[0], Produced) and not iterables[0].begun:
        return mapped(functools.partial(_call_ending, function), iterables[0])
    if any(map(_has_unknown_length, iterables)):
        if len(iterables) == 1:
            return generator_of(iterables[0], functools.partial(_call_ending, function), made=Mapped)
        return generator_of(zip_(*iterables), lambda items: _call_ending(function, *items), made=Mapped)
    known = (each if is_looped_over(each) else known_or_list(_run_over(each)) for each in iterables)
    return map(functools.partial(_call_ending, function), *known)


def _call_ending(function: Any, *items: Any) -> Any:
    """A call by ``map``, which a StopIteration would end."""
    capture = session()
    with contextlib.nullcontext() if capture is None else capture.handlers.answering(StopIteration):
        return call(function, *items)


def _run_over(iterable: Any) -> Any:
    return iterable if watched_container(iterable) is None else run_over(iterable)


def _has_unknown_length(iterable: Any) -> bool:
    """Whether something that may be run over by index has a length that only the run knows."""
    sequence = as_sequence(iterable)
    return sequence is not None and not isinstance(sequence.length(), int)


def _islice(iterable: Any, *bounds: Any) -> Any:
    capture = session()
    assert capture is not None
    is_known = is_exactly(iterable, (list, tuple)) and 0 < len(bounds) < 3
    cut = [as_index(capture, bound) for bound in bounds] if is_known else []
    if not any(isinstance(bound, StagedNumber) for bound in cut):
        return itertools.islice(iterable, *bounds)
    for place, bound in enumerate(cut):
        if bound is not None:
            _require_count(capture, bound, "Stop argument" if place == len(cut) - 1 else "Indices")
    return Sliced(item(iterable, slice(*cut)))


def _require_count(capture: Session, bound: Any, what: str) -> None:
    def fail() -> NoReturn:
        emit_raise(capture, ValueError(f"{what} for islice() must be None or an integer: 0 <= x <= sys.maxsize."))
        raise Diverged

    if_exp(bound < 0, fail, lambda: None)


def _filter(function: Any, iterable: Any) -> Any:
    test = (lambda value: value) if function is None else (lambda value: call(function, value))
    return filtered(iterable, test)


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
    capture = session()
    assert capture is not None
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
    capture = session()
    assert capture is not None
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
    capture = session()
    assert capture is not None
    capture.compared = True
    return is_(left, right)


def _is_not(left: Any, right: Any) -> Any:
    return not_(_is(left, right))


def _train(module: torch.nn.Module, mode: bool = True) -> torch.nn.Module:
    """``module.train(mode)``: every submodule's flag is a place like any other."""
    for inner in module.modules():
        set_attr(inner, "training", mode)
    return module


def _eval(module: torch.nn.Module) -> torch.nn.Module:
    return _train(module, False)


def _next(iterator: Any, *default: Any) -> Any:
    """``next``: an iterator from before the capture would be used up by it, one from before an arm by both arms."""
    capture = session()
    assert capture is not None
    if capture.iterators.counted(iterator):
        return capture.iterators.counters.advance(iterator)
    iterator = capture.iterators.to_draw_from(iterator)
    fresh, where = isinstance(iterator, Produced) and not iterator.begun, here()
    if fresh and where in capture.knowledge.first_by_loop:
        return first(iterator, *default)
    capture.iterators.before_advancing(iterator)
    if not fresh:
        return next(iterator, *default)
    try:
        return next(iterator, *default)
    except (CaptureError, Refusal):  # only the run knows which element is the first
        raise Restart("first_by_loop", where) from None


def _parameter(*args: Any, **kwargs: Any) -> Any:
    """``torch.nn.Parameter``: made by the program."""
    capture = session()
    assert capture is not None
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
    capture = session()
    assert capture is not None
    return from_data(capture, torch.from_numpy, (array,), {})


def _switch(function: Callable[[], Any]) -> Callable[[], Any]:
    """A question about a setting of torch's for the whole process: the program is for this answer."""

    def answered() -> Any:
        capture = session()
        assert capture is not None
        capture.asked_for_switches = True
        return function()

    return answered


def _recursion_limit() -> int:
    """``sys.getrecursionlimit``, as it is outside of the capture."""
    capture = session()
    assert capture is not None
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
    next: _next,
    sys.exit: _exit,
    sys.getrecursionlimit: _recursion_limit,
    kl_divergence: _divergence,
    id: _id,
    hash: _hash,
    operator.is_: _is,
    operator.is_not: _is_not,
    **complexes.MEANINGS,
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
    iter: _iter,
    map: _map,
    filter: _filter,
    itertools.islice: _islice,
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
