"""What staged numbers ask of the recorder that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol


class NumberRecorder(Protocol):
    """What a staged number asks of the recorder it belongs to."""

    def number_operation(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Record ``function(*args)`` on numbers and return what stands for its result."""

    def number_demanded(self, number: Any, what: str) -> Any:
        """Python demands a concrete value: give one, or raise."""

    def number_meets_array(self, number: Any) -> NoReturn:
        """One of numpy's arrays or scalars would have to hold what stands for a number: raise."""

    def numpy_operation(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Record an operator, or a function of numpy's, on numbers and on arrays or scalars of numpy's."""

    def complex_operation(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Record ``function(*operands)``, of which some are complex numbers."""

    def may_be_none(self, value: Any) -> bool:
        """Whether a staged value may be ``None`` where we are."""

    def repeated(self, items: Any, count: Any) -> Any:
        """A list or tuple as often as only the run knows."""
