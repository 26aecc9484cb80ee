"""Questions about a program's graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import fx


def arguments(node: fx.Node) -> tuple[Any, ...]:
    """A node's positional arguments, of which fx's own type says only what they may all be."""
    return node.args


def regions(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    """The graph of a program and those of its branches and loops, outermost first."""
    return (region for region in module.modules() if isinstance(region, fx.GraphModule))
