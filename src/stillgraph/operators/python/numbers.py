"""Python's functions on numbers and iterables, where an argument is only known at run time."""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import InternalError, refuse
from stillgraph.core.lookup import is_exactly, of_class
from stillgraph.operators.conditions.branches import if_, if_exp, select
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.conditions.truth import tensor_of, truth, truth_number
from stillgraph.operators.consumers.comprehensions import list_of
from stillgraph.operators.consumers.consumers import fold, is_looped_over, known_or_list
from stillgraph.operators.containers import sequences
from stillgraph.operators.containers.drawing import items_of, listed
from stillgraph.operators.containers.watched import run_over, watched_container
from stillgraph.operators.control_flow.closing import before_stop
from stillgraph.operators.control_flow.generators import Produced, enumerated, strictly
from stillgraph.operators.dispatch import asked, call, for_, indexed
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import NOT_AN_INDEX, as_index
from stillgraph.operators.elements.stand_ins import kind_of_stand_in
from stillgraph.operators.objects.booleans import and_, or_
from stillgraph.operators.objects.strings import format_, print_, repr_, str_
from stillgraph.operators.outside.abstract_classes import asks_itself, note_answer
from stillgraph.program.facts.info import info
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here, module_here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.arms import emit_raise
from stillgraph.trace.control_flow.caught_kinds import class_in_run, class_of
from stillgraph.trace.control_flow.narrowing import is_optional
from stillgraph.trace.control_flow.unjoined import Unjoined
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.exits import BREAK, Exit
from stillgraph.trace.torch_rules.special import number_kind, read_shape
from stillgraph.trace.torch_rules.tensor_classes import class_of_tensor, is_instance
from stillgraph.trace.values.arrays import StagedArray, require_one_element
from stillgraph.trace.values.caught import Caught, CaughtPart
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.numbers import Staged, StagedBool, StagedNumber, is_mixed, is_number, kind_of
from stillgraph.trace.values.operands import require_one_kind, sample, unsupported
from stillgraph.trace.values.text import StagedText


def _capture() -> Session:
    capture = session()
    assert capture is not None
    return capture


_EMPTY = torch.empty(0, dtype=torch.int64)


def _said(function: Callable[[Any], Any]) -> Exception:
    """What a function says to a tensor that does not have one element."""
    try:
        function(_EMPTY)
    except Exception as error:  # of any kind: it is what is asked for
        return error
    raise InternalError(f"{function.__name__} takes a tensor without elements")


_NOT_ONE: dict[Any, Exception] = {function: _said(function) for function in (int, float, range)}


def _from_tensor(kind: type, value: torch.Tensor, asked_by: Any = None) -> Any:
    """``int(tensor)``, ``float(tensor)``: recorded as the user wrote it."""
    capture = _capture()
    numel = capture.to_fake(value).numel()
    said = _NOT_ONE[asked_by or kind]
    if isinstance(numel, int) and numel != 1:
        raise type(said)(*said.args)
    if not isinstance(numel, int):
        capture.before_raise(type(said))
    if number_kind(capture.to_fake(value).dtype) is float and kind is int:
        capture.before_rounding()
    return capture.fresh_result(kind, capture.emit("call_function", kind, (value,), {}))


_ASKED_FOR = {
    int: ("__int__", "__index__"),
    float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
    range: ("__index__",),
}
"""Which methods Python asks an object for, for a number of a kind; the first that there is gives it."""


def number_of(value: Any, kind: type) -> Any:
    """What an object of the user's gives for a number of a kind; anything else as it is."""
    name = next((each for each in _ASKED_FOR[kind] if of_class(value, each) is not None), None)
    return value if name is None or method_of(value, name) is None else asked(value, name)


def int_(value: Any = 0, /, *base: Any) -> Any:
    """``int``."""
    value = value if base else number_of(value, int)
    if isinstance(value, StagedArray):
        require_one_element(value, int)
    value = tensor_of(value)
    if base and isinstance(value, (torch.Tensor, Staged)):
        unsupported(int, value, *base)
    if base:
        return int(value, *base)
    if isinstance(value, torch.Tensor):
        return _from_tensor(int, value)
    if isinstance(value, StagedNumber):
        return _as_kind(int, value)
    return unsupported(int, value) if isinstance(value, StagedComplex) else int(value)


