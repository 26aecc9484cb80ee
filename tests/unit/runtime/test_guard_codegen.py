from __future__ import annotations

import copy
import datetime
import decimal
import enum
import fractions
import gc
import math
import os
import pathlib
import sys
import types
import uuid
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from stillgraph.program.facts import FACTS
from stillgraph.program.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    Argument,
    Attribute,
    BytesGuard,
    Called,
    Cell,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    EnvironmentGuard,
    FactGuard,
    FunctionGuard,
    Global,
    Guard,
    Held,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    NoAttributeGuard,
    ReadingGuard,
    SizeGuard,
    Slot,
    Source,
    TypeGuard,
)
from stillgraph.runtime.comparing import strict_key
from stillgraph.runtime.function_writer import read_source
from stillgraph.runtime.guard_codegen import compile_guards
from stillgraph.runtime.guard_misses import explain_miss
from stillgraph.runtime.guard_order import in_checking_order
from stillgraph.runtime.weak import weakened
from tests.unit.runtime.programs import X, inputs_at, mode_guard, tensor_guard


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def holds(guards: list[Guard], *args: Any, **kwargs: Any) -> bool:
    """Whether the compiled guards hold, now and at a second check; the explanation must agree."""
    check = compile_guards((), guards)
    answers = {check(args, kwargs) is not None for _ in range(2)}
    answers.add(explain_miss(guards, args, kwargs) is None)
    assert len(answers) == 1, explain_miss(guards, args, kwargs)
    return answers.pop()


class Slotted:
    __slots__ = ()


# ---- constants
UTC, LATER = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1))
CONSTANTS = [
    None, True, False, 0, 1, 2**70, 0.0, -0.0, 1.0, math.nan, math.inf, 0j, complex(0.0, -0.0), "", "1", b"", b"1", (),
    (1,), (1.0,), (True,), ((0.0,), "a"), ((-0.0,), "a"), frozenset({1}), frozenset({1.0}), frozenset({True}),
    Colour.RED, Colour.BLUE, Number.ONE, int, float, torch.float32, torch.float64, torch.device("cpu"),
    torch.device("meta"), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1),
    datetime.datetime(2020, 1, 1, tzinfo=UTC), datetime.datetime(2020, 1, 1, 1, tzinfo=LATER),
    datetime.datetime(2020, 1, 1, fold=1), datetime.timedelta(1), UTC, LATER, decimal.Decimal("1.0"),
    decimal.Decimal("1.00"), fractions.Fraction(1, 1), uuid.UUID(int=1), pathlib.PurePosixPath("a"),
    pathlib.PureWindowsPath("a"), pathlib.PureWindowsPath("A"), torch.finfo(torch.float32), torch.finfo(torch.float64),
    np.float32(1), np.float64(1), np.float64(0.0), np.float64(-0.0), np.int64(1), np.datetime64(1, "D"),
    np.datetime64(24, "h"), np.str_("a"), torch.Size([1]),
    slice(1, 2), slice(1.0, 2), range(0), range(1, 1), ..., NotImplemented,
]  # fmt: skip


@pytest.mark.parametrize("expected", CONSTANTS, ids=repr)
def test_a_constant_equals_itself_alone(expected: Any) -> None:
    matching = [value for value in CONSTANTS if holds([ConstantGuard(X, expected)], value)]
    assert len(matching) == 1
    assert matching[0] is expected


def test_a_nan_equals_any_nan_of_its_sign() -> None:
    assert holds([ConstantGuard(X, math.nan)], float("nan"))
    assert holds([ConstantGuard(X, (math.nan,))], (float("nan"),))


def test_a_constant_of_a_type_with_its_own_equality() -> None:
    class Point(Plain):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Plain) and vars(self) == vars(other)

        __hash__ = None  # type: ignore[assignment]

    assert holds([ConstantGuard(X, Point(x=1))], Point(x=1))
    assert not holds([ConstantGuard(X, Point(x=1))], Point(x=2))
    assert not holds([ConstantGuard(X, Point(x=1))], Plain(x=1))


def test_an_equality_that_raises_is_a_miss() -> None:
    class Broken:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no")

        __hash__ = None  # type: ignore[assignment]

    assert not holds([ConstantGuard(X, Broken())], Broken())


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0, math.nan]), st.sampled_from("ab")
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(scalars, inner, max_size=3)
    ),
    max_leaves=8,
)


