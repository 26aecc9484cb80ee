"""The interface of a region: its outputs, converted to joined types, and its placeholders for what it closes over."""

from __future__ import annotations

from typing import Any

from torch import fx

from stillgraph.program.operations import as_tensor, repeated, unbound
from stillgraph.program.types import ListType, NumberType, ObjectType, TableType, TensorType, Type
from stillgraph.trace.control_flow.joined.leaves import DEAD
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.graph.texts import text_of, texts_of
from stillgraph.trace.heap.places import MISSING, variable_of
from stillgraph.trace.values.list_columns import Alike, Entries, Items
from stillgraph.trace.values.numbers import is_number


def leaf_node(recorder: Recorder, value: Any, type_: Type, name: str) -> Any:
    """A leaf as an output of the open region, converted to the joined type."""
    if value is DEAD:
        return None
    if isinstance(type_, TableType):
        return as_argument(recorder, recorder.entry_of(value))
    if isinstance(type_, ObjectType):
        value = text_of(recorder, value, name)
    if value is None:
        return None
    if value is MISSING:
        return recorder.emit("call_function", unbound, (variable_of(name),), {})
    if isinstance(type_, ListType) and isinstance(value, Items):
        cells = (
            leaf_node(recorder, item, type_ if index in value.spread else type_.element, name)
            for index, item in enumerate(value.items)
        )
        node = as_argument(recorder, Items(tuple(cells), value.spread))
        node.meta.setdefault("val", type_)
        return node
    if isinstance(value, Entries):
        return texts_of(recorder, value)
    if isinstance(type_, ListType) and isinstance(value, Alike):
        count = recorder.fresh_result(int, recorder.emit("call_function", len, (value.column,), {}))
        one = leaf_node(recorder, value.value, type_.element, name)
        single = as_argument(recorder, Items((one,), ()))
        node = recorder.emit("call_function", repeated, (single, count), {})
        single.meta["val"] = node.meta["val"] = type_
        return node
    if isinstance(type_, TensorType) and is_number(value):
        node = recorder.emit("call_function", as_tensor, (value, type_.dtype, type_.device), {})
        node.meta["val"] = recorder.symbolic.empty((), type_.dtype, type_.device, False)
        return node
    if isinstance(type_, NumberType) and type_.kind is float and isinstance(value, bool):
        return value
    return as_argument(recorder, value)


def unify_captures(recorder: Recorder, regions: list[Region]) -> list[fx.Node]:
    """Give all regions the same closed-over placeholders in the same order; return the outer nodes for them."""
    values: dict[int, Any] = {}
    for region in regions:
        for value, _ in region.captures:
            values.setdefault(id(value), value)
    for region in regions:
        mine = {id(value): node for value, node in region.captures}
        ordered = []
        for key, value in values.items():
            node = mine.get(key)
            if node is None:
                outer = recorder.region.node_of(value)
                node = region.placeholder(outer.name, outer.meta["val"])
            ordered.append((value, node))
        region.captures = ordered
        reorder(region, [node for _, node in ordered])
    return [recorder.region.node_of(value) for value in values.values()]


def reorder(region: Region, nodes: list[fx.Node]) -> None:
    """Put these placeholders behind the others, in this order."""
    others = [n for n in region.graph.nodes if n.op == "placeholder" and n not in set(nodes)]
    last = others[-1] if others else None
    for node in nodes:
        if last is None:
            first = next(iter(region.graph.nodes))
            if first is not node:
                first.prepend(node)
        else:
            last.append(node)
        last = node
