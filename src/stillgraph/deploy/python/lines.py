"""Lines of a Python file: indented, not too wide, each place of the user's named where it changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from stillgraph.core.files import is_standard_library
from stillgraph.core.location import Location

WIDTH = 110
_OPEN, _CLOSE = "([{", ")]}"


@dataclass
class Lines:
    """Collects lines; ``depth`` is how far they are indented."""

    depth: int = 0
    lines: list[str] = field(default_factory=list)
    _place: tuple[str, int] | None = None

    def add(self, text: str, location: Location | None = None) -> None:
        """A statement, and behind it the user's line where that is another than before."""
        remark = self._remark(location)
        written = wrapped(text, "    " * self.depth)
        if remark and len(written[0]) + len(remark) <= WIDTH:
            written[0] += remark
        elif remark:
            written.insert(0, "    " * self.depth + remark.strip())
        self.lines += written

    def space(self) -> None:
        """An empty line, where something stands above in the same block."""
        if self.lines and self.lines[-1] and not self.lines[-1].rstrip().endswith(":"):
            self.lines.append("")

    def _remark(self, location: Location | None) -> str:
        if location is None or (location.file, location.line) == self._place or is_standard_library(location.file):
            return ""
        self._place = location.file, location.line
        return f"  # {place_text(location)}"

    def taken_from(self, start: int) -> list[str]:
        """Take the lines back that were written from an index on."""
        taken = self.lines[start:]
        del self.lines[start:]
        return taken


def place_text(location: Location) -> str:
    """A place by the name of its file, which is the same wherever the file lies."""
    name = location.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{location.line}"


def wrapped(text: str, indent: str) -> list[str]:
    """A statement as lines: one that is too long is broken inside its last bracket."""
    if len(indent) + len(text) <= WIDTH:
        return [indent + text]
    found = _last_bracket(text)
    if found is None:
        return [indent + text]
    begin, end = found
    parts = _parts(text[begin + 1 : end])
    inner = indent + "    "
    lines, line = [], ""
    for part in parts:
        piece = f"{part}, "
        if line and len(inner) + len(line) + len(piece.rstrip()) > WIDTH:
            lines.append(line)
            line = ""
        line += piece
    lines.append(line)
    body = [each for line in lines for each in _again(line.rstrip(), inner)]
    plain = (text[begin] == "(" and "=" not in parts[0]) or _is_index(text, begin)
    if len(parts) == 1 and plain and text[end - 1] != ",":
        body[-1] = body[-1].rstrip(",")  # what is in plain brackets, or an index, would become a tuple
    return [indent + text[: begin + 1], *body, indent + text[end:]]


def _is_index(text: str, begin: int) -> bool:
    """Whether a bracket belongs to what stands before it, as that of ``layers[0]``."""
    before = text[begin - 1 : begin]
    return text[begin] == "[" and (before.isalnum() or before in tuple("_)]"))


def _again(line: str, indent: str) -> list[str]:
    if len(indent) + len(line) <= WIDTH or _last_bracket(line.rstrip(",")) is None:
        return [indent + line]
    lines = wrapped(line.removesuffix(","), indent)
    return [*lines[:-1], lines[-1] + ","]


def brackets(text: str) -> list[tuple[int, str, int]]:
    """The brackets and commas outside of quotes: index, character, how many brackets are open around it."""
    found: list[tuple[int, str, int]] = []
    depth, quote, index = 0, "", 0
    while index < len(text):
        character = text[index]
        if quote:
            if character == "\\":
                index += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            found.append((index, character, depth))
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            found.append((index, character, depth))
        elif character == ",":
            found.append((index, character, depth))
        index += 1
    return found


def _last_bracket(text: str) -> tuple[int, int] | None:
    """The outermost bracket in which there is most."""
    found: list[tuple[int, int]] = []
    begin = 0
    for index, character, depth in brackets(text):
        if depth == 0 and character in _OPEN:
            begin = index
        elif depth == 0 and character in _CLOSE and index > begin + 1:
            found.append((begin, index))
    return max(found, key=lambda span: span[1] - span[0], default=None)


def _parts(text: str) -> list[str]:
    cuts = [index for index, character, depth in brackets(text) if character == "," and depth == 0]
    parts = [text[begin:end].strip() for begin, end in zip([0, *(c + 1 for c in cuts)], [*cuts, len(text)])]
    return [part for part in parts if part]