def _as_kind(kind: type, value: StagedNumber) -> Any:
    if kind_of(value) is kind and not is_optional(value) and not is_mixed(value):
        return value
    return _capture().number_operation(kind, (value,))


def float_(value: Any = 0.0, /) -> Any:
    """``float``."""
    value = number_of(value, float)
    if isinstance(value, StagedArray):
        require_one_element(value, float)
    value = tensor_of(value)
    if isinstance(value, torch.Tensor):
        return _from_tensor(float, value)
    if isinstance(value, StagedNumber):
        return _as_kind(float, value)
    return unsupported(float, value) if isinstance(value, StagedComplex) else float(value)


def bool_(value: Any = False, /) -> Any:
    """``bool``."""
    return truth_number(_capture(), value)


def len_(value: Any, /) -> Any:
    """``len``; a symbolic first dimension stays symbolic."""
    value = tensor_of(value)
    _capture().settling.require_current(value)
    if _capture().may_be_none(value):
        return _capture().with_or_without(value, len_)
    if isinstance(value, torch.Tensor):
        capture = _capture()
        shape = read_shape(capture, value, capture.to_fake(value))
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]
    if isinstance(value, sequences.Indexed):
        if value.once:
            raise TypeError(f"object of type '{type(value).__name__}' has no len()")
        return value.length()  # type: ignore[attr-defined]  # each of them has it
    if lists.is_spread(value):
        return lists.length(_capture(), value)
    known = container_of(value)
    if known is not None:
        return lists.entry_count(_capture(), known)
    has_method = of_class(value, "__len__") is not None and not isinstance(value, (list, tuple, dict, str, set))
    return asked(value, "__len__") if has_method else len(value)


def range_(*bounds: Any) -> Any:
    """``range``; tensors with one element count as whole numbers."""
    bounds = tuple(as_index(_capture(), each) if isinstance(each, StagedArray) else indexed(each) for each in bounds)
    for bound in bounds:
        if isinstance(bound, torch.Tensor) and (bound.dtype.is_floating_point or bound.dtype.is_complex):
            raise TypeError(NOT_AN_INDEX)
    whole = [_from_tensor(int, b, range) if isinstance(b, torch.Tensor) else b for b in bounds]
    if not any(isinstance(b, StagedNumber) for b in whole):
        return range(*whole)
    require_one_kind(whole, "is the bound of a range")
    whole = [each if is_number(each) else operator.index(each) for each in whole]
    if len(whole) > 3 or any(kind_of(each) is float for each in whole):
        unsupported(range, *whole)
    whole = [_as_kind(int, each) if isinstance(each, StagedBool) else each for each in whole]
    return sequences.Range(*((0, whole[0], 1) if len(whole) == 1 else (*whole, 1)[:3]))


def index(value: Any, /) -> Any:
    """``operator.index``."""
    if _capture().may_be_none(value):
        return _capture().with_or_without(value, index)
    found = as_index(_capture(), value)
    if isinstance(found, StagedNumber):
        return found if kind_of(found) is int else unsupported(operator.index, found)
    return operator.index(found)


def _is_unknown(value: Any) -> bool:
    """Whether only the run knows how many elements a container has."""
    return lists.is_spread(value) or container_of(value) is not None


def _sequence(value: Any) -> Any:
    """A sequence if running over ``value`` could have to be staged."""
    if (
        isinstance(value, (torch.Tensor, sequences.Indexed, range))
        or _is_unknown(value)
        or (isinstance(value, (list, tuple)) and value and all(is_number(v) for v in value))
    ):
        return run_over(value)
    return None


def _take_over(parts: Iterable[Any]) -> bool:
    """Let a new iterator alone draw from sequences, by their indices; False where some have been drawn from already."""
    iterators = [part for part in parts if part.once]
    if any(each.cursor is not None for each in iterators) or len(set(map(id, iterators))) < len(iterators):
        return False
    for each in iterators:
        each.hand_over()
    return True


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """``enumerate``."""
    start = index(start)
    if isinstance(iterable, Produced) and not iterable.begun:
        return enumerated(iterable, start)
    sequence = _sequence(iterable)
    if sequence is None or not _take_over((sequence,)):
        if isinstance(start, StagedNumber):
            return ((operator.add(start, position), each) for position, each in enumerate(iterable))
        return enumerate(iterable, start)
    return sequences.Enumerated(sequence, start)


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """``zip``."""
    if any(map(_is_unknown, iterables)):
        return _zip_with_spread(iterables, strict)
    parts = [_sequence(i) for i in iterables]
    if not parts or any(part is None for part in parts) or not _take_over(parts):
        return zip(*iterables, strict=strict)
    return _zipped(parts, strict)


