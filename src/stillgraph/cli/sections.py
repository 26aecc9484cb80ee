"""The page of reasons, section by section: what ``stillgraph errors CODE`` shows.

``errors.md`` beside this file is a link to the page in ``docs``; an installed package has the page itself there.
"""
from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from importlib import resources

from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax


@dataclass(frozen=True)
class Part:
    """A piece of a section: prose, or an example with what becomes of it.

    Attributes:
        text: as the page has it.
        heading: of an example, what is said above it; None for prose.
    """

    text: str
    heading: str | None = None


def section(code: str) -> list[Part]:
    """The parts of the section about a code; none where the page is not at hand."""
    try:
        page = resources.files("stillgraph.cli").joinpath("errors.md").read_text(encoding="utf-8")
    except OSError:
        return []
    found = re.search(rf"^## {code} .*?\n(.*?)(?=^#{{1,2}} |\Z)", page, re.DOTALL | re.MULTILINE)
    return [] if found is None else list(map(_part, _PIECES.findall(found[1])))


_PIECES = re.compile(r"(?:^```.*?^```$|^(?!```)[^\n]+(?:\n(?!```)[^\n]+)*)", re.DOTALL | re.MULTILINE)
_HEADINGS = {"refused": "Refused:", "told": "Told by explain:", None: "Instead:"}


def _part(piece: str) -> Part:
    if not piece.startswith("```"):
        return Part(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", piece))  # links lead nowhere in a terminal
    info, _, source = piece.removesuffix("```").partition("\n")
    said = info.split()[1:]
    return Part(source.strip("\n"), _HEADINGS[said[0] if said else None])


def show(title: str, parts: list[Part], console: Console) -> None:
    """Print a section: with colours on a terminal, as plain text elsewhere."""
    if not console.is_terminal:
        console.print("\n\n".join([title, *map(_plain, parts)]), markup=False, highlight=False)
        return
    console.print(title, style="bold", markup=False, highlight=False)
    for part in parts:
        console.print()
        if part.heading is None:
            console.print(Markdown(part.text))
        else:
            console.print(part.heading, style="bold")
            console.print(Syntax(part.text, "python", background_color="default"))


def _plain(part: Part) -> str:
    return part.text if part.heading is None else f"{part.heading}\n\n{textwrap.indent(part.text, '    ')}"
