"""Errors that end a capture where Python lets none pass: in generators that it closes by itself, and in finalisers."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import Any

from stillgraph.core.faults import ends_capture, is_signal


def close_all(made: Iterable[Any], is_outer: Callable[[Any], bool]) -> None:
    """End the generators among what a capture has made, some of it held weakly, but those that were there before."""
    for held in made:
        iterator = held() if type(held) is weakref.ref else held
        if isinstance(iterator, GeneratorType) and not is_outer(iterator):
            close(iterator)


def close(generator: GeneratorType[Any, Any, Any]) -> None:
    """End a generator that a capture has begun. Nobody hears of what it raises; what it would do outside is refused."""
    try:
        generator.close()
    except BaseException as error:
        if not isinstance(error, Exception) and not is_signal(error):
            raise


class Finalised:
    """What such code has raised during a capture.

    Attributes:
        error: the first that ends the capture, or has it begin anew; None where there was none. It leaves the capture
            at the next place where it can.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """A block in which they are noted rather than written to ``stderr``; anything else is, as always."""
        before = sys.unraisablehook

        def note(unraisable: Any) -> None:
            error: BaseException | None = unraisable.exc_value
            if error is None or not ends_capture(error):
                before(unraisable)
            elif self.error is None:
                self.error = error.with_traceback(None)  # which leads to what is being finalised

        sys.unraisablehook = note
        try:
            yield
        finally:
            sys.unraisablehook = before

    def require_none(self) -> None:
        """Raise what there was, once: the capture ends with it."""
        held, self.error = self.error, None
        if held is not None:
            try:
                raise held
            finally:
                del held  # whose traceback leads here
