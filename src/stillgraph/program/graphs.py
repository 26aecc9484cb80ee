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


def writes_in_place(module: fx.GraphModule) -> bool:
    """Whether a program changes tensors in place."""
    return any(_is_in_place(node) for region in regions(module) for node in region.graph.nodes)


def _is_in_place(node: fx.Node) -> bool:
    if node.op not in ("call_function", "call_method"):
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    private = name.endswith("__") or name in ("print_", "raise_", "assert_", "format_", "not_", "is_", "and_", "or_")
    in_place = (name.endswith("_") and not private) or name in ("setitem", "setattr", "outside", "backward")
    return in_place or "out" in node.kwargs or node.kwargs.get("inplace") is True
