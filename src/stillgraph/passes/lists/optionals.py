"""Places that may hold ``None`` or nothing: a value of the joined type, and a flag that says it is not there."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.own_errors import USED
from stillgraph.passes.exceptions.raising import SITES
from stillgraph.passes.regions.regions import (
    Branch,
    Loop,
    call,
    control_of,
    copied,
    outputs,
    placeholders,
    results,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes, is_optional, kind_of, value_of
from stillgraph.program.effects import Effect
from stillgraph.program.facts.info import info
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import as_tensor, assert_, bound, is_unbound, kind_code, unbound
from stillgraph.program.outputs import Container, Instance, OrNone, Template, outputs_of
from stillgraph.program.program import Program

_MISSING = "the result is None or unbound, which an artefact cannot return"
_GIVE_VALUE = "Give the variable a value before the branch or loop."


def split_optionals(program: Program) -> Program:
    """Replace every place that may be ``None`` or unbound by a value and a flag; what no path sets becomes zeros.

    ::

        y = if p: return x          y, y_missing = if p: return x, False
            else: return None   →                  else: return zeros, True
        y is None                   y_missing

    Where the program itself returns such a place the value is returned, and its presence asserted, unless the result
    says by an output when it is ``None`` (`outputs.OrNone`). It is asserted as well where an operation takes the value
    that would raise if it were given ``None``.
    """
    fresh = copied(program)
    work = _Optionals(Fakes(fresh.graph))
    work.region(fresh.graph)
    handed_out = may_be_missing(fresh.result) | {at for each in fresh.effects for at in may_be_missing(_value(each))}
    for index, value in enumerate(outputs(fresh.graph)):
        if index not in handed_out and isinstance(value, fx.Node) and work.flags.get(value, False) is not False:
            work.assert_present(fresh.graph.graph.output_node(), work.flags[value], _MISSING)
    return fresh


def may_be_missing(template: Template | None) -> set[int]:
    """The outputs that a result does not use where they are ``None``."""
    match template:
        case OrNone(child=child):
            return {output.index for output in outputs_of(child)}
        case Container(children=children):
            return set().union(*map(may_be_missing, children))
        case Instance(attributes=attributes):
            return set().union(*(may_be_missing(child) for _, child in attributes))
    return set()


def _value(effect: Effect) -> Template | None:
    return getattr(effect, "value", None)


@dataclass
class _Optionals:
    """``flags`` maps the node of a value to its flag: a node, or True where it is certainly missing."""

    fakes: Fakes
    flags: dict[fx.Node, Any] = field(default_factory=dict)

    def region(self, module: fx.GraphModule) -> None:
        asserted: set[Any] = set()
        for node in list(module.graph.nodes):
            control = control_of(module, node)
            if isinstance(control, Branch):
                self._branch(control)
            elif isinstance(control, Loop):
                self._loop(control)
            elif node.target is operator.is_ and arguments(node)[1] is None:
                self._is_none(node)
            elif node.target is is_unbound:
                self._is_unbound(node)
            elif node.target is as_tensor and arguments(node)[0] in self.flags:
                self.flags[node] = self.flags[arguments(node)[0]]
            elif node.target is unbound:
                self.flags[node] = True
            elif node.target is bound:
                node.replace_all_uses_with(node.all_input_nodes[0])
                module.graph.erase_node(node)
            elif node.op != "output" and node.target not in SITES and node.target is not kind_code:
                for flag in {self.flags.get(given, False) for given in node.all_input_nodes} - asserted - {False}:
                    self.assert_present(node, flag, USED)
                    asserted.add(flag)

    def _is_none(self, node: fx.Node) -> None:
        self._exchange(node, self.flags.get(arguments(node)[0], arguments(node)[0] is None))

    def _is_unbound(self, node: fx.Node) -> None:
        """The flag of a value: that says only whether it is missing, so it must not also be None on some path."""
        value = arguments(node)[0]
        if info(value_of(value)).may_be_none:
            message = "a variable is None on one path, and has no value on another"
            raise refuse("SG402", message, location=node.meta.get("location"), hint=_GIVE_VALUE)
        self._exchange(node, self.flags.get(value, False))

    def _exchange(self, node: fx.Node, flag: Any) -> None:
        for user in list(node.users):
            user.replace_input_with(node, flag) if isinstance(flag, fx.Node) else _replace(user, node, flag)
        node.graph.erase_node(node)

    def assert_present(self, before: fx.Node, flag: Any, message: str) -> None:
        """Let the program stop before a node, where what it takes is missing: an artefact has no ``None``."""
        with before.graph.inserting_before(before):
            there = call(before, operator.not_, (flag,), self.fakes.number(bool))
            call(before, assert_, (there, message, True), None)

    # ---- branches
    def _branch(self, branch: Branch) -> None:
        missing, present = self._decided(arguments(branch.node)[0])
        for operand in [o for o in branch.operands if o in self.flags]:
            flag = self.flags[operand]
            inner = self._pass_flag(branch, operand)
            if flag in (missing, present):
                self.flags.update(zip(inner, (flag is missing, flag is present)))
        for arm in branch.arms:
            self.region(arm)
        values = branch.node.meta["val"]
        known = results(branch.node)
        for index, value in enumerate(values):
            sides = [outputs(arm)[index] for arm in branch.arms]
            if is_optional(value):
                left, right = (self._flag(side) for side in sides)
                same = isinstance(left, bool) and left is right
                flag = left if same else branch.add_output(left, right, self.fakes.number(bool))
                if index in known:
                    self.flags[known[index]] = flag
        for arm in branch.arms:
            self._fill(arm, values, None)

    @staticmethod
    def _decided(predicate: Any) -> tuple[Any, Any]:
        """The flag that a predicate is, and the flag of which it is the opposite."""
        opposite = isinstance(predicate, fx.Node) and predicate.target is operator.not_
        return (None, arguments(predicate)[0]) if opposite else (predicate, None)

    def _pass_flag(self, control: Branch | Loop, operand: fx.Node) -> tuple[fx.Node, ...]:
        flag = self.flags[operand]
        inner = control.add_operand(operand)
        flags = control.add_operand(flag) if isinstance(flag, fx.Node) else (flag,) * len(inner)
        self.flags.update(zip(inner, flags))
        return inner

    def _flag(self, value: Any) -> Any:
        return True if value is None else self.flags.get(value, False) if isinstance(value, fx.Node) else False

    def _fill(self, module: fx.GraphModule, values: Any, otherwise: list[fx.Node] | None) -> None:
        """Give the outputs that a region leaves empty something of the right type."""
        filled = outputs(module)
        for index, (given, value) in enumerate(zip(filled, values)):
            if given is None or (isinstance(given, fx.Node) and given.target is unbound):
                with module.graph.inserting_before(module.graph.output_node()):
                    filled[index] = self._zero(module, value) if otherwise is None else otherwise[index]
        set_outputs(module, filled)

    def _zero(self, module: fx.GraphModule, value: Any) -> Any:
        kind = kind_of(value)
        if kind is not None:
            return kind(0)
        sizes = tuple(self._size(module, size) for size in value.shape)
        node = module.graph.call_function(torch.zeros, (sizes,), {"dtype": value.dtype, "device": value.device})
        shape = tuple(size.meta["val"] if isinstance(size, fx.Node) else size for size in sizes)
        node.meta.update(val=self.fakes.tensor(shape, value.dtype, value.device), location=None, context=None)
        return node

    def _size(self, module: fx.GraphModule, size: Any) -> Any:
        """A size as an argument: known, or read off a tensor that has it; 0 where nothing has it."""
        if isinstance(size, int):
            return size
        for node in placeholders(module):
            value = node.meta["val"]
            for dim, other in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(other, torch.SymInt) and other.node.expr == size.node.expr:
                    read = module.graph.call_method("size", (node, dim))
                    read.meta.update(val=other, location=None, context=None)
                    return read
        return 0

    # ---- loops
    def _loop(self, loop: Loop) -> None:
        node = loop.node
        for operand in [o for o in loop.operands if o in self.flags]:
            self._pass_flag(loop, operand)
        values = node.meta["val"]
        optional = [index for index, value in enumerate(values) if is_optional(value)]
        flag_at: dict[int, int] = {}
        known = results(node)
        for index in optional:
            flag_at[index] = len(loop.entries)
            flag = self._flag(loop.entries[index])
            inner = [placeholders(region)[index] for region in loop.regions]
            *flags, result = loop.carry(flag, "missing", self.fakes.number(bool))
            self.flags.update(zip(inner, flags))
            if index in known:
                self.flags[known[index]] = result
        for region in loop.regions:
            self.region(region)
        for index, place in flag_at.items():
            loop.set_output(place, self._flag(outputs(loop.body)[index]))
        self._fill(loop.body, values, placeholders(loop.body))
        self._fill_entries(loop, values)

    def _fill_entries(self, loop: Loop, values: Any) -> None:
        entries = list(loop.entries)
        for index, (entry, value) in enumerate(zip(entries, values)):
            if entry is None or (isinstance(entry, fx.Node) and entry.target is unbound):
                with loop.module.graph.inserting_before(loop.node):
                    entries[index] = self._zero(loop.module, value)
        loop.node.args = (*loop.node.args[:2], tuple(entries), loop.node.args[3])


def _replace(user: fx.Node, node: fx.Node, value: Any) -> None:
    user.args = fx.map_arg(user.args, lambda n: value if n is node else n)
    user.kwargs = fx.map_arg(user.kwargs, lambda n: value if n is node else n)
