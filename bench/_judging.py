"""What the scripts that judge other tools share: lenient comparison, time limits, silence."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Wrapped(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def as_module(target: Any) -> nn.Module:
    """A module as it is, a function as one."""
    return target if isinstance(target, nn.Module) else Wrapped(target)


# ---- comparing
def same(expected: Any, actual: Any) -> bool:
    """Equal in values and dtype; containers, numbers and 0-d tensors may stand for each other."""
    left, right = leaves(expected), leaves(actual)
    return len(left) == len(right) and all(map(_same_leaf, left, right))


def leaves(value: Any) -> list[Any]:
    """The tensors, detached, and whatever else is in nested containers and objects, in order."""
    if isinstance(value, Tensor):
        return [value.detach()]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [leaf for part in value for leaf in leaves(part)]
    if hasattr(value, "__dict__") and not callable(value):
        return leaves(vars(value))
    return [value]


def _same_leaf(expected: Any, actual: Any) -> bool:
    if isinstance(expected, Tensor) and isinstance(actual, Tensor):
        return (
            expected.shape == actual.shape
            and expected.dtype == actual.dtype
            and torch.allclose(expected.double(), actual.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        )
    if isinstance(expected, (bool, int, float, Tensor)) and isinstance(actual, (bool, int, float, Tensor)):
        left, right = torch.as_tensor(expected).double(), torch.as_tensor(actual).double()
        return torch.allclose(left, right, rtol=1e-4, equal_nan=True)
    return bool(expected == actual)


# ---- running
def brief(error: BaseException) -> str:
    """The kind of an error and the beginning of its first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120] if lines else ''}"


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """`TimeoutError` in what takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No logs, no warnings, and nothing that Python prints."""
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings(action="ignore"))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    """The lines that are written to the process's own standard output: TorchScript prints past Python."""
    lines: list[str] = []
    before = os.dup(1)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            lines.extend(file)
