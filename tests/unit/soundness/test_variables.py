"""Changes of module-level names, of closures, and of functions themselves."""

from __future__ import annotations

import builtins
import functools
import importlib
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.soundness.following import Box, Change, deleting, follows, in_turn, nothing, setting, storing

SCALE: Any = 2.0
OPTIONAL: Tensor | None = None
WEIGHT = torch.ones(3)
HELD: Any = None
HERE = sys.modules[__name__]


def plus_one(x: Tensor) -> Tensor:
    return x + 1


def fivefold(x: Tensor) -> Tensor:
    return x * 5


CALLED = plus_one


@pytest.fixture(autouse=True)
def _names_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCALE", "OPTIONAL", "WEIGHT", "HELD", "CALLED"):
        monkeypatch.setattr(HERE, name, getattr(HERE, name))
    for name in ("GONE", "LATER", "abs"):
        monkeypatch.delattr(HERE, name, raising=False)
    WEIGHT.fill_(1)


# ---- module-level names
def by_name(x: Tensor) -> Tensor:
    return x * SCALE


def by_globals(x: Tensor) -> Tensor:
    return x * globals()["SCALE"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", [by_name, by_globals])
def test_a_number(function: Callable[[Tensor], Tensor]) -> None:
    follows(function, *(setting(HERE, SCALE=value) for value in (3.0, 3, True, torch.ones(3))))


def test_a_number_that_a_branch_on_data_compares_with() -> None:
    def function(x: Tensor) -> Tensor:
        if x.sum() > SCALE:
            return x * 2
        return x

    follows(function, setting(HERE, SCALE=30.0))


def test_a_name_that_is_deleted() -> None:
    setting(HERE, GONE=2)()
    follows(lambda x: x * GONE, deleting(HERE, "GONE"))  # type: ignore[name-defined]  # noqa: F821


def test_a_name_that_appears() -> None:
    def function(x: Tensor) -> Tensor:
        try:
            return x * LATER  # type: ignore[name-defined, no-any-return]
        except NameError:
            return x

    follows(function, setting(HERE, LATER=5), deleting(HERE, "LATER"))


def test_a_name_that_hides_a_builtin() -> None:
    follows(lambda x: x * abs(-2), setting(HERE, abs=lambda value: 7), deleting(HERE, "abs"))


def test_a_builtin_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    follows(
        lambda x: x * sum([1, 2]),
        partial(monkeypatch.setattr, builtins, "sum", lambda values: 7),
        monkeypatch.undo,
    )


def test_a_tensor() -> None:
    follows(
        lambda x: x * WEIGHT,
        setting(HERE, WEIGHT=torch.full((3,), 2.0)),
        setting(HERE, WEIGHT=torch.ones(1, dtype=torch.float64)),
        lambda: WEIGHT.fill_(7),
    )


def test_none_that_becomes_a_tensor() -> None:
    follows(lambda x: x if OPTIONAL is None else x * OPTIONAL, setting(HERE, OPTIONAL=torch.ones(3) * 4))


def test_a_function() -> None:
    follows(lambda x: CALLED(x), setting(HERE, CALLED=fivefold))


@pytest.mark.parametrize(
    ("held", "read", "change"),
    [
        ({"a": 1.0}, lambda d: d["a"], lambda d: d.update(a=2.0)),
        ({"a": 1.0}, lambda d: d["a"], lambda d: d.clear()),
        ({"a": 1.0}, lambda d: d.get("b", 4), lambda d: d.update(b=2.0)),
        ({}, lambda d: 2 if "z" in d else 1, lambda d: d.update(z=2.0)),
        ([1, 2], lambda items: items[0], lambda items: items.__setitem__(0, 5)),
        ([1, 2], lambda items: items[0], lambda items: items.insert(0, 9)),
        ([1, 2], len, lambda items: items.append(3)),
        ({"q"}, lambda names: 2 if "q" in names else 1, lambda names: names.clear()),
        ({"a": [1, {"b": 2}]}, lambda d: d["a"][1]["b"], lambda d: d["a"][1].update(b=7)),
        ((1, [2]), lambda pair: pair[1][0], lambda pair: pair[1].__setitem__(0, 8)),
    ],
    ids=[
        "value", "emptied", "absent value", "absent key", "element", "inserted", "length", "set", "nested", "in tuple",
    ],
)
def test_a_container(held: Any, read: Callable[[Any], float], change: Callable[[Any], object]) -> None:
    setting(HERE, HELD=held)()
    follows(lambda x: x * read(HELD), lambda: change(HELD))


def test_a_list_that_is_iterated() -> None:
    items = [1, 2]
    setting(HERE, HELD=items)()

    def function(x: Tensor) -> Tensor:
        for item in HELD:
            x = x + item
        return x

    follows(function, partial(items.append, 3), items.clear)


# ---- closures
def test_a_variable_of_a_closure() -> None:
    scale: Any = 2

    def change_to(value: Any) -> None:
        nonlocal scale
        scale = value

    follows(lambda x: x * scale, *(partial(change_to, value) for value in (3, 3.5, torch.ones(3))))


def test_a_list_in_a_closure() -> None:
    scales = [2]
    follows(lambda x: x * scales[0], storing(scales, 0, 4))


def test_an_object_in_a_closure() -> None:
    config = Box(inner=Box(rate=2))
    follows(lambda x: x * config.inner.rate, setting(config.inner, rate=4), setting(config, inner=Box(rate=9)))


def test_a_function_in_a_closure() -> None:
    called = plus_one

    def change() -> None:
        nonlocal called
        called = fivefold

    follows(lambda x: called(x), change)


def test_the_closure_of_a_helper() -> None:
    scale = 2

    def helper(x: Tensor) -> Tensor:
        return x * scale

    def change() -> None:
        nonlocal scale
        scale = 3

    follows(lambda x: helper(x), change)


def test_a_closure_through_a_nested_function() -> None:
    scales = [2]

    def function(x: Tensor) -> Tensor:
        def inner(y: Tensor) -> Tensor:
            return y * scales[0]

        return inner(x)

    follows(function, storing(scales, 0, 5))


def test_closures_in_a_list_of_an_object() -> None:
    rates = {"a": 2, "b": 3}

    def scaler(name: str) -> Callable[[Tensor], Tensor]:
        return lambda x: x * rates[name]

    pipeline = Box(steps=[scaler("a"), scaler("b")])

    def function(x: Tensor) -> Tensor:
        for step in pipeline.steps:
            x = step(x)
        return x

    follows(function, storing(rates, "b", 7), storing(pipeline.steps, 0, scaler("b")), pipeline.steps.pop)


# ---- functions themselves
def make_functions() -> tuple[Any, Any]:
    """A fresh function with defaults, and one that calls it."""

    def called(x: Tensor, k: float = 2, *, extra: float = 1) -> Tensor:
        return x * k + extra

    return called, lambda x: called(x)


def other_code(x: Tensor, k: float = 2, *, extra: float = 1) -> Tensor:
    return x - k * extra


FUNCTION_CHANGES: dict[str, Callable[[Any], Change]] = {
    "code": lambda f: setting(f, __code__=other_code.__code__),
    "defaults": lambda f: setting(f, __defaults__=(5,)),
    "keyword defaults": lambda f: setting(f, __kwdefaults__={"extra": 5}),
    "a keyword default": lambda f: storing(f.__kwdefaults__, "extra", 6),
    "no defaults": lambda f: setting(f, __defaults__=None),
    "no keyword defaults": lambda f: setting(f, __kwdefaults__=None),
}


@pytest.mark.parametrize("name", FUNCTION_CHANGES)
def test_a_function_that_is_called(name: str) -> None:
    called, function = make_functions()
    follows(function, FUNCTION_CHANGES[name](called))


@pytest.mark.parametrize("name", FUNCTION_CHANGES)
def test_the_static_function_itself(name: str) -> None:
    function, _ = make_functions()
    follows(function, FUNCTION_CHANGES[name](function))


def test_a_mutable_default() -> None:
    def called(x: Tensor, scales: list[int] = [2]) -> Tensor:  # noqa: B006 - the point
        return x * scales[0]

    follows(lambda x: called(x), storing((called.__defaults__ or ())[0], 0, 5))


def test_an_attribute_of_the_function() -> None:
    def function(x: Tensor) -> Tensor:
        return x * function.scale  # type: ignore[attr-defined, no-any-return]

    setting(function, scale=2)()
    follows(function, setting(function, scale=7))


def test_an_attribute_that_the_function_lacks() -> None:
    def function(x: Tensor) -> Tensor:
        return x * getattr(function, "scale", 3)

    follows(function, setting(function, scale=7), deleting(function, "scale"))


def test_a_partial() -> None:
    def scaled(x: Tensor, k: int) -> Tensor:
        return x * k

    held = [partial(scaled, k=2)]
    follows(lambda x: held[0](x), storing(held[0].keywords, "k", 5), storing(held, 0, partial(scaled, k=9)))


def test_a_partial_of_a_method() -> None:
    class Scaler(Box):
        def apply(self, x: Tensor, offset: float) -> Tensor:
            return x * self.rate + offset

    scaler = Scaler(rate=2)
    applied = partial(scaler.apply, offset=1.0)
    follows(lambda x: applied(x), setting(scaler, rate=5), storing(applied.keywords, "offset", 3.0))


def test_a_bound_method() -> None:
    class Scaler(Box):
        def apply(self, x: Tensor) -> Tensor:
            return x * self.rate

    scaler = Scaler(rate=2)
    apply = scaler.apply
    follows(lambda x: apply(x), setting(scaler, rate=5))


def test_what_an_lru_cache_holds() -> None:
    factors = {"k": 2}

    @functools.lru_cache
    def cached(value: int) -> int:
        return value * factors["k"]

    follows(lambda x: x * cached(2), in_turn(partial(factors.update, k=5), cached.cache_clear))


def test_a_registration_with_singledispatch() -> None:
    @functools.singledispatch
    def dispatched(value: object, x: Tensor) -> Tensor:
        return x

    def scaled(value: int, x: Tensor) -> Tensor:
        return x * value

    follows(lambda x: dispatched(3, x), lambda: dispatched.register(int, scaled))


def test_the_state_of_a_decorator_in_its_closure() -> None:
    state = {"on": True}

    def decorator(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        @functools.wraps(function)
        def wrapper(*args: Any) -> Tensor:
            return function(*args) * 2 if state["on"] else function(*args)

        return wrapper

    decorated = decorator(plus_one)
    follows(lambda x: decorated(x), partial(state.update, on=False))


def test_the_state_of_a_decorator_that_is_an_object() -> None:
    class Switch:
        def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
            self.function, self.enabled, self.factors = function, True, [2.0]

        def __call__(self, x: Tensor) -> Tensor:
            result = self.function(x)
            if self.enabled:
                for factor in self.factors:
                    result = result * factor
            return result

    switched = Switch(plus_one)
    follows(
        lambda x: switched(x),
        partial(switched.factors.append, 5.0),
        setting(switched, function=fivefold),
        setting(switched, enabled=False),
    )


def test_what_a_decorated_function_wraps() -> None:
    @functools.wraps(plus_one)
    def wrapper(x: Tensor) -> Tensor:
        return wrapper.__wrapped__(x) * 2  # type: ignore[attr-defined, no-any-return]

    follows(wrapper, setting(wrapper, __wrapped__=fivefold))


def test_what_a_function_that_is_not_rewritten_reads() -> None:
    table = {"v": 2}

    @sg.not_to_static
    def helper(x: Tensor) -> Tensor:
        return x * table["v"]

    follows(lambda x: helper(x), partial(table.update, v=5))


def test_random_numbers_are_drawn_anew() -> None:
    follows(lambda x: x * random.random(), nothing, seen=False)


# ---- captures in a module that is being imported
MODULE = """
import torch
import stillgraph as sg

K = 2

@sg.not_to_static
def shifted(x):
    return x + K

@sg.to_static(backend="eager")
def scaled(x):
    return shifted(x) * 2

before = scaled(torch.ones(2))
K = 5
after = scaled(torch.ones(2))
"""


def test_globals_of_unconverted_functions_are_guarded_while_a_module_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "captures_on_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = importlib.import_module("captures_on_import")
    assert (module.before.tolist(), module.after.tolist()) == ([6.0, 6.0], [12.0, 12.0])
