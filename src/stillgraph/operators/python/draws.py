"""Draws from Python's and numpy's random generators: each is done by the run, in order, by the generator itself.

The capture draws from none. What a draw gives it learns from a generator of its own: the class of the number, the
dtype and shape of the array. Of a sequence (``choice``, ``sample``, ``shuffle``) the run draws indices.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import itertools
import operator
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinMethodType, MethodType
from typing import Any, NoReturn

import numpy
import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.containers.ranges import Range
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.picking import pick
from stillgraph.operators.objects.changes import note_contents
from stillgraph.operators.python.numbers import len_
from stillgraph.program.draws import GENERATORS, AsTensor, Draw, Indices, OfGenerator, OfModule, Shuffled
from stillgraph.program.operations import invoke
from stillgraph.program.types import ListType, NumberType, ObjectType, TensorType
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.made_in_run import DrawnState
from stillgraph.trace.values.numbers import StagedFloat, StagedNumber, kind_of

_MODULES: tuple[Any, ...] = (random, numpy.random)
_OF_MODULES: dict[int, str] = {id(module.random.__self__): module.__name__ for module in _MODULES}
_FUNCTIONS = {id(getattr(numpy.random, name)): name for name in ("seed", "sample", "ranf")}
"""Those of ``numpy.random`` that are no methods of its generator."""

_KINDS = (random.Random, numpy.random.RandomState, numpy.random.Generator)
_BITS = (numpy.random.MT19937, numpy.random.PCG64, numpy.random.PCG64DXSM, numpy.random.Philox, numpy.random.SFC64)
_MAKERS = frozenset({*_KINDS, *_BITS, numpy.random.default_rng})
_OF_SEQUENCES = {"choice": "seq", "choices": "population", "sample": "population", "shuffle": "x"}
_READS, _SETS = ("getstate", "get_state"), ("setstate", "set_state")
_SCALARS = (bool, int, float)
_HINT = "Draw with torch.rand or torch.randint, or draw outside and pass what that gives."


def meaning_of(function: Any) -> Callable[..., Any] | None:
    """What draws from a random generator, makes or seeds one means in a capture; None for any other function."""
    name = _FUNCTIONS.get(id(function))
    if name is not None:
        return functools.partial(_draw, OfModule("numpy.random", name), None, name)
    if isinstance(function, (BuiltinMethodType, MethodType)):
        return _meaning_of_method(function, function.__self__)
    try:
        return functools.partial(_make, function) if function in _MAKERS else None
    except TypeError:  # not hashable
        return None


def _meaning_of_method(method: Any, generator: Any) -> Callable[..., Any] | None:
    name = method.__name__
    if not is_exactly(generator, _KINDS):
        return None
    module = _OF_MODULES.get(id(generator))
    if module is not None and hasattr(sys.modules[module], name):
        return functools.partial(_draw, OfModule(module, name), None, name)
    return functools.partial(_draw, OfGenerator(name), generator, name)


def _refused(draw: Draw, what: str) -> NoReturn:
    raise refuse("SG305", f"{draw} {what}", location=here(), hint=_HINT)


# ---- generators
def _make(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A generator that the function makes: the run makes it. What stands for it in the capture is never drawn from."""
    capture = capturing()
    first = next(iter((*args, *kwargs.values())), None)
    if function is numpy.random.default_rng and isinstance(first, numpy.random.Generator):
        return first
    _require_plain(OfModule("numpy.random", function.__name__), capture, args, kwargs)
    inner = tuple(each for each in (*args, *kwargs.values()) if isinstance(each, numpy.random.BitGenerator))
    made = function(*(type(each)(0) for each in inner)) if inner else function(0)
    capture.before_risk()  # a seed may be none
    node = capture.emit("call_function", invoke, (function, args, kwargs), {})
    node.meta["val"] = ObjectType(type(made))
    capture.region.define(made, node)
    if capture.random is not None:
        capture.random.meet(made)
    return made