def _zip_with_spread(iterables: Any, strict: bool) -> Any:
    parts = [run_over(i) for i in iterables]
    if any(part is None for part in parts):
        raise refuse("SG210", "a list of unknown length is zipped with what cannot be indexed", location=here())
    if not _take_over(parts):
        raise refuse("SG210", "a list of unknown length is zipped with an iterator that was advanced", location=here())
    return _zipped(parts, strict)


def _zipped(parts: list[Any], strict: bool) -> Any:
    zipped = sequences.Zipped(tuple(parts))
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
    if not _capture().in_arm:
        raise error
    emit_raise(_capture(), error)
    raise Diverged


def reversed_(value: Any, /) -> Any:
    """``reversed``."""
    sequence = run_over(value) if isinstance(watched_container(value), _REVERSIBLE) else _sequence(value)
    if isinstance(value, sequences.Indexed) and value.once:
        raise TypeError(f"'{type(value).__name__}' object is not reversible")
    if isinstance(value, torch.Tensor):
        return sequences.StagedRows(value.flip(0))
    return reversed(value) if sequence is None else sequences.StagedReversed(sequence)


_REVERSIBLE = (dict, collections.deque)


def list_(iterable: Any = (), /) -> Any:
    """``list``."""
    return list(known_or_list(iterable, listed))


def tuple_(iterable: Any = (), /) -> Any:
    """``tuple``."""
    return tuple(known_or_list(iterable, listed))


def _staged(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, StagedNumber))


def _extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def extreme(first: Any, /, *others: Any, key: Any = None, **default: Any) -> Any:
        values = (first, *others)
        if not others and key is not None and is_looped_over(first):
            return _extreme_by_key(function, first, key, default)
        if len(values) == 1 and not isinstance(values[0], torch.Tensor):
            values = (known_or_list(values[0]),)
        items = list(values[0]) if len(values) == 1 else list(values)
        if lists.is_spread(items):
            return _extreme_of_spread(function, items, key, default)
        if not any(_staged(v) for v in items) and key is None:
            return function(items, **default)
        if not items:
            return function(items, key=key, **default)
        if key is None and all(is_number(v) for v in items) and len({kind_of(v) for v in items}) == 1:
            return _fold_numbers(function, items)
        def measure(value: Any) -> Any:
            return value if key is None else call(key, value)

        best, rank = items[0], measure(items[0])
        for item in items[1:]:
            candidate = measure(item)
            test = better(candidate, rank)
            best, rank = _pick(test, (item, candidate), (best, rank))
        return best

    return extreme


def _extreme_by_key(function: Callable[..., Any], iterable: Any, key: Any, default: dict[str, Any]) -> Any:
    """``max(iterable, key=key)`` of what a loop draws from: each element is measured before the next is drawn."""
    pairs = list_of(iterable, lambda item: (item, call(key, item)))
    if not lists.is_spread(pairs):
        if not pairs:
            return function(pairs, **default)
        return MEANINGS[function](pairs, key=lambda pair: pair[1])[0]
    items, keys = list_of(pairs, lambda pair: pair[0]), list_of(pairs, lambda pair: pair[1])
    if "default" in default:
        return if_exp(items, lambda: _of_largest(function, items, keys), lambda: default["default"])
    return _of_largest(function, items, keys)


def _of_largest(function: Callable[..., Any], items: list[Any], keys: list[Any]) -> Any:
    index = lists.METHODS["index"](_capture(), keys, lists.extreme(function, keys))
    return lists.at(_capture(), items, index)


