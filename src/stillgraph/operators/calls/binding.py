"""Python's own functions, called with arguments for which what stands for them in a capture has no parameters.

What stands for one has the parameters for which a value of the run makes a difference. With any others the function
itself says what is wrong with them, or does with them what it does: ``int(text, base=16)``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from stillgraph.core.lookup import class_member
from stillgraph.operators.outside.misread import refuse_misread
from stillgraph.trace.capture.session import Session
from stillgraph.trace.values.numbers import StagedNumber

_WITHOUT_EFFECTS = frozenset({"builtins", "math", "_operator", "_functools", "itertools"})


def fails_to_bind(function: Any, meaning: Callable[..., Any] | None, error: Exception) -> bool:
    """Whether what stands for a function of Python's has not begun: it has no parameters for what it was given.

    Args:
        function: the function of Python's.
        meaning: what stands for it.
        error: what calling that raised, in the function that asks.
    """
    if not isinstance(meaning, FunctionType) or getattr(function, "__module__", None) not in _WITHOUT_EFFECTS:
        return False
    traceback = error.__traceback__
    return isinstance(error, TypeError) and traceback is not None and traceback.tb_next is None


def call_python(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of such a function itself.

    Raises:
        CaptureError: it takes no value of the run.
    """
    try:
        return function(*args, **kwargs)
    except Exception as error:  # of any kind: what Python's function says
        refuse_misread(capture, function, error, False, (args, kwargs))  # it is about parameters, not about values
        raise


class NamedAs:
    """Stands for a function in a call, so that Python says of that function what is wrong with ``*`` and ``**``.

    Args:
        function: the function, whose name is asked for only where something is wrong.
        does: what is called instead.
    """

    def __init__(self, function: Any, does: Callable[..., Any]) -> None:
        self._function = function
        self._does = does

    def __getattribute__(self, name: str) -> Any:
        if name in ("__module__", "__qualname__"):
            return getattr(object.__getattribute__(self, "_function"), name)
        return object.__getattribute__(self, name)

    def __str__(self) -> str:
        return str(self._function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._does(*args, **kwargs)


def takes_one(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether what a method is given is one argument by its position."""
    return len(args) == 1 and not kwargs


def is_iterable(value: Any) -> bool:
    """Whether Python may run over a value, or over what that stands for."""
    kind = type(value)
    if isinstance(value, StagedNumber) or kind.__module__.startswith("stillgraph."):
        return True
    return any(class_member(kind, name) is not None for name in ("__iter__", "__getitem__"))