def guards_of(value: Any, source: Source) -> list[Guard]:
    """What a capture that looked at everything would rely on."""
    if isinstance(value, (list, tuple)):
        inner = [guard for i, item in enumerate(value) for guard in guards_of(item, Item(source, i))]
        return [TypeGuard(source, type(value)), LengthGuard(source, len(value)), *inner]
    if isinstance(value, dict):
        inner = [guard for key, item in value.items() for guard in guards_of(item, Item(source, key))]
        return [TypeGuard(source, dict), KeysGuard(source, tuple(value)), *inner]
    return [ConstantGuard(source, value)]


@given(st.lists(scalars, max_size=4), st.sampled_from([int, float, bool, str]))
def test_the_elements_of_a_list_are_of_one_type(value: list[Any], kind: type) -> None:
    assert holds([ElementsGuard(X, kind)], value) == all(type(item) is kind for item in value)


@given(values, values, st.randoms())
def test_guards_on_all_of_a_value_hold_of_its_equals_alone(captured: Any, called: Any, random: Any) -> None:
    guards = guards_of(captured, X)
    random.shuffle(guards)
    assert holds(guards, captured)
    assert holds(guards, called) == (strict_key(captured) == strict_key(called))


# ---- sources
def sources_of(value: Any, source: Source) -> list[Source]:
    if isinstance(value, (list, tuple)):
        return [source, *(s for i, item in enumerate(value) for s in sources_of(item, Item(source, i)))]
    if isinstance(value, dict):
        return [source, *(s for key, item in value.items() for s in sources_of(item, Item(source, key)))]
    return [source]


@given(values, st.randoms())
def test_inputs_come_in_their_order_whatever_is_read_in_between(value: Any, random: Any) -> None:
    sources = sources_of(value, X)
    random.shuffle(sources)
    check = compile_guards(inputs_at(*sources), guards_of(value, X))
    found = check((value,), {})
    assert found is not None
    assert [id(item) for item in found] == [id(read_source(source, (value,), {})) for source in sources]


some_global = object()


def test_every_kind_of_source() -> None:
    captured = object()

    def closure() -> object:
        return captured

    assert closure.__closure__ is not None
    held, odd = object(), "not a name"
    module = nn.Linear(2, 2)
    value = Plain(module=module, items=[1, 2, 3], **{odd: "odd", "class": "keyword"})
    cases: dict[Source, object] = {
        X: value,
        Argument("key word"): "keyword",
        Attribute(X, odd): "odd",
        Attribute(X, "class"): "keyword",
        Slot(X, "__dict__", "items"): value.items,
        Slot(Slot(X, "__dict__", "module"), "_parameters", "weight"): module.weight,
        Global(__name__, "some_global"): some_global,
        Cell("captured", closure.__closure__[0]): captured,
        Held("held", held): held,
        Called(Held("reference", weakref.ref(module))): module,
        Attribute(Called(Held("reference", weakref.ref(module))), "weight"): module.weight,
    }
    kwargs = {"key word": "keyword"}
    found = compile_guards(inputs_at(*cases), ())((value,), kwargs)
    assert found is not None
    for source, got, expected in zip(cases, found, cases.values(), strict=True):
        assert got is expected
        assert read_source(source, (value,), kwargs) is expected


def test_an_item_whose_key_cannot_be_hashed() -> None:
    source = Item(X, slice(1, 3))
    guards: list[Guard] = [LengthGuard(source, 2), ConstantGuard(Item(source, 0), 2)]
    assert holds(guards, [1, 2, 3])
    assert not holds(guards, [1, 3, 2])


def test_globals_and_cells_are_looked_up_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("stillgraph_test_module")
    module.flag = True  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    cell = types.CellType(1)
    guards: list[Guard] = [ConstantGuard(Global(module.__name__, "flag"), True), ConstantGuard(Cell("n", cell), 1)]
    check = compile_guards((), guards)
    assert check((), {}) == ()
    module.flag = False  # type: ignore[attr-defined]
    assert check((), {}) is None
    module.flag = True  # type: ignore[attr-defined]
    cell.cell_contents = 2
    assert check((), {}) is None
    del cell.cell_contents
    assert check((), {}) is None


@pytest.mark.parametrize(
    ("source", "args"),
    [
        (Argument(1), (1,)),
        (Argument("x"), ()),
        (Attribute(X, "weight"), (1,)),
        (Item(X, 5), ([1],)),
        (Item(X, "k"), ({},)),
        (Item(X, 0), (1,)),
        (Slot(X, "__dict__", "n"), (1,)),
        (Global("no.such.module", "n"), ()),
        (Global("sys", "no_such_name"), ()),
        (Called(X), (1,)),
        (Attribute(Called(X), "weight"), (lambda: None,)),
    ],
)
def test_a_source_that_is_not_there_is_a_miss(source: Source, args: tuple[Any, ...]) -> None:
    assert compile_guards(inputs_at(source), ())(args, {}) is None
    sentence = explain_miss((), args, {}, inputs_at(source))
    assert sentence is not None
    assert str(source) in sentence
    assert not holds([ConstantGuard(source, 1)], *args)


