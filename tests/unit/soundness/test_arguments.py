"""What code can tell of arguments besides their contents: identity, layout, attributes, facts of tensors."""

from __future__ import annotations

import datetime
import decimal
import fractions
import functools
import operator
import pathlib
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, refusal, same_error

World = tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]  # a function, and the calls of it


def X() -> Tensor:
    return torch.tensor([1.0, 2.0, 3.0])


@dataclass
class Count:
    n: int


def follows(make: Callable[[], World], programs: int, **options: Any) -> None:
    """Assert that a static function does call after call what the function does, in two worlds made alike."""
    (function, calls), (again, same_calls) = make(), make()
    static = sg.to_static(again, backend="eager", **options)
    for number, (args, same_args) in enumerate(zip(calls, same_calls, strict=True)):
        (expected, error), (actual, raised) = _done(function, args), _done(static, same_args)
        if isinstance(raised, sg.CaptureError):
            raise raised
        assert same_error(error, raised), f"call {number}: raises {raised!r}, eager {error!r}"
        assert_same(expected, actual, f"call {number}: the result")
        assert_same(calls, same_calls, f"call {number}: what was passed")
    assert static.cache_info().programs == programs


def _done(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        return function(*args), None
    except Exception as error:
        return None, error


# ---- containers and objects that are passed twice
def appends(x: Tensor, a: Any, b: Any) -> Any:
    a.append(1)
    return x * len(b)


def adds(x: Tensor, a: Any, b: Any) -> Any:
    a.add(9)
    return x * len(b)


def stores(x: Tensor, a: Any, b: Any) -> Any:
    a["k"] = 5
    return x * b["k"]


def sets(x: Tensor, a: Any, b: Any) -> Any:
    a.n = 5
    return x * b.n


def compares(x: Tensor, a: Any, b: Any) -> Any:
    return x * 2 if a is b else x


def returns(x: Tensor, a: Any, b: Any) -> Any:
    return x, a, b


def inner(x: Tensor, a: Any, b: Any) -> Any:
    a[0].append(x)
    return x * len(a[1]) + len(b)


def nested(make: Callable[[], Any]) -> Callable[[], list[Any]]:
    def made() -> list[Any]:
        part = make()
        return [part, part]

    return made


TWICE: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "list": (appends, lambda: [1]),
    "list of tensors": (appends, lambda: [X()]),
    "deque": (appends, lambda: deque([1])),
    "set": (adds, lambda: {1}),
    "dict": (stores, lambda: {"k": 1}),
    "dataclass": (sets, lambda: Count(1)),
    "compared list": (compares, lambda: [1]),
    "compared tuple": (compares, lambda: (X(),)),
    "compared dataclass": (compares, lambda: Count(1)),
    "returned": (returns, lambda: [1]),
    "inside": (inner, nested(lambda: [1])),
}


@pytest.mark.parametrize("first", [True, False], ids=["one, then two", "two, then one"])
@pytest.mark.parametrize("name", TWICE)
def test_one_object_passed_twice(name: str, first: bool) -> None:
    function, make = TWICE[name]

    def world() -> World:
        def call(one: bool) -> tuple[Any, ...]:
            value = make()
            return X(), value, value if one else make()

        return function, [call(first), call(not first), call(first), call(not first)]

    follows(world, 2)


def test_one_inside_another() -> None:
    def f(x: Tensor, a: Any, b: Any) -> Any:
        a.append(3)
        return x * len(b[0])

    def world() -> World:
        def call(shared: bool) -> tuple[Any, ...]:
            part = [1]
            return X(), part, [part if shared else [1]]

        return f, [call(True), call(False), call(True)]

    follows(world, 2)


# ---- arguments that the code reaches by another path too
def global_list() -> World:
    known = [1]

    def f(x: Tensor, a: Any) -> Any:
        known.append(2)
        return x * sum(a)

    return f, [(X(), known), (X(), [1, 2]), (X(), [1, 2]), (X(), [1, 2, 2, 2])]


def global_list_afterwards() -> World:
    known = [1]

    def f(x: Tensor, a: Any) -> Any:
        a.append(2)
        return x * sum(known)

    return f, [(X(), [1]), (X(), known), (X(), known)]


def list_of_a_helper() -> World:
    known = [1]

    def helper() -> int:
        return len(known)

    def f(x: Tensor, a: Any) -> Any:
        a.append(2)
        return x * helper()

    return f, [(X(), known), (X(), [1]), (X(), known)]


def list_with_tensors() -> World:
    known = [X()]

    def f(x: Tensor, a: Any) -> Any:
        a.append(x)
        return x * len(known) + known[0]

    return f, [(X(), known), (X(), [X()]), (X() + 1, known)]


