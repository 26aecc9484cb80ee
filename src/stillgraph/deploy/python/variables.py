"""The names of variables: those that the user's own lines assign to."""

from __future__ import annotations

import ast
import linecache
import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from stillgraph.core.location import Location
from stillgraph.program.graphs import arguments

Names = tuple[str | None, ...]
_Span = tuple[int, int, int | None]


@dataclass
class UserLines:
    """What the user's files assign where; each file is read once."""

    _files: dict[str, dict[_Span, Names]] = field(default_factory=dict)

    def assigned(self, location: Location | None) -> Names:
        """The variables that a statement gives the value which is computed at a place; none where it is part of more.

        The name of an attribute or item stands for it: ``self.last = x`` assigns ``last``.
        """
        if location is None or location.column is None:
            return ()
        known = self._files.get(location.file)
        if known is None:
            known = self._files[location.file] = dict(_assignments("".join(linecache.getlines(location.file))))
        return known.get((location.line, location.column, location.end_column), ())

    def hints(self, module: fx.GraphModule) -> dict[fx.Node, str]:
        """Names for the nodes of a region: of all that one expression became, the last has its value."""
        nodes = [node for node in module.graph.nodes if node.op in ("call_function", "call_method")]
        found: dict[fx.Node, str] = {}
        several: dict[fx.Node, Names] = {}
        for node, following in zip(nodes, [*nodes[1:], None]):
            place = node.meta.get("location")
            part = _part_of(node)
            if part is not None and part[0] in several:
                names = several[part[0]]
                name = names[part[1]] if part[1] < len(names) else None
                if name is not None:
                    found[node] = name
                continue
            names = self.assigned(place)
            if len(names) == 1 and names[0] and not _goes_on(node, following):
                found[node] = names[0]
            elif len(names) > 1:
                several[node] = names
        return found


def _goes_on(node: fx.Node, following: fx.Node | None) -> bool:
    """Whether the next operation belongs to the same expression of the user's, and makes its value of this one."""
    same = following is not None and following.meta.get("location") == node.meta.get("location")
    return following is not None and same and bool(following.users)


def _part_of(node: fx.Node) -> tuple[Any, int] | None:
    if node.target is operator.getitem and type(arguments(node)[1]) is int and arguments(node)[1] >= 0:
        return arguments(node)[0], arguments(node)[1]
    return None


def _assignments(text: str) -> Iterator[tuple[_Span, Names]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a file that has changed since, or no file at all
        return
    for statement in ast.walk(tree):
        match statement:
            case ast.Assign(targets=[target]):
                yield _span(statement.value), _names(target)
            case ast.AugAssign(target=target):
                yield _span(statement), _names(target)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield _span(value), _names(target)
            case ast.NamedExpr(target=target):
                yield _span(statement.value), _names(target)


def _span(node: Any) -> _Span:
    return node.lineno, node.col_offset, node.end_col_offset if node.end_lineno == node.lineno else None


def _names(target: ast.expr) -> Names:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return (name,)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(e.id if isinstance(e, ast.Name) else None for e in elements)
    return ()


def stem_of(name: str) -> str:
    """A name without the number that told it from others."""
    return re.sub(r"(_\d+)+$", "", name) or name


_PARTS = re.compile(r"(_item|_part)+$")


def result_name(part: fx.Node) -> str:
    """The name of a part of what a construct gives; of what is returned, the name of the part."""
    return re.sub(r"^return_value_(?=[a-zA-Z])", "", stem_of(part.name))


def own_name(node: fx.Node) -> str:
    """A name for a value that no variable of the user's holds: what made it, or which part of what it is."""
    if node.target is operator.getitem:
        base, index = arguments(node)[:2]
        parts: Iterable[Any] = index if isinstance(index, tuple) else (index,)
        kind = "_part" if any(isinstance(each, slice) for each in parts) else "_item"
        return _PARTS.sub("", stem_of(base.name)) + kind if isinstance(base, fx.Node) else "item"
    return stem_of(node.name).strip("_") or "value"
