"""Variables: local ones, those of cells, globals and namespaces."""

from __future__ import annotations

from types import CellType
from typing import Any, NoReturn

from stillgraph.bytecode.machine.frame import NULL, Frame, Handler
from stillgraph.operators.objects.globals import del_global, set_global
from stillgraph.operators.objects.variables import loaded, no_value
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.unset import may_be_unset
from stillgraph.trace.heap.places import MISSING, CellPlace
from stillgraph.trace.values.callables import contents


def _unbound(frame: Frame, slot: int) -> NoReturn:
    name = frame.name(slot)
    no_value(name, name in frame.code.co_freevars)


def _read(frame: Frame, slot: int, value: Any) -> Any:
    """What a variable holds behind a read of it, where only the run may know whether it has a value."""
    capture = session()
    if capture is None or not capture.has_unset or not may_be_unset(capture, value):
        return value
    name = frame.name(slot)
    return frame.act(loaded, value, name, name in frame.code.co_freevars)


def _load_fast(frame: Frame, slot: int) -> None:
    value = contents(frame.slots[slot])
    if value is MISSING:
        frame.act(_unbound, frame, slot)
    frame.push(_read(frame, slot, value))


def _load_fast_and_clear(frame: Frame, slot: int) -> None:
    value = contents(frame.slots[slot])
    if value is MISSING:
        frame.push(NULL)
    else:
        del frame.slots[slot].cell_contents
        frame.push(value)


def _store_fast(frame: Frame, slot: int) -> None:
    value = frame.pop()
    if value is NULL:
        _empty(frame.slots[slot])
    else:
        frame.slots[slot].cell_contents = value


def _empty(cell: CellType) -> None:
    if contents(cell) is not MISSING:
        del cell.cell_contents


def _delete_fast(frame: Frame, slot: int) -> None:
    value = contents(frame.slots[slot])
    if value is MISSING:
        frame.act(_unbound, frame, slot)
    _read(frame, slot, value)
    del frame.slots[slot].cell_contents


def _make_cell(frame: Frame, slot: int) -> None:
    value = contents(frame.slots[slot])
    frame.slots[slot].cell_contents = CellType() if value is MISSING else CellType(value)


def _copy_free_vars(frame: Frame, count: int) -> None:
    for cell, free in zip(frame.slots[-count:], frame.function.__closure__ or ()):
        cell.cell_contents = free


def _cell(frame: Frame, slot: int) -> CellType:
    cell: CellType = frame.slots[slot].cell_contents
    return cell


def _load_deref(frame: Frame, slot: int) -> None:
    value = contents(_cell(frame, slot))
    if value is MISSING:
        capture = session()
        if capture is not None:
            capture.reads.attributes.append((_cell(frame, slot), "cell_contents"))
        frame.act(_unbound, frame, slot)
    frame.push(_read(frame, slot, value))


def _store_deref(frame: Frame, slot: int) -> None:
    cell, capture = _cell(frame, slot), session()
    if capture is not None and frame.segment is not None and not frame.segment.has_made(cell):
        capture.journal.note(CellPlace(cell, frame.name(slot)))  # it may be there from before
    cell.cell_contents = frame.pop()


def _delete_deref(frame: Frame, slot: int) -> None:
    cell = _cell(frame, slot)
    value = contents(cell)
    if value is MISSING:
        frame.act(_unbound, frame, slot)
    _read(frame, slot, value)
    del cell.cell_contents


def _load_from_dict_or_deref(frame: Frame, slot: int) -> None:
    space, name = frame.pop(), frame.name(slot)
    if name in space:
        frame.push(space[name])
    else:
        _load_deref(frame, slot)


def global_or_builtin(globals: dict[str, Any], builtins: dict[str, Any], name: str) -> Any:
    """What a name stands for.

    Raises:
        NameError: for nothing.
    """
    if name in globals:
        return globals[name]
    if name in builtins:
        return builtins[name]
    raise NameError(f"name '{name}' is not defined", name=name)


def _load_global(frame: Frame, name: str) -> None:
    frame.push(frame.act(global_or_builtin, frame.globals, frame.builtins, name))


def _store_global(frame: Frame, name: str) -> None:
    frame.act(set_global, frame.globals, name, frame.pop())


def _delete_global(frame: Frame, name: str) -> None:
    if name not in frame.globals:
        frame.act(_undefined, name)
    frame.act(del_global, frame.globals, name)


def _undefined(name: str) -> NoReturn:
    raise NameError(f"name '{name}' is not defined", name=name)


HANDLERS: dict[str, Handler] = {
    "LOAD_FAST": _load_fast,
    "LOAD_FAST_AND_CLEAR": _load_fast_and_clear,
    "STORE_FAST": _store_fast,
    "DELETE_FAST": _delete_fast,
    "MAKE_CELL": _make_cell,
    "COPY_FREE_VARS": _copy_free_vars,
    "LOAD_DEREF": _load_deref,
    "STORE_DEREF": _store_deref,
    "DELETE_DEREF": _delete_deref,
    "LOAD_FROM_DICT_OR_DEREF": _load_from_dict_or_deref,
    "LOAD_GLOBAL": _load_global,
    "STORE_GLOBAL": _store_global,
    "DELETE_GLOBAL": _delete_global,
}
