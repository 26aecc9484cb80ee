"""Calls that cannot be captured, though plain PyTorch makes them: they are not tried for ever."""

from __future__ import annotations

import collections
from typing import Any

import torch

from stillgraph.core.raised import line_that_raised

_MOST = 1000  # kinds of calls that are known
_TRIES = 2  # of one kind of call
_TRIES_OF_A_LINE = 4  # whatever calls lead there, while nothing else is captured


class FailedCaptures:
    """Which calls of a function failed in their captures, by what they were given and by the line that failed.

    What such a call is given besides (globals, attributes) may change so that it could be captured: it is made in plain
    PyTorch all the same, which is right.
    """

    def __init__(self) -> None:
        self._calls: collections.Counter[Any] = collections.Counter()
        self._lines: collections.Counter[str] = collections.Counter()

    def are_certain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call that no program fits is not to be captured any more."""
        if not self._calls:
            return False
        return max(self._lines.values(), default=0) >= _TRIES_OF_A_LINE or self._calls[_kind(args, kwargs)] >= _TRIES

    def add(self, failure: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Take down that the capture of a call has failed; whether it is the first to fail so in this line."""
        if len(self._calls) >= _MOST:
            self._calls.clear()
        line = f"{type(failure).__name__} {line_that_raised(failure)}"
        self._calls[_kind(args, kwargs)] += 1
        self._lines[line] += 1
        return self._lines[line] == 1

    def succeeded(self) -> None:
        """Told that a call was captured: so others, of other kinds, may be."""
        self._lines.clear()

    def clear(self) -> None:
        """Forget all."""
        self._calls.clear()
        self._lines.clear()


def _kind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        given = (*map(_kind_of, args), *((name, _kind_of(value)) for name, value in kwargs.items()))
        hash(given)
    except Exception:  # of any kind: arguments without a shape, that hold themselves, with methods of the user's
        given = ()
    return torch.is_grad_enabled(), given


def _kind_of(value: Any) -> Any:
    kind = _told(type(value))
    if isinstance(value, torch.Tensor):
        return kind, value.dtype, value.device, tuple(value.shape), value.requires_grad
    if isinstance(value, torch.nn.Module):
        return kind, value.training
    if isinstance(value, (list, tuple)):
        return kind, tuple(map(_kind_of, value))
    if isinstance(value, dict):
        return kind, tuple(map(_kind_of, value)), tuple(map(_kind_of, value.values()))
    return (kind, value) if any(kind is each for each in (bool, int, str)) else kind


def _told(kind: type) -> Any:
    """What tells a class from others: a metaclass of the user's may say that it is equal to another."""
    return kind if type(kind) is type else id(kind)