def test_what_is_inside_an_object_is_not_read_before_the_object_is_known() -> None:
    class Trap:
        @property
        def inside(self) -> int:
            raise KeyboardInterrupt("user code ran")

    guards: list[Guard] = [ConstantGuard(Attribute(X, "inside"), 1), TypeGuard(X, Plain)]
    assert not holds(guards, Trap())


def test_guards_are_checked_from_the_outside_inwards_and_cheap_ones_first() -> None:
    x = torch.ones(2)
    inner, deep = Item(Argument(1), 0), Item(Item(Argument(1), 0), 0)
    tensor, length = tensor_guard(X, x), LengthGuard(Argument(1), 1)
    kind, constant, deep_tensor = TypeGuard(Argument(1), list), ConstantGuard(deep, 1), tensor_guard(inner, x)
    guards = [deep_tensor, constant, tensor, length, kind]
    assert in_checking_order(guards) == [kind, length, tensor, constant, deep_tensor]


# ---- identity
def function() -> None:
    pass


@pytest.mark.parametrize("expected", [function, int, nn.Linear(1, 1), torch.ones(1), sys, len, None, 3, "a", [1], (1,)])
def test_identity(expected: Any) -> None:
    guards: list[Guard] = [IdentityGuard(X, expected)]
    assert holds(guards, expected)
    assert not holds(guards, None if expected is not None else 1)
    assert not holds(guards, object())
    assert holds([weakened(guard) for guard in guards], expected)


@pytest.mark.parametrize("make", [lambda: nn.Linear(2, 2), lambda: torch.ones(2), Plain])
def test_an_object_is_not_kept_alive_and_once_gone_nothing_matches_it(make: Any) -> None:
    value = make()
    guards = [weakened(IdentityGuard(X, value))]
    inputs = inputs_at(X)
    check = compile_guards(inputs, guards)
    assert check((value,), {}) is not None
    gone = weakref.ref(value)
    del value
    gc.collect()
    assert gone() is None
    assert check((None,), {}) is None
    assert check((make(),), {}) is None
    assert explain_miss(guards, (None,), {}) is not None


@pytest.mark.parametrize("names", [("first",), ("first", "second")])
def test_members_are_not_kept_alive_and_once_one_is_gone_nothing_matches(names: tuple[str, ...]) -> None:
    space: dict[str, Any] = {name: (lambda: None) for name in names}
    guards = [weakened(MembersGuard(X, tuple(space.items())))]
    check = compile_guards((), guards)
    assert check((space,), {}) == ()
    assert explain_miss(guards, (space,), {}) is None
    gone = [weakref.ref(member) for member in space.values()]
    space["first"] = lambda: None  # which may be where the old one was
    gc.collect()
    assert [reference() is None for reference in gone] == [name == "first" for name in names]
    assert check((space,), {}) is None
    assert explain_miss(guards, (space,), {}) == "args[0]['first'] should be what it was, but was replaced"


def test_members_that_take_no_weak_reference() -> None:
    space: dict[str, Any] = {"first": property(len), "second": len}
    check = compile_guards((), [weakened(MembersGuard(X, tuple(space.items())))])
    assert check((space,), {}) == ()
    assert check((space | {"first": property(len)},), {}) is None


@pytest.mark.parametrize("make", [lambda: [1], Slotted, object, dict], ids=["list", "slots", "object", "dict"])
def test_what_takes_no_weak_reference_is_not_taken_for_another_in_its_place(make: Callable[[], Any]) -> None:
    value = make()
    address = id(value)
    guards = [weakened(IdentityGuard(X, value))]
    check = compile_guards((), guards)
    assert check((value,), {}) == ()
    del value
    others = [make() for _ in range(100)]
    assert address not in map(id, others)
    assert not any(check((other,), {}) for other in others)


LEAF = torch.ones(2, requires_grad=True)


