"""Guards in words: why a program does not fit a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stillgraph.core.parcel import Parcel
from stillgraph.program.guards import Guard
from stillgraph.program.program import Input
from stillgraph.program.sources import Argument, Source
from stillgraph.runtime.guards.kinds.table import kind_of
from stillgraph.runtime.guards.order import in_checking_order
from stillgraph.runtime.native.function_writer import read_source


def explain_miss(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: Sequence[Input] = ()
) -> str | None:
    """Say why a program does not fit a call.

    Args:
        guards: the program's guards.
        args: the call's positional arguments.
        kwargs: the call's keyword arguments.
        inputs: the program's inputs, which must be found too.

    Returns:
        One sentence on the first guard that does not hold, with what was expected and what was found; None where all
        do.
    """
    return next(failures(guards, args, kwargs, inputs), None)


def failures(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: Sequence[Input] = ()
) -> Iterator[str]:
    """One sentence on each fact that does not hold, in the order of checking (see `explain_miss`)."""
    for _, sentences in _failing(guards, args, kwargs):
        yield from sentences
    for item in inputs:
        try:
            read_source(item.source, args, kwargs)
        except Exception as error:  # of any kind: reading may run the user's code
            yield _unreadable(f"{item.source} should be there", error, args, kwargs)


def failing(guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Guard, str]]:
    """Each guard that does not hold, with a sentence on it."""
    for guard, sentences in _failing(guards, args, kwargs):
        yield guard, sentences[0]


def _failing(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[Guard, list[str]]]:
    def read(source: Source) -> Any:
        return read_source(source, args, kwargs)

    for guard in in_checking_order(guards):
        try:
            sentences = [*kind_of(guard).reasons(guard, read)]
        except Exception as error:  # of any kind: reading may run the user's code
            sentences = [_unreadable(str(guard), error, args, kwargs)]
        if sentences:
            yield guard, sentences


def _unreadable(what: str, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What is said of a fact where reading what it is about has raised an error."""
    passed = getattr(error, "obj", None)
    if type(passed) is not Parcel:
        return f"{what}, but reading it raised {type(error).__name__}: {error}"
    # what is passed twice is in one parcel, which has the name of the first place
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    places = [Argument(key) for key, value in given if value is passed]
    if len(places) < 2:
        return f"{what}, but it is another object that is only handed on"
    return f"{places[0]} and {places[-1]} should be different objects, but are the same object"
