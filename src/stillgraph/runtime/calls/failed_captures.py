"""Calls that cannot be captured, though plain PyTorch makes them: they are not tried for ever."""

from __future__ import annotations

import collections
from typing import Any

import torch

from stillgraph.core.raised import line_that_raised

_MOST = 1000  # kinds of calls that are known
_TRIES = 2  # of one kind of call
_TRIES_OF_A_LINE = 4  # whatever calls lead there, while nothing else is captured
_FORMS = 16  # that are tried at once all the same
_PATIENCE = 64  # calls that are made in plain PyTorch before another is tried; twice as many after each that fails


class FailedCaptures:
    """Which calls of a function failed in their captures, by what they were given and by the line that failed.

    Where one line fails again and again, calls of other sizes and numbers are tried ever more rarely; those of another
    form (other classes, dtypes, numbers of dimensions) are tried, for they may take another way through the function.

    What such a call is given besides (globals, attributes) may change so that it could be captured: it is made in plain
    PyTorch all the same, which is right.
    """

    def __init__(self) -> None:
        self._calls: collections.Counter[Any] = collections.Counter()
        self._lines: collections.Counter[str] = collections.Counter()
        self._forms: set[Any] = set()
        self._passed, self._patience = 0, _PATIENCE

    def are_certain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call that no program fits is not to be captured any more, or not now."""
        if not self._calls:
            return False
        if self._calls[_kind(args, kwargs)] >= _TRIES:
            return True
        if not self._is_stuck or self._is_new_form(args, kwargs):
            return False
        self._passed += 1
        return self._passed < self._patience

    @property
    def _is_stuck(self) -> bool:
        """Whether one line fails again and again."""
        return max(self._lines.values(), default=0) >= _TRIES_OF_A_LINE

    def _is_new_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return len(self._forms) < _FORMS and _kind(args, kwargs, is_form=True) not in self._forms

    def add(self, failure: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Take down that the capture of a call has failed; whether it is the first to fail so in this line."""
        if len(self._calls) >= _MOST:
            self._calls.clear()
        if self._is_stuck and self._passed:
            self._passed, self._patience = 0, 2 * self._patience
        line = f"{type(failure).__name__} {line_that_raised(failure)}"
        self._calls[_kind(args, kwargs)] += 1
        self._lines[line] += 1
        if len(self._forms) < _FORMS:
            self._forms.add(_kind(args, kwargs, is_form=True))
        return self._lines[line] == 1

    def succeeded(self) -> None:
        """Told that a call was captured: so others, of other kinds, may be."""
        self._lines.clear()

    def clear(self) -> None:
        """Forget all."""
        self._calls.clear()
        self._lines.clear()
        self._forms.clear()
        self._passed, self._patience = 0, _PATIENCE


def _kind(args: tuple[Any, ...], kwargs: dict[str, Any], is_form: bool = False) -> Any:
    """What tells a call from others; a form leaves sizes and plain values out."""
    try:
        names = kwargs.items()
        given = (*(_kind_of(each, is_form) for each in args), *((name, _kind_of(v, is_form)) for name, v in names))
        hash(given)
    except Exception:  # of any kind: arguments without a shape, that hold themselves, with methods of the user's
        given = ()
    return torch.is_grad_enabled(), given


def _kind_of(value: Any, is_form: bool) -> Any:
    kind = _told(type(value))
    if isinstance(value, torch.Tensor):
        shape: Any = value.dim() if is_form else tuple(value.shape)
        return kind, value.dtype, value.device, shape, value.requires_grad
    if isinstance(value, torch.nn.Module):
        return kind, value.training
    if isinstance(value, (list, tuple)):
        parts = tuple(_kind_of(each, is_form) for each in value)
        return kind, frozenset(parts) if is_form else parts  # of a form, how many there are is no matter
    if isinstance(value, dict):
        return kind, tuple(_kind_of(each, is_form) for pair in value.items() for each in pair)
    return (kind, value) if not is_form and any(kind is each for each in (bool, int, str)) else kind


def _told(kind: type) -> Any:
    """What tells a class from others: a metaclass of the user's may say that it is equal to another."""
    return kind if type(kind) is type else id(kind)
