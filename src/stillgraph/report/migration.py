"""What becomes of code written for TorchScript, as data and as text."""

from __future__ import annotations

import dataclasses
import json
import linecache
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stillgraph.core.diagnostics import CaptureError
from stillgraph.report.boxes import Place, place_of
from stillgraph.report.torchscript_idioms import Idiom

SCHEMA = 1
"""The version of what `Migration.to_dict` gives. It changes when a key goes or comes to mean another thing."""


@dataclass(frozen=True)
class Refusal:
    """Why an entry point does not become one program.

    Attributes:
        code, title: of the reason; empty for an error that the code itself raises.
        message: what happened.
        hint: what to write instead.
        place: the user's line; None where none is known.
    """

    code: str
    title: str
    message: str
    hint: str
    place: Place | None


@dataclass(frozen=True)
class Entry:
    """A function, or a method that TorchScript would compile.

    Attributes:
        name: of the function or method.
        call: what example calls are given for: the method, or ``"forward"`` for a function.
        regions: how many straight-line pieces its program has; None where there is none.
        refused: why there is none; None if it was not tried.
    """

    name: str
    call: str = "forward"
    regions: int | None = None
    refused: Refusal | None = None

    @property
    def is_tried(self) -> bool:
        """Whether there were example inputs to capture it with."""
        return self.regions is not None or self.refused is not None

    def __str__(self) -> str:
        if self.regions is not None:
            return f"one program, {self.regions} region{'s' if self.regions > 1 else ''}"
        if self.refused is None:
            return "not tried: no example inputs"
        return f"refused ({self.refused.code})" if self.refused.code else f"fails: {self.refused.message}"


@dataclass(frozen=True)
class Migration:
    """What becomes of something written for TorchScript.

    Attributes:
        name: of the function or class.
        place: where it stands; None where that is not known.
        entries: the function, or ``forward`` and every method with ``@torch.jit.export``.
        idioms: what is written for TorchScript alone, what needs a change first.
    """

    name: str
    place: Place | None
    entries: tuple[Entry, ...]
    idioms: tuple[Idiom, ...]

    @property
    def is_one_program(self) -> bool:
        """Whether every entry point was captured."""
        return all(entry.regions is not None for entry in self.entries)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {"schema": SCHEMA, "is_one_program": self.is_one_program, **dataclasses.asdict(self)}

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"{self.name}  {self.place or ''}"
        width = max(len(entry.name) for entry in self.entries)
        for entry in self.entries:
            yield f"  {entry.name:<{width}}  {entry}"
        yield from self._changes()
        for verdict, heading in (("delete", "Can be deleted"), ("fine", "Works as it is")):
            idioms = [idiom for idiom in self.idioms if idiom.verdict == verdict]
            if idioms:
                yield from ("", heading)
                name = max(len(idiom.name) for idiom in idioms)
                for idiom in idioms:
                    yield f"  {idiom.name:<{name}}  {_places(idiom.places)}"
                    yield f"      {idiom.instead}"
        untried = [entry.call for entry in self.entries if not entry.is_tried]
        if untried:
            yield from ("", "To see what becomes of it, give example inputs, one --input for each argument:")
            yield from map(_how, untried)

    def _changes(self) -> Iterator[str]:
        refused = [(entry, entry.refused) for entry in self.entries if entry.refused is not None]
        changes = [idiom for idiom in self.idioms if idiom.verdict == "change"]
        if not refused and not changes:
            return
        yield from ("", "Needs a change")
        for entry, refusal in refused:
            code = f"  {refusal.code} {refusal.title}" if refusal.code else ""
            yield f"  {refusal.place or entry.name}{code}"
            yield from _line_of(refusal.place)
            yield from _wrapped(refusal.message)
            if refusal.hint:
                yield from _wrapped(f"instead: {refusal.hint}")
        for idiom in changes:
            for place in idiom.places:
                yield f"  {place}  {idiom.name}{f'  {idiom.code}' if idiom.code else ''}"
                yield from _line_of(place)
            yield from _wrapped(f"instead: {idiom.instead}")


def refusal_of(error: BaseException) -> Refusal:
    """Why a capture failed: a refusal, or what the code itself raised."""
    if isinstance(error, CaptureError):
        reason = error.reason
        return Refusal(reason.code, reason.title, error.message, error.hint or "", place_of(error.location))
    first = (str(error).strip() or "no message").splitlines()[0]
    return Refusal("", "", f"{type(error).__name__}: {first}", "", None)


# ---- text
def _how(name: str) -> str:
    return f'  --input "{"" if name == "forward" else f"{name}:"}float32[2,3]"'


def _places(places: tuple[Place, ...]) -> str:
    """``models.py:3, 8``: a file is named once."""
    shown: list[str] = []
    for index, place in enumerate(places):
        known = index and places[index - 1].file == place.file
        shown.append(str(place.line) if known else str(place))
    return ", ".join(shown)


def _line_of(place: Place | None) -> Iterator[str]:
    text = "" if place is None else linecache.getline(place.file, place.line).strip()
    if text:
        yield f"      {text}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent="      ", subsequent_indent="        ", break_on_hyphens=False)
