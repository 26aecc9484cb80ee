"""Values as arguments of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.operations import build_list, to_numpy
from stillgraph.program.types import ListType
from stillgraph.trace.code.frames import here
from stillgraph.trace.graph.texts import text_of, texts_of
from stillgraph.trace.torch_rules import special
from stillgraph.trace.torch_rules.hooks import Handle
from stillgraph.trace.values import complexes
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.caught import Caught, CaughtPart
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.entries import maybe_keys
from stillgraph.trace.values.list_columns import Entries, Items, columns
from stillgraph.trace.values.list_contents import is_plain
from stillgraph.trace.values.lists import Leaf, StagedList, has_spread, is_text, refuse_outdated, structure, types
from stillgraph.trace.values.made_in_run import MADE
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.several import Several, in_graph
from stillgraph.trace.values.text import StagedText
from stillgraph.trace.values.texts_of_paths import beside_text

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


def as_argument(recorder: Recorder, value: Any) -> Any:
    """``value`` as an argument of a node: staged values become nodes, odd objects attributes of the region."""
    value = in_graph(value)
    if issubclass(type(value), Several):
        value.stillgraph_refuse()
    if isinstance(value, StagedText) and not recorder.region.holds(value):
        raise refuse("SG302", "a text that is made on one path is used behind it", location=here())
    if isinstance(value, StagedList) and recorder.region.is_outdated(value):
        refuse_outdated()
    if isinstance(value, (torch.Tensor, StagedNumber, StagedList, StagedText, Caught, Handle)):
        return recorder.region.node_of(value)
    if isinstance(value, CaughtPart):
        return _part_of_caught(recorder, value)
    if isinstance(value, Items):
        return _build_list(recorder, value)
    if isinstance(value, StagedComplex):
        return complexes.node_of(recorder, value)
    if isinstance(value, StagedArray):
        is_array = value.tensor.dim() == 0 and not value.scalar  # one without dimensions
        node = recorder.emit("call_function", to_numpy, (value.tensor, False) if is_array else (value.tensor,), {})
        node.meta["val"] = value.tensor
        return node
    if isinstance(value, (tuple, list)) and has_spread(value):
        return _list_node(recorder, value)
    if isinstance(value, torch.Size) and all(type(d) is int for d in value):
        return recorder.region.attribute("size", value)  # fx would make a plain tuple of it
    if isinstance(value, (tuple, list)):
        return (
            type(value)(as_argument(recorder, v) for v in value)
            if is_exactly(value, (tuple, list))
            else tuple(as_argument(recorder, v) for v in value)
        )
    if isinstance(value, (dict, set)):
        for key in maybe_keys(value):
            key._refuse()
    if isinstance(value, dict):
        return {k: as_argument(recorder, v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(as_argument(recorder, each) for each in (value.start, value.stop, value.step)))
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return recorder.region.node_of(special.number_of_symbol(recorder, value))
    if isinstance(value, MADE) and recorder.region.holds(value):
        return recorder.region.node_of(value)
    if isinstance(value, (fx.Node, *fx.node.base_types)) or value is None or value is ...:
        return value
    return recorder.region.attribute("constant", value)


def _part_of_caught(recorder: Recorder, part: CaughtPart) -> fx.Node:
    """The class of an exception, which the program asks for.

    Raises:
        CaptureError: it is not the class.
    """
    if part.what != "type":
        part._refuse()
    return recorder.emit("call_function", type, (part.error,), {})


def _build_list(recorder: Recorder, column: Items) -> fx.Node:
    if len(column.items) == 1 and column.spread == (0,):
        return as_argument(recorder, column.items[0])  # type: ignore[no-any-return]  # of Any
    return recorder.emit("call_function", build_list, (list(column.items), column.spread), {})


def _text_cell(recorder: Recorder, cell: Any) -> Any:
    return texts_of(recorder, cell) if isinstance(cell, Entries) else text_of(recorder, cell, "an element")


def _list_node(recorder: Recorder, value: Any) -> fx.Node:
    """The node of a list of unknown length, whose elements are tensors or numbers."""
    element = structure(value, recorder.type_of)
    element = Leaf(beside_text(element.type)) if isinstance(element, Leaf) else element
    parts = columns(element, value)
    if is_text(element):
        parts = [Items(tuple(_text_cell(recorder, each) for each in parts[0].items), parts[0].spread)]
    if not is_plain(element) or type(value) is not list:
        message = "a list of unknown length whose elements are no tensors, numbers or lists of them is used whole"
        raise refuse("SG210", message, location=here())
    node = _build_list(recorder, parts[0])
    node.meta.setdefault("val", ListType(types(element)[0]))
    return node
