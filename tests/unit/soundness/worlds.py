"""What the tests of arguments share: objects that functions look at, and the comparison itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import same_error

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
