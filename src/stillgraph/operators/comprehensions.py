"""Comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.generators import Produced
from stillgraph.operators.lists import is_spread
from stillgraph.operators.loops import for_
from stillgraph.operators.sequences import as_sequence
from stillgraph.operators.stores import note_contents
from stillgraph.operators.truth import truth
from stillgraph.trace.frames import here
from stillgraph.trace.session import session
from stillgraph.trace.staging import branch
from stillgraph.trace.unjoined import Unjoined

Element = Callable[[Any], Any]


def _run(iterable: Any, element: Element, test: Element | None, flat: bool) -> list[Any]:
    """The elements; a list of unknown length where only the run knows how many there are."""
    capture = session()
    if capture is None:
        found = [element(item) for item in iterable if test is None or test(item)]
        return [each for inner in found for each in inner] if flat else found
    result: list[Any] = []

    def append(item: Any) -> None:
        value = element(item)
        note_contents(result)
        if flat:
            result.extend(value)
        else:
            result.append(value)

    def one(item: Any) -> None:
        known = True if test is None else truth(capture, test(item))
        if known is True:
            append(item)
        elif known is not False:
            branch(capture, known, lambda: append(item), lambda: None, (), ())

    capture.shelf.append(result)
    try:
        sequence = as_sequence(iterable)
        if isinstance(iterable, Produced) or (sequence is not None and not isinstance(sequence.length(), int)):
            for_(iterable, one)
        else:
            for item in iterable if sequence is None else sequence.begin():
                one(item)
    finally:
        capture.shelf.pop()
    return result


def _known(iterable: Any, element: Element, test: Element | None, flat: bool) -> list[Any]:
    """As `_run`, for what must have a known length."""
    items = _run(iterable, element, test, flat)
    if is_spread(items):
        raise refuse("SG206", "a comprehension whose length only the run knows", location=here())
    return items


def list_of(iterable: Any, element: Element, test: Element | None = None, flat: bool = False) -> list[Any]:
    """``[element(x) for x in iterable if test(x)]``; ``[*element(x) …]``, as it were, if ``flat``."""
    if isinstance(iterable, Unjoined):
        return iterable.either(lambda v: list_of(v, element, test, flat))  # type: ignore[no-any-return]  # of Any
    return _run(iterable, element, test, flat)


def set_of(iterable: Any, element: Element, test: Element | None = None, flat: bool = False) -> set[Any]:
    """``{element(x) for x in iterable if test(x)}``."""
    return set(_known(iterable, element, test, flat))


def dict_of(iterable: Any, element: Element, test: Element | None = None, flat: bool = False) -> dict[Any, Any]:
    """``{key: value for x in iterable if test(x)}``, ``element`` giving ``(key, value)``."""
    return dict(_known(iterable, element, test, flat))
