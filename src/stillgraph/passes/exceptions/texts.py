"""Texts with values that only the run knows: what a file runs has none, and leaves them out of what it says."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.raising import SITES
from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.passes.regions.regions import (
    Branch,
    Loop,
    all_regions,
    call,
    control_of,
    is_result,
    outputs,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes, value_of
from stillgraph.program import operations
from stillgraph.program.facts.info import mark
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program
from stillgraph.program.types import ObjectType


def leave_out_texts(program: Program) -> Program:
    """Let a number stand for a text that branches and loops hand on, and that at most an error shows in the end.

    ::

        why = "none"                          why = 0
        if p: why = f"exit{i}"         →      if p: why = 0
        if q: raise ValueError(why)           if q: raise ValueError(why)

    Raises:
        ExportError: the program gives one, or something that depends on one.
    """
    if not any(map(_is_text, _nodes(program))):
        return program
    check_texts(program)
    fresh = drop_dead_code(program)
    fakes = Fakes(fresh.graph)
    for module in all_regions(fresh.graph):
        for node in list(module.graph.nodes):
            control = control_of(module, node)
            if control is not None:
                _hand_on(control, fakes)
        for node in filter(_is_text, list(module.graph.nodes)):
            _refuse_uses(module, node)
    for node in filter(_is_text, _nodes(fresh)):
        _leave_out(node, fakes)
    return drop_dead_code(fresh)


def check_texts(program: Program) -> None:
    """Refuse a program that hands out a text with a value in it that only the run knows.

    Raises:
        ExportError: it returns or stores one; what a file runs gives tensors and numbers.
    """
    for node in outputs(program.graph):
        if isinstance(node, fx.Node) and _is_text(node):
            message = "a text with a value in it that only the run knows is returned or stored"
            hint = "Return the value and make the text of it outside, or save as .py."
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)


def _nodes(program: Program) -> list[fx.Node]:
    return [node for module in all_regions(program.graph) for node in module.graph.nodes]


def _is_text(node: fx.Node) -> bool:
    kind = node.meta.get("val")
    return isinstance(kind, ObjectType) and kind.kind is str


def _hand_on(control: Branch | Loop, fakes: Fakes) -> None:
    """Let a branch or loop hand on numbers in the place of texts: those that are known are 0."""
    kept = list(control.node.meta["val"])
    texts = [at for at, kind in enumerate(kept) if isinstance(kind, ObjectType) and kind.kind is str]
    for region in control.arms if isinstance(control, Branch) else (control.body,):
        given = outputs(region)
        set_outputs(region, [0 if at in texts and isinstance(each, str) else each for at, each in enumerate(given)])
    if isinstance(control, Loop):
        entries = [0 if at in texts and isinstance(each, str) else each for at, each in enumerate(control.entries)]
        control.node.args = (*control.node.args[:2], tuple(entries), control.operands)
    control.node.meta["val"] = tuple(_number(kind, fakes) if at in texts else kind for at, kind in enumerate(kept))


def _number(kind: ObjectType, fakes: Fakes) -> Any:
    number = fakes.number(int)
    mark(number, may_be_none=kind.may_be_none, may_be_unbound=kind.may_be_unbound)
    return number


def _refuse_uses(module: fx.GraphModule, text: fx.Node) -> None:
    for user in text.users:
        is_asked = user.target is operations.is_unbound or (user.target is operator.is_ and None in user.args)
        hands_on = user.op == "output" or control_of(module, user) is not None
        if not (is_asked or hands_on or _is_text(user) or user.target in SITES):
            message = "what the program gives depends on a text with a value in it that only the run knows"
            hint = "Decide by the value in the place of its text, or save as .py."
            raise refuse("SG402", message, location=user.meta.get("location"), hint=hint)


def _leave_out(text: fx.Node, fakes: Fakes) -> None:
    """Let a number stand for a text; a template stays for the errors that show it."""
    if text.op == "placeholder" or is_result(text):
        text.meta["val"] = _number(value_of(text), fakes)
        return
    table = arguments(text)[0] if text.target is operator.getitem else ()
    if isinstance(table, tuple) and not all(isinstance(each, str) for each in table):
        message = "a text with a value in it that only the run knows is None or unbound by what a table says"
        hint = "Give it a text on every path, or save as .py."
        raise refuse("SG402", message, location=text.meta.get("location"), hint=hint)
    with text.graph.inserting_after(text):
        number = call(text, operator.add, (0, 0), fakes.number(int))
    is_template = text.target is operations.text
    shows = [user for user in text.users if is_template and (user.target in SITES or _is_text(user))]
    text.replace_all_uses_with(number, delete_user_cb=lambda user: user not in shows)
