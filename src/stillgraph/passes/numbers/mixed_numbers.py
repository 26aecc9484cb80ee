"""Whole numbers that a float stands for, because the number is a float on another path: they have to be exact."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from stillgraph.passes.numbers.kinds import Kinds, is_choice, kinds_everywhere, lowest_kind, numbers_given
from stillgraph.passes.numbers.number_errors import EXACT, MIXED
from stillgraph.passes.regions.regions import Branch, Loop, all_regions, call, controls, copied, outputs
from stillgraph.passes.regions.values import Fakes, kind_of, value_of
from stillgraph.program.operations import kind_code, require
from stillgraph.program.program import Program

_COMPARING = frozenset({operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge})


def check_mixed_numbers(program: Program) -> Program:
    """Require that floats which stand for whole numbers tell them from the next ones.

    ::

        k = if p: return n              k = if p: require(abs(n) < 2**53); return n
            else: return 0.5      →         else: return 0.5
        k * k                           require(kind_code(k * k) == 2 or abs(k * k) < 2**53)

    Raises:
        ExportError: a tensor is made of a number alone of which the type depends on the path.
    """
    if not any(_meets(control) for module in all_regions(program.graph) for control in controls(module)):
        return program
    fresh = copied(program)
    kinds = kinds_everywhere(fresh.graph)
    work = _Mixed(Fakes(fresh.graph), kinds)
    for module in list(all_regions(fresh.graph)):
        for node in list(module.graph.nodes):
            work.operation(node)
        for control in controls(module):
            work.handed_out(control)
    return fresh


def _pairs(control: Any) -> list[tuple[fx.Node, tuple[Any, ...], Any]]:
    """The places where a control brings numbers together: before which node, which numbers, and what they become."""
    made = control.node.meta["val"]
    if isinstance(control, Branch):
        return [(arm.graph.output_node(), tuple(outputs(arm)), made) for arm in control.arms]
    end = control.body.graph.output_node()
    return [(control.node, tuple(control.entries), made), (end, tuple(outputs(control.body)), made)]


def _meets(control: Any) -> bool:
    """Whether a branch or loop makes a float of a whole number."""
    if not isinstance(control, (Branch, Loop)):
        return False
    return any(_widens(value, to) for _, given, made in _pairs(control) for value, to in zip(given, made))


def _widens(value: Any, to: Any) -> bool:
    return kind_of(value_of(value)) is int and kind_of(to) is float


class _Mixed:
    """``kinds`` are those that each number may be of."""

    def __init__(self, fakes: Fakes, kinds: dict[fx.Node, Kinds]) -> None:
        self._fakes = fakes
        self._kinds = kinds

    def handed_out(self, control: Any) -> None:
        """Require that what becomes a float is exact."""
        for before, given, made in _pairs(control):
            for value, to in zip(given, made):
                if not _widens(value, to):
                    continue
                if isinstance(value, fx.Node):
                    self._require(value, before)
                elif abs(value) > EXACT:
                    with before.graph.inserting_before(before):
                        call(before, require, (False, MIXED), None)

    def operation(self, node: fx.Node) -> None:
        """Require it of what an operation takes and gives, where that may be an ``int`` and a float stands for it."""
        if node.op != "call_function":
            return
        given = [value for value in numbers_given(node) if isinstance(value, fx.Node)]
        if is_choice(node) and self._is_mixed(node):
            for value in given:
                if kind_of(value_of(value)) is int:
                    self._require(value, node.next, node)
            return
        mixed = next((value for value in given if self._is_mixed(value)), None)
        if mixed is None or not (lowest_kind(node) is int or node.target in _COMPARING):
            return
        for value in given:
            if kind_of(value_of(value)) is int:
                self._require(value, node, mixed)
        if self._is_mixed(node):
            self._require(node, node.next, node)

    def _is_mixed(self, node: fx.Node) -> bool:
        return kind_of(value_of(node)) is float and len(self._kinds.get(node, frozenset())) > 1

    def _require(self, number: fx.Node, before: fx.Node, unless: fx.Node | None = None) -> None:
        """Require that a number is exact, unless another is a ``float`` on the path taken."""
        with before.graph.inserting_before(before):
            size = call(number, abs, (number,), self._fakes.number(kind_of(value_of(number)) or float))
            beyond = operator.gt if kind_of(value_of(number)) is int else operator.ge  # a float may have been rounded
            wrong = call(number, beyond, (size, EXACT), self._fakes.number(bool))
            if unless is not None:
                code = call(number, kind_code, (unless,), self._fakes.number(int))
                whole = call(number, operator.lt, (code, 2), self._fakes.number(bool))
                wrong = call(number, operator.and_, (wrong, whole), self._fakes.number(bool))
            fine = call(number, operator.not_, (wrong,), self._fakes.number(bool))
            call(number, require, (fine, MIXED), None)
