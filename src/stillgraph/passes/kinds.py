"""Numbers of which the kind is another on another path: one tensor cannot stand for both."""

from __future__ import annotations

import itertools
import operator
from typing import Any

from torch import fx

from stillgraph.passes.regions import (
    Branch,
    Control,
    Loop,
    all_regions,
    control_of,
    controls,
    is_result,
    outputs,
    placeholders,
)
from stillgraph.passes.values import is_number, kind_of, value_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import as_tensor


def mixes_kinds(graph: fx.GraphModule) -> bool:
    """Whether a branch or loop gives ``int`` on one path and ``float`` on another, say, or a number and a tensor."""
    regions = list(all_regions(graph))
    if any(node.target is as_tensor for region in regions for node in region.graph.nodes):
        return True  # where a number meets the tensor of another path
    return any(_mixes(control) for region in regions for control in controls(region))


def kinds_given(graph: fx.GraphModule) -> list[Kinds]:
    """For each output of a program the kinds of number that it may be, as the path decides; none for a tensor."""
    return _kinds_of(graph, [_own(node) for node in placeholders(graph)])


Kinds = frozenset[type]


def _own(value: Any) -> Kinds:
    kind = kind_of(value_of(value))
    return frozenset() if kind is None else frozenset({kind})


def _kinds_of(module: fx.GraphModule, given: list[Kinds]) -> list[Kinds]:
    """The kinds of what a region gives, by those of what it is given."""
    known: dict[fx.Node, Kinds] = dict(zip(placeholders(module), given, strict=True))
    of_controls: dict[fx.Node, list[Kinds]] = {}

    def at(value: Any) -> Kinds:
        return known[value] if isinstance(value, fx.Node) and value in known else _own(value)

    for node in module.graph.nodes:
        control = control_of(module, node)
        if isinstance(control, Branch):
            arms = [_kinds_of(arm, [at(value) for value in control.operands]) for arm in control.arms]
            of_controls[node] = [left | right for left, right in zip(*arms, strict=True)]
        elif control is not None:
            carried, operands = [at(value) for value in control.entries], [at(value) for value in control.operands]
            of_controls[node] = _carried_kinds(control, carried, operands)
        elif is_result(node):
            source, index = arguments(node)
            known[node] = of_controls[source][index]
        elif node.target in _WIDENING and is_number(value_of(node)):
            known[node] = frozenset(max(pair, key=_ORDER.index) for pair in itertools.product(*map(at, node.args)))
    return [at(value) for value in outputs(module)]


def _carried_kinds(loop: Loop, carried: list[Kinds], operands: list[Kinds]) -> list[Kinds]:
    while True:  # until an iteration adds nothing
        left = _kinds_of(loop.body, [*carried, *operands])
        grown = [old | new for old, new in zip(carried, left, strict=True)]
        if grown == carried:
            return carried
        carried = grown


_ORDER = (bool, int, float)
_WIDENING = frozenset({operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.abs, max, min})
"""Arithmetic of which the kind is the wider of its operands'."""


def _mixes(control: Control) -> bool:
    if isinstance(control, Branch):
        return any(_differ(pair) for pair in zip(*map(outputs, control.arms), strict=True))
    inside = placeholders(control.body)[: len(control.entries)]
    return any(_differ(each) for each in zip(control.entries, inside, outputs(control.body), strict=True))


def _differ(values: tuple[Any, ...]) -> bool:
    return len({kind_of(value_of(value)) for value in values}) > 1
