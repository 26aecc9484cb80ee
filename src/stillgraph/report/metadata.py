"""What code asked of tensors besides their contents: Python answered it during capture, and guards may fix it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stillgraph.core.location import Location
from stillgraph.program.guards import ConstantGuard, TensorGuard, TypeGuard
from stillgraph.program.record import Record
from stillgraph.program.sources import Argument, Attribute
from stillgraph.report.boxes import Place, place_of
from stillgraph.report.sources import FunctionText


@dataclass(frozen=True)
class Asked:
    """An expression that Python answered during capture.

    Attributes:
        text: ``x.dtype``, ``x.dim()``, ``x.shape``, ``isinstance(x, Tensor)``, ….
        values: what it was, each value once; none where that is not known, or no short text.
        place: the line.
        about: what was asked for: the name of the attribute or method, ``"shape"``, ``"isinstance"``.
        of: of ``isinstance``, the value that it is asked of.
    """

    text: str
    values: tuple[str, ...]
    place: Place
    about: str
    of: ast.expr | None = None

    @property
    def why(self) -> str:
        """That it ran, in a sentence."""
        shown = f", and is {' or '.join(self.values)}" if self.values else ""
        return f"{self.text} is answered by Python during capture{shown} (SG606)"


def asked_sizes(record: Record) -> Iterator[Asked]:
    """The shapes that were read, and are the same in every call."""
    for read in record.sizes:
        place = place_of(read.location)
        if place is not None:
            shape = f"[{', '.join(map(str, read.shape))}]"
            yield Asked(_spelling(read.location) or "a shape", (shape,), place, "shape")


def asked_metadata(record: Record) -> Iterator[Asked]:
    """The other metadata that was read."""
    sizes = {read.location for read in record.sizes}
    for read in record.metadata:
        place, text = place_of(read.location), _spelling(read.location)
        if place is not None and read.location not in sizes and _asks_for(text, read.name):
            yield Asked(text, read.values, place, read.name)


def asked_types(texts: Sequence[FunctionText], ran: Mapping[str, frozenset[int]]) -> Iterator[Asked]:
    """The calls of ``isinstance`` on lines that ran."""
    for text in texts:
        lines = ran.get(text.ran.file, frozenset())
        for node in ast.walk(text.tree or ast.Module([], [])):
            match node:
                case ast.Call(func=ast.Name(id="isinstance"), args=[of, _], lineno=line) if line in lines:
                    column, end = node.col_offset + text.shift, (node.end_col_offset or 0) + text.shift
                    place = Place(text.ran.file, line, column, end if node.end_lineno == line else None, text.ran.name)
                    yield Asked(ast.unparse(node), (), place, "isinstance", of)


def is_type_guarded(of: ast.expr | None, parameters: Sequence[str], guards: Sequence[Any]) -> bool:
    """Whether a guard fixes the type of a value.

    Args:
        of: how the code spells it; the parameters of the captured function and attributes are known.
        parameters: of the captured function; none in the other functions that it calls.
        guards: of the program.
    """
    sources = [guard.source for guard in guards if isinstance(guard, (TensorGuard, TypeGuard, ConstantGuard))]
    match of:
        case ast.Name(id=name) if name in parameters:
            return Argument(name) in sources or Argument([*parameters].index(name)) in sources
        case ast.Attribute(attr=name):
            return any(isinstance(source, Attribute) and source.name == name for source in sources)
    return False


def _asks_for(text: str, name: str) -> bool:
    """Whether an expression of the user's is the one that reads: operators ask tensors for themselves, too."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    asked = node.func if isinstance(node, ast.Call) else node
    return isinstance(asked, ast.Attribute) and asked.attr == name


def _spelling(location: Location) -> str:
    line = location.source_line()
    if line is None or location.column is None or location.end_column is None:
        return ""
    return str(line.encode()[location.column : location.end_column].decode(errors="ignore"))
