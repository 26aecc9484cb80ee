"""What the body of a ``try`` may raise, as far as a capture knows it: for the handlers that ask the exception."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Raised:
    """An exception that something in the body of a ``try`` raises, or may raise.

    Attributes:
        kind: a class that it is of; None if not even that is known.
        exact: whether that is its very class.
        error: itself, if all of it is known.
        holding: itself as the capture has it, with values in it that only the run knows.
    """

    kind: type[BaseException] | None
    exact: bool = False
    error: BaseException | None = None
    holding: BaseException | None = None

    @property
    def held(self) -> BaseException | None:
        """The exception with all that it holds, known or not."""
        return self.holding if self.error is None else self.error

    def may_be(self, kinds: tuple[type[BaseException], ...]) -> bool:
        """Whether a handler for these classes may get it."""
        kind = self.kind
        if kind is None or any(issubclass(kind, each) for each in kinds):
            return True
        return not self.exact and any(issubclass(each, kind) for each in kinds)

    def is_expected(self, kinds: tuple[type[BaseException], ...]) -> bool:
        """Whether it `may_be` of these classes, and if these are all the user's, is more than something that fails.

        A handler that asks the exception has it checked by the run.
        """
        unforeseen = self.kind is None and all(each.__module__ not in _OF_LIBRARIES for each in kinds)
        return self.may_be(kinds) and not unforeseen

    def is_surely(self, kinds: tuple[type[BaseException], ...]) -> bool:
        """Whether a handler for these classes gets it whatever it is."""
        return self.kind is not None and issubclass(self.kind, kinds)

    @property
    def text(self) -> str | None:
        """What tells it from others of its class; None if nothing does."""
        return None if self.error is None or not is_plain(self.error.args) else repr(self.error.args)


RAISED_EXACTLY = frozenset({IndexError, ValueError, ZeroDivisionError, OverflowError})
"""Classes of which operations of torch's and of Python's numbers raise no derived one."""


_OF_LIBRARIES = frozenset({"builtins", *sys.stdlib_module_names})


def is_plain(value: Any) -> bool:
    """Whether a value is told from any other by what ``repr`` gives for it, and never changes."""
    if type(value) is tuple:
        return all(map(is_plain, value))
    return value is None or type(value) in (str, int, float, bool, bytes)


def classes(raised: Iterable[Raised]) -> list[type[BaseException]] | None:
    """The classes of exceptions; None if one of them is not known."""
    found: dict[type[BaseException], None] = {}
    for each in raised:
        if each.kind is None or not each.exact:
            return None
        found[each.kind] = None
    return list(found)


def told_apart(raised: Iterable[Raised]) -> list[Raised] | None:
    """The exceptions, each once; None if one of them is not known, or two are told apart by their attributes alone."""
    found: dict[Any, Raised] = {}
    for each in raised:
        if each.text is None:
            return None
        assert each.error is not None
        known = found.setdefault((each.kind, each.text), each)
        if known is not each and repr(vars(known.error)) != repr(vars(each.error)):
            return None
    return list(found.values())