def test_aliases() -> None:
    a, b = [1], [1]
    same, different = AliasGuard(X, Argument(1), True), AliasGuard(X, Argument(1), False)
    assert holds([same], a, a)
    assert not holds([same], a, b)
    assert holds([different], a, b)
    assert not holds([different], a, a)
    apart: list[Guard] = [ApartGuard((X, Argument(1), Item(Argument(2), 0)))]
    assert holds(apart, a, b, [[1]])
    assert not holds(apart, a, b, [a])
    assert not holds(apart, a, b, [b])


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("is_leaf", LEAF, LEAF * 2),
        ("grad_fn", LEAF, LEAF * 2),
        ("is_contiguous", torch.zeros(2, 3), torch.zeros(3, 2).t()),
        ("storage_offset", torch.zeros(4)[:2], torch.zeros(4)[2:]),
        ("_is_view", torch.zeros(4), torch.zeros(4)[:]),
        ("_base", torch.zeros(4), torch.zeros(4)[:]),
        ("_version", torch.zeros(4), torch.zeros(4).add_(1)),
    ],
)
def test_facts_of_tensors(name: str, left: Tensor, right: Tensor) -> None:
    for tensor, other in ((left, right), (right, left)):
        guards: list[Guard] = [FactGuard(X, name, FACTS[name](tensor))]
        assert holds(guards, tensor)
        assert not holds(guards, other)


def test_elements_yet_to_be_conjugated_or_negated() -> None:
    plain = torch.ones(2, dtype=torch.complex64)
    for value, other in ((plain, plain.conj()), (plain.imag, plain.conj().imag)):
        for tensor, different in ((value, other), (other, value)):
            lazy = (tensor.is_conj(), tensor.is_neg())
            assert holds([tensor_guard(X, tensor, lazy=lazy)], tensor)
            assert not holds([tensor_guard(X, tensor, lazy=lazy)], different)


