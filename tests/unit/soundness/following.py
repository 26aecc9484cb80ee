"""Whether a static function follows the Python world: whatever is changed around it, it does what eager does."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import stillgraph as sg
from stillgraph.runtime.calls.static_function import StaticFunction
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import outcome, same_error

X = torch.tensor([1.0, 2.0, 3.0])
Change = Callable[[], object]


def follows(
    function: Any, *changes: Change, args: tuple[Any, ...] = (X,), settled: int = 1, seen: bool = True
) -> None:
    """Assert that a static function does what its original does, before and after each change.

    A call is the same in value, type, dtype, ``requires_grad``, and in the exception's type and text. Called again
    without any change in between, the static function needs no new program.

    Args:
        function: a function, or a module.
        changes: what to change in the Python world, one after the other.
        args: what to call it with.
        settled: after how many calls nothing changes any more that the calls themselves change.
        seen: whether at least one of the changes is to be seen in what eager gives.
    """
    original = _original(function) if isinstance(function, nn.Module) else function
    static = sg.to_static(function, backend="eager")
    results = [_agree(static, original, args, settled, "before any change")]
    for number, change in enumerate(changes, 1):
        change()
        results.append(_agree(static, original, args, settled, f"after change {number}"))
    assert not seen or any(_differ(results[0], result) for result in results[1:]), "the changes change nothing"


def _agree(static: Any, original: Callable[..., Any], args: tuple[Any, ...], settled: int, when: str) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    for call in range(settled + 1):
        programs = _programs(static)
        actual, expected = _outcome(static, args), _outcome(original, args)
        if isinstance(actual["error"], sg.CaptureError):
            raise actual["error"]
        for what, value in expected.items():
            if what == "error":
                assert same_error(value, actual[what]), f"{when}: raises {actual[what]!r}, eager {value!r}"
            else:
                assert_same(value, actual[what], f"{when}: {what}")
        assert call < settled or _programs(static) == programs, f"{when}: another call needs a new program"
    return expected


def _differ(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if not same_error(left["error"], right["error"]):
        return True
    try:
        assert_same(left["value"], right["value"])
    except AssertionError:
        return True
    return False


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    random.seed(0)
    return outcome(function, args)


def _programs(static: Any) -> int:
    held: StaticFunction[..., Any] = static.__dict__["forward"] if isinstance(static, nn.Module) else static
    return held.cache_info().programs


def _original(module: nn.Module) -> Callable[..., Any]:
    """A call of a module as if it had not been made static."""

    def call(*args: Any) -> Any:
        static = module.__dict__.pop("forward")
        try:
            return module(*args)
        finally:
            module.__dict__["forward"] = static

    return call


# ---- changes
def setting(target: Any, **attributes: Any) -> Change:
    """Set attributes of an object, a class or a module."""

    def change() -> None:
        for name, value in attributes.items():
            setattr(target, name, value)

    return change


def deleting(target: Any, name: str) -> Change:
    """Delete an attribute."""
    return lambda: delattr(target, name)


def storing(container: Any, key: Any, value: Any) -> Change:
    """Store an element of a list, dict or array."""
    return lambda: container.__setitem__(key, value)


def in_turn(*changes: Change) -> Change:
    """Several changes at once."""

    def change() -> None:
        for part in changes:
            part()

    return change


def nothing() -> None:
    """No change at all."""


# ---- values
class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def total(values: Sequence[float] | Mapping[Any, float]) -> float:
    """The sum of what a container holds."""
    result = 0.0
    for value in values.values() if isinstance(values, Mapping) else values:
        result += value
    return result
