"""Comprehensions with one ``for``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.sequences import as_sequence
from stillgraph.operators.truth import truth
from stillgraph.trace.frames import here
from stillgraph.trace.join import Unjoined
from stillgraph.trace.session import session

Element = Callable[[Any], Any]


def _run(iterable: Any, element: Element, test: Element | None) -> list[Any]:
    capture = session()
    if capture is None:
        return [element(item) for item in iterable if test is None or test(item)]
    sequence = as_sequence(iterable)
    if sequence is not None:
        length = sequence.length()
        if not isinstance(length, int):
            raise refuse("SG206", "a comprehension whose length only the run knows", location=here())
        iterable = sequence.begin()
    result = []
    for item in iterable:
        if test is not None:
            known = truth(capture, test(item))
            if not isinstance(known, bool):
                raise refuse("SG206", "a comprehension whose filter only the run knows", location=here())
            if not known:
                continue
        result.append(element(item))
    return result


def list_of(iterable: Any, element: Element, test: Element | None = None) -> list[Any]:
    """``[element(x) for x in iterable if test(x)]``."""
    if isinstance(iterable, Unjoined):
        return iterable.either(lambda v: list_of(v, element, test))  # type: ignore[no-any-return]
    return _run(iterable, element, test)


def set_of(iterable: Any, element: Element, test: Element | None = None) -> set[Any]:
    """``{element(x) for x in iterable if test(x)}``."""
    return set(_run(iterable, element, test))


def dict_of(iterable: Any, element: Element, test: Element | None = None) -> dict[Any, Any]:
    """``{key: value for x in iterable if test(x)}``, ``element`` giving ``(key, value)``."""
    return dict(_run(iterable, element, test))