def _extreme_of_spread(function: Callable[..., Any], items: list[Any], key: Any, default: dict[str, Any]) -> Any:
    if "default" in default:
        return if_exp(items, lambda: _extreme_of_spread(function, items, key, {}), lambda: default["default"])
    if key is None:
        return lists.extreme(function, items)
    return _of_largest(function, items, list_of(items, lambda item: call(key, item)))


def _pick(test: Any, left: Any, right: Any) -> Any:
    return if_exp(test, lambda: left, lambda: right)


def _fold_numbers(function: Callable[..., Any], items: list[Any]) -> Any:
    best = items[0]
    for item in items[1:]:
        best = _capture().number_operation(function, (best, item))
    return best


def sum_(iterable: Any, /, start: Any = 0) -> Any:
    """``sum``: additions from left to right, beginning with ``start``."""
    if not is_looped_over(iterable):
        items = known_or_list(iterable)
        iterable = items if lists.is_spread(items) else iter(items)
    return fold(lambda total, value: total + value, iterable, start)


def any_(iterable: Any, /) -> Any:
    """``any``, which stops at the first true value."""
    return _until(iterable, True)


def all_(iterable: Any, /) -> Any:
    """``all``, which stops at the first false value."""
    return _until(iterable, False)


def _until(iterable: Any, stop_at: bool) -> Any:
    if isinstance(iterable, Produced) or _is_unknown(iterable):
        return _until_in_loop(iterable, stop_at)
    capture = _capture()
    iterator = items_of(iterable)

    def go_on() -> Any:
        for value in iterator:
            known = truth(capture, value)
            if isinstance(known, bool):
                if known is stop_at:
                    return stop_at
                continue
            number = truth_number(capture, known)
            before_stop(capture, iterator)
            if stop_at:
                return select(capture, number, lambda: True, go_on)
            return select(capture, number, go_on, lambda: False)
        return not stop_at

    return go_on()


def _until_in_loop(iterable: Any, stop_at: bool) -> Any:
    """``any`` or ``all`` as a loop that may be staged."""
    capture = _capture()
    found: Any = not stop_at

    def one(value: Any) -> Exit | None:
        def stop() -> Exit:
            nonlocal found
            found = stop_at
            return BREAK

        known = truth_number(capture, value)
        return if_(known, stop, keeps=("found",)) if stop_at else if_(known, lambda: None, stop, keeps=("found",))

    for_(iterable, one, keeps=("found",))
    return found


def isinstance_(value: Any, kinds: Any, /) -> Any:
    """``isinstance``: a staged number is an instance of its Python type, not of ours."""
    capture = _capture()
    if isinstance(value, Unjoined):
        return value.asks(lambda v: isinstance_(v, kinds))
    if capture.may_be_none(value):
        return capture.with_or_without(value, lambda v: isinstance_(v, kinds))
    if _is_uncertain(value):
        return capture.fresh_result(bool, capture.emit("call_function", isinstance, (value, kinds), {}))
    if isinstance(value, StagedArray):
        return issubclass(_class_of_array(value), kinds)
    if isinstance(value, StagedNumber):
        return issubclass_(kind_of(value), kinds)
    if isinstance(value, StagedComplex):
        return issubclass_(complex, kinds)
    if isinstance(value, StagedText):
        answer = isinstance(value if asks_itself(kinds) else "", kinds)
        note_answer(capture, str, kinds, answer)
        return answer
    kind = kind_of_stand_in(value)
    if kind is not None:
        return issubclass(kind, kinds)
    answer = is_instance(capture, value, kinds) if is_fake(value) else isinstance(value, kinds)
    note_answer(capture, torch.Tensor if is_fake(value) else type(value), kinds, answer)
    return answer


def issubclass_(kind: Any, kinds: Any, /) -> Any:
    """``issubclass``."""
    if isinstance(kind, CaughtPart) and kind.what == "type":
        return isinstance_(kind.error, kinds)
    answer = issubclass(kind, kinds)
    note_answer(_capture(), kind, kinds, answer)
    return answer


def _class_of_array(value: StagedArray) -> Any:
    numpy: Any = sys.modules["numpy"]
    return numpy.dtype(str(value.tensor.dtype).removeprefix("torch.")).type if value.scalar else numpy.ndarray


