"""Context variables that the code sets and puts back: what they hold is noted in the journal, as other state is."""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stillgraph.trace.frames import here
from stillgraph.trace.journal import MISSING

if TYPE_CHECKING:
    from stillgraph.trace.session import Session

METHODS = frozenset({"set", "reset"})


@dataclass(frozen=True, eq=False)
class ContextPlace:
    """What a `ContextVar` holds.

    Attributes:
        variable: the variable.
        tokens: by the id of a variable that held nothing what its last ``set`` gave: only with it can it hold nothing
            again, and only once.
    """

    variable: ContextVar[Any]
    tokens: dict[int, Token[Any]]

    @property
    def key(self) -> Hashable:
        return ("context", id(self.variable))

    def get(self) -> Any:
        return self.variable.get(MISSING)

    def set(self, value: Any) -> None:
        if value is not MISSING:
            self.put(value)
        elif self.get() is not MISSING:
            self.variable.reset(self.tokens[id(self.variable)])

    def put(self, value: Any) -> Token[Any]:
        """Let it hold a value; what ``set`` gives."""
        token = self.variable.set(value)
        if token.old_value is Token.MISSING:
            self.tokens[id(self.variable)] = token
        return token

    def __str__(self) -> str:
        return f"the ContextVar {self.variable.name}"


def change(capture: Session, variable: ContextVar[Any], name: str, argument: Any) -> Any:
    """``variable.set(argument)`` or ``variable.reset(argument)``.

    A token is not used up: paths that exclude each other reset the variable by the same one.
    """
    place = ContextPlace(variable, capture.memory.tokens)
    capture.journal.note(place)
    capture.memory.note_set(variable, here())
    if name == "set":
        return place.put(argument)
    if not isinstance(argument, Token) or argument.var is not variable:
        return variable.reset(argument)  # raises what Python says of it
    place.set(MISSING if argument.old_value is Token.MISSING else argument.old_value)
    return None