def _owner(draw: Draw, capture: Session, generator: Any) -> tuple[Any, ...]:
    """The generator as an argument of a draw, none for a module's.

    Raises:
        CaptureError: it is neither from outside nor made by the run.
    """
    if generator is None:
        return ()
    if not capture.region.holds(generator) and not capture.is_outer(generator):
        kind = type(generator).__name__
        _refused(draw, f"is called of a {kind} that is neither from outside nor made on every path that leads here")
    return (generator,)


def _require_plain(draw: Draw, capture: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that the program could not hand on as they are."""
    for leaf in torch.utils._pytree.tree_leaves((args, kwargs)):
        held = isinstance(leaf, GENERATORS) and (capture.region.holds(leaf) or capture.is_outer(leaf))
        if not held and not isinstance(leaf, _TAKEN) and leaf is not None:
            _refused(draw, f"is given a {type(leaf).__name__}")


_TAKEN = (
    *(bool, int, float, str, bytes, bytearray, range, type, numpy.dtype, numpy.generic, numpy.ndarray),
    *(StagedNumber, StagedArray, DrawnState, numpy.random.SeedSequence),
)


# ---- draws
def _draw(draw: Draw, generator: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    capture = capturing()
    owner = _owner(draw, capture, generator)
    if name in _OF_SEQUENCES and (_kind(draw, generator) is random.Random or name == "shuffle"):
        return _of_sequence(capture, draw, owner, name, args, kwargs)
    _require_plain(draw, capture, args, kwargs)
    args, kwargs = torch.utils._pytree.tree_map_only(numpy.ndarray, numpy.copy, (args, kwargs))
    given = (*owner, *args)
    if name in _READS:
        return _state(capture, draw, given, kwargs)
    if name in (*_SETS, "seed"):
        capture.before_risk()
        capture.emit("call_function", invoke, (draw, given, kwargs), {})
        return None
    tried = _tried(_kind(draw, generator), draw, name, args, kwargs)
    if any(map(_is_staged, torch.utils._pytree.tree_leaves((args, kwargs)))):
        capture.before_risk()
    first = tried[0]
    if is_exactly(first, _SCALARS):
        return capture.fresh_result(type(first), capture.emit("call_function", invoke, (draw, given, kwargs), {}))
    return _array(capture, draw, given, kwargs, tried)


def _state(capture: Session, draw: Draw, given: tuple[Any, ...], kwargs: dict[str, Any]) -> DrawnState:
    node = capture.emit("call_function", invoke, (draw, given, kwargs), {})
    node.meta["val"] = ObjectType(tuple)
    state = DrawnState(str(draw))
    capture.region.define(state, node)
    return state


def _array(capture: Session, draw: Draw, given: Any, kwargs: Any, tried: Sequence[Any]) -> StagedArray:
    if not all(isinstance(each, (numpy.ndarray, numpy.generic)) for each in tried):
        _refused(draw, f"gives a {type(tried[0]).__name__}, which no tensor can hold")
    first = tried[0]
    shapes = [each.shape for each in tried]
    if len(set(map(len, shapes))) > 1 or len({each.dtype for each in tried}) > 1:
        _refused(draw, "gives an array of which only the run knows what dimensions it has")
    try:
        with torch._C.DisableTorchFunction():
            dtype = torch.from_numpy(numpy.empty(0, first.dtype)).dtype
    except TypeError:
        _refused(draw, f"gives an array of {first.dtype}, which no tensor can hold")
    shape = tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))
    node = capture.emit("call_function", invoke, (AsTensor(draw, dtype, shape), given, kwargs), {})
    tensor = capture.instantiate(TensorType(dtype, torch.device("cpu"), shape))
    return StagedArray(capture.bind(tensor, node), isinstance(first, numpy.generic))


def _is_staged(value: Any) -> bool:
    return isinstance(value, (StagedNumber, StagedArray))


def _kind(draw: Draw, generator: Any) -> Any:
    if generator is not None:
        return type(generator)
    return random.Random if isinstance(draw, OfModule) and draw.module == "random" else numpy.random.RandomState


def _tried(kind: Any, draw: Draw, name: str, args: Any, kwargs: Any) -> list[Any]:
    """What a draw gives by a generator that is nobody's, with some numbers in the place of those of the run.

    Raises:
        BaseException: as in eager PyTorch, where all arguments are known.
    """
    with capturing().executed.paused():  # what the methods read of themselves is nobody's
        own: Any = numpy.random.default_rng(0) if kind is numpy.random.Generator else kind(0)
        method = getattr(own, _OTHER_NAMES.get(name, name) if kind is numpy.random.RandomState else name)
        if not any(map(_is_staged, torch.utils._pytree.tree_leaves((args, kwargs)))):
            return [_given_anew(draw, method(*args, **kwargs), (args, kwargs))]
        found: list[Any] = []
        for first, as_shares in itertools.product(_INSTEAD, (False, True)):
            stand_in = functools.partial(_stand_in, draw, itertools.count(first), as_shares)
            with contextlib.suppress(Exception):  # of any kind: what is said to a number that need not fit
                given, keywords = torch.utils._pytree.tree_map(stand_in, _shared_out(as_shares, (args, kwargs)))
                found.append(_given_anew(draw, method(*given, **keywords), (given, keywords)))
    if len(found) < 2:
        _refused(draw, "is given what only the run knows, by which nobody can tell what it gives")
    return found


def _given_anew(draw: Draw, result: Any, given: Any) -> Any:
    """What a draw gives; refused where that is an array that it was given (``out``), for a program writes to none."""
    if isinstance(result, numpy.ndarray) and any(result is each for each in torch.utils._pytree.tree_leaves(given)):
        message = f"{draw} writes to an array that it is given"
        raise refuse("SG305", message, location=here(), hint="Leave out 'out', and use what the call gives.")
    return result


_OTHER_NAMES = {"sample": "random_sample", "ranf": "random_sample"}
_INSTEAD = (1, 2, 1000, 1001)  # the first number that stands for one of the run; the next ones are larger


_FLOATS = (StagedFloat, float)


def _shared_out(as_shares: bool, value: Any) -> Any:
    """Values with equal shares of 1 in the place of floats of the run in a list: probabilities have to sum to 1."""
    if not as_shares or not is_exactly(value, (tuple, list, dict)):
        return value
    if isinstance(value, dict):
        return {key: _shared_out(True, each) for key, each in value.items()}
    if any(isinstance(each, StagedFloat) for each in value) and all(isinstance(each, _FLOATS) for each in value):
        return [1 / len(value)] * len(value)
    return type(value)(_shared_out(True, each) for each in value)


def _stand_in(draw: Draw, numbers: Iterator[int], as_shares: bool, value: Any) -> Any:
    if isinstance(value, StagedNumber):
        kind: Any = kind_of(value)
        return kind(next(numbers)) if kind is int else kind(next(numbers) / 8)
    if isinstance(value, StagedArray):
        with torch._C.DisableTorchFunction():
            sizes = tuple(value.tensor.shape)
        if any(type(size) is not int for size in sizes):
            _refused(draw, "is given an array of which only the run knows the size")
        made = numpy.ones(sizes, str(value.tensor.dtype).removeprefix("torch."))
        if as_shares and made.ndim and made.size and numpy.issubdtype(made.dtype, numpy.floating):
            made /= made.shape[-1]
        return made[()] if value.scalar else made
    return value


# ---- sequences
def _of_sequence(
    capture: Session, draw: Draw, owner: tuple[Any, ...], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``choice``, ``choices``, ``sample``, ``shuffle``: the run draws indices into the sequence."""
    sequence, args, kwargs = _split(name, args, kwargs)
    by_index = name in ("choice", "choices") and isinstance(sequence, _INDEXED)
    by_index = by_index or (name == "sample" and isinstance(sequence, collections.deque))
    if not isinstance(sequence, _SEQUENCES) and not by_index:
        if name != "shuffle" and not isinstance(sequence, (*_INDEXED, dict)):
            _tried(random.Random, draw, name, (sequence, *args), kwargs)  # which says what is wrong with it
        _refused(draw, f"is given a {type(sequence).__name__}")
    _require_plain(draw, capture, args, kwargs)
    count = len_(sequence)
    if name == "shuffle":
        if type(sequence) is not list or args or kwargs:
            _refused(draw, f"is given a {type(sequence).__name__}" if not args and not kwargs else "is given options")
        return _shuffle(capture, draw, owner, sequence, count)
    if isinstance(count, int) and not any(map(_is_staged, torch.utils._pytree.tree_leaves((args, kwargs)))):
        tried = _tried(random.Random, draw, name, (range(count), *args), kwargs)[0]
    else:
        capture.before_risk()
        tried = 0 if name == "choice" else [0] * _known_count(draw, name, args, kwargs)
    node = capture.emit("call_function", invoke, (Indices(draw), (owner, count, *args), kwargs), {})
    if name == "choice":
        return _at(capture, sequence, capture.fresh_result(int, node))
    node.meta["val"] = tuple([0] * len(tried))
    return [_at(capture, sequence, index) for index in _each(capture, node, len(tried))]


_SEQUENCES = (list, tuple, range, Range, str, bytes)
_INDEXED = (torch.Tensor, torch.nn.ModuleList, torch.nn.Sequential, numpy.ndarray, StagedArray, collections.deque)


def _split(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The sequence, and the other arguments."""
    keyword = _OF_SEQUENCES[name]
    if args:
        return args[0], args[1:], kwargs
    if keyword not in kwargs:
        inspect.signature(getattr(random.Random, name)).bind(None, **kwargs)  # which raises, as the call does
    return kwargs[keyword], (), {key: value for key, value in kwargs.items() if key != keyword}


def _known_count(draw: Draw, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    count = kwargs.get("k", 1 if name == "choices" else args[0] if args else None)
    if type(count) is not int:
        _refused(draw, "draws as many elements as only the run knows")
    return count


def _each(capture: Session, node: Any, count: int) -> list[Any]:
    """The numbers in a list that a node gives."""
    return [
        capture.fresh_result(int, capture.emit("call_function", operator.getitem, (node, position), {}))
        for position in range(count)
    ]


def _at(capture: Session, sequence: Any, index: Any) -> Any:
    """The element at an index that is in the range."""
    if isinstance(sequence, Range):
        return sequence.at(index)
    if isinstance(sequence, range):
        return index if sequence.step == 1 and not sequence.start else sequence.start + index * sequence.step
    if isinstance(sequence, torch.Tensor):
        return sequence[index]
    if lists.is_spread(sequence):
        return lists.at(capture, sequence, index)
    return pick(capture, list(sequence), index)


def _shuffle(capture: Session, draw: Draw, owner: tuple[Any, ...], target: list[Any], count: Any) -> None:
    note_contents(target)
    items = list(target)
    node = capture.emit("call_function", invoke, (Shuffled(draw), (owner, count), {}), {})
    if not isinstance(count, int):
        node.meta["val"] = ListType(NumberType(int))
        target[:] = lists.in_order(capture, items, node)
        return
    node.meta["val"] = tuple([0] * count)
    target[:] = [_at(capture, _as_range(items), index) for index in _each(capture, node, count)]


def _as_range(items: list[Any]) -> Sequence[Any]:
    """The same elements as a range, where they are one: what is at an index is the index, then."""
    is_range = all(type(each) is int and each == place for place, each in enumerate(items))
    return range(len(items)) if is_range else items
