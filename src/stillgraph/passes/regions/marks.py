"""Operations that passes leave for one another: where a ``try`` was, and what its handler asks of its exception.

`passes.catching` writes them, `passes.raising` takes them out of the program. No graph has an exception: a handler gets
the number of the place that raised it.
"""

from __future__ import annotations

CAUGHT = "caught"
"""The key in the ``meta`` of a `failed` under which the types are that it asks for."""

ASKED = "asked"
"""The key in the ``meta`` of `is_of` and `which_of` under which the classes are that it tells apart."""


def attempt(number: int) -> None:
    """Marks where the body of a ``try`` begins."""


def failed(number: int) -> bool:
    """Whether an exception of some types was raised since the `attempt` of that number."""
    raise NotImplementedError(_TAKEN_OUT)


def so_far(number: int, place: int) -> bool:
    """Whether something was raised between the `attempt` of that number and here; each place is another."""
    raise NotImplementedError(_TAKEN_OUT)


def site_of(number: int) -> int:
    """The number of the place that raised since the `attempt` of that number."""
    raise NotImplementedError(_TAKEN_OUT)


def is_of(site: int, number: int) -> bool:
    """``isinstance`` of a caught exception, by the place that raised it and the number of the `attempt`."""
    raise NotImplementedError(_TAKEN_OUT)


def which_of(site: int, number: int) -> int:
    """Which one of some exceptions is caught, as `program.exceptions.which` tells."""
    raise NotImplementedError(_TAKEN_OUT)


def again(site: int, number: int) -> None:
    """``raise`` in a handler: what is caught goes on."""
    raise NotImplementedError(_TAKEN_OUT)


_TAKEN_OUT = "lower_raising takes it out of the program"

TOLD = frozenset({is_of, which_of})
"""What tells a handler of its exception."""

LASTING = frozenset({attempt, failed, again})
"""Marks that count though nobody uses their results."""
