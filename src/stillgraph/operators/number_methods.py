"""The special methods of a number that only the run knows, as the user calls them: ``n.__add__(1.5)``."""

from __future__ import annotations

from types import MethodType
from typing import Any

from stillgraph.trace.number_results import kinds_of
from stillgraph.trace.numbers import StagedNumber
from stillgraph.trace.operands import require_known, sample


def is_declined(method: MethodType, args: tuple[Any, ...]) -> bool:
    """Whether Python's own number knows nothing of such operands, and gives ``NotImplemented``.

    An operator would ask the other operand then, which the methods of what stands for a number do at once.

    Raises:
        CaptureError: of which kind a number is depends on the path.
    """
    number, name = method.__self__, method.__name__
    if not isinstance(number, StagedNumber) or not name.startswith("__"):
        return False
    answers = {_declines(kind(1), name, args) for kind in kinds_of(number)}
    if len(answers) > 1 or True in answers:
        require_known((number, *args), f"is asked for its {name}")
    return answers == {True}


def _declines(number: Any, name: str, args: tuple[Any, ...]) -> bool:
    try:
        return getattr(number, name)(*map(sample, args)) is NotImplemented
    except Exception:  # of any kind: the method itself is asked
        return False