# ---- tensors
BASE = torch.zeros(3, 4)
OTHERS = {
    "dtype": BASE.double(),
    "shape": torch.zeros(3, 5),
    "rank": torch.zeros(3, 4, 1),
    "fewer dimensions": torch.zeros(4),
    "requires grad": torch.zeros(3, 4, requires_grad=True),
    "type": nn.Parameter(torch.zeros(3, 4), requires_grad=False),
    "device": torch.zeros(3, 4, device="meta"),
    "sparse": torch.zeros(3, 4).to_sparse().requires_grad_(),
    "no tensor": "x",
    "none": None,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_tensor_that_differs(other: Any) -> None:
    check = compile_guards((), [tensor_guard(X, BASE)])
    for value, fits in [(BASE, True), (other, False), (torch.ones(3, 4), True), (other, False)]:
        assert (check((value,), {}) is not None) is fits
    assert not holds([tensor_guard(X, BASE)], other)


def test_unknown_dimensions() -> None:
    guards: list[Guard] = [tensor_guard(X, BASE, shape=(None, 4))]
    assert holds(guards, torch.zeros(7, 4))
    assert holds(guards, torch.zeros(0, 4))
    assert not holds(guards, torch.zeros(3, 5))
    assert not holds(guards, torch.zeros(4))


def test_strides_count_where_they_are_given() -> None:
    turned = torch.zeros(4, 3).t()
    assert holds([tensor_guard(X, BASE)], turned)
    assert not holds([tensor_guard(X, BASE, strides=(4, 1))], turned)
    assert holds([tensor_guard(X, BASE, strides=(1, 3))], turned)


def test_a_tensor_changed_in_place() -> None:
    value = nn.Parameter(torch.zeros(3, 4))
    check = compile_guards((), [tensor_guard(X, value)])
    assert [check((value,), {}) is not None for _ in range(2)] == [True, True]
    value.requires_grad_(False)
    assert check((value,), {}) is None
    value.requires_grad_(True)
    assert check((value,), {}) is not None
    value.data = value.data.double()
    assert check((value,), {}) is None
    value.data = torch.zeros(2, 2)
    assert check((value,), {}) is None


def test_tensors_fit_in_whatever_mode_they_are_checked() -> None:
    guards: list[Guard] = [tensor_guard(X, BASE), tensor_guard(Item(Argument(1), 0), BASE)]
    check = compile_guards((), guards)
    call = ((torch.ones(3, 4), [torch.ones(3, 4)]), {})
    assert check(*call) == ()
    for mode in [torch.no_grad(), torch.inference_mode(), torch.autocast("cpu", torch.bfloat16), torch.device("meta")]:
        with mode:
            assert check(*call) == ()
        assert check(*call) == ()


def test_one_tensor_at_two_sources() -> None:
    guards: list[Guard] = [tensor_guard(X, BASE), tensor_guard(Argument(1), BASE)]
    assert holds(guards, BASE, BASE)
    assert not holds(guards, BASE, BASE.double())


tensors = st.builds(
    lambda shape, dtype, grad, turned: (
        torch.zeros(shape, dtype=dtype).t() if turned and len(shape) == 2 else torch.zeros(shape, dtype=dtype)
    ).requires_grad_(grad and dtype.is_floating_point),
    st.lists(st.integers(0, 2), max_size=3),
    st.sampled_from([torch.float32, torch.float64, torch.int64]),
    st.booleans(),
    st.booleans(),
)


@given(tensors, tensors, st.booleans(), st.booleans())
def test_native_and_slow_checks_of_tensors_agree(captured: Any, called: Any, strides: bool, dynamic: bool) -> None:
    shape = tuple(None if dynamic and i == 0 else size for i, size in enumerate(captured.shape))
    guard = tensor_guard(X, captured, shape=shape, strides=captured.stride() if strides else None)
    check = compile_guards((), [guard])
    assert check((captured,), {}) == ()  # from here on torch's own check is in use
    fits = explain_miss([guard], (called,), {}) is None
    assert (check((called,), {}) is not None) is fits
    assert fits is (
        (called.dtype, called.requires_grad, called.dim()) == (captured.dtype, captured.requires_grad, captured.dim())
        and all(known in (None, size) for known, size in zip(shape, called.shape, strict=True))
        and (not strides or called.stride() == captured.stride())
    )


# ---- contents
flat = st.one_of(
    st.lists(scalars, max_size=4),
    st.lists(scalars, max_size=4).map(tuple),
    st.dictionaries(scalars, scalars, max_size=4),
)


def has_nan(container: Any) -> bool:
    """Whether a NaN is among the elements, keys or values."""
    items = (*container, *container.values()) if isinstance(container, dict) else container
    return any(item != item for item in items)


@given(flat, flat)
def test_contents_are_equal_to_their_equals_alone(captured: Any, called: Any) -> None:
    guards: list[Guard] = [ContentsGuard(X, captured)]
    if not has_nan(captured):
        assert holds(guards, copy.copy(captured))
    if holds(guards, called):
        assert strict_key(called) == strict_key(captured)
    elif not has_nan(called):
        assert strict_key(called) != strict_key(captured)


@given(flat, flat, st.randoms())
def test_contents_changed_in_place(captured: Any, other: Any, random: Any) -> None:
    """What a guard expects is a copy: the container may be changed, and changed back."""
    if not isinstance(captured, (list, dict)) or type(other) is not type(captured) or has_nan(captured):
        return
    before = copy.copy(captured)
    check = compile_guards((), [ContentsGuard(X, captured)])
    captured.clear()
    (captured.extend if isinstance(captured, list) else captured.update)(other)
    assert (check((captured,), {}) is not None) is (strict_key(captured) == strict_key(before))
    captured.clear()
    (captured.extend if isinstance(captured, list) else captured.update)(before)
    assert check((captured,), {}) == ()


@pytest.mark.parametrize(
    ("captured", "called"),
    [
        ([1], [True]), ([1], [1.0]), ([0.0], [-0.0]), ([1, 2], [2, 1]), ([1], (1,)), ({1: 2}, {1: 2.0}),
        ({1: 2}, {True: 2}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([], None), ((0.0,), (-0.0,)),
        ({0.0: 1}, {-0.0: 1}), ({"a": 0.0}, {"a": -0.0}), ((0j,), (-0j,)),
    ],
)  # fmt: skip
def test_contents_that_python_alone_would_call_equal(captured: Any, called: Any) -> None:
    assert holds([ContentsGuard(X, captured)], captured)
    assert not holds([ContentsGuard(X, captured)], called)


ELEMENTS: list[tuple[Any, Any]] = [
    ({1}, {1.0}), ({0.0}, {-0.0}), ({True, 0}, {1, False}), ({1, 2.0}, {1.0, 2}), ({0, 8}, {8, 0}), ({"a", 1}, {"a"}),
    (frozenset({8, 0}), frozenset({0, 8})), ({b"a", None}, {b"a", 0}), ({1: 0}, {True: 0}),
]  # fmt: skip


@pytest.mark.parametrize(("captured", "called"), ELEMENTS)
def test_keys_and_elements_that_python_alone_would_call_equal(captured: Any, called: Any) -> None:
    assert holds([KeysGuard(X, tuple(captured))], captured)
    assert not holds([KeysGuard(X, tuple(captured))], called)
    assert strict_key(captured) != strict_key(called)


@pytest.mark.parametrize("nested", [False, True])
def test_the_sign_of_a_constant_that_is_no_number(nested: bool) -> None:
    nan, negative = math.nan, math.copysign(math.nan, -1.0)
    for captured, called, fits in [(nan, float("nan"), True), (nan, negative, False), (negative, -nan, True)]:
        guards: list[Guard] = [ConstantGuard(X, (captured,) if nested else captured)]
        assert holds(guards, (called,) if nested else called) is fits


def test_the_order_of_a_set_within_a_constant() -> None:
    captured, called = (frozenset((8, 0)),), (frozenset((0, 8)),)
    assert captured == called
    assert holds([ConstantGuard(X, captured)], captured)
    assert not holds([ConstantGuard(X, captured)], called)


def test_a_subclass_of_a_container_is_no_such_container() -> None:
    class Items(list[int]):
        pass

    assert not holds([ContentsGuard(X, [1])], Items([1]))


def test_bytes() -> None:
    array = np.array([1.0, 2.0])
    guards: list[Guard] = [BytesGuard(X, fingerprint(array))]
    assert holds(guards, array)
    array[0] = -1.0
    assert not holds(guards, array)


CHANGES_OF_ARRAYS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda a: a.__setitem__((1, 0), -1), "the array args[0] holds other numbers"),
    (lambda a: setattr(a, "shape", (-1, 4)), "the array args[0] is of another shape"),
    (lambda a: setattr(a, "dtype", np.int64), "the array args[0] is of another dtype"),
    (lambda a: a.setflags(write=False), "the array args[0] is of another writability"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES_OF_ARRAYS)
@pytest.mark.parametrize("rows", [4, 1200], ids=["small", "large"])
def test_what_changes_of_an_array(change: Callable[[Any], Any], sentence: str, rows: int) -> None:
    array = np.arange(2.0 * rows).reshape(rows, 2)
    guards: list[Guard] = [BytesGuard(X, fingerprint(array))]
    assert holds(guards, array)
    assert sum(len(part) for part in guards[0].data if isinstance(part, bytes)) <= 4096  # type: ignore[union-attr]
    change(array)
    assert not holds(guards, array)
    assert explain_miss(guards, (array,), {}) == sentence


# ---- namespaces
names = st.sampled_from("abcd")
objects = st.sampled_from([object(), object(), function, len, Plain, sys])
namespaces = st.dictionaries(names, objects)


@given(namespaces, namespaces, st.sets(names, min_size=1))
def test_members(captured: dict[str, Any], called: dict[str, Any], wanted: set[str]) -> None:
    members = tuple((name, captured[name]) for name in sorted(wanted) if name in captured)
    if not members:
        return
    guards: list[Guard] = [MembersGuard(X, members)]
    assert holds(guards, captured)
    assert holds(guards, called) is all(called.get(name) is value for name, value in members)


@given(namespaces, st.sets(names, min_size=1))
def test_missing_names(called: dict[str, Any], wanted: set[str]) -> None:
    assert holds([MissingGuard(X, tuple(sorted(wanted)))], called) is wanted.isdisjoint(called)


def test_members_and_missing_names_of_a_class() -> None:
    class Kind:
        rate = 1

        def method(self) -> None:
            pass

    space = Attribute(X, "__dict__")
    guards: list[Guard] = [
        MembersGuard(space, (("method", Kind.__dict__["method"]), ("rate", Kind.__dict__["rate"]))),
        MissingGuard(space, ("late", "later")),
    ]
    assert holds(guards, Kind)
    Kind.late = 1  # type: ignore[attr-defined]
    assert not holds(guards, Kind)
    del Kind.late  # type: ignore[attr-defined]
    assert holds(guards, Kind)
    Kind.method = function  # type: ignore[method-assign, assignment]
    assert not holds(guards, Kind)
    del Kind.method
    assert not holds(guards, Kind)


@given(st.dictionaries(names, st.integers(0, 2)), names)
def test_no_attribute(attributes: dict[str, int], name: str) -> None:
    assert holds([NoAttributeGuard(X, name)], Plain(**attributes)) is (name not in attributes)


# ---- functions, readings, references
def place(function: Any) -> str:
    return f"{function.__qualname__} (test_guard_codegen.py:{function.__code__.co_firstlineno})"


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STILLGRAPH_TEST", raising=False)
    monkeypatch.setenv("STILLGRAPH_TEST_OTHER", "a")
    absent, everything = EnvironmentGuard("STILLGRAPH_TEST", None), EnvironmentGuard(None, dict(os.environ))
    assert holds([absent], None)
    assert holds([everything], None)
    monkeypatch.setenv("STILLGRAPH_TEST", "b")
    assert not holds([absent], None)
    assert not holds([everything], None)
    assert holds([EnvironmentGuard("STILLGRAPH_TEST", "b")], None)
    monkeypatch.delenv("STILLGRAPH_TEST")
    monkeypatch.delenv("STILLGRAPH_TEST_OTHER")
    assert not holds([everything], None)


def with_defaults(a: int, b: int = 1, *, c: int = 2) -> None:
    pass


def test_a_function() -> None:
    def fresh(a: Any, b: Any) -> None:
        pass

    guards: list[Guard] = [FunctionGuard(X, fresh.__code__, False, False)]
    assert holds(guards, fresh)
    for name, value in [
        ("__defaults__", (1,)), ("__kwdefaults__", {"c": 2}), ("__code__", with_defaults.__code__),
    ]:  # fmt: skip
        before = getattr(fresh, name)
        setattr(fresh, name, value)
        assert not holds(guards, fresh)
        setattr(fresh, name, before)
        assert holds(guards, fresh)
    assert not holds(guards, 1)
    # Which defaults it has, where it has any, is for other guards to say.
    others: list[Guard] = [FunctionGuard(X, with_defaults.__code__, True, True)]
    assert holds(others, with_defaults)


@given(scalars, scalars)
def test_a_reading(captured: Any, called: Any) -> None:
    settings = {"now": captured}
    guards: list[Guard] = [ReadingGuard(settings.get, ("now",), captured)]
    assert holds(guards)
    settings["now"] = called
    assert holds(guards) is (strict_key(called) == strict_key(captured))


def test_a_reading_of_an_object() -> None:
    class Unequal:
        __eq__ = object.__ne__  # type: ignore[assignment]
        __hash__ = None  # type: ignore[assignment]

    held = [Unequal()]
    guards: list[Guard] = [ReadingGuard(held.__getitem__, (0,), held[0])]
    assert holds(guards)
    held.clear()
    assert not holds(guards)


def test_what_a_reference_refers_to() -> None:
    value = Plain(n=1)
    reference = weakref.ref(value)
    guards: list[Guard] = [TypeGuard(Called(X), Plain), ConstantGuard(Attribute(Called(X), "n"), 1)]
    check = compile_guards((), guards)
    assert holds(guards, reference)
    value.n = 2
    assert not holds(guards, reference)
    value.n = 1
    assert check((reference,), {}) == ()
    del value
    gc.collect()
    assert reference() is None, "a check keeps alive what a reference refers to"
    assert not holds(guards, reference)


# ---- modes
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (torch.no_grad, "grad mode should be on, but is off"),
        (torch.inference_mode, "grad mode should be on, but is off"),
        (lambda: torch.autocast("cpu", torch.bfloat16), "autocast should be off, but is autocast(cpu, bfloat16)"),
        (lambda: torch.device("meta"), "the default device should be cpu, but is meta"),
    ],
)
def test_modes(mode: Any, sentence: str) -> None:
    guards: list[Guard] = [mode_guard()]
    assert holds(guards)
    with mode():
        assert not holds(guards)
        assert explain_miss(guards, (), {}) == sentence
        inner: list[Guard] = [mode_guard()]
        assert holds(inner)
    assert holds(guards)
    assert not holds(inner)


