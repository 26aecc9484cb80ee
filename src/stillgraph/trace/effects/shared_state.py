"""What all calls share beside the objects that they reach: the attributes of classes, and modules' variables.

Code that is rewritten writes these with the journal's knowledge. What Python itself calls, a ``__float__`` say, does
not: so they are compared with what they were.
"""

from __future__ import annotations

import dis
import gc
from collections.abc import Hashable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from stillgraph.core.files import is_dependency
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.trace.code.names import assigned_outer_variables
from stillgraph.trace.code.namespaces import file_of, users_classes
from stillgraph.trace.control_flow.joined.leaves import same_constant
from stillgraph.trace.heap.journal import Write
from stillgraph.trace.heap.places import MISSING, AttributePlace, CellPlace, GlobalPlace

SharedPlace = AttributePlace | GlobalPlace | CellPlace


class SharedState:
    """Attributes of one class, or variables of one module and of functions around, as they were at a time.

    Args:
        log: the writes that the journal knows of already, which are undone.
        kind: the class; None for variables.
        places: those of variables.
    """

    def __init__(self, log: Sequence[Write], kind: type | None = None, places: tuple[SharedPlace, ...] = ()) -> None:
        self._kind = kind
        self._places: dict[Hashable, SharedPlace] = {place.key: place for place in places}
        self._now = self._read()
        undone = {write.place.key: write.before for write in reversed(log) if write.place.key in self._places}
        self._before = {key: value for key, value in {**self._now, **undone}.items() if value is not MISSING}

    def restore(self) -> SharedPlace | None:
        """Put everything back; one of the places that had been changed, if one had."""
        changed = None
        now = self._read()
        for key in {**self._before, **now}:
            before, after = self._before.get(key, MISSING), now.get(key, MISSING)
            if before is after:
                continue
            if not same_constant(before, after):
                changed = changed or self._places[key]
            self._places[key].set(before)
        return changed

    def changes(self) -> list[Write]:
        """What has changed since this was asked for, as `journal.Watch.changes`."""
        before, self._now = self._now, self._read()
        keys = {**before, **self._now}
        pairs = ((key, before.get(key, MISSING), self._now.get(key, MISSING)) for key in keys)
        return [Write(self._places[key], old) for key, old, new in pairs if old is not new]

    def _read(self) -> dict[Hashable, Any]:
        if self._kind is not None:
            attributes = (AttributePlace(self._kind, name) for name in vars(self._kind) if not _is_pythons(name))
            for place in attributes:
                self._places.setdefault(place.key, place)
        found = {key: place.get() for key, place in self._places.items()}
        return {key: value for key, value in found.items() if value is not MISSING}


def of_class(value: Any, log: Sequence[Write]) -> SharedState | None:
    """The state of a class of the user's project; None for anything else."""
    if not isinstance(value, type) or value not in users_classes(value) or is_dependency(file_of(value)):
        return None
    return SharedState(log, value)


def of_code(code: CodeType, namespace: dict[str, Any], log: Sequence[Write]) -> SharedState | None:
    """The state of the variables that code assigns, of its module or of functions around; None if it assigns none."""
    places: list[SharedPlace] = [GlobalPlace(namespace, name) for name in _assigned(code)]
    places += [CellPlace(cell, name) for name, cell in outer_cells(code)]
    return SharedState(log, places=tuple(places)) if places else None


def outer_cells(code: CodeType) -> Iterator[tuple[str, Any]]:
    """The variables of functions around that functions with this code assign."""
    names = assigned_outer_variables(code)
    functions = [each for each in gc.get_referrers(code) if isinstance(each, FunctionType)] if names else []
    for function in functions:
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        yield from ((name, cells[name]) for name in names)


def _is_pythons(name: str) -> bool:
    return name.startswith(("__", "_abc_"))


@weakly_cached
def _assigned(code: CodeType) -> tuple[str, ...]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    return tuple(sorted(names))