def global_dataclass() -> World:
    known = Count(1)

    def f(x: Tensor, a: Any) -> Any:
        a.n += 1
        return x * known.n

    return f, [(X(), known), (X(), Count(1)), (X(), known)]


def attribute_of_an_argument() -> World:
    def f(x: Tensor, owner: Any, a: Any) -> Any:
        a.append(2)
        return x * len(owner.items)

    owner = Owner()
    return f, [(X(), owner, owner.items), (X(), owner, [1, 2]), (X(), owner, owner.items)]


class Owner:
    def __init__(self) -> None:
        self.items = [1]


def global_tensor() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        return x if x is known else x * 2

    return f, [(known,), (X(),), (known,), (torch.ones(3),)]


def global_tensor_afterwards() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        return x if x is known else x * 2

    return f, [(X(),), (known,), (X(),)]


def tensor_written_elsewhere() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        known.add_(1)
        return x * 2

    return f, [(known,), (X(),), (known,)]


def global_tensor_written_as_argument() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        x.add_(1)
        return known * 2

    return f, [(X(),), (known,), (X(),), (known,)]


def tensor_of_a_list() -> World:
    known = [torch.ones(3), torch.zeros(3)]

    def f(x: Tensor) -> Any:
        return x * 2 if any(x is tensor for tensor in known) else x

    return f, [(X(),), (known[1],), (X(),), (known[1],)]


ELSEWHERE = (
    (global_list, 4),
    (global_list_afterwards, 3),
    (list_of_a_helper, 3),
    (list_with_tensors, 3),
    (global_dataclass, 3),
    (attribute_of_an_argument, 3),
    (global_tensor, 2),
    (global_tensor_afterwards, 2),
    (tensor_written_elsewhere, 2),
    (global_tensor_written_as_argument, 2),
    (tensor_of_a_list, 2),
)


@pytest.mark.parametrize(("make", "most"), ELSEWHERE, ids=[make.__name__ for make, _ in ELSEWHERE])
def test_an_argument_that_is_reached_by_another_path_too(make: Callable[[], World], most: int) -> None:
    (function, calls), (again, same_calls) = make(), make()
    static = sg.to_static(again, backend="eager")
    for number, (args, same_args) in enumerate(zip(calls, same_calls, strict=True)):
        assert_same(function(*args), static(*same_args), f"call {number}")
        assert_same(calls, same_calls, f"call {number}: what was passed")
    assert static.cache_info().programs <= most


# ---- tensors told by identity
def told_by_a_set(x: Tensor, y: Tensor) -> Any:
    return x * len({x, y})


def told_by_a_dict(x: Tensor, y: Tensor) -> Any:
    return x * {x: 1.0, y: 2.0}[x]


def told_by_a_function(x: Tensor, y: Tensor) -> Any:
    return x * 2 if operator.is_(x, y) else x


def told_by_its_opposite(x: Tensor, y: Tensor) -> Any:
    return x * 2 if operator.is_not(x, y) else x


@pytest.mark.parametrize("first", [True, False], ids=["one, then two", "two, then one"])
@pytest.mark.parametrize("function", [told_by_a_set, told_by_a_dict, told_by_a_function, told_by_its_opposite])
def test_two_tensors_told_by_identity(function: Callable[..., Any], first: bool) -> None:
    def world() -> World:
        one, other = X(), X()
        calls = [(one, one), (one, other)]
        return function, calls if first else calls[::-1]

    follows(world, 2)


@pytest.mark.parametrize("first", [True, False], ids=["the key, then another", "another, then the key"])
def test_a_tensor_that_is_a_key(first: bool) -> None:
    def world() -> World:
        key, other = X(), X()
        known = {key: 5.0}
        calls = [(key,), (other,), (key,), (other,)]
        return lambda x: x * known.get(x, 1.0), calls if first else calls[1:]

    follows(world, 2)


def test_the_id_of_an_argument_is_refused() -> None:
    assert refusal(lambda x, y: x if id(x) == id(y) else x * 2, X(), X()).reason.code == "SG301"


@pytest.mark.parametrize("first", [True, False], ids=["one, then two", "two, then one"])
def test_arguments_with_symbolic_sizes_told_by_identity(first: bool) -> None:
    def world() -> World:
        short, long = torch.arange(3.0), torch.arange(4.0)
        calls = [(short, short), (short, long), (long, long), (long, long + 1)]
        return lambda x, y: x.sum() - 1 if x is y else x.sum() + y.sum(), calls if first else calls[::-1]

    follows(world, 2, input_spec=[sg.InputSpec([None]), sg.InputSpec([None])])


