"""Context variables that the code sets and puts back: what they hold is noted in the journal, as other state is."""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.places import MISSING, ReadPlace

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session

METHODS = frozenset({"set", "reset"})


class Tokens:
    """What the calls of ``set`` that a capture makes have given, and those that code makes which is not rewritten."""

    def __init__(self) -> None:
        self._made: dict[int, Token[Any]] = {}  # by id
        self._emptying: dict[int, Token[Any]] = {}  # by the id of a variable that held nothing: not used up
        self._unseen: list[ContextVar[Any]] = []  # set by code that is not rewritten, and not reset so far

    def note(self, token: Token[Any]) -> None:
        """Told what a call of ``set`` has given."""
        self._made[id(token)] = token
        if token.old_value is Token.MISSING:
            self._emptying[id(token.var)] = token

    def has_made(self, token: Token[Any]) -> bool:
        """Whether a token is the capture's own: one from before is used up, and by each call."""
        return id(token) in self._made

    def empty(self, variable: ContextVar[Any]) -> None:
        """Let a variable hold nothing, which it can only by the token of the call that has ended that, and once."""
        variable.reset(self._emptying.pop(id(variable)))

    def is_set_unseen(self, variable: ContextVar[Any]) -> bool:
        """Whether code that is not rewritten has set a variable, and not reset it so far."""
        return any(each is variable for each in self._unseen)

    def is_for_one_call(self, variable: ContextVar[Any], method: str) -> bool:
        """Told that code that is not rewritten is about to call a variable's method.

        Returns:
            Whether that uses up a token which such code has not made in the capture.
        """
        if method == "set":
            self._unseen.append(variable)
        elif method == "reset":
            if not self.is_set_unseen(variable):
                return True
            self._unseen.remove(variable)
        return False

    def left_set(self) -> ContextVar[Any] | None:
        """A variable that code that is not rewritten has left set."""
        return next(iter(self._unseen), None)


@dataclass(frozen=True, eq=False)
class ContextPlace(ReadPlace):
    """What a `ContextVar` holds.

    Attributes:
        variable: the variable.
        tokens: the capture's.
    """

    variable: ContextVar[Any]
    tokens: Tokens

    @property
    def key(self) -> Hashable:
        return ("context", id(self.variable))

    def get(self) -> Any:
        return self.variable.get(MISSING)

    def set(self, value: Any) -> None:
        if value is not MISSING:
            self.put(value)
        elif self.get() is not MISSING:
            self.tokens.empty(self.variable)

    def put(self, value: Any) -> Token[Any]:
        """Let it hold a value; what ``set`` gives."""
        token = self.variable.set(value)
        self.tokens.note(token)
        return token

    def __str__(self) -> str:
        return f"the ContextVar {self.variable.name}"


def change(capture: Session, variable: ContextVar[Any], name: str, argument: Any) -> Any:
    """``variable.set(argument)`` or ``variable.reset(argument)``.

    A token is not used up: paths that exclude each other reset the variable by the same one.

    Raises:
        Restart: the token was made by code that is not rewritten, which shows more if it is.
        CaptureError: it is from before the capture: each call has to use up its own.
    """
    tokens = capture.tokens
    place = ContextPlace(variable, tokens)
    if name == "reset" and isinstance(argument, Token) and argument.var is variable and not tokens.has_made(argument):
        if tokens.is_set_unseen(variable):
            capture.before_unseen(_OF_OTHERS.format(place))
        raise refuse("SG305", _FROM_BEFORE.format(place), location=here())
    capture.journal.note(place)
    capture.memory.note_set(variable, here())
    if name == "set":
        return place.put(argument)
    if not isinstance(argument, Token) or argument.var is not variable:
        return variable.reset(argument)  # raises what Python says of it
    place.set(MISSING if argument.old_value is Token.MISSING else argument.old_value)
    return None


def before_unseen(capture: Session, variable: ContextVar[Any], name: str) -> None:
    """To be called before code that is not rewritten calls a method of a variable.

    Raises:
        Restart: the code has to be converted, which shows more.
        CaptureError: it uses up a token that is not the capture's own.
    """
    if capture.tokens.is_for_one_call(variable, name):
        capture.before_unseen(_FROM_BEFORE.format(ContextPlace(variable, capture.tokens)))


def require_put_back(capture: Session) -> None:
    """Refuse variables that code that is not rewritten has left set.

    Raises:
        Restart: there is one; the code has to be converted, which shows where.
        CaptureError: there is one.
    """
    variable = capture.tokens.left_set()
    if variable is not None:
        capture.before_unseen(f"{ContextPlace(variable, capture.tokens)} is left set")


_FROM_BEFORE = "{} is reset by a token from before"
_OF_OTHERS = "{} is reset by a token that code has made which is not rewritten"
