from __future__ import annotations

import gc
import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from types import CellType, MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from stillgraph.program.facts.facts import FACTS
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    BehindGuard,
    BytesGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    EnvironmentGuard,
    FactGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    NoAttributeGuard,
    ReadingGuard,
    SizeGuard,
    TypeGuard,
    UnsetGuard,
)
from stillgraph.program.sources import Argument, Attribute, Called, Cell, Item
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.guards.comparing import strict_key
from stillgraph.runtime.guards.explaining import explain_miss
from stillgraph.runtime.guards.kinds.table import weakened
from tests.unit.runtime.guard_cases import BASE, Plain, Slotted, holds, scalars
from tests.unit.runtime.programs import X, inputs_at, tensor_guard


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


def test_a_variable_that_is_unset() -> None:
    cell = CellType()
    guards: list[Guard] = [UnsetGuard(Attribute(X, "cell_contents")), UnsetGuard(Cell("n", cell))]
    assert holds(guards, cell)
    cell.cell_contents = None
    assert not holds(guards[:1], cell)
    assert not holds(guards[1:], cell)
    del cell.cell_contents
    assert holds(guards, cell)


# ---- functions, readings, references
def place(function: Any) -> str:
    return f"{function.__qualname__} (test_guards_of_objects.py:{function.__code__.co_firstlineno})"


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
            "args[0].shape[1] should be 4, but the shape is (3, 5)",
        ),
        (
            tensor_guard(X, BASE, strides=(4, 1)),
            torch.zeros(4, 3).t(),
            "args[0] should be Tensor float32[3, 4] on cpu with strides (4, 1), "
            "but is Tensor float32[3, 4] on cpu with strides (1, 3)",
        ),
        (tensor_guard(X, BASE), 1, "args[0] should be Tensor float32[3, 4] on cpu, but is 1"),
        (SizeGuard("s0 > 2", (("s0", X, 0),)), BASE[:1], "args[0].shape[0] > 2 should hold, but args[0].shape[0] is 1"),
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
        (BehindGuard(X, dict), MappingProxyType(Counter("a")), "args[0] should show a dict, not a Counter"),
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
            UnsetGuard(Attribute(X, "cell_contents")),
            CellType(1),
            "args[0].cell_contents should be unset, but holds a value",
        ),
        (UnsetGuard(Cell("n", CellType(1))), 1, "n should be unset, but holds a value"),
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
