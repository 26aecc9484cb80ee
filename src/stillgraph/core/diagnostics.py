"""Errors: what happened, on which line of the user's, and what to write instead."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from stillgraph.core.location import Location
from stillgraph.core.reasons import REASONS, Reason


class StillgraphError(Exception):
    """Base class of the errors that stillgraph itself raises."""


class InternalError(StillgraphError):
    """A fault of stillgraph's own. Please report it with the program that caused it."""


class StateLostError(InternalError):
    """What a capture had changed could not be put back: the call is not made again, for that would change it twice."""


@dataclass(frozen=True)
class Side:
    """One of two things that do not go together.

    Attributes:
        text: what it is: ``one path leaves a float32 tensor of shape (3,)``.
        location: the user's line that made it, if one is known.
    """

    text: str
    location: Location | None = None


class CaptureError(StillgraphError):
    """A function cannot become one static program; the text says where and what to write instead.

    Attributes:
        reason: the catalogue entry.
        location: the user's line, if one is known.
        message: what happened, without location and hint.
        hint: what to write instead.
        sides: where two things do not go together, what they are and which lines made them.
    """

    def __init__(
        self, reason: Reason, message: str, location: Location | None, hint: str | None, sides: tuple[Side, ...] = ()
    ) -> None:
        self.reason = reason
        self.message = message
        self.location = location
        self.hint = hint or reason.hint
        self.sides = sides
        super().__init__(self._render())

    def located(self, location: Location, sides: tuple[Side, ...] | None = None) -> CaptureError:
        """The error itself, or where it names no line, the same one at ``location``, if given with other sides."""
        if self.location is not None:
            return self
        return type(self)(self.reason, self.message, location, self.hint, self.sides if sides is None else sides)

    def _render(self) -> str:
        lines = [f"{self.reason.title}: {self.message}" if self.reason.title not in self.message else self.message]
        if self.location is not None:
            lines += shown_lines(self.location)
        lines += [line for side in self.sides for line in _shown_side(side, self.location)]
        lines.append(f"  hint: {self.hint}")
        lines.append(f"  reason {self.reason.code} (stillgraph errors {self.reason.code})")
        return "\n".join(lines)


class ExportError(CaptureError):
    """A program runs, but the requested format cannot express it."""


class CheckError(CaptureError):
    """A program was compared with eager PyTorch: they differ (SG502), or they cannot be compared (SG503)."""


class LoadError(StillgraphError, ValueError):
    """A file cannot be loaded: it is damaged, it is not one that `save` wrote, or loading it could run code (SG404).

    Attributes:
        reason: the catalogue entry.
        message: what is wrong with the file.
        hint: what to do.
    """

    def __init__(self, reason: Reason, message: str, hint: str | None = None) -> None:
        self.reason = reason
        self.message = message
        self.hint = hint or reason.hint
        code = reason.code
        super().__init__(f"{message}\n  hint: {self.hint}\n  reason {code} (stillgraph errors {code})")


def load_error(message: str, hint: str | None = None) -> LoadError:
    """What to raise for a file that is not loaded: ``raise load_error("…")``."""
    return LoadError(REASONS["SG404"], message, hint)


class InitialisingCall(CaptureError):
    """The call makes modules or parameters that are there from then on: the next one can be captured."""


class ExampleTimeout(CaptureError):
    """A program runs for longer on its example arguments than it may: a loop may never end for them."""


class MisreadError(CaptureError):
    """Code that Python runs itself does not take what stands for a value of the run; eager PyTorch may raise too."""


class DemandError(CaptureError):
    """Python asks for a value of the run. Which of its functions does, `operators/outside/misread.py` finds out."""


class Refusal(BaseException):
    """A `CaptureError` on its way through code of the user's, whose ``except Exception`` is not meant for it."""

    def __init__(self, error: CaptureError) -> None:
        super().__init__(error)
        self.error = error


_IN_USER_CODE: ContextVar[bool] = ContextVar("stillgraph_in_user_code", default=False)


@contextlib.contextmanager
def refusing_past_user_code() -> Iterator[None]:
    """While code of the user's runs, a refusal passes its handlers; it arrives as a `CaptureError`."""
    token = _IN_USER_CODE.set(True)
    try:
        yield
    except Refusal as refusal:
        error, cause = refusal.error, refusal.__cause__
        del refusal.error  # which is to have it for its context
        refusal.args = ()
        try:
            raise error from cause
        finally:
            del error, cause  # its traceback leads here
    finally:
        _IN_USER_CODE.reset(token)


def _shown_side(side: Side, main: Location | None) -> list[str]:
    """What a side is, with its lines; who called is left out as far as the error's own lines tell it."""
    if side.location is None:
        return [f"  {side.text}"]
    chain = (*side.location.callers, side.location)
    known = len(main.callers) if main is not None else 0
    return [f"  {side.text}:", *_shown(chain[min(known, len(chain) - 1) :])]


def shown_lines(location: Location) -> list[str]:
    """A place as a traceback shows it: the lines that called, then the line itself, what is meant underlined."""
    return _shown((*location.callers, location))


def _shown(chain: Iterable[Location]) -> list[str]:
    lines: list[str] = []
    for each in chain:
        lines.append(f'  File "{each.file}", line {each.line}' + (f", in {each.function}" if each.function else ""))
        text = each.source_line()
        if text is not None:
            lines += _underlined(text, each)
    return lines


def _underlined(text: str, location: Location) -> list[str]:
    stripped = text.strip()
    if location.column is None:
        return ["    " + stripped]
    shift = len(text) - len(text.lstrip())
    start = max(_characters(text, location.column) - shift, 0)
    stop = len(stripped) if location.end_column is None else _characters(text, location.end_column) - shift
    before, meant = stripped[:start], stripped[start : min(stop, len(stripped))]
    return ["    " + stripped, "    " + " " * _width(before) + "^" * max(_width(meant), 1)]


def _characters(text: str, column: int) -> int:
    """How many characters of a line stand before a column, which Python counts in bytes."""
    return len(text.encode()[:column].decode(errors="ignore"))


def _width(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def refuse(
    code: str,
    message: str,
    *,
    location: Location | None = None,
    hint: str | None = None,
    sides: tuple[Side, ...] = (),
    kind: type[CaptureError] | None = None,
) -> BaseException:
    """What to raise for a reason of the catalogue: ``raise refuse("SG201", "...")``.

    Args:
        code: a code of `core.reasons.REASONS`.
        message: what happened, in the user's own terms.
        location: the user's line.
        hint: what to write instead, where the catalogue's hint can be bettered.
        sides: the two things that do not go together, if the message is about two.
        kind: of error, if not that of the code.

    Returns:
        A `CaptureError`, or a `Refusal` that carries it past the user's handlers.
    """
    error = refusal(code, message, location=location, hint=hint, sides=sides, kind=kind)
    return Refusal(error) if _IN_USER_CODE.get() else error


_KINDS: dict[str, type[CaptureError]] = {"SG308": InitialisingCall, "SG502": CheckError, "SG503": CheckError}


def refusal(
    code: str,
    message: str,
    *,
    location: Location | None = None,
    hint: str | None = None,
    sides: tuple[Side, ...] = (),
    kind: type[CaptureError] | None = None,
) -> CaptureError:
    """The error of `refuse`."""
    kind = kind or _KINDS.get(code, ExportError if code.startswith("SG4") else CaptureError)
    return kind(REASONS[code], message, location, hint, sides)
