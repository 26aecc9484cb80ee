"""What became of a call, as data that the renderings read."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillgraph.deploy.archive import beside
from stillgraph.program.program import Program
from stillgraph.program.record import Decision, Phase
from stillgraph.report.boxes import Box, Place
from stillgraph.report.lines import SourceFunction
from stillgraph.report.specialised import Specialised

SCHEMA = 1
"""The version of what `Explained.to_dict` gives. It changes when a key goes or comes to mean another thing."""


@dataclass(frozen=True)
class StagedConstruct:
    """A branch, loop, recursion, ``try`` or checkpoint of the program, and the user's line it stands on."""

    kind: str
    file: str
    line: int
    depth: int


@dataclass(frozen=True)
class RefusedSide:
    """One of two things that do not go together, and the user's line that made it."""

    text: str
    place: Place | None


@dataclass(frozen=True)
class Refused:
    """Why a call cannot become a program.

    Attributes:
        code, title: of the reason, ``stillgraph errors CODE`` tells more.
        message: what happened.
        hint: what to write instead.
        text: the whole error, as it would be printed.
        place: the user's line.
        callers: the lines that called, the outermost first.
        sides: the things that do not go together, each with its line, where that is what is wrong.
    """

    code: str
    title: str
    message: str
    hint: str
    text: str
    place: Place | None
    callers: tuple[Place, ...]
    sides: tuple[RefusedSide, ...] = ()


@dataclass(frozen=True)
class GuardText:
    """A guard, to read. ``about``: ``"call"`` for arguments, sizes and modes, ``"code"`` for what the code reads."""

    text: str
    kind: str
    about: str


@dataclass(frozen=True)
class CacheState:
    """How the static function's cache has done.

    Attributes:
        hits, misses, programs, evictions, size: as `StaticFunction.cache_info` has them.
        reasons: why each program was made, the most recently used first; empty for the first.
        this_call: why the explained call fits none of them; None where one fits.
    """

    hits: int
    misses: int
    programs: int
    evictions: int
    size: int
    reasons: tuple[str, ...]
    this_call: str | None


@dataclass(frozen=True)
class Sizes:
    """How large a program is. ``parameter_bytes`` and ``buffer_bytes`` count each tensor once."""

    operations: int
    regions: int
    functions: int
    lines: int
    arguments: int
    parameters: int
    parameter_elements: int
    parameter_bytes: int
    buffers: int
    buffer_bytes: int
    guards: int


@dataclass(frozen=True)
class Explained:
    """What a capture gave, or why it gave nothing.

    Attributes:
        name: of the function.
        place: where it stands.
        program: the program itself; None for a call that is refused.
        refused: why the call is refused; None for one that is not.
        seconds: how long the capture took; torch's start-up, in the first capture of a process, is not counted.
        nodes: operations in all regions together, constructs not counted.
        regions: straight-line graphs.
        staged: the user's branches, loops, recursions, tries and checkpoints, outermost first.
        operations: how often each operation occurs.
        functions: the source of each function that the capture ran, its lines marked.
        boxes: the regions with their operations.
        decisions: the constructs that Python decided.
        specialised: the values that are fixed in the program, and guarded.
        guards: what must hold for the program to be used again.
        effects: what a call does besides: what it prints, logs and writes as it runs, where its paths lead there, then
            what it does to Python's objects.
        splits: what is done once per path.
        phases: what took how long: torch's start-up where it was this capture that met it, the parts of the capture,
            which add up to ``seconds``, and ``"lowering"``, the making of the driver.
        attempts: how often the function was run to capture it.
        driver: the code that carries the program out, in Python.
        cache: how the static function's cache has done; None where there is none.
        sizes: how large the program is.
    """

    name: str
    place: Place | None
    program: Program | None
    refused: Refused | None
    seconds: float
    nodes: int
    regions: int
    staged: tuple[StagedConstruct, ...]
    operations: tuple[tuple[str, int], ...]
    functions: tuple[SourceFunction, ...]
    boxes: tuple[Box, ...]
    decisions: tuple[Decision, ...]
    specialised: tuple[Specialised, ...]
    guards: tuple[GuardText, ...]
    effects: tuple[str, ...]
    splits: tuple[str, ...]
    phases: tuple[Phase, ...]
    attempts: int
    driver: str
    cache: CacheState | None
    sizes: Sizes

    def to_dict(self) -> dict[str, Any]:
        """All of it but the program itself, in dicts, lists, texts, numbers, truth values and None."""
        fields = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name != "program"}
        return {"schema": SCHEMA, **fields}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON.

        Args:
            path: of a file to write it to, too; it appears whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        return as_json(self.to_dict(), path)


def write(path: str | os.PathLike[str], text: str) -> Path:
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to write {target.name!r} in")
    with beside(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def as_json(data: dict[str, Any], path: str | os.PathLike[str] | None) -> str:
    """Plain data as JSON, which goes to a file as well if there is one to be written."""
    text = json.dumps(data, ensure_ascii=False)
    if path is not None:
        write(path, text + "\n")
    return text


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value
