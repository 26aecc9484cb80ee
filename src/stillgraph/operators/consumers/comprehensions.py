"""Comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stillgraph.operators.conditions.truth import truth
from stillgraph.operators.containers import entries, tables
from stillgraph.operators.containers.drawing import drawn
from stillgraph.operators.containers.watched import run_over
from stillgraph.operators.control_flow.generators import Produced
from stillgraph.operators.control_flow.loops import for_
from stillgraph.operators.objects.changes import note_contents
from stillgraph.operators.objects.stores import set_item
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.both_sides import several_in_key
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.control_flow.staging import branch

Element = Callable[[Any], Any]


Add = Callable[[Any, Any], None]


def _comprehended(iterable: Any, element: Element, test: Element | None, flat: bool, result: Any, add: Add) -> Any:
    """Add the elements to a container; only the run knows how many there are where it decides which to take."""
    capture = session()
    if capture is None:
        found = [element(item) for item in iterable if test is None or test(item)]
        for each in (each for inner in found for each in inner) if flat else found:
            add(result, each)
        return result

    def take(item: Any) -> None:
        value = element(item)
        note_contents(result)
        if not flat:
            add(result, value)
        elif type(result) is list:
            result.extend(value)
        else:
            for each in value:
                add(result, each)

    def one(item: Any) -> None:
        known = True if test is None else truth(capture, test(item))
        if known is True:
            take(item)
        elif known is not False:
            branch(capture, known, lambda: take(item), lambda: None, (), (), written="comprehension")

    capture.shelf.append(result)
    try:
        sequence = run_over(iterable)
        if sequence is None:
            iterable = drawn(iterable)
            sequence = run_over(iterable)  # of what the method of an object gives
        if isinstance(iterable, Produced) or (sequence is not None and not sequence.is_known):
            for_(iterable, one)
        else:
            for item in iterable if sequence is None else sequence.begin():
                one(item)
    finally:
        capture.shelf.pop()
    return result


def add_to_set(result: set[Any], value: Any) -> None:
    """``result.add(value)``, as the program has it."""
    capture: Any = session()
    several = several_in_key(value)
    if capture is None:
        result.add(value)
    elif several is not None:

        def put(each: Any) -> None:
            note_contents(result)  # in the arm, which then has its own
            add_to_set(result, exchanged(value, several, each))

        several.either(put)
    else:
        add = tables.put if tables.is_by_table(result, value) else entries.METHODS["add"]
        add(capture, result, value)


def _add_to_dict(result: dict[Any, Any], entry: tuple[Any, Any]) -> None:
    set_item(result, *entry)


def list_of(iterable: Any, element: Element, test: Element | None = None, flat: bool = False) -> list[Any]:
    """``[element(x) for x in iterable if test(x)]``; ``[*element(x) …]``, as it were, if ``flat``."""
    if isinstance(iterable, Unjoined):
        return iterable.either(lambda v: list_of(v, element, test, flat))  # type: ignore[no-any-return]  # of Any
    return _comprehended(iterable, element, test, flat, [], list.append)  # type: ignore[no-any-return]  # the list


def set_of(iterable: Any, element: Element, test: Element | None = None, flat: bool = False) -> set[Any]:
    """``{element(x) for x in iterable if test(x)}``."""
    return _comprehended(iterable, element, test, flat, set(), add_to_set)  # type: ignore[no-any-return]  # the set


def dict_of(iterable: Any, element: Element, test: Element | None = None, flat: bool = False) -> dict[Any, Any]:
    """``{key: value for x in iterable if test(x)}``, ``element`` giving ``(key, value)``."""
    return _comprehended(iterable, element, test, flat, {}, _add_to_dict)  # type: ignore[no-any-return]  # the dict
