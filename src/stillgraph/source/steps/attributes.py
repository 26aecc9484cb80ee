"""Reads of watched attributes: `o.name` becomes `attr(o, "name")`."""
from __future__ import annotations

import ast

from stillgraph.source import build
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter


def attribute(node: ast.Attribute, to: Rewriter) -> ast.expr:
    if not isinstance(node.ctx, ast.Load):
        return to.children(node)
    return read_attribute(to.children(node), to)


def read_attribute(node: ast.Attribute, to: Rewriter) -> ast.expr:
    """The read of an attribute of an object that is already rewritten."""
    name = to.mangled(node.attr)
    if name not in to.watched:
        return node
    return to.op("attr", [node.value, build.constant(name, node)], build.at_name(node))


STEP = Step("attributes", {ast.Attribute: attribute})
