"""Iterators: `iter`, `next`, `map`, `enumerate`, `zip`, and those of `itertools`."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, GeneratorType, MappingProxyType
from typing import Any, NoReturn

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.conditions.branches import if_, if_exp
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.consumers.consumers import first, is_looped_over, known_or_list
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.ranges import Range, RangeIterator
from stillgraph.operators.containers.sequences import (
    Enumerated,
    ListIterator,
    Sliced,
    StagedRows,
    TextIterator,
    TupleIterator,
    Zipped,
)
from stillgraph.operators.containers.watched import iterated, run_over, watched_container
from stillgraph.operators.control_flow.generators import (
    Mapped,
    Produced,
    generator_of,
    is_fresh,
    strictly,
)
from stillgraph.operators.control_flow.trials import only_computed
from stillgraph.operators.dispatch import call, own_items
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import as_index
from stillgraph.operators.python.iteration import sequence_for, take_over
from stillgraph.operators.python.numbers import index
from stillgraph.polyfills.iterators import (
    POLYFILLS,
    groupby,
    items_by_index,
    items_by_method,
    next_by_method,
    numbered,
    repeat,
    zip_longest,
    zipped,
)
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.code.signals import Diverged, Restart
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.entries import container_of, some_keys
from stillgraph.trace.values.numbers import Staged, StagedNumber


def _iter(*args: Any) -> Any:
    for each in args:
        if container_of(each) is not None:
            raise refuse_unknown("SG211", f"iter is given {called(each)}, {some_keys(each)}", each)
    if len(args) == 1 and method_of(args[0], "__next__") is not None:
        return args[0]  # its method ``__iter__`` was called already
    by_position = len(args) == 1 and (capturing().knowledge.positions or _has_unknown_length(args[0]))
    return _by_position(args[0]) if by_position and type(args[0]) in _BY_POSITION else iter(*args)


def _map(function: Any, *iterables: Any) -> Any:
    if any(map(_has_unknown_length, iterables)):
        if len(iterables) == 1:
            return generator_of(_without_iter(iterables[0]), lambda item: _call_ending(function, item), made=Mapped)
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
    """Whether only the run knows how much can be drawn from something."""
    sequence = as_sequence(iterable)
    if isinstance(sequence, StagedRows) and not sequence.shape:
        return False  # nothing can
    if sequence is None:
        return is_fresh(iterable) or method_of(iterable, "__next__") is not None
    return not sequence.is_known


def _islice(iterable: Any, *bounds: Any) -> Any:
    capture = capturing()
    if not 0 < len(bounds) < 4:
        return itertools.islice(iterable, *bounds)  # says what is wrong
    cut = [as_index(capture, bound) for bound in bounds]
    itertools.islice((), *(1 if isinstance(bound, StagedNumber) else bound for bound in cut))
    if not is_exactly(iterable, (list, tuple)) or len(bounds) == 3:
        return _cut_out(capture, iterable, cut)
    if not (lists.is_spread(iterable) or any(isinstance(bound, StagedNumber) for bound in cut)):
        return itertools.islice(iterable, *bounds)
    for place, bound in enumerate(cut):
        if bound is not None:
            _require_count(capture, bound, "Stop argument" if place == len(cut) - 1 else "Indices")
    start = cut[0] if len(cut) == 2 and cut[0] is not None else 0
    return Sliced(iterable, start, cut[-1])


def _cut_out(capture: Session, iterable: Any, cut: list[Any]) -> Any:
    """``itertools.islice`` of what cannot be cut, or with a step."""
    for place, bound in enumerate(cut):
        if isinstance(bound, StagedNumber):
            _require_count(capture, bound, "Stop argument" if place == 1 or len(cut) == 1 else "Indices")
    if not any(map(_is_or_holds_unknown, (iterable, *cut))) and not any(isinstance(each, StagedNumber) for each in cut):
        return itertools.islice(iterable, *cut)
    return _generated(POLYFILLS[itertools.islice], itertools.islice, (iterable, *cut))


def _require_count(capture: Session, bound: Any, what: str) -> None:
    def fail() -> NoReturn:
        emit_raise(capture, ValueError(f"{what} for islice() must be None or an integer: 0 <= x <= sys.maxsize."))
        raise Diverged

    if_exp(bound < 0, fail, lambda: None)


def _next(iterator: Any, *default: Any) -> Any:
    """``next``: an iterator from before the capture would be used up by it, one from before an arm by both arms."""
    capture = capturing()
    if capture.iterators.counted(iterator):
        return capture.iterators.counters.advance(iterator)
    if isinstance(iterator, Indexed) and iterator.once:
        return iterator.next_(*default)
    method = method_of(iterator, "__next__")
    if method is not None:
        return call(next_by_method, iterator, *default) if default else call(method, iterator)
    iterator = capture.iterators.to_draw_from(iterator)
    fresh, where = is_fresh(iterator), here()
    if fresh and where in capture.knowledge.first_by_loop:
        return first(iterator, *default)
    capture.iterators.before_advancing(iterator)
    if not fresh:
        return next(iterator, *default)
    try:
        return next(iterator, *default)
    except (CaptureError, Refusal):  # only the run knows which element is the first
        raise Restart("first_by_loop", where) from None


# ---- enumerate and zip
def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """``enumerate``."""
    start, iterable = index(start), _without_iter(iterable)
    if is_fresh(iterable):
        return _generated(numbered, enumerate, (iterable, start))
    sequence = sequence_for(iterable)
    if sequence is not None:
        fresh = not isinstance(sequence, _AGAIN) and take_over((sequence,))
        return Enumerated(sequence, start) if fresh else _generated(numbered, enumerate, (iterable, start))
    if isinstance(start, StagedNumber):
        return ((operator.add(start, position), each) for position, each in enumerate(iterable))
    return enumerate(iterable, start)


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """``zip``."""
    unknown = any(map(_has_unknown_length, iterables))
    texts = (tuple(each) if type(each) is str else each for each in iterables)
    parts = [run_over(each) for each in texts] if unknown else [sequence_for(each) for each in iterables]
    again = any(isinstance(part, _AGAIN) for part in parts)
    if parts and all(part is not None for part in parts) and not again and take_over(parts):
        return _zipped(parts, strict)
    of_run = any(part is not None and not part.is_known for part in parts)
    if not (unknown or again) or (strict and not of_run):
        return zip(*iterables, strict=strict)
    if strict:
        what = "zip(strict=True) draws from an iterator, or from what only the run knows the length of"
        raise refuse("SG210", what, location=here(), hint="Make a list of that first, with list(...).")
    return _generated(zipped, zip, (_without_iter(iterables[0]), *map(_begun, iterables[1:])))


def _begun(iterable: Any) -> Any:
    """The iterator over what is asked for it once."""
    begun = method_of(iterable, "__next__") is not None or isinstance(iterable, (Produced, Indexed))
    found = iterable if begun and not isinstance(iterable, Range) else _by_position(iterable)
    return found if isinstance(found, Iterator) else _iter(found)


_AGAIN = (ListIterator, TupleIterator, TextIterator, RangeIterator)
"""What `iter` gives: the code has it, and may draw from it by itself."""


def _without_iter(iterable: Any) -> Any:
    """What a loop draws from in the place of an object whose ``__iter__`` was called already."""
    return own_items(iterable) if method_of(iterable, "__next__") is not None else iterable


def _by_position(iterable: Any) -> Any:
    """The iterator that ``iter(iterable)`` would be, one that branches join and loops carry where there is such."""
    made = _BY_POSITION.get(type(iterable))
    return iterated(iterable) if made is None else made(iterable)


_BY_POSITION: dict[type, Callable[[Any], Any]] = {
    list: ListIterator,
    tuple: TupleIterator,
    str: lambda given: TextIterator(tuple(given)),
    range: lambda given: RangeIterator(Range(given.start, given.stop, given.step)),
    Range: RangeIterator,
}


def _zipped(parts: list[Any], strict: bool) -> Any:
    zipped = Zipped(tuple(parts))
    return strictly(zipped, functools.partial(_require_one_length, parts)) if strict else zipped


def _require_one_length(parts: list[Any]) -> None:
    """Raise what a strict ``zip`` raises behind the last of what it gives."""
    lengths = [part.length() for part in parts]
    for count, length in enumerate(lengths[1:], 2):
        others = "argument 1" if count == 2 else f"arguments 1-{count - 1}"
        said = f"zip() argument {count} is {{}} than {others}"
        for differs, how in ((length < lengths[0], "shorter"), (length > lengths[0], "longer")):
            if_(differs, functools.partial(_raise_in_arm, ValueError(said.format(how))))


def _raise_in_arm(error: Exception) -> NoReturn:
    if not capturing().in_arm:
        raise error
    emit_raise(capturing(), error)
    raise Diverged


# ---- itertools
def _generated(polyfill: Callable[..., Any], kind: type, args: Any, kwargs: Any = MappingProxyType({})) -> Produced:
    """A polyfill that yields, in the place of an iterator of Python's."""
    capture = capturing()
    assert isinstance(polyfill, FunctionType)
    turned = capture.conversion.turn_inside_out(polyfill)
    assert turned is not None, f"{polyfill.__name__} is a generator"
    inside_out, emit = turned
    given = functools.partial(inside_out, *args, **kwargs)
    return _STANDING_FOR[kind](
        lambda takes: given(**{emit: takes}), lambda: capture.conversion.convert(polyfill)(*args, **kwargs)
    )