def _is_uncertain(value: Any) -> bool:
    """Whether only the run knows what kind of value it is: a tensor, a number or None, or which exception."""
    if isinstance(value, Caught):
        return True
    if not _staged(value):
        return False
    known = info(value)
    return known.may_be_unbound or known.may_be_number or known.kind_varies


_ONE_KIND = "Let the value be of one kind on each path."


def type_(*args: Any) -> Any:
    """``type``."""
    if len(args) == 1 and _capture().may_be_none(args[0]):
        return _capture().with_or_without(args[0], type_)
    if len(args) == 1 and isinstance(args[0], Caught):
        known = class_of(_capture(), args[0])
        return class_in_run(_capture(), args[0]) if known is None else known
    if len(args) == 1 and _is_uncertain(args[0]):
        message = "the type of a value is asked for that only the run knows"
        raise refuse("SG301", message, location=here(), hint=_ONE_KIND)
    if len(args) == 1 and isinstance(args[0], StagedNumber):
        return kind_of(args[0])
    if len(args) == 1 and isinstance(args[0], (StagedText, StagedComplex)):
        return type(sample(args[0]))
    if len(args) == 1 and kind_of_stand_in(args[0]) is not None:
        return kind_of_stand_in(args[0])
    if len(args) == 1 and is_fake(args[0]):
        return class_of_tensor(_capture(), args[0])
    if len(args) == 1 and isinstance(args[0], StagedArray):
        return _class_of_array(args[0])
    if len(args) == 3 and type(args[2]) is dict and "__module__" not in args[2]:
        return type(*args[:2], {**args[2], "__module__": module_here()})
    return type(*args)


def round_(number: Any, ndigits: Any = None) -> Any:
    """``round``."""
    if ndigits is None:
        return round(number)
    if not isinstance(number, torch.Tensor):
        ndigits = as_index(_capture(), ndigits)
    if isinstance(ndigits, StagedNumber) and is_exactly(number, (bool, int, float)):
        return _capture().number_operation(round, (number, ndigits))
    return round(number, ndigits)


def pow_(base: Any, exponent: Any, *modulo: Any) -> Any:
    """``pow``."""
    if any(isinstance(each, StagedNumber) for each in modulo):
        unsupported(pow, base, exponent, *modulo)  # which asks the first two alone
    return base**exponent if not modulo else pow(base, exponent, *modulo)


_BY_METHOD = frozenset({math.trunc, math.floor, math.ceil})
_WHOLE_MATH = frozenset({math.gcd, math.lcm, math.isqrt, math.comb, math.perm, math.factorial})


def math_(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` on numbers that may be staged."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if function is math.trunc and isinstance(args[0] if args else None, torch.Tensor):
            return function(_EMPTY)  # a tensor has no `__trunc__`
        convert = int_ if function in _WHOLE_MATH else float_
        kind = range if function in _WHOLE_MATH else float
        given = args if function in _BY_METHOD else tuple(number_of(each, kind) for each in args)
        numbers = tuple(convert(a) if isinstance(a, torch.Tensor) else a for a in given)
        if any(isinstance(n, StagedNumber) for n in numbers):
            if kwargs:
                raise refuse("SG301", f"math.{function.__name__} with keywords on a staged number", location=here())
            return _capture().number_operation(function, numbers)
        return function(*numbers, **kwargs)

    return wrapped


MEANINGS: dict[Any, Callable[..., Any]] = {
    int: int_,
    float: float_,
    bool: bool_,
    len: len_,
    list: list_,
    tuple: tuple_,
    range: range_,
    enumerate: enumerate_,
    zip: zip_,
    reversed: reversed_,
    min: _extreme(min, operator.lt),
    max: _extreme(max, operator.gt),
    sum: sum_,
    any: any_,
    all: all_,
    isinstance: isinstance_,
    inspect.isgenerator: lambda value, /: isinstance_(value, GeneratorType),
    issubclass: issubclass_,
    type: type_,
    print: print_,
    str: str_,
    repr: repr_,
    format: format_,
    pow: pow_,
    round: round_,
    operator.index: index,
    operator.truth: lambda value, /: bool_(value),
    **{getattr(math, name): math_(getattr(math, name)) for name in dir(math) if callable(getattr(math, name))},
}
"""What a call of one of Python's own functions means in a capture."""

__all__ = ["MEANINGS", "and_", "builtins", "or_"]
