from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import math
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
from torch import nn

from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.guards import (
    BytesGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    Guard,
    KeysGuard,
    LengthGuard,
    TypeGuard,
)
from stillgraph.program.sources import Argument, Attribute, Called, Cell, Global, Held, Item, Slot, Source
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.guards.comparing import strict_key
from stillgraph.runtime.guards.explaining import explain_miss
from stillgraph.runtime.guards.order import in_checking_order
from stillgraph.runtime.native.function_writer import read_source
from tests.unit.runtime.guard_cases import Colour, Number, Plain, holds, scalars
from tests.unit.runtime.programs import X, inputs_at, tensor_guard

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
