"""Lists of which only the run knows the length, as tensors: the one place where it is said how.

A list of tensors of one shape is one tensor with a further dimension in front, its *rows*; a list of numbers is a
tensor of one dimension. No list is changed in place in a program (see `program.operations`), so each operation on one
makes new rows. What Python would raise is required (`operations.require`); the rows computed there mean nothing, but
computing them does not fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.passes.lists.list_lowering import Lowering, Rows, refused
from stillgraph.passes.lists.list_operations import HANDLERS
from stillgraph.passes.regions.regions import control_of, copied, is_result
from stillgraph.passes.regions.values import dtype_of, value_of
from stillgraph.passes.state.memory import refuse_written_elements
from stillgraph.program.facts.info import mark
from stillgraph.program.graphs import regions
from stillgraph.program.operations import is_unbound
from stillgraph.program.program import Program
from stillgraph.program.types import ListType, NumberType, ObjectType, TensorType, Type


def lists_to_tensors(program: Program) -> Program:
    """Let a tensor stand for every list of which only the run knows the length.

    ::

        a = []                                a = torch.zeros((0, 3))
        while …: a = [*a, y]           →      while …: a = torch.cat([a, y.unsqueeze(0)])
        z = a[-1]                             z = a[a.size(0) - 1]

    Raises:
        ExportError: the elements are lists, or may be ``None``; one of them is written in place; or an operation has
            no form.
    """
    if not keeps_lists(program):
        return program
    refuse_written_elements(program.graph)
    fresh = copied(program)
    _Lists(Rows(fresh.graph)).region(fresh.graph)
    return fresh


def keeps_lists(program: Program) -> bool:
    """Whether a program keeps a list of which only the run knows the length."""
    return any(_list_type(value_of(node)) for module in regions(program.graph) for node in module.graph.nodes)


def _list_type(value: Any) -> bool:
    return isinstance(value, ListType) or (isinstance(value, tuple) and any(isinstance(v, ListType) for v in value))


# ---- the same for values: what an artefact gives, and what it is compared with
def rows_of(items: Sequence[Any], type_: ListType) -> torch.Tensor:
    """A list as the tensor that stands for it."""
    element = type_.element
    if isinstance(element, NumberType):
        return torch.tensor([element.kind(item) for item in items], dtype=dtype_of(element.kind))
    assert isinstance(element, TensorType)
    if not items:
        shape = [size if isinstance(size, int) else 0 for size in element.shape]
        return torch.zeros((0, *shape), dtype=element.dtype, device=element.device)
    return torch.stack([torch.as_tensor(item, dtype=element.dtype, device=element.device) for item in items])


def items_of(rows: torch.Tensor, kind: type | None = None) -> list[Any]:
    """The list for which a tensor stands; ``kind`` is that of its elements where they are numbers."""
    return list(rows.unbind(0)) if kind is None else [kind(item) for item in rows.tolist()]


def kind_in(value: Any) -> type | None:
    """The kind of the numbers in a list, given what stands for the list; None for tensors, and for what is no list."""
    return value.element.kind if isinstance(value, ListType) and isinstance(value.element, NumberType) else None


# ---- the pass
@dataclass
class _Lists:
    """``types`` has the nodes that are rows by now."""

    fakes: Rows
    types: dict[fx.Node, ListType] = field(default_factory=dict)

    def region(self, module: fx.GraphModule) -> None:
        for node in list(module.graph.nodes):
            value = node.meta.get("val")
            control = control_of(module, node)
            if control is not None:
                node.meta["val"] = tuple(self._stand_in(v, node) if isinstance(v, ListType) else v for v in value)
                for region in control.regions:
                    self.region(region)
            elif isinstance(value, ListType) and (node.op == "placeholder" or is_result(node)):
                node.meta["val"] = self._stand_in(value, node)
                self.types[node] = value
            elif node.target is is_unbound:
                continue  # as of any tensor, which the rows are by then
            elif node.op != "output" and (isinstance(value, ListType) or self._takes_list(node)):
                self._lower(module, node)

    def _takes_list(self, node: fx.Node) -> bool:
        return any(given in self.types for given in node.all_input_nodes)

    def _stand_in(self, type_: ListType, node: fx.Node) -> torch.Tensor:
        """What stands for rows of which nobody knows how many there are."""
        element = _row_type(type_, node)
        rows = self.fakes.rows((self.fakes.count(), *element.shape), element)
        mark(rows, may_be_unbound=type_.may_be_unbound)
        return rows

    def _lower(self, module: fx.GraphModule, node: fx.Node) -> None:
        handler = HANDLERS.get(node.target)
        of_list = next((self.types[given] for given in node.all_input_nodes if given in self.types), None)
        type_ = of_list or node.meta.get("val")
        if handler is None or not isinstance(type_, ListType):
            name = getattr(node.target, "__name__", str(node.target))
            raise refused(f"{name} of a list of which only the run knows the length", node)
        with module.graph.inserting_before(node):
            made = handler(Lowering(self.fakes, module, node, type_, _row_type(type_, node)))
        if made is not node:
            if isinstance(node.meta.get("val"), ListType):
                self.types[made] = node.meta["val"]
            node.replace_all_uses_with(made)
            module.graph.erase_node(node)


def _row_type(type_: ListType, node: fx.Node) -> TensorType:
    """The type of one row.

    Raises:
        ExportError: the elements have no one shape.
    """
    element: Type = type_.element
    if isinstance(element, ListType):
        raise refused("the program keeps a list of lists of which only the run knows the lengths", node)
    if isinstance(element, ObjectType):
        raise refused("the program keeps a list of texts that only the run knows", node)
    if element.may_be_none or element.may_be_unbound:
        raise refused("the program keeps a list in which an element may be None", node)
    if isinstance(element, NumberType):
        if element.mixed:
            raise refused("the program keeps a list of numbers of more than one type", node)
        return TensorType(dtype_of(element.kind), torch.device("cpu"), ())
    assert None not in element.shape, "two tensors stand for lists of tensors whose sizes differ"
    return element
