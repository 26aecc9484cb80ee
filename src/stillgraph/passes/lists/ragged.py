"""Lists of tensors whose sizes differ, as two tensors: the one place where it is said how.

Such a list is its *values*, all elements one behind another, and its *sizes*, a row for each element. Of an element the
leading dimensions, down to the last that differs, are one dimension of the values; the others stay. Where only the
first differs (``boxes[mask]``), the values are what ``torch.cat`` gives, and the sizes are one column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.passes.lists.list_lowering import Lowering, Rows, refused
from stillgraph.passes.lists.list_operations import found_size
from stillgraph.passes.lists.ragged_operations import HANDLERS, Flat, Layout, Step, layout_of, widened
from stillgraph.passes.regions.regions import (
    Branch,
    Control,
    Loop,
    all_nodes,
    control_of,
    copied,
    outputs,
    placeholders,
    results,
    set_outputs,
)
from stillgraph.passes.regions.values import value_of
from stillgraph.passes.state.memory import refuse_written_elements
from stillgraph.program.flattening import sizes_of, values_of
from stillgraph.program.program import Program
from stillgraph.program.types import ListType


def flatten_ragged_lists(program: Program) -> Program:
    """Let two tensors stand for every list of tensors whose sizes differ.

    ::

        a = []                             a, sizes = torch.zeros((0,)), torch.zeros((0, 1))
        while …: a = [*a, y]        →      while …: a, sizes = torch.cat([a, y]), torch.cat([sizes, [[len(y)]]])
        n = len(a)                         n = sizes.size(0)

    Raises:
        ExportError: an element is written in place, or an operation has no form.
    """
    if not any(_holds_ragged(value_of(node)) for node in all_nodes(program.graph)):
        return program
    refuse_written_elements(program.graph)
    fresh = copied(program)
    _Lists(Rows(fresh.graph)).program(fresh.graph)
    return fresh


def _holds_ragged(value: Any) -> bool:
    return any(layout_of(each) is not None for each in (value if isinstance(value, tuple) else (value,)))


# ---- the same for values
def elements_of(values: torch.Tensor, sizes: torch.Tensor) -> list[torch.Tensor]:
    """The list for which two tensors stand."""
    counts = sizes.prod(1).tolist()
    return [part.unflatten(0, size) for part, size in zip(values.split(counts), sizes.tolist(), strict=True)]


def hand_out(module: fx.GraphModule, node: fx.Node) -> tuple[fx.Node, fx.Node]:
    """Two nodes at the end of a program for one of its lists: its values and its sizes."""
    layout = layout_of(node.meta["val"])
    assert layout is not None, "the sizes of its elements differ"
    last = module.graph.output_node()
    with module.graph.inserting_before(last):
        flat = _as_two(Lowering(Rows(module), module, last, node.meta["val"], layout.row), node, layout)
    return flat.values, flat.sizes


def _as_two(it: Lowering, node: fx.Node, layout: Layout) -> Flat:
    """The two tensors of a list that is still one in the program."""
    row = layout.row
    tail = tuple(found_size(it, size) for size in row.shape)
    values = it.rows(values_of, node, layout.lead, tail, dtype=row.dtype, device=row.device)
    sizes = it.fakes.tensor((it.fakes.count(), layout.lead), torch.int64)
    return Flat(values, it.emit(sizes_of, node, layout.lead, value=sizes), layout)


# ---- the pass
@dataclass
class _Lists:
    """``flats`` has the two tensors of each list; ``gone`` are the nodes of lists, which nothing uses in the end."""

    fakes: Rows
    flats: dict[fx.Node, Flat] = field(default_factory=dict)
    gone: list[fx.Node] = field(default_factory=list)

    def program(self, module: fx.GraphModule) -> None:
        self._region(module)
        set_outputs(module, [self.flats[v].values if self._is_flat(v) else v for v in outputs(module)])
        for node in reversed(self.gone):
            node.graph.erase_node(node)

    def _is_flat(self, value: Any) -> bool:
        return isinstance(value, fx.Node) and value in self.flats

    def _region(self, module: fx.GraphModule) -> None:
        for node in list(module.graph.nodes):
            control = control_of(module, node)
            if isinstance(control, Loop):
                self._loop(control)
            elif isinstance(control, Branch):
                self._branch(control)
            elif node.op == "placeholder" and layout_of(node.meta.get("val")) is not None:
                raise refused("the program is given a list of tensors whose sizes differ", node)
            elif node.op not in ("output", "placeholder") and node not in self.flats and self._concerns(node):
                self._lower(module, node)

    def _concerns(self, node: fx.Node) -> bool:
        return layout_of(node.meta.get("val")) is not None or any(map(self._is_flat, node.all_input_nodes))

    def _lower(self, module: fx.GraphModule, node: fx.Node) -> None:
        known = [self.flats[given].layout for given in node.all_input_nodes if given in self.flats]
        made = value_of(node)
        if isinstance(made, ListType) and isinstance(made.element, ListType):
            raise refused("the program keeps a list of lists of tensors whose sizes differ", node)
        layout = layout_of(node.meta.get("val")) or known[0]
        handler = HANDLERS.get(node.target)
        if handler is None:
            name = getattr(node.target, "__name__", str(node.target))
            raise refused(f"{name} of a list of tensors whose sizes differ", node)
        with module.graph.inserting_before(node):
            given = handler(self._step(module, node, layout))
        if isinstance(given, Flat):
            self.flats[node] = given
            self.gone.append(node)
        else:
            node.replace_all_uses_with(given)
            module.graph.erase_node(node)

    def _step(self, module: fx.GraphModule, before: fx.Node, layout: Layout) -> Step:
        it = Lowering(self.fakes, module, before, ListType(layout.element), layout.row)
        return Step(it, layout, lambda given: self._flat(it, given, layout))

    def _flat(self, it: Lowering, given: Any, layout: Layout) -> Flat:
        """The two tensors of a list, in a layout."""
        if not self._is_flat(given) and not isinstance(value_of(given), ListType):
            raise it.refuse("a list of tensors whose sizes differ is there on some paths only")
        return widened(it, self.flats.get(given) or _as_two(it, given, layout), layout)

    # ---- regions
    def _handed(self, module: fx.GraphModule, before: fx.Node, given: Any, layout: Layout) -> Flat:
        with module.graph.inserting_before(before):
            return self._step(module, before, layout).flat(given)

    def _stand_ins(self, layout: Layout) -> tuple[torch.Tensor, torch.Tensor]:
        values = self.fakes.rows((self.fakes.count(), *layout.row.shape), layout.row)
        return values, self.fakes.tensor((self.fakes.count(), layout.lead), torch.int64)

    def _know(self, values: fx.Node, sizes: fx.Node, layout: Layout) -> None:
        values.meta["val"] = self._stand_ins(layout)[0]
        self.flats[values] = Flat(values, sizes, layout)

    def _operands(self, control: Control, first: int) -> None:
        """Hand the two tensors of each list to regions whose placeholders for operands begin at ``first``."""
        for index, operand in enumerate(control.operands):
            if self._is_flat(operand):
                flat = self.flats[operand]
                inner = [placeholders(region)[first + index] for region in control.regions]
                for values, sizes in zip(inner, control.add_operand(flat.sizes), strict=True):
                    self._know(values, sizes, flat.layout)
                control.node.replace_input_with(operand, flat.values)

    def _branch(self, branch: Branch) -> None:
        self._operands(branch, 0)
        for arm in branch.arms:
            self._region(arm)
        for index, value in enumerate(branch.node.meta["val"]):
            layout = layout_of(value)
            if layout is None:
                continue
            sides = [self._handed(a, a.graph.output_node(), outputs(a)[index], layout) for a in branch.arms]
            for arm, side in zip(branch.arms, sides):
                set_outputs(arm, [side.values if i == index else given for i, given in enumerate(outputs(arm))])
            sizes = branch.add_output(sides[0].sizes, sides[1].sizes, self._stand_ins(layout)[1])
            self._result(branch, index, sizes, layout)

    def _loop(self, loop: Loop) -> None:
        carried: dict[int, tuple[int, Layout]] = {}
        for index, value in enumerate(loop.node.meta["val"]):
            layout = layout_of(value)
            if layout is None:
                continue
            flat = self._handed(loop.module, loop.node, loop.entries[index], layout)
            entries = [flat.values if i == index else entry for i, entry in enumerate(loop.entries)]
            loop.node.args = (*loop.node.args[:2], tuple(entries), loop.node.args[3])
            carried[index] = len(entries), layout
            *inner, sizes = loop.carry(flat.sizes, "sizes", self._stand_ins(layout)[1])
            for region, place in zip(loop.regions, inner, strict=True):
                self._know(placeholders(region)[index], place, layout)
            self._result(loop, index, sizes, layout)
        self._operands(loop, len(loop.entries))
        for region in loop.regions:
            self._region(region)
        last = loop.body.graph.output_node()
        for index, (behind, layout) in carried.items():
            flat = self._handed(loop.body, last, outputs(loop.body)[index], layout)
            loop.set_output(index, flat.values)
            loop.set_output(behind, flat.sizes)

    def _result(self, control: Control, index: int, sizes: fx.Node, layout: Layout) -> None:
        values = list(control.node.meta["val"])
        values[index] = self._stand_ins(layout)[0]
        control.node.meta["val"] = tuple(values)
        if index in results(control.node):
            self._know(results(control.node)[index], sizes, layout)
