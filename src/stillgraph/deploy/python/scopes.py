"""Which variable holds which value, and when its name may be used again: so that ``x`` stays ``x``."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import fx


@dataclass(eq=False)
class Frame:
    """A region that is being written.

    Attributes:
        graph: of the region.
        written: its operations that are done.
        active: its construct whose regions are being written.
        kept: what that construct needs again, whatever is written inside: a loop runs its body again.
    """

    graph: fx.Graph
    written: set[fx.Node] = field(default_factory=set)
    active: fx.Node | None = None
    kept: frozenset[fx.Node] = frozenset()

    def needs(self, node: fx.Node) -> bool:
        """Whether a value of the region is still to be used."""
        if node in self.kept:
            return True
        return any(user is not self.active and user not in self.written for user in node.users)


_UNCLEAR = {"l", "O", "I"}  # names that linters refuse


@dataclass
class Scope:
    """The variables of a written function and of the functions in it.

    Attributes:
        reserved: names that mean something else in the file.
        names: the expression by which each value is known; mostly a variable.
    """

    reserved: set[str]
    names: dict[fx.Node, str] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    holders: dict[str, list[fx.Node]] = field(default_factory=dict)
    locked: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)  # names of the functions around the one being written

    def hold(self, node: fx.Node, name: str) -> None:
        """Let a variable hold a value, besides what it holds."""
        self.names[node] = name
        self.holders.setdefault(name, []).append(node)

    def assign(self, node: fx.Node, name: str) -> None:
        """Let a variable hold a value and nothing else."""
        self.names[node] = name
        self.holders[name] = [node]

    def choose(self, wanted: str, *, also: Iterable[str] = ()) -> str:
        """A variable that may be assigned now: the wanted one, or one of a similar name.

        Args:
            wanted: the best name.
            also: names that are taken besides.
        """
        stem = wanted.strip("_") or "value"
        unclear = keyword.iskeyword(stem) or stem in self.reserved or stem in _UNCLEAR
        name, count, others = f"{stem}_" if unclear else stem, 1, set(also)
        while name in others or not self.is_free(name):
            count += 1
            name = f"{stem}_{count}"
        return name

    def is_free(self, name: str) -> bool:
        """Whether a name holds nothing that is still to be used."""
        if name in self.reserved or name in self.locked or name in self.outer:
            return False
        return not any(self._is_needed(node) for node in self.holders.get(name, ()))

    def _is_needed(self, node: fx.Node) -> bool:
        return any(frame.graph is node.graph and frame.needs(node) for frame in self.frames)

    def saved(self) -> dict[str, list[fx.Node]]:
        """What the variables hold, to be put back when another path is written."""
        return {name: list(nodes) for name, nodes in self.holders.items()}
