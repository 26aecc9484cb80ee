"""Table of templates: each container and object that a call makes has a number, by which others refer to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stillgraph.program.outputs import Choice, Container, Instance, Maybe, Shared, Template, nodes_of


@dataclass(frozen=True)
class Node:
    """A container or an instance whose children are leaves or `Shared`."""

    template: Container | Instance
    children: tuple[Template, ...]


class Nodes:
    """Templates as a table: every node has its number, and is referred to by `Shared`."""

    def __init__(self, templates: Sequence[Template]) -> None:
        self.table: list[Node | None] = []
        self.uses: Counter[int] = Counter()
        self.cyclic = False
        self.templates = [node for template in templates for node in nodes_of(template)]  # as they were
        self.roots = [self._flatten(template) for template in templates]

    def _flatten(self, template: Template) -> Template:
        if isinstance(template, Shared):
            if not 0 <= template.index < len(self.table):
                raise ValueError(f"node #{template.index} is shared before it is made")
            self.uses[template.index] += 1
            self.cyclic = self.cyclic or self.table[template.index] is None  # we are still inside that node
            return template
        if isinstance(template, Choice):
            return replace(template, left=self._flatten(template.left), right=self._flatten(template.right))
        if isinstance(template, Maybe):
            return Maybe(template.flag, self._flatten(template.child), template.rank)
        if not isinstance(template, (Container, Instance)):
            return template
        index = len(self.table)
        self.table.append(None)
        children = template.children if isinstance(template, Container) else [value for _, value in template.attributes]
        self.table[index] = Node(template, tuple(self._flatten(child) for child in children))
        self.uses[index] += 1
        return Shared(index)
