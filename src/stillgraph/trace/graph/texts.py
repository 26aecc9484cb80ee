"""Texts of the run that are made of known ones, where a place or a list has both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stillgraph.program.constants import Known
from stillgraph.program.operations import chosen_each, unbound
from stillgraph.program.types import TEXT, ListType
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.list_columns import Entries
from stillgraph.trace.values.several import Several, known_in
from stillgraph.trace.values.text import StagedText

if TYPE_CHECKING:
    from torch import fx

    from stillgraph.trace.graph.recorder import Recorder


def text_of(recorder: Recorder, value: Any, name: str) -> Any:
    """A text as a value of the open region, where it may be one of some known ones; anything else as it is."""
    entries = known_in(value) if issubclass(type(value), Several) else None
    if entries is None:
        return value
    missing = [recorder.emit("call_function", unbound, (name,), {}) for each in entries if each.value is MISSING]
    texts = {recorder.entry_number(each): each.value for each in entries if each.value is not MISSING}
    texts |= {recorder.entry_number(Known(MISSING)): node for node in missing}
    return StagedText.of_table(recorder, texts, recorder.entry_of(value))


def texts_of(recorder: Recorder, column: Entries) -> fx.Node:
    """A column of texts, of the numbers of their entries."""
    texts = {recorder.entry_number(each): each.value for each in column.entries}
    table = tuple(texts.get(at, "") for at in range(max(texts) + 1))
    node = recorder.emit("call_function", chosen_each, (column.numbers, table), {})
    node.meta["val"] = ListType(TEXT)
    return node
