"""What a file says of assertions: the original's exception in place of a truth value, or of an error of torch's."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.passes.checks import Check


def results_of(given: Sequence[Any], checks: Sequence[Check]) -> list[torch.Tensor]:
    """What a module gives besides the dict of its checks, which comes last.

    Args:
        given: by the module.
        checks: of the program; () if it gives none.

    Raises:
        Exception: what the original raises where the first check that does not hold stands.
    """
    if not checks:
        return list(given)
    *results, held = given
    require_all(checks, [held[check.name] for check in checks])
    return results


def require_all(checks: Sequence[Check], flags: Sequence[torch.Tensor]) -> None:
    """Raise what the original raises, unless all checks hold."""
    for check, flag in zip(checks, flags, strict=True):
        if not flag.item():
            raise original(check.error, RuntimeError(check.error))


def original(text: str, otherwise: Exception) -> Exception:
    """The exception of Python's own that a text names: ``"ValueError: negative"``.

    ``otherwise`` if it names none, or one that is not made of a message alone.
    """
    name, separator, message = text.partition(": ")
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return otherwise
    try:
        return kind(_key(message) if issubclass(kind, KeyError) else message) if separator else kind()
    except TypeError:
        return otherwise


def _key(message: str) -> Any:
    """The key that the text of a `KeyError` shows; the text where it shows none that can be read."""
    try:
        return ast.literal_eval(message)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return message
