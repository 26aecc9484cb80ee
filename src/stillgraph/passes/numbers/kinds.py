"""Numbers of which the kind is another on another path: one tensor cannot stand for both."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import (
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
from stillgraph.passes.regions.values import is_number, kind_of, value_of
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
    return _kinds_of(graph, [_own(node) for node in placeholders(graph)], {})


def kinds_everywhere(graph: fx.GraphModule) -> dict[fx.Node, Kinds]:
    """The kinds that each number of a program may be of, in all its regions."""
    found: dict[fx.Node, Kinds] = {}
    _kinds_of(graph, [_own(node) for node in placeholders(graph)], found)
    return found


Kinds = frozenset[type]


def _own(value: Any) -> Kinds:
    kind = kind_of(value_of(value))
    return frozenset() if kind is None else frozenset({kind})


def _kinds_of(module: fx.GraphModule, given: list[Kinds], found: dict[fx.Node, Kinds]) -> list[Kinds]:
    """The kinds of what a region gives, by those of what it is given; those of all that is in it go into ``found``."""
    known: dict[fx.Node, Kinds] = dict(zip(placeholders(module), given, strict=True))
    of_controls: dict[fx.Node, list[Kinds]] = {}

    def at(value: Any) -> Kinds:
        return known[value] if isinstance(value, fx.Node) and value in known else _own(value)

    for node in module.graph.nodes:
        control = control_of(module, node)
        if isinstance(control, Branch):
            arms = [_kinds_of(arm, [at(value) for value in control.operands], found) for arm in control.arms]
            of_controls[node] = [left | right for left, right in zip(*arms, strict=True)]
        elif control is not None:
            carried, operands = [at(value) for value in control.entries], [at(value) for value in control.operands]
            of_controls[node] = _carried_kinds(control, carried, operands, found)
        elif is_result(node):
            source, index = arguments(node)
            known[node] = of_controls[source][index]
        elif node.op in ("call_function", "call_method"):
            known[node] = _result_kinds(node, [at(value) for value in numbers_given(node)])
    found.update(known)
    return [at(value) for value in outputs(module)]


def _result_kinds(node: fx.Node, given: list[Kinds]) -> Kinds:
    """The kinds of the result of an operation on numbers of these kinds."""
    own, lowest = _own(node), lowest_kind(node)
    if not own:
        _check_dtype(node, given)
        return own
    if is_choice(node):
        return frozenset().union(*given)
    if all(len(kinds) < 2 for kinds in given) or lowest is FIXED:
        return own
    if lowest is None:
        return own | {int}  # nobody knows: the pass that tells kinds refuses it
    return frozenset(max((lowest, *each), key=_ORDER.index) for each in itertools.product(*given))


def _check_dtype(node: fx.Node, given: list[Kinds]) -> None:
    """Refuse a tensor that is made of a number alone, and is of its dtype.

    Raises:
        ExportError: the kind of the number depends on the path, and so would the dtype.
    """
    is_given = "dtype" in node.kwargs or node.target in _OF_ONE_DTYPE or not isinstance(value_of(node), torch.Tensor)
    of_tensors = any(isinstance(value_of(each), torch.Tensor) for each in node.all_input_nodes)
    if not is_given and not of_tensors and any(len(kinds) > 1 for kinds in given):
        message = "a tensor is made of a number that is of another type on another path, and so is its dtype"
        raise refuse("SG402", message, location=node.meta.get("location"), hint=HINT)


_OF_ONE_DTYPE = frozenset({as_tensor, torch.scalar_tensor})
HINT = "Write the number so that it has one type on every path: 1.0 in place of 1, or int(...)."

FIXED = object()


def lowest_kind(node: fx.Node) -> Any:
    """How an operation on numbers makes its kind of theirs.

    Returns:
        The kind that it has at least, where it is the widest of its numbers'; `FIXED` where it is always its own; None
        where that is not known here.
    """
    own, target = kind_of(value_of(node)), node.target
    if target in _BITWISE:
        return bool
    if own is bool:
        return FIXED
    if target is operator.pow:
        exponent = arguments(node)[1]
        return FIXED if type(exponent) is float else int if type(exponent) is int and exponent >= 0 else None
    if target in _WIDENING:
        return int
    return FIXED if own is int or target in _FLOATS or getattr(target, "__module__", "") == "math" else None


def is_choice(node: fx.Node) -> bool:
    """Whether a node picks one of several numbers, as the run says."""
    return node.target is operator.getitem and isinstance(arguments(node)[0], (list, tuple))


def numbers_given(node: fx.Node) -> list[Any]:
    """The numbers that an operation takes, nodes and constants; of a choice those that it picks from."""
    given = arguments(node)[0] if is_choice(node) else (arguments(node), node.kwargs)
    return [value for value in tree_leaves(given) if is_number(value_of(value))]


def _carried_kinds(
    loop: Loop, carried: list[Kinds], operands: list[Kinds], found: dict[fx.Node, Kinds]
) -> list[Kinds]:
    while True:  # until an iteration adds nothing
        left = _kinds_of(loop.body, [*carried, *operands], found)
        grown = [old | new for old, new in zip(carried, left, strict=True)]
        if grown == carried:
            _kinds_of(loop.test, [*carried, *operands], found)
            return carried
        carried = grown


_ORDER = (bool, int, float)
_WIDENING = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
        *(operator.neg, operator.pos, operator.abs, abs, round),
    }
)
"""Arithmetic of which the kind is the wider of its operands', but no ``bool``."""

_BITWISE = frozenset({operator.and_, operator.or_, operator.xor})
_FLOATS = frozenset({operator.truediv, float})


def _mixes(control: Control) -> bool:
    if isinstance(control, Branch):
        return any(_differ(pair) for pair in zip(*map(outputs, control.arms), strict=True))
    inside = placeholders(control.body)[: len(control.entries)]
    return any(_differ(each) for each in zip(control.entries, inside, outputs(control.body), strict=True))


def _differ(values: tuple[Any, ...]) -> bool:
    return len({kind_of(value_of(value)) for value in values}) > 1