def test_one_tensor_with_symbolic_sizes_passed_twice() -> None:
    spec = [sg.InputSpec([None]), sg.InputSpec([None])]
    x = torch.arange(3.0)
    agree(lambda x, y: x - y, (x, x), (x, x * 2), (X(), X() * 3), input_spec=spec)


# ---- attributes that people keep on tensors
def tagged(**attributes: Any) -> Tensor:
    tensor = X()
    tensor.__dict__.update(attributes)
    return tensor


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "function",
    [lambda x: x * getattr(x, "tag", 1.0), lambda x: x * 2 if hasattr(x, "tag") else x],
    ids=["getattr", "hasattr"],
)
def test_attributes_of_a_tensor(function: Callable[..., Any], order: slice) -> None:
    calls = [(X(),), (tagged(tag=3.0),), (tagged(tag=4.0),), (X(),), (tagged(other=1),)]
    follows(lambda: (function, calls[order]), 3)


# ---- facts of tensors
LEAF = X().requires_grad_()
WHOLE = torch.arange(6.0)
COMPLEX = torch.tensor([1 + 2j, 3j])
FACTS: dict[str, tuple[Callable[[Tensor], Any], Tensor, Tensor]] = {
    "is_leaf": (lambda x: x * 2 if x.is_leaf else x, LEAF, LEAF * 1),
    "storage_offset": (lambda x: x * x.storage_offset(), WHOLE[:3], WHOLE[3:]),
    "_version": (lambda x: x * x._version, X(), X().add_(1)),
    "_is_view": (lambda x: x * 2 if x._is_view() else x, X(), X()[:]),
    "retains_grad": (lambda x: x * 2 if x.retains_grad else x, LEAF * 1, LEAF * 2),
    "is_inference": (lambda x: x * 2 if x.is_inference() else x, X(), torch.inference_mode()(X)()),
    "torch.is_inference": (lambda x: x * 2 if torch.is_inference(x) else x, X(), torch.inference_mode()(X)()),
    "is_shared": (lambda x: x * 2 if x.is_shared() else x, X(), X().share_memory_()),
    "is_conj": (lambda x: x * 2 if x.is_conj() else x, COMPLEX, COMPLEX.conj()),
    "conjugated": (lambda x: torch.view_as_real(x.resolve_conj()), COMPLEX, COMPLEX.conj()),
    "is_neg": (lambda x: x * 2 if x.is_neg() else x, COMPLEX.imag, COMPLEX.conj().imag),
}
FACTS["retains_grad"][2].retain_grad()


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_an_argument(name: str) -> None:
    function, *tensors = FACTS[name]
    for first, second in (tensors, tensors[::-1]):
        static = sg.to_static(lambda x, f=function: f(x), backend="eager")
        for tensor in (first, second, first, second):
            assert_same(function(tensor).detach(), static(tensor).detach())
        assert static.cache_info().programs == 2


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_a_tensor_of_the_world(name: str) -> None:
    function, *tensors = FACTS[name]
    for first, second in (tensors, tensors[::-1]):
        held = [first]
        static = sg.to_static(lambda h=held, f=function: f(h[0]), backend="eager")
        assert_same(function(first).detach(), static().detach())
        held[0] = second
        assert_same(function(second).detach(), static().detach())


