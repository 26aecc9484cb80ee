"""The text of a native driver while it is written: its functions, their lines, and what these stand for."""

from __future__ import annotations

import contextlib
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from stillgraph.core.location import Location
from stillgraph.runtime.native.lazy_region import Compile
from stillgraph.runtime.native.so_far import LINES, Noted
from stillgraph.runtime.native.tracebacks import PLACES


@dataclass
class FunctionText:
    """The lines of one function of a driver, header and all; by line, which of the user's it is, and what it notes."""

    lines: list[str]
    places: dict[int, Location] = field(default_factory=dict)
    accounts: dict[int, Noted] = field(default_factory=dict)
    depth: int = 1
    blocks: int = 0  # of those that Python counts: loops, ``with``, ``try``

    @property
    def is_deep(self) -> bool:
        """Whether another region is to be a function of its own: Python takes 100 levels, and 20 nested blocks."""
        return self.depth > _MOST_LEVELS or self.blocks > _MOST_BLOCKS


_MOST_LEVELS = 60
_MOST_BLOCKS = 7  # some constructs are two blocks to Python


@dataclass
class Writer:
    """Writes the driver's lines; keeps the names and the objects they stand for."""

    compile: Compile | None
    numbers: dict[fx.GraphModule, int] = field(default_factory=dict)  # of the regions that are counted
    visits: list[int] = field(default_factory=list)
    begins: Location | None = None
    text: FunctionText = field(default_factory=lambda: FunctionText([]))  # of the function that is being written
    written: list[FunctionText] = field(default_factory=list)  # the others
    place: Location | None = None  # of the operation that is being written
    keeps_account: bool = False  # of what is written to Python's objects when an operation begins
    so_far: Noted | None = None
    objects: dict[str, Any] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    names: dict[fx.Node, str] = field(default_factory=dict)
    functions: dict[Any, str] = field(default_factory=dict)  # of recursions, and what tries keep: by their names

    def line(self, text: str) -> None:
        lines = self.text.lines
        lines.append("    " * self.text.depth + text)
        if self.place is not None:
            self.text.places[len(lines)] = self.place
        if self.so_far is not None:
            self.text.accounts[len(lines)] = self.so_far

    @contextlib.contextmanager
    def inside(self, head: str, *, blocks: int = 0) -> Iterator[None]:
        """Write a compound statement: its head, and what the block writes as its body."""
        self.line(head)
        self.text.depth += 1
        self.text.blocks += blocks
        start = len(self.text.lines)
        yield
        if len(self.text.lines) == start:
            self.line("pass")
        self.text.depth -= 1
        self.text.blocks -= blocks

    @contextlib.contextmanager
    def apart(self, head: str) -> Iterator[None]:
        """Write a function that stands behind the driver's own, which sees none of its variables."""
        around, self.text = self.text, FunctionText([head])
        yield
        self.written.append(self.text)
        self.text = around

    def finish(self) -> tuple[str, dict[str, Any]]:
        """The source of the functions, and its tables of lines."""
        lines: list[str] = []
        places: dict[int, Location] = {} if self.begins is None else {0: self.begins}
        accounts: dict[int, Noted] = {}
        for each in (self.text, *self.written):
            places |= {len(lines) + line: place for line, place in each.places.items()}
            accounts |= {len(lines) + line: noted for line, noted in each.accounts.items()}
            lines += each.lines
        return "\n".join(lines) + "\n", {PLACES: places, LINES: accounts}

    def fresh(self, stem: str) -> str:
        name, count = stem, 1
        while name in self.taken or keyword.iskeyword(name) or name in self.objects:
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name)
        return name

    def count(self, region: fx.GraphModule) -> None:
        """Have the driver count that a region begins."""
        if region in self.numbers:
            self.line(f"{self.object('visits', self.visits)}[{self.numbers[region]}] += 1")

    def object(self, stem: str, value: Any) -> str:
        """A global name of the driver for an object."""
        for name, known in self.objects.items():
            if known is value:
                return name
        name = self.fresh(stem)
        self.objects[name] = value
        return name
