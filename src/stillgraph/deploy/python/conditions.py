"""Conditions that are written where they are asked, and the brackets that expressions need."""

from __future__ import annotations

import operator

from torch import fx

from stillgraph.deploy.python.lines import brackets
from stillgraph.deploy.python.statements import STATEMENTS
from stillgraph.passes.regions.purity import is_pure
from stillgraph.passes.regions.regions import COND
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.graphs import arguments

_MOST_IN_A_TEST = 4  # operations that are written inside an ``if`` or ``while``



def conditions(module: fx.GraphModule) -> set[fx.Node]:
    """What is written inside the conditions of a region's branches."""
    found: set[fx.Node] = set()
    before: list[fx.Node] = []
    for node in module.graph.nodes:
        if node.target is COND and isinstance(arguments(node)[0], fx.Node):
            found |= condition(before, arguments(node)[0])
        if node.op != "get_attr":
            before.append(node)
    return found


def condition(before: list[fx.Node], test: fx.Node) -> set[fx.Node]:
    """The operations that can be written inside a condition: each is used there alone, and nothing is in between.

    Args:
        before: what stands before the question, in order.
        test: what is asked.
    """
    found: set[fx.Node] = set()
    wanted = [test]
    for node in reversed(before):
        if node not in wanted:
            break
        simple = node.op in ("call_function", "call_method") and node.target not in (*CONSTRUCTS, *STATEMENTS)
        if not simple or len(node.users) != 1 or not is_pure(node) or _is_part(node):
            break
        if node.meta.get("context") != test.meta.get("context") or len(found) >= _MOST_IN_A_TEST:
            break
        found.add(node)
        wanted += node.all_input_nodes
    return found


def _is_part(node: fx.Node) -> bool:
    return node.target is operator.getitem and node.all_input_nodes[0].target in CONSTRUCTS


def unbracketed(text: str) -> str:
    """An expression without the brackets around it."""
    found = brackets(text)
    around = text.startswith("(") and bool(found) and found[-1][0] == len(text) - 1
    inside = [(character, depth) for _, character, depth in found[1:-1]]
    if not around or any(depth == 0 or (depth == 1 and character == ",") for character, depth in inside):
        return text
    return text[1:-1] or text


def negatable(text: str) -> str:
    simple = text.replace("_", "a").replace(".", "a").isalnum() or (text.endswith(")") and " " not in text)
    return text if simple else f"({text})"


def is_one_if(lines: list[str], indent: str) -> bool:
    """Whether lines are one ``if`` statement."""
    heads = [line for line in lines if line.startswith(indent) and not line.startswith(indent + " ")]
    heads = [line.strip() for line in heads]
    return heads[0].startswith("if ") and all(head.startswith(("elif ", "else:")) for head in heads[1:])
