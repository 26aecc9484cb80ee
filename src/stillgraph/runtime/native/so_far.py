"""Where an operation of a program fails: what the call had written to Python's objects by then.

The driver does nothing for it while all is well. It has a table of its lines; the frame that the error has passed shows
the line, and its variables have the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import fx

from stillgraph.core.tracebacks import entries_of
from stillgraph.program.so_far import so_far_at

LINES = "__stillgraph_so_far__"
"""The name among a driver's globals of its table."""


@dataclass(frozen=True)
class Noted:
    """What is written when a line of a driver begins, as a `SoFar` says it, with expressions of the values."""

    index: int | None
    values: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a program had written when it failed: an index of `Program.so_far`, and the values of these effects.

    ``left_out``: the places of which it is not known what was written there.
    """

    index: int | None
    values: list[Any]
    left_out: tuple[str, ...]


UNKNOWN = ("what is written is not known at this operation",)


def names_needed(node: fx.Node, depth: int = 0) -> Iterator[str]:
    """The names of the nodes whose values are to be there while a node runs, or one in its regions.

    Args:
        node: of any graph.
        depth: how many regions further out the nodes are.
    """
    noted = so_far_at(node)
    if noted is not None:
        yield from (name for hops, name in noted.values if hops == depth)
    for argument in node.all_input_nodes:
        inner = argument.meta.get("val") if argument.op == "get_attr" else None
        if isinstance(inner, fx.GraphModule):
            for each in inner.graph.nodes:
                yield from names_needed(each, depth + 1)


def found_in(error: BaseException) -> Found | None:
    """What a program had written when an error of one of its operations left it.

    Args:
        error: as it leaves the program's driver.

    Returns:
        What it had written; None where that is nothing.
    """
    names: dict[str, Any] | None = None
    frame: Any = None
    variables: dict[str, Any] = {}
    line = 0
    try:
        for entry in entries_of(error.__traceback__):
            frame = entry.tb_frame
            if names is None and LINES in frame.f_globals:
                names = frame.f_globals
            if names is not None:
                if frame.f_globals is not names:
                    break
                variables.update(frame.f_locals)
                line = entry.tb_lineno
        noted: Noted | None = None if names is None else names[LINES].get(line)
        if noted is None:
            return None
        try:
            return Found(noted.index, [eval(text, names, variables) for text in noted.values], noted.left_out)
        except NameError:  # a variable that no path so far has assigned
            return Found(None, [], UNKNOWN)
    finally:
        del error, names, frame, variables  # frames would hold this one