def _followed(function: Any, is_drawn_at_once: bool = False, asks: bool = False) -> Callable[..., Any]:
    """A function of `itertools`: its polyfill runs where only the run knows how much is drawn from its arguments.

    Args:
        function: the function.
        is_drawn_at_once: whether it draws all from its first argument, or if that is one of many from all, when called.
        asks: whether Python would ask elements for what only the run knows, or call a function with them.
    """
    kind = function if isinstance(function, type) else itertools.chain
    is_of_run = _is_of_the_run if asks else _is_or_holds_unknown

    def followed(*args: Any, **kwargs: Any) -> Any:
        if not any(map(is_of_run, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        if is_drawn_at_once:
            count = len(args) if function is itertools.product else 1
            args = (*(call(tuple, each) for each in args[:count]), *args[count:])
        return _generated(POLYFILLS[function], kind, args, kwargs)

    return followed


def _is_or_holds_unknown(given: Any) -> bool:
    """Whether only the run knows how much can be drawn from an argument, or from what it holds."""
    if is_exactly(given, (list, tuple)):
        return lists.is_spread(given) or any(map(_has_unknown_length, given))
    return _has_unknown_length(given)


def _is_of_the_run(given: Any) -> bool:
    """Whether Python's own code would ask an argument, or what is in it, for what only the run knows."""
    if is_exactly(given, (list, tuple)):
        return lists.is_spread(given) or any(map(_is_of_the_run, given))
    return isinstance(given, (FunctionType, BuiltinFunctionType, Staged)) or _has_unknown_length(given)


def _permutations(iterable: Any, r: Any = None) -> Any:
    """``itertools.permutations``: the polyfill takes one element after the other, as often as the capture knows."""
    if r is None and _is_or_holds_unknown(iterable):
        message = f"permutations is given {called(iterable)}, a list of unknown length"
        raise refuse_unknown("SG210", message, iterable)
    return _followed(itertools.permutations, is_drawn_at_once=True)(iterable, r)


def _repeat(object: Any, *times: Any, **named: Any) -> Any:
    given = [*times, *named.values()]
    if not any(isinstance(each, StagedNumber) for each in given):
        return itertools.repeat(object, *times, **named)
    return _generated(repeat, itertools.repeat, (object, *given))


def _zip_longest(*iterables: Any, fillvalue: Any = None) -> Any:
    if not any(map(_has_unknown_length, iterables)):
        return itertools.zip_longest(*iterables, fillvalue=fillvalue)
    if not all(is_exactly(each, (list, tuple)) for each in iterables):
        message = "itertools.zip_longest draws from a list of unknown length and from what has no length"
        raise refuse("SG206", message, location=here(), hint="Make lists of these first, with list(...).")
    check = _unchanged("itertools.zip_longest", *iterables)
    return _generated(zip_longest, itertools.zip_longest, (iterables, fillvalue, check))


def _groupby(iterable: Any, key: Any = None) -> Any:
    """``itertools.groupby``: Python draws a group when the code asks for it, the polyfill before."""
    if not _is_of_the_run(iterable):
        return itertools.groupby(iterable, key)
    values, is_fresh_one = iterable if is_exactly(iterable, (list, tuple)) else MISSING, is_fresh(iterable)
    if is_fresh_one:
        values = only_computed(capturing(), lambda: call(list, iterable))
    if values is MISSING:
        what = "a generator that may raise, or does more than compute" if is_fresh_one else "an iterator"
        hint = "Make a list of it first, with list(...)."
        raise refuse("SG206", f"itertools.groupby draws from {what}", location=here(), hint=hint)

    def quiet(value: Any) -> Any:
        found = only_computed(capturing(), lambda: call(key, value))
        if found is MISSING:
            message = "the key of itertools.groupby may raise, or does more than compute"
            hint = "Group in a loop of your own: if key(v) == last: group.append(v)."
            raise refuse("SG206", message, location=here(), hint=hint)
        return found

    given = (values, None if key is None else quiet, _unchanged("itertools.groupby", values))
    return _generated(groupby, itertools.groupby, given)


def _unchanged(name: str, *values: Any) -> Callable[[], None]:
    """What a polyfill calls that has read ahead: it refuses lists that are not what they were."""
    held = [[*each] for each in values]

    def check() -> None:
        if any(len(now) != len(each) or not all(map(operator.is_, now, each)) for now, each in zip(values, held)):
            message = f"a list is changed that {name} draws from"
            raise refuse("SG206", message, location=here(), hint="Give it a copy: list(values).")

    return check


_STANDING_FOR: dict[type, type[Produced]] = {
    kind: type(kind.__name__, (Produced,), {"__slots__": ()}, kind=kind)
    for kind in (enumerate, zip, GeneratorType, *(each for each in POLYFILLS if isinstance(each, type)))
}


_ASKING = (
    *(itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.compress),
    *(itertools.accumulate, itertools.starmap),
)
_DRAWING_AT_ONCE = (itertools.product, itertools.combinations, itertools.combinations_with_replacement)


@own_items.defined
def _own_items(iterator: Any) -> Produced:
    """The elements that the methods of an object give, where only the run knows how many these are."""
    by_index = method_of(iterator, "__next__") is None
    return _generated(items_by_index if by_index else items_by_method, GeneratorType, (iterator,))


MEANINGS: dict[Any, Callable[..., Any]] = {
    iter: _iter,
    next: _next,
    map: _map,
    **{function: _followed(function) for function in POLYFILLS},
    **{function: _followed(function, asks=True) for function in _ASKING},
    **{function: _followed(function, is_drawn_at_once=True) for function in _DRAWING_AT_ONCE},
    itertools.islice: _islice,
    itertools.permutations: _permutations,
    itertools.groupby: _groupby,
    itertools.repeat: _repeat,
    itertools.zip_longest: _zip_longest,
}
"""By Python's own functions."""