def test_autocast_of_another_dtype() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        guards: list[Guard] = [mode_guard()]
    with torch.autocast("cpu", torch.float16):
        assert not holds(guards)


def test_the_default_dtype() -> None:
    guards: list[Guard] = [mode_guard()]
    torch.set_default_dtype(torch.float64)
    try:
        assert not holds(guards)
        assert explain_miss(guards, (), {}) == "the default dtype should be torch.float32, but is torch.float64"
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_torch_function_mode_that_is_no_default_device() -> None:
    guards: list[Guard] = [mode_guard()]
    with torch.overrides.BaseTorchFunctionMode():
        assert holds(guards)


# ---- sizes
def test_conditions_on_sizes() -> None:
    guard = SizeGuard("s0 > 2 and max(s0, s1) < math.inf", (("s0", X, 0), ("s1", Argument(1), 1)))
    assert holds([guard], torch.zeros(3), torch.zeros(1, 1))
    assert not holds([guard], torch.zeros(2), torch.zeros(1, 1))
    assert not holds([guard], torch.zeros(3), torch.zeros(1))
    assert not holds([guard], 3, torch.zeros(1, 1))


def test_a_condition_on_what_is_no_size() -> None:
    with pytest.raises(ValueError, match="names 'v0'"):
        compile_guards((), [SizeGuard("s0 > v0", (("s0", X, 0),))])