REFUSED: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "grad_fn": (lambda x: x * len(x.grad_fn.name()), LEAF * 1),  # type: ignore[union-attr]  # it is not None
    "_base": (lambda x: x * 2 if x._base is None else x, X()[:]),
    "data_ptr": (lambda x: x * 2 if x.data_ptr() else x, X()),
    "untyped_storage": (lambda x: x * x.untyped_storage().size(), X()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_facts_that_only_the_run_knows(name: str) -> None:
    function, tensor = REFUSED[name]
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(tensor)
    assert caught.value.reason.code == "SG301"


@pytest.mark.parametrize(
    "function",
    [lambda x: x * (2 if x.is_contiguous() else 3), lambda x: x * x.stride(0), lambda x: x.as_strided((2,), (1,))],
    ids=["is_contiguous", "stride", "as_strided"],
)
def test_the_layout_of_an_argument_with_symbolic_sizes(function: Callable[..., Any]) -> None:
    tensors = [torch.ones(2, 3), torch.arange(6.0).view(3, 2).T, torch.ones(4, 5), torch.arange(20.0).view(5, 4).T]
    for calls in (tensors, tensors[::-1]):
        follows(lambda given=calls: (function, [(t,) for t in given]), 3, input_spec=[sg.InputSpec([None, None])])


# ---- values
class Slotted:
    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n


VALUES: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "datetime": (lambda i: datetime.datetime(2020, 1, i), lambda value: value.day),
    "date": (lambda i: datetime.date(2020, 1, i), lambda value: value.day),
    "timedelta": (datetime.timedelta, lambda value: value.days),
    "Decimal": (decimal.Decimal, int),
    "Fraction": (fractions.Fraction, int),
    "UUID": (lambda i: uuid.UUID(int=i), lambda value: value.int),
    "Path": (lambda i: pathlib.Path("a" * i), lambda value: len(str(value))),
    "slice": (slice, lambda value: value.stop),
    "set": (lambda i: {i}, sum),
    "frozenset": (lambda i: frozenset({i}), sum),
    "deque": (lambda i: deque([i]), sum),
    "deque of some length": (lambda i: deque([0], i), lambda value: value.maxlen),
    "numpy float": (np.float32, float),
    "numpy integer": (np.int64, int),
    "object with slots": (Slotted, lambda value: value.n),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_whose_addresses_are_used_again(name: str) -> None:
    make, read = VALUES[name]
    function = functools.partial(_times, read)
    static = sg.to_static(lambda x, value: x * read(value), backend="eager")
    for number in range(1, 7):
        assert_same(function(X(), make(number)), static(X(), make(number)), f"call {number}")


def _times(read: Callable[[Any], Any], x: Tensor, value: Any) -> Tensor:
    result: Tensor = x * read(value)
    return result


@pytest.mark.parametrize("name", [name for name in VALUES if name != "object with slots"])
def test_equal_values_need_one_program(name: str) -> None:
    make, read = VALUES[name]
    static = sg.to_static(lambda x, value: x * read(value), backend="eager")
    for _ in range(3):
        assert_same(X() * read(make(2)), static(X(), make(2)))
    assert static.cache_info().programs == 1


def test_the_order_of_a_set() -> None:
    def f(x: Tensor, items: Any) -> Tensor:
        for item in items:
            x = x * 2 + item
        return x

    def emptied() -> set[int]:
        return set(range(9)) - set(range(1, 8))

    agree(f, (X(), {8, 0}), (X(), {0, 8}), (X(), emptied()), programs=3)


# ---- objects that are like one another
class Plain:
    def __init__(self, k: float) -> None:
        self.k, self.n, self.log, self.last, self.sum = k, 0, [], None, torch.zeros(3)  # type: ignore[var-annotated]

    def scaled(self, x: Tensor) -> Tensor:
        return x * self.k


class Stepping:
    def __init__(self, k: float) -> None:
        self.k, self.n, self.seen = k, 0, []  # type: ignore[var-annotated]

    @sg.to_static(backend="eager")
    def step(self, x: Tensor) -> Tensor:
        self.n += 1
        self.seen.append(self.n)
        return x * self.k + self.n


def writes(x: Tensor, plain: Plain) -> Any:
    plain.n += 1
    plain.log.append(1)
    plain.last = x * 2
    plain.sum.add_(x)
    return x * plain.k + plain.n, plain


def applies(x: Tensor, function: Callable[[Tensor], Any]) -> Any:
    return function(x)


def _scaled_by(a: Any, x: Tensor, b: int = 1) -> Tensor:
    result: Tensor = a * x + b
    return result


@pytest.mark.parametrize(
    ("function", "make", "programs"),
    [
        (lambda x, plain: x * plain.k, lambda: Plain(2.0), 1),
        (lambda x, items: x * items.n, lambda: Slotted(2), 1),
        (writes, lambda: Plain(2.0), 1),
        (applies, lambda: lambda x: x * 2, 1),
        (applies, lambda: Plain(2.0).scaled, 1),
        (applies, lambda: functools.partial(_scaled_by, 2.0, b=3), 1),
        (applies, lambda: functools.partial(_scaled_by, torch.ones(3)), 1),
        (lambda x, array: x * float(array.sum()), lambda: np.arange(3.0), 1),
    ],
    ids=["object", "slots", "written", "function", "method", "partial", "partial of a tensor", "array"],
)
def test_like_objects_have_one_program(function: Any, make: Callable[[], Any], programs: int) -> None:
    static = sg.to_static(function, backend="eager")
    for number in range(1, 5):
        given, same = make(), make()
        expected, actual = function(X() * number, given), static(X() * number, same)
        if isinstance(expected, tuple):
            assert actual[1] is same
            expected, actual = expected[0], actual[0]
        assert_same(expected, actual)
        assert_same(getattr(given, "__dict__", None), getattr(same, "__dict__", None))
    assert static.cache_info().programs == programs


def test_the_methods_of_several_objects_have_one_program() -> None:
    held = Stepping.__dict__["step"]
    before = held.cache_info().programs
    objects = [Stepping(2.0), Stepping(2.0), Stepping(2.0)]
    for number in range(1, 4):
        for each in objects:
            assert_same(X() * 2.0 + number, each.step(X()))
    assert [each.seen for each in objects] == [[1, 2, 3]] * 3
    assert held.cache_info().programs == before + 1
    assert_same(X() * 5.0 + 1, Stepping(5.0).step(X()))


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (lambda x, plain: x * plain.k, lambda: Plain(2.0), lambda: Plain(3.0)),
        (lambda x, plain: x * plain.n if plain.last is None else x, lambda: Plain(2.0), lambda: _lasting()),
        (applies, lambda: lambda x: x * 2, lambda: lambda x: x * 3),
        (applies, lambda: _times_closed(2), lambda: _times_closed(3)),
        (applies, lambda: Plain(2.0).scaled, lambda: Plain(3.0).scaled),
        (applies, lambda: functools.partial(_scaled_by, 2.0), lambda: functools.partial(_scaled_by, 3.0)),
        (applies, lambda: functools.partial(_scaled_by, 2.0), lambda: functools.partial(_scaled_by, 2.0, b=2)),
        (applies, lambda: functools.partial(_scaled_by, X()), lambda: functools.partial(_scaled_by, torch.ones(1))),
        (lambda x, a: x * float(a.sum()), lambda: np.arange(3.0), lambda: np.arange(3.0) + 1),
        (lambda x, a: x * a.shape[0], lambda: np.arange(4.0), lambda: np.arange(4.0).reshape(2, 2)),
        (lambda x, a: x * a.itemsize, lambda: np.zeros(4), lambda: np.zeros(4, np.int64)),
    ],
    ids=[
        *("number", "tensor or none", "function", "closure", "method", "partial", "keyword", "partial of a tensor"),
        *("array", "shape", "dtype"),
    ],
)
def test_unlike_objects_are_told_apart(function: Any, first: Any, second: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for make in (first, second, first, second):
        assert_same(function(X(), make()), static(X(), make()))


def _lasting() -> Plain:
    plain = Plain(2.0)
    plain.last = X()  # type: ignore[assignment]  # not None any more
    return plain


def _times_closed(k: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x * k


def compared_object() -> World:
    known = Plain(2.0)
    return lambda x, plain: x * 2 if plain is known else x, [(X(), Plain(2.0)), (X(), known), (X(), Plain(2.0))]


def object_in_a_list() -> World:
    known = [Plain(2.0), Plain(2.0)]
    return lambda x, plain: x * 2 if plain in known else x, [(X(), Plain(2.0)), (X(), known[0]), (X(), Plain(2.0))]


def object_as_a_key() -> World:
    known = Plain(2.0)
    table = {known: 1.0}
    return lambda x, plain: x * table.get(plain, 5.0), [(X(), Plain(2.0)), (X(), known), (X(), Plain(2.0))]


def global_object() -> World:
    known = Plain(2.0)

    def f(x: Tensor, plain: Plain) -> Tensor:
        plain.k += 1
        return x * known.k

    return f, [(X(), known), (X(), Plain(2.0)), (X(), known)]


def object_given_twice() -> World:
    def f(x: Tensor, one: Plain, other: Plain) -> Tensor:
        one.k = 7.0
        return x * other.k

    plain = Plain(1.0)
    return f, [(X(), plain, plain), (X(), Plain(1.0), Plain(2.0)), (X(), Plain(1.0), Plain(2.0))]


def functions_remembered() -> World:
    known: dict[Any, float] = {}

    def f(x: Tensor, function: Any) -> Any:
        if function not in known:
            known[function] = 1.0
        return function(x) * len(known)

    one, other = (_doubling() for _ in range(2))
    return f, [(X(), one), (X(), one), (X(), other), (X(), other)]


def _doubling() -> Callable[[Tensor], Tensor]:
    return lambda x: x * 2


TOLD = [compared_object, object_in_a_list, object_as_a_key, global_object, object_given_twice, functions_remembered]


@pytest.mark.parametrize("make", TOLD)
def test_objects_that_the_code_tells_apart(make: Callable[[], World]) -> None:
    (function, calls), (again, same_calls) = make(), make()
    static = sg.to_static(again, backend="eager")
    for number, (args, same_args) in enumerate(zip(calls, same_calls, strict=True)):
        assert_same(function(*args), static(*same_args), f"call {number}")
        assert_same([vars(a) for a in args[1:]], [vars(a) for a in same_args[1:]], f"call {number}: what was passed")
