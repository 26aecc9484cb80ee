"""Numbers that are of one kind on one path and of another on another: a number beside them tells which."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.numbers.kinds import FIXED, HINT, is_choice, lowest_kind, numbers_given
from stillgraph.passes.regions.regions import (
    Branch,
    Control,
    Loop,
    all_nodes,
    all_regions,
    call,
    control_of,
    controls,
    copied,
    is_result,
    outputs,
    placeholders,
)
from stillgraph.passes.regions.values import Fakes, kind_of, value_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import kind_code
from stillgraph.program.program import Program

_ORDER = (bool, int, float)

Code = fx.Node | int
"""The kind of a number as `operations.kind_code` gives it, or what computes it."""


def tell_kinds(program: Program) -> Program:
    """Replace what asks for the kind of a number by what is computed of the paths that give it.

    ::

        n = if p: return 1         n, code = if p: return 1, 1
            else: return 2.5   →             else: return 2.5, 2
        kind_code(n)               code

    Raises:
        ExportError: an operation gives a number of a kind that does not follow from those of its operands.
    """
    if not any(node.target is kind_code for node in all_nodes(program.graph)):
        return program
    fresh = copied(program)
    inner = [control for each in all_regions(fresh.graph) for control in controls(each)]
    around = {region: control for control in inner for region in control.regions}
    work = _Codes(Fakes(fresh.graph), around)
    for module in list(all_regions(fresh.graph)):
        for node in list(module.graph.find_nodes(op="call_function", target=kind_code)):
            _replace(node, work.code(module, arguments(node)[0]))
    return fresh


def _replace(node: fx.Node, by: Code) -> None:
    """Put a code in the place of what asks for it."""
    for user in list(node.users):
        user.args = fx.map_arg(user.args, lambda each: by if each is node else each)
    node.graph.erase_node(node)


@dataclass
class _Codes:
    """``around`` has the branch or loop that each region belongs to, ``known`` the codes so far."""

    fakes: Fakes
    around: dict[fx.GraphModule, Control]
    known: dict[fx.Node, Code] = field(default_factory=dict)
    behind: dict[fx.Node, Code] = field(default_factory=dict)  # by what a loop's body is given: the code behind it

    def code(self, module: fx.GraphModule, value: Any) -> Code:
        """The code of a value in a region."""
        kind = kind_of(value_of(value))
        own = 0 if kind is None else _ORDER.index(kind)
        if not isinstance(value, fx.Node) or own == 0:
            return own  # a bool is the narrowest: it is one on every path
        if value not in self.known:
            self.known[value] = self._made(module, value, own)
        return self.known[value]

    def _made(self, module: fx.GraphModule, node: fx.Node, own: int) -> Code:
        if is_result(node):
            source, index = arguments(node)
            control = control_of(module, source)
            assert control is not None, "results are those of branches and loops"
            return self._joined(control, index) if isinstance(control, Branch) else self._carried(control, index)[-1]
        if node.op == "placeholder":
            return self._handed_in(module, node, own)
        given = [self.code(module, value) for value in numbers_given(node)]
        if all(isinstance(code, int) for code in given) and not (is_choice(node) and len({*given}) > 1):
            return own
        return self._of_operation(node, given, own)

    def _of_operation(self, node: fx.Node, given: list[Code], own: int) -> Code:
        lowest = lowest_kind(node)
        if lowest is FIXED:
            return own
        with node.graph.inserting_before(max([node, *(c for c in given if isinstance(c, fx.Node))]).next):
            if is_choice(node):
                return call(node, node.target, (given, arguments(node)[1]), self.fakes.number(int))
            if lowest is None:
                name = getattr(node.target, "__name__", str(node.target))
                message = f"{name} on a number that is of another type on another path"
                raise refuse("SG402", message, location=node.meta.get("location"), hint=HINT)
            widest: Code = _ORDER.index(lowest)
            for code in given:
                known = isinstance(widest, int) and isinstance(code, int)
                widest = max(widest, code) if known else call(node, max, (widest, code), self.fakes.number(int))
        return widest

    def _handed_in(self, module: fx.GraphModule, node: fx.Node, own: int) -> Code:
        """The code of an operand, or of what a loop carries, inside."""
        control = self.around.get(module)
        if control is None:
            return own  # an argument of the call
        index, operands = placeholders(module).index(node), control.operands
        if isinstance(control, Loop):
            if index < len(control.entries):
                return self._carried(control, index)[control.regions.index(module)]
            index -= len(control.entries)
        operand = operands[index]
        code = self.code(control.module, operand)
        return control.add_operand(code)[control.regions.index(module)] if isinstance(code, fx.Node) else code

    def _joined(self, branch: Branch, index: int) -> Code:
        left, right = (self.code(arm, outputs(arm)[index]) for arm in branch.arms)
        if isinstance(left, int) and left == right:
            return left
        result = branch.add_output(left, right, self.fakes.number(int))
        branch.node.append(result)  # before all that uses the others
        return result

    def _carried(self, loop: Loop, index: int) -> tuple[Code, ...]:
        """The codes of a carried place: in the test, in the body, and behind the loop."""
        inside = [placeholders(region)[index] for region in loop.regions]
        if inside[1] in self.known:
            return *(self.known[each] for each in inside), self.behind[inside[1]]
        entry = self.code(loop.module, loop.entries[index])
        place = len(loop.entries)
        *within, result = loop.carry(entry, "kind", self.fakes.number(int))
        loop.node.append(result)
        self.known.update(zip(inside, within))
        self.behind[inside[1]] = result
        loop.set_output(place, self.code(loop.body, outputs(loop.body)[index]))
        return *within, result
