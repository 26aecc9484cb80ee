"""A region under construction: one straight-line graph, and what it uses from the regions around it."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.core.location import Location
from stillgraph.passes.regions.lazy_code import lazy_module
from stillgraph.program.operations import EFFECTFUL
from stillgraph.trace.values.several import in_graph


@dataclass
class Mark:
    """A point in a region's construction to roll back to."""

    last: fx.Node | None
    known: int


@dataclass(eq=False)
class Region:
    """A graph being recorded.

    ``known`` maps the identity of a staged value to its node; the values are kept alive, so identities stay unique.
    A value of an outer region becomes a placeholder when it is first used; ``captures`` lists those in order.
    """

    parent: Region | None
    lift: Callable[[Any], fx.Node] | None = None  # of the root region: what to do with a value nobody knows
    graph: fx.Graph = field(default_factory=fx.Graph)
    attributes: dict[str, Any] = field(default_factory=dict)
    known: dict[int, tuple[Any, fx.Node]] = field(default_factory=dict)
    captures: list[tuple[Any, fx.Node]] = field(default_factory=list)
    lines: dict[int, tuple[Any, Location]] = field(default_factory=dict)  # where a value was made, of the whole tree
    outdated: dict[int, Any] = field(default_factory=dict)  # what holds no more, from somewhere in the region on
    _last_placeholder: fx.Node | None = None
    _order: list[int] = field(default_factory=list)
    _counts: collections.Counter[str] = field(default_factory=collections.Counter)

    def __post_init__(self) -> None:
        if self.parent is not None:
            self.lines = self.parent.lines

    def placeholder(self, name: str, value: Any) -> fx.Node:
        """A new placeholder behind those there are."""
        with self.graph.inserting_after(self._last_placeholder):
            own = f"{name}_" if name.lower() == "self" else name  # which each forward has
            node = self.graph.placeholder(own)
        node.target = node.name  # the name that fx made unique
        node.meta["val"] = value
        self._last_placeholder = node
        return node

    def define(self, value: Any, node: fx.Node) -> None:
        """Let ``node`` stand for ``value``, which is a tensor or a staged number."""
        value = in_graph(value)
        self.known[id(value)] = (value, node)
        if node.op != "placeholder" and node.meta.get("location") is not None:
            self.lines.setdefault(id(value), (value, node.meta["location"]))
        self._order.append(id(value))

    def find(self, value: Any) -> fx.Node | None:
        """The node for ``value`` if this region has one."""
        entry = self.known.get(id(value))
        return None if entry is None else entry[1]

    def is_inside(self, outer: Region, levels: int) -> bool:
        """Whether this region lies in another one, and so many levels further in."""
        region: Region | None = self
        for _ in range(levels):
            region = region and region.parent
        return region is outer

    def holds(self, value: Any) -> bool:
        """Whether this region or one around it knows ``value``."""
        return any(id(value) in region.known for region in self._outwards())

    def is_outdated(self, value: Any) -> bool:
        """Whether a value does not hold any more where this region has got to."""
        return any(id(value) in region.outdated for region in self._outwards())

    @property
    def path(self) -> frozenset[Region]:
        """The regions that a path goes through to be here: those that this one is in, and itself."""
        return frozenset(self._outwards())

    def _outwards(self) -> Iterator[Region]:
        """This region, and those around it."""
        region: Region | None = self
        while region is not None:
            yield region
            region = region.parent

    def node_of(self, value: Any) -> fx.Node:
        """The node for ``value``, made into a placeholder here if it comes from an outer region."""
        node = self.find(value)
        if node is not None:
            return node
        if self.parent is None:
            assert self.lift is not None
            return self.lift(value)
        outer = self.parent.node_of(value)
        node = self.placeholder(outer.name, outer.meta["val"])
        self.define(value, node)
        self.captures.append((value, node))
        return node

    def attribute(self, stem: str, value: Any) -> fx.Node:
        """A ``get_attr`` node for a closed child region or a constant object."""
        name = f"{stem}_{self._counts[stem]}"
        self._counts[stem] += 1
        self.attributes[name] = value
        node = self.graph.create_node("get_attr", name)
        node.meta["val"] = value
        return node

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded but what the recorder made on its own account."""
        return all(n.op in ("placeholder", "get_attr") or n.meta.get("bookkeeping") for n in self.graph.nodes)

    def mark(self) -> Mark:
        """A point to roll back to."""
        return Mark(next(iter(reversed(self.graph.nodes)), None), len(self._order))

    def since(self, mark: Mark) -> list[fx.Node]:
        """The operations recorded since ``mark``, the latest first; no placeholders."""
        found = itertools.takewhile(lambda node: node is not mark.last, reversed(self.graph.nodes))
        return [node for node in found if node.op != "placeholder"]

    def rollback(self, mark: Mark) -> None:
        """Drop every operation recorded since ``mark``; placeholders stay."""
        for key in self._order[mark.known :]:
            if self.known.get(key, (None, None))[1] is not None and self.known[key][1].op != "placeholder":
                del self.known[key]
        self._order[mark.known :] = [k for k in self._order[mark.known :] if k in self.known]
        for node in self.since(mark):
            erase(node)

    def close(self, outputs: list[fx.Node | Any]) -> Region:
        """End the region with these outputs; it can be the child of another now."""
        self.graph.output(tuple(outputs))
        drop_unused_bookkeeping(self.graph)
        return self

    def forget(self) -> None:
        """Let go of the user's tensors, in those inside too: regions know each other."""
        inside = [value for value in self.attributes.values() if isinstance(value, Region)]
        self.known.clear()
        self.attributes.clear()
        for each in inside:
            each.forget()

    def module(self) -> fx.GraphModule:
        """The closed region and those in it as modules. Many a region is recorded and dropped, so this comes last."""
        holder = torch.nn.Module()
        for node in self.graph.find_nodes(op="get_attr"):
            name = str(node.target)
            value = self.attributes[name]
            if isinstance(value, Region):
                value = node.meta["val"] = value.module()
            setattr(holder, name, value)
        return lazy_module(holder, self.graph, "Region")


def erase(node: fx.Node) -> None:
    """Drop a node. Its graph goes on knowing its name, so what it leads to is let go here."""
    node.graph.erase_node(node)
    node.meta.clear()


def is_erased(node: fx.Node) -> bool:
    """Whether `erase` was called of a node that was recorded."""
    return not node.meta


def drop_unused_bookkeeping(graph: fx.Graph) -> None:
    """Drop the nodes that the recorder made on its own account and nobody came to use."""
    for node in reversed(graph.nodes):
        if node.meta.get("bookkeeping") and not node.users and node.target not in EFFECTFUL:
            erase(node)
