"""What eager PyTorch says of an operation that fails on fake tensors: their words are often others."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.trace.fakes.symbolic import is_fake, is_unknown

_MOST = 1 << 24  # elements of an argument


@dataclass(frozen=True, eq=False)
class Failed:
    """An operation that has raised on fake tensors. The error itself would hold the frames of the capture."""

    error: int
    function: Callable[..., Any]
    args: Any
    kwargs: Any
    said: str | None = None  # what eager PyTorch says, where it was asked and fails as well

    def is_eagers(self, error: BaseException) -> bool:
        """Whether an error is this operation's, and eager PyTorch raises the same for all sizes of the program."""
        leaves = torch.utils._pytree.tree_leaves((self.args, self.kwargs))
        return self.error == id(error) and self.said == str(error) and not any(map(_is_open, leaves))


def _is_open(value: Any) -> bool:
    """Whether only the run knows a size, or one of a tensor's."""
    with torch._C.DisableTorchFunction():
        sizes = tuple(value.shape) if isinstance(value, torch.Tensor) else (value,)
    return any(isinstance(size, torch.SymInt) for size in sizes)


def in_eager(error: BaseException, failed: Failed | None) -> BaseException:
    """What an operation raises on real tensors of its arguments' shapes.

    Args:
        error: what is to be told of.
        failed: the last operation that has failed.

    Returns:
        The error itself, where it is not that operation's, or the operation cannot be tried.
    """
    if failed is None or failed.error != id(error):
        return error
    return _said(error, failed, _closed)


def quote(error: BaseException, failed: Failed) -> BaseException | None:
    """Let an error say what eager says, which names sizes: those that are open in the capture are guarded from now on.

    Args:
        error: what an operation has raised on fake tensors.
        failed: the operation.

    Returns:
        The error; where eager raises one of another class, that; None if nobody can tell.
    """
    said = _said(error, failed, _guarded)
    if said is error:
        return None
    if type(said) is not type(error):
        return said
    error.args = said.args
    return error


def quote_for_all_sizes(error: BaseException, failed: Failed) -> bool:
    """Let an error say what eager says, where that is the same whatever the open sizes are: of types, for instance.

    Args:
        error: what is to be told of.
        failed: the last operation that has failed.

    Returns:
        Whether eager raises it too, in each of several trials.
    """
    if failed.error != id(error):
        return False
    symbols = _symbols_of(torch.utils._pytree.tree_leaves((failed.args, failed.kwargs)))
    if not symbols:
        return False  # nothing is open: `Failed.is_eagers` answers
    trials = [_said(error, failed, functools.partial(_number, sizes)) for sizes in _assignments(symbols)]
    first = trials[0]
    if first is error or any((type(each), str(each)) != (type(error), str(first)) for each in trials):
        return False
    error.args = first.args
    return True


def _symbols_of(leaves: list[Any]) -> list[Any]:
    """The symbols in the sizes of tensors, and in numbers."""
    with torch._C.DisableTorchFunction():
        sizes = [size for leaf in leaves for size in (leaf.shape if isinstance(leaf, torch.Tensor) else (leaf,))]
    found = (size.node.expr.free_symbols for size in sizes if isinstance(size, torch.SymInt))
    return sorted({symbol for each in found for symbol in each}, key=str)


def _assignments(symbols: list[Any]) -> list[dict[Any, int]]:
    """Sizes to try: equal ones, those that torch stretches among them, and others."""
    equal = [dict.fromkeys(symbols, size) for size in (2, 1, 0)]
    return [*equal, *(dict(zip(symbols, itertools.cycle(sizes))) for sizes in ((3, 5, 7), (8, 4, 6, 2)))]


def _number(sizes: dict[Any, int], size: Any) -> int:
    return int(size.node.expr.xreplace(sizes)) if isinstance(size, torch.SymInt) else int(size)


def _said(error: BaseException, failed: Failed, number: Callable[[Any], int]) -> BaseException:
    """What an operation raises on real tensors, of sizes that ``number`` gives; the error itself if nobody can tell."""
    try:
        with torch._C.DisableTorchFunction(), torch.random.fork_rng(devices=[]), torch.no_grad():
            make = functools.partial(_real, number=number)
            given, options = torch.utils._pytree.tree_map(make, (failed.args, failed.kwargs))
            failed.function(*given, **options)
    except _Unknown as unknown:
        unknown.__context__ = None  # the error, which is being handled: what it leads to is still needed
        return error
    except Exception as said:  # of any kind: it is what is asked for
        said.__context__ = None
        return said
    return error


class _Unknown(Exception):
    """A value for which there is no real one, or too large a one."""


def _closed(size: Any) -> int:
    if type(size) is not int:
        raise _Unknown
    return size


def _guarded(size: Any) -> int:
    if is_unknown(size):
        raise _Unknown
    return int(size)


def _real(value: Any, number: Callable[[Any], int]) -> Any:
    if isinstance(value, torch.SymInt):
        return number(value)
    if isinstance(value, (torch.SymFloat, torch.SymBool)) or (callable(value) and not isinstance(value, type)):
        raise _Unknown  # a function of the user's may do something
    if not isinstance(value, torch.Tensor):
        return value
    if not is_fake(value) or value.device.type != "cpu" or value.layout is not torch.strided:
        raise _Unknown
    sizes = tuple(map(number, value.shape))
    if math.prod(sizes) > _MOST:
        raise _Unknown
    return torch.zeros(sizes, dtype=value.dtype)
