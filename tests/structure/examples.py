"""Examples in documents: blocks of Python, some marked as refused with a code, loaded from files of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.importing import imported


@dataclass(frozen=True)
class Example:
    """A block of code below a heading, the ``number``-th.

    ``code`` is the reason it is refused with, or what `explain` tells of it if it is ``told``; None if neither is so.
    """

    anchor: str
    number: int
    code: str | None
    source: str
    told: bool = False

    def __str__(self) -> str:
        return f"{self.anchor}-{self.number}" + (f"-{self.code}" if self.code else "")


def prelude(text: str) -> str:
    """The lines that a page has in front of every example: its first block."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]  # type: ignore[no-any-return]


def examples_below(headings: str, text: str) -> Iterator[Example]:
    """Every example below the headings of one level (``"##"``), in the order of the page."""
    for section in re.split(rf"^{headings} ", text, flags=re.MULTILINE)[1:]:
        anchor = section.splitlines()[0].strip().lower().replace(" ", "-")
        blocks = re.findall(r"^```(.*?)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        for number, (info, source) in enumerate(blocks, 1):
            language, *said = info.split()
            assert language == "python", info
            assert not said or said[0] in ("refused", "told"), info
            yield Example(anchor, number, said[1] if said else None, source, said[:1] == ["told"])


def loader(prelude: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Example], ModuleType]:
    """What imports an example from a file of its own in ``folder``, anew each time."""
    count = 0

    def load(example: Example) -> ModuleType:
        nonlocal count
        count += 1
        path = folder / f"{re.sub(r'[^a-z0-9]+', '_', str(example).lower())}_{count}.py"
        path.write_text(f"{prelude}\n\n{example.source}")
        return imported(path, f"example_{path.stem}", monkeypatch)

    return load
