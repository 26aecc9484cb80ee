"""Effects on Python objects, as the statements of the function that finishes a call (`runtime/native/results.py`)."""
from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from stillgraph.core.contents import replace_deque, replace_dict, replace_set
from stillgraph.program.effects import (
    Advance,
    DeleteAttribute,
    Effect,
    ExtendContents,
    SetAttribute,
    SetCell,
    SetContents,
    SetGlobal,
    SetItem,
    SetPersistence,
    SetSlot,
)
from stillgraph.program.facts.module_tables import is_behind_descriptor, past_class, put_in_table, set_persistence
from stillgraph.program.outputs import ABSENT, Template, may_be_absent
from stillgraph.program.sources import Cell, Source
from stillgraph.program.upcoming import advance
from stillgraph.runtime.native.function_writer import FunctionWriter, is_name


def write_effect(effect: Effect, writer: FunctionWriter, value_of: Callable[[Template], str]) -> str:
    """The statement that carries out one effect.

    Reading the target and building the value are written to ``writer`` at once, the statement itself is returned: every
    source is read as the call found it, before the first effect changes anything.

    Args:
        effect: what to do.
        writer: the function being written.
        value_of: gives the expression of a template.
    """
    match effect:
        case SetAttribute(target=target, name=name, value=value, past=past):
            owner, new = writer.read(target), value_of(value)
            if may_be_absent(value):
                put = set_past_class if past else setattr
                return f"{writer.constant(set_or_delete)}({owner}, {name!r}, {new}, {writer.constant(put)})"
            if past:
                return f"{writer.constant(set_past_class)}({owner}, {name!r}, {new})"
            return f"{owner}.{name} = {new}" if is_name(name) else f"setattr({owner}, {name!r}, {new})"
        case SetSlot(target=target, table=table, name=name, value=value):
            owner, new = writer.read(target), value_of(value)
            if may_be_absent(value):
                put = functools.partial(put_past_class, table)
                return f"{writer.constant(set_or_delete)}({owner}, {name!r}, {new}, {writer.constant(put)})"
            return f"{writer.constant(put_in_table)}({owner}, {table!r}, {name!r}, {new})"
        case SetPersistence(target=target, name=name, value=value):
            owner, new = writer.read(target), value_of(value)
            return f"{writer.constant(set_persistence)}({owner}, {name!r}, {new})"
        case DeleteAttribute(target=target, name=name, past=past):
            return f"{writer.constant(delete_past_class if past else delete)}({writer.read(target)}, {name!r})"
        case SetContents(target=target, value=value):
            return f"{writer.constant(replace_contents)}({writer.read(target)}, {value_of(value)})"
        case ExtendContents(target=target, value=value):
            return f"{writer.read(target)}.extend({value_of(value)})"
        case SetItem(target=target, key=key, value=value):
            return f"{writer.read(target)}[{writer.literal(key)}] = {value_of(value)}"
        case SetCell(target=target, value=value):
            return f"{_cell(target, writer)}.cell_contents = {value_of(value)}"
        case SetGlobal(module=module, name=name, value=value):
            return f"modules[{module!r}].__dict__[{name!r}] = {value_of(value)}"
        case Advance(target=target, value=value):
            return f"{writer.constant(advance)}({writer.read(target)}, {value_of(value)})"


def _cell(target: Source, writer: FunctionWriter) -> str:
    # A `Cell` source means the contents; here it is the cell that is wanted. Any other source leads to a cell.
    return writer.constant(target.cell) if isinstance(target, Cell) else writer.read(target)


def set_past_class(target: Any, name: str, value: Any) -> None:
    """Set an attribute as torch or Python does, whatever the class's own ``__setattr__`` would do."""
    past_class(target, "__setattr__")(target, name, value)


def put_past_class(table: str, target: Any, name: str, value: Any) -> None:
    """As `put_in_table`."""
    put_in_table(target, table, name, value)


def set_or_delete(target: Any, name: str, value: Any, put: Callable[[Any, str, Any], None]) -> None:
    """Let an object have an attribute by ``put``, or not have it: what its class does at that, the capture has done."""
    if value is ABSENT:
        delete_past_class(target, name)
    else:
        put(target, name, value)


def delete(target: Any, name: str) -> None:
    """Delete an attribute that may be there: what the call itself made and deleted need not be when it begins."""
    with contextlib.suppress(AttributeError):
        delattr(target, name)


def delete_past_class(target: Any, name: str) -> None:
    """As `delete`, whatever the class's own ``__delattr__`` or a descriptor of it would do."""
    if is_behind_descriptor(target, name):
        target.__dict__.pop(name, None)
        return
    with contextlib.suppress(AttributeError):
        past_class(target, "__delattr__")(target, name)


def replace_contents(target: Any, value: Any) -> None:
    """Make a container hold exactly what another holds, in place.

    A subclass's own methods are passed by: they ran during capture, and what they wrote is recorded as well.

    Args:
        target: a list, dict, set, deque (or an instance of a subclass), or anything that takes ``target[:] = value``.
        value: the new contents, in a container of the same kind.
    """
    if isinstance(target, list):
        list.__setitem__(target, slice(None), value)
    elif isinstance(target, dict):
        replace_dict(OrderedDict if isinstance(target, OrderedDict) else dict, target, value)
    elif isinstance(target, set):
        replace_set(set, target, value)
    elif isinstance(target, deque):
        replace_deque(deque, target, value)
    else:
        target[:] = value
