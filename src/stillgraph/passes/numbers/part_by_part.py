"""Tuples and lists of numbers that Python compares: by their first elements that differ."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx

from stillgraph.passes.numbers.number_errors import NAN_COMPARED
from stillgraph.passes.regions.regions import call, copied
from stillgraph.passes.regions.values import Fakes, is_number, is_optional, kind_of, value_of
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import require
from stillgraph.program.program import Program

_ORDERS: dict[Any, Callable[[Any, Any], Any]] = {
    operator.lt: operator.lt,
    operator.le: operator.lt,
    operator.gt: operator.gt,
    operator.ge: operator.gt,
}
"""What the first elements that differ are asked for each comparison."""

_EQUALITIES = (operator.eq, operator.ne)


def compare_part_by_part(program: Program) -> Program:
    """Compare the elements of tuples, and of lists, in place of the tuples.

    ::

        (a, b) < (c, d)     →     a < c | (a == c & b < d)
        (a, b) == (c, 1)    →     a == c & b == 1

    For Python two elements are equal, too, if they are one object, which only a NaN tells: where two that may be one
    object are NaN, that is an assertion.
    """
    if not any(_compares(node) for module in regions(program.graph) for node in module.graph.nodes):
        return program
    fresh = copied(program)
    fakes = Fakes(fresh.graph)
    for module in regions(fresh.graph):
        for node in list(module.graph.nodes):
            if _compares(node):
                _replace(node, fakes)
    return fresh


def _compares(node: fx.Node) -> bool:
    if node.op != "call_function" or (node.target not in _ORDERS and node.target not in _EQUALITIES):
        return False
    left, right = arguments(node)
    is_ordered = node.target in _ORDERS
    return _is_sequence(left) and _is_sequence(right) and _is_known(left, right, is_ordered)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _is_known(left: Any, right: Any, is_ordered: bool) -> bool:
    """Whether two elements are constants, numbers, or such sequences."""
    both = (left, right)
    if all(map(_is_sequence, both)) and isinstance(left, tuple) is isinstance(right, tuple):
        return all(_is_known(one, other, is_ordered) for one, other in zip(left, right))
    numbers = [is_number(value_of(each)) and not is_optional(value_of(each)) for each in both]
    known = [number or not isinstance(each, fx.Node) for each, number in zip(both, numbers)]
    return all(known) and (not is_ordered or all(numbers) or not any(isinstance(each, fx.Node) for each in both))


def _replace(node: fx.Node, fakes: Fakes) -> None:
    left, right = arguments(node)
    with node.graph.inserting_before(node):
        work = _Comparing(node, fakes)
        if node.target in _EQUALITIES:
            value = work.equal(left, right)
            value = work.opposite(value) if node.target is operator.ne else value
        else:
            value = work.ordered(left, right)
        if not isinstance(value, fx.Node):
            value = call(node, bool, (value,), fakes.number(bool))
    node.replace_all_uses_with(value)
    node.graph.erase_node(node)


@dataclass(frozen=True)
class _Comparing:
    """Makes truth values where the graph of a node inserts now: nodes, or constants."""

    node: fx.Node
    fakes: Fakes

    def equal(self, left: Any, right: Any, reached: Any = True) -> Any:
        """Whether Python takes two elements for equal, if it comes to them: ``reached and left == right``."""
        if _is_sequence(left) or _is_sequence(right):
            alike = _is_sequence(left) is _is_sequence(right) and isinstance(left, tuple) is isinstance(right, tuple)
            if not alike or len(left) != len(right):
                return False
            for one, other in zip(left, right):
                reached = self.equal(one, other, reached)
            return reached
        if left is right:
            return reached
        if not isinstance(left, fx.Node) and not isinstance(right, fx.Node):
            return reached if left == right else False
        if not all(is_number(value_of(each)) for each in (left, right)):
            return False
        self._require_no_nan(left, right, reached)
        return self._both(reached, self._call(operator.eq, left, right))

    def ordered(self, left: Any, right: Any, reached: Any = True, inner: bool = False) -> Any:
        """What the comparison of the node gives for two sequences, if Python comes to them.

        Args:
            left, right: the sequences, or inside of them elements.
            reached: whether Python comes to them: what is before them is equal.
            inner: whether equal ones decide nothing.
        """
        order = _ORDERS[self.node.target]
        if not _is_sequence(left):
            if isinstance(left, fx.Node) or isinstance(right, fx.Node):
                return False if left is right else self._both(reached, self._call(order, left, right))
            return reached if left != right and order(left, right) else False
        end = (order if inner else self.node.target)(len(left), len(right))  # type: ignore[operator]  # of `_ORDERS`
        found: Any = False
        count = min(len(left), len(right))
        for place, (one, other) in enumerate(zip(left, right)):
            found = self._either(found, self.ordered(one, other, reached, inner=True))
            if end or place < count - 1:
                reached = self.equal(one, other, reached)
        return self._either(found, reached if end else False)

    def opposite(self, value: Any) -> Any:
        """``not value``."""
        return self._call(operator.not_, value) if isinstance(value, fx.Node) else not value

    def _both(self, left: Any, right: Any) -> Any:
        if left is False or right is False:
            return False
        return right if left is True else left if right is True else self._call(operator.and_, left, right)

    def _either(self, left: Any, right: Any) -> Any:
        if left is True or right is True:
            return True
        return right if left is False else left if right is False else self._call(operator.or_, left, right)

    def _require_no_nan(self, left: Any, right: Any, reached: Any) -> None:
        """Require that two numbers that Python comes to are not both NaN, where they may be one object."""
        both = (left, right)
        if reached is False or not all(isinstance(each, fx.Node) and kind_of(value_of(each)) is float for each in both):
            return
        numbers = [self._call(operator.eq, each, each) for each in both]
        fine = self._either(self._call(operator.or_, *numbers), self.opposite(reached))
        self._call(require, fine, NAN_COMPARED)

    def _call(self, target: Any, *args: Any) -> fx.Node:
        return call(self.node, target, args, None if target is require else self.fakes.number(bool))
