"""Where segments end, which is learned from attempt to attempt, and how an attempt at one ends."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.segments.whys import Why, because, refused, why_of
from stillgraph.core.diagnostics import CaptureError, Refusal
from stillgraph.core.faults import unwinds
from stillgraph.core.location import Location, start_of
from stillgraph.core.logs import log


class Ended(BaseException):
    """A segment ends: Python is to carry out the instruction that the innermost frame is at."""


class Learned(BaseException):
    """A capture begins anew, knowing of a further end."""


class EndedAnyway(BaseException):
    """A segment would end that was captured as one that holds the whole call, see `FrontEnd.may_end`."""


class Unreachable(BaseException):
    """A segment would have to end where Python cannot go on: the call as a whole is Python's.

    Attributes:
        place: where that is.
    """

    def __init__(self, why: Why, place: Location) -> None:
        super().__init__(why.text)
        self.place = place


@dataclass(eq=False)
class Region:
    """A branch or loop that is being staged, or a loop or ``try`` that an operator runs."""

    frame: Frame
    index: int
    is_loop: bool
    is_try: bool = False


@dataclass
class Breaks:
    """Which instructions Python carries out, and why; and which loops are run by their jumps, for there is one inside.

    Attributes:
        residual: by code object and index, the reason.
        plain: by code object, the headers of loops.
        unstaged: by code object, the beginnings of ``try`` and ``with`` statements that are no operators for this.
        newest: what was learned last, in words.
    """

    residual: dict[CodeType, dict[int, Why]] = field(default_factory=lambda: collections.defaultdict(dict))
    plain: dict[CodeType, set[int]] = field(default_factory=lambda: collections.defaultdict(set))
    unstaged: dict[CodeType, set[int]] = field(default_factory=lambda: collections.defaultdict(set))
    newest: str = ""

    @property
    def count(self) -> int:
        """How much is known."""
        return sum(len(each) for kind in (self.residual, self.plain, self.unstaged) for each in kind.values())

    def leave(self, code: CodeType, index: int, why: Why) -> None:
        """Leave an instruction to Python; a reason that is known stays."""
        known = self.residual[code]
        if index not in known:
            known[index] = why
            place = place_of(code, index)
            self.newest = f"{code.co_name} breaks at {place}: {why.text}"
            at: dict[str, Any] = {"function": code.co_name, "file": place.file, "line": place.line}
            log("plan", "break", self.newest, **at, reason=why.text, code=why.code)

    def unroll(self, code: CodeType, header: int) -> None:
        """Run a loop by its jumps."""
        if header not in self.plain[code]:
            self.plain[code].add(header)
            place = place_of(code, header)
            self.newest = f"the loop at {place} breaks inside, and is run by its jumps"
            log("plan", "loop", self.newest, function=code.co_name, file=place.file, line=place.line)

    def unstage(self, code: CodeType, index: int) -> None:
        """Run a ``try`` or ``with`` by its jumps."""
        if index not in self.unstaged[code]:
            self.unstaged[code].add(index)
            place = place_of(code, index)
            self.newest = f"the block at {place} breaks inside, and is run by its jumps"
            log("plan", "block", self.newest, function=code.co_name, file=place.file, line=place.line)

    def open(self, region: Region, why: Why) -> None:
        """Run a branch, loop or ``try`` by its jumps, or leave the jump to Python, for the segment ends inside."""
        if region.is_loop:
            self.unroll(region.frame.code, region.index)
        elif region.is_try:
            self.unstage(region.frame.code, region.index)
        else:
            within = because("way", why)
            self.leave(region.frame.code, region.index, within)


def place_of(code: CodeType, index: int) -> Location:
    """Where the user has written what an instruction does."""
    at = prepared(code).decoded.instructions[index].positions
    if at is None or at.lineno is None:
        return start_of(code)
    end = at.end_col_offset if at.end_lineno == at.lineno else None
    return Location(code.co_filename, at.lineno, at.col_offset, end, code.co_name)


# ---- why
def told(error: BaseException) -> BaseException | None:
    """The exception of the code's or of the capture's that is on its way; None for what ends an attempt."""
    found = error.error if isinstance(error, Refusal) else error
    return None if unwinds(found) else found


def sees_frames(error: BaseException) -> bool:
    """Whether code was refused for looking at the frames of its callers: Python's own hand has others than a call."""
    return isinstance(error, CaptureError) and error.reason.code == "SG104"


def reason_of(error: BaseException) -> Why:
    """Why a segment ends, in a line."""
    if isinstance(error, CaptureError):
        return refused(error)
    return why_of("raises", with_article(type(error).__name__))


def with_article(name: str) -> str:
    """The name of a class, in a sentence."""
    return f"{'an' if name.lstrip('_')[:1].lower() in 'aeiou' else 'a'} {name}"
