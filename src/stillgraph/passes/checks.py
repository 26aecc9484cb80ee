"""Assertions as results: each tells whether it held, and the program gives that besides what the original gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import torch
from torch import fx

from stillgraph.passes.exceptions.raising import lower_checks, lower_raising
from stillgraph.passes.pipeline import WHOLE_GRAPH, Pass
from stillgraph.passes.regions.regions import copied, outputs, set_outputs
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program

CHECKED: tuple[Pass, ...] = tuple(lower_checks if each is lower_raising else each for each in WHOLE_GRAPH)
"""The passes for a program that hands its assertions out."""


@dataclass(frozen=True)
class Check:
    """An assertion, or an exception that is raised somewhere.

    Attributes:
        name: of its own among the program's: the error, and the line where others have the same.
        error: type and text of what the original raises: ``"ValueError: negative"``.
    """

    name: str
    error: str


def hand_out_checks(program: Program) -> tuple[Program, tuple[Check, ...]]:
    """Replace assertions at the top level by results, behind the others.

    ::

        torch._assert_async(fine, "…")     →     return y, fine
        return y

    Args:
        program: went through `CHECKED`.

    Returns:
        The program, and what its last results tell of, in the order in which the original would raise them.
    """
    fresh = copied(program)
    found = list(fresh.graph.graph.find_nodes(op="call_function", target=torch._assert_async))
    flags = [arguments(node)[0] for node in found]
    names = _names(found)
    set_outputs(fresh.graph, [*outputs(fresh.graph), *flags])
    checks = tuple(Check(name, _error(node)) for name, node in zip(names, found, strict=True))
    for node in found:
        fresh.graph.graph.erase_node(node)
    return fresh, checks


def _error(node: fx.Node) -> str:
    text = arguments(node)[1:] or ("RuntimeError",)
    return str(text[0])


def _names(found: list[fx.Node]) -> list[str]:
    shared = Counter(map(_error, found))
    names: list[str] = []
    for node in found:
        name, location = _error(node), node.meta.get("location")
        if location is not None and (shared[name] > 1 or ":" not in name):
            name = f"{name} (line {location.line})"
        count = sum(known == name or known.startswith(f"{name} #") for known in names)
        names.append(f"{name} #{count + 1}" if count else name)
    return names
