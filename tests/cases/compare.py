"""Are two values the same: in structure, exact Python type, shape, dtype and value?"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch


def assert_same(expected: Any, actual: Any, where: str = "the result") -> None:
    """Compare what eager gave with what the static function gave.

    Args:
        expected: eager's value.
        actual: the static function's.
        where: how a message names the value.

    Raises:
        AssertionError: they differ; the text names the first place.
    """
    assert type(actual) is type(expected), f"{where} is {brief(actual)}, eager gives {brief(expected)}"
    if isinstance(expected, torch.Tensor):
        _assert_same_tensor(expected, actual, where)
    elif isinstance(expected, float):
        same = math.isnan(actual) if math.isnan(expected) else math.isclose(actual, expected, rel_tol=1e-9)
        assert same, f"{where} is {actual}, eager gives {expected}"
    elif isinstance(expected, torch.Generator):
        assert torch.equal(actual.get_state(), expected.get_state()), f"{where} is in another state than eager's"
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, err_msg=where)
    elif children(expected) is not None:
        _assert_same_container(expected, actual, where)
    elif type(expected).__eq__ is object.__eq__ and hasattr(expected, "__dict__") and not callable(expected):
        assert_same(vars(expected), vars(actual), where)
    else:
        assert actual == expected, f"{where} is {brief(actual)}, eager gives {brief(expected)}"


def _assert_same_tensor(expected: torch.Tensor, actual: torch.Tensor, where: str) -> None:
    assert actual.shape == expected.shape, f"{where} is {brief(actual)}, eager gives {brief(expected)}"
    assert actual.requires_grad == expected.requires_grad, (
        f"{where} {'requires' if actual.requires_grad else 'does not require'} a gradient, unlike eager's"
    )
    torch.testing.assert_close(
        actual.detach(),
        expected.detach(),
        equal_nan=True,
        msg=lambda text: f"{where}: {text}\n{actual}\neager: {expected}",
    )


def _assert_same_container(expected: Any, actual: Any, where: str) -> None:
    if isinstance(expected, (set, frozenset)):
        assert actual == expected, f"{where} is {brief(actual)}, eager gives {brief(expected)}"
        return
    mine, theirs = dict(children(actual) or ()), dict(children(expected) or ())
    assert list(mine) == list(theirs), f"{where} is {brief(actual)}, eager gives {brief(expected)}"
    for key, value in theirs.items():
        assert_same(value, mine[key], f"{where}{key}")


def children(value: Any) -> list[tuple[str, Any]] | None:
    """The parts of a container with the text that selects each, or None for what is not a container."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", element) for i, element in enumerate(value)]
    if isinstance(value, deque):
        return [(".maxlen", value.maxlen), *((f"[{i}]", element) for i, element in enumerate(value))]
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", element) for key, element in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, (set, frozenset)):
        return [("{}", element) for element in value]
    return None


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every container and leaf inside `value`, itself first, each with the text that selects it."""
    yield path, value
    for key, element in children(value) or ():
        yield from walk(element, path + key)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors inside `value`, in order."""
    return [part for _, part in walk(value) if isinstance(part, torch.Tensor)]


def sharing(value: Any) -> list[tuple[str, str]]:
    """The places inside ``value`` that hold a list, dict, set or object which an earlier place holds: both paths."""
    first: dict[int, str] = {}
    found = []
    for path, part in walk(value):
        if children(part) is None or isinstance(part, (tuple, torch.Tensor)):
            continue
        if first.setdefault(id(part), path) != path:
            found.append((first[id(part)], path))
    return found


def brief(value: Any) -> str:
    """A value on one line, for messages."""
    if isinstance(value, torch.Tensor):
        kind = "tensor" if type(value) is torch.Tensor else type(value).__name__
        return f"a {kind} {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    text = repr(value).replace("\n", " ")
    return f"{type(value).__name__} {text if len(text) < 80 else text[:77] + '...'}"