# ---- words
@pytest.mark.parametrize(
    ("guard", "value", "sentence"),
    [
        (ConstantGuard(X, 1), 2, "args[0] should be 1, but is 2"),
        (ConstantGuard(X, 1), 1.0, "args[0] should be 1 (int), but is 1.0 (float)"),
        (TypeGuard(X, list), (), "args[0] should be a list, but is a tuple"),
        (LengthGuard(X, 1), [], "len(args[0]) should be 1, but is 0"),
        (ElementsGuard(X, float), [1.0, 2], "args[0] should hold only floats, but holds a int"),
        (KeysGuard(X, ("a", "b")), {"b": 1, "a": 2}, "the keys of args[0] should be ['a', 'b'], but are ['b', 'a']"),
        (KeysGuard(X, (1,)), {True: 1}, "the keys of args[0] should be [1], but are [True]"),
        (
            tensor_guard(X, BASE, shape=(None, 4)),
            torch.zeros(3, 5),
            "args[0] should be Tensor float32[?, 4] on cpu, but is Tensor float32[3, 5] on cpu",
        ),
        (
            tensor_guard(X, BASE, strides=(4, 1)),
            torch.zeros(4, 3).t(),
            "args[0] should be Tensor float32[3, 4] on cpu with strides (4, 1), "
            "but is Tensor float32[3, 4] on cpu with strides (1, 3)",
        ),
        (tensor_guard(X, BASE), 1, "args[0] should be Tensor float32[3, 4] on cpu, but is 1"),
        (SizeGuard("s0 > 2", (("s0", X, 0),)), BASE[:1], "s0 > 2 should hold, but s0 (size 0 of args[0]) is 1"),
        (
            IdentityGuard(X, function),
            len,
            "args[0] should be the same function as before, but is <built-in function len>",
        ),
        (
            AliasGuard(X, Item(X, 0), True),
            [1],
            "args[0] and args[0][0] should be the same object, but are different objects",
        ),
        (ContentsGuard(X, [1, 2]), [1, 3], "args[0][1] should be 2, but is 3"),
        (
            MembersGuard(X, (("a", len), ("f", function))),
            {"a": len, "f": len},
            "args[0]['f'] should be what it was, but was replaced",
        ),
        (MissingGuard(X, ("a", "late")), {"late": 1}, "args[0] should lack 'late', but has it"),
        (FactGuard(X, "is_leaf", True), LEAF * 2, "is_leaf of args[0] is True, but now False"),
        (
            ApartGuard((X, Attribute(X, "real"))),
            1,
            "args[0] and args[0].real should be different objects, but are the same object",
        ),
        (
            tensor_guard(X, BASE, lazy=(True, False)),
            BASE,
            "args[0] should be Tensor float32[3, 4] on cpu, conjugated, but is Tensor float32[3, 4] on cpu",
        ),
        (NoAttributeGuard(X, "late"), Plain(late=1), "args[0] should have no attribute 'late', but has one"),
        (
            FunctionGuard(X, function.__code__, False, False),
            with_defaults,
            f"args[0] should run the code of {place(function)}, but runs that of {place(with_defaults)}",
        ),
        (
            FunctionGuard(X, with_defaults.__code__, False, True),
            with_defaults,
            "args[0] should have no __defaults__, but has some",
        ),
        (
            FunctionGuard(X, with_defaults.__code__, True, False),
            with_defaults,
            "args[0] should have no __kwdefaults__, but has some",
        ),
        (BytesGuard(X, fingerprint(np.ones(1))), np.zeros(1), "the array args[0] holds other numbers"),
        (ConstantGuard(Attribute(Called(X), "n"), 1), lambda: Plain(n=2), "args[0]().n should be 1, but is 2"),
    ],
)
def test_explanations(guard: Guard, value: Any, sentence: str) -> None:
    assert not holds([guard], value)
    assert explain_miss([guard], (value,), {}) == sentence


def test_the_explanation_of_a_reading() -> None:
    guards: list[Guard] = [ReadingGuard(settings_of_today, ("rate",), 1)]
    assert explain_miss(guards, (), {}) == "settings_of_today('rate') should be 1, but is 2"
    assert not holds(guards)


def settings_of_today(name: str) -> int:
    return {"rate": 2}[name]


def test_the_generated_text_is_kept() -> None:
    check = compile_guards(inputs_at(X), [ConstantGuard(Argument("n"), 3)])
    assert "kwargs['n']" in check.__source__  # type: ignore[attr-defined]
    assert "return (v0, )" in check.__source__ or "return (v1, )" in check.__source__  # type: ignore[attr-defined]
