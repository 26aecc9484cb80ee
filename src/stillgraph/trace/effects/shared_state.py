"""What all calls share beside the objects that they reach: the attributes of classes, and modules' variables.

Code that is rewritten writes these with the journal's knowledge. What Python itself calls, a ``__float__`` say, does
not: so they are compared with what they were.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType
from typing import Any

from stillgraph.core.files import is_dependency
from stillgraph.core.weak_cache import weakly_cached
from stillgraph.trace.code.namespaces import file_of, users_classes
from stillgraph.trace.control_flow.join import same_constant
from stillgraph.trace.heap.journal import MISSING, AttributePlace, GlobalPlace, Write

SharedPlace = AttributePlace | GlobalPlace


class SharedState:
    """Attributes of one class, or variables of one module, as they were at a time.

    Args:
        log: the writes that the journal knows of already, which are undone.
        kind: the class; None for variables.
        places: those of variables.
    """

    def __init__(self, log: Sequence[Write], kind: type | None = None, places: tuple[SharedPlace, ...] = ()) -> None:
        self._kind = kind
        self._places: dict[str, SharedPlace] = {place.name: place for place in places}
        self._now = self._read()
        keys = {place.key: name for name, place in self._places.items()}
        undone = {keys[write.place.key]: write.before for write in reversed(log) if write.place.key in keys}
        self._before = {name: value for name, value in {**self._now, **undone}.items() if value is not MISSING}

    def restore(self) -> SharedPlace | None:
        """Put everything back; one of the places that had been changed, if one had."""
        changed = None
        now = self._read()
        for name in {**self._before, **now}:
            before, after = self._before.get(name, MISSING), now.get(name, MISSING)
            if before is after:
                continue
            if not same_constant(before, after):
                changed = changed or self._places[name]
            self._places[name].set(before)
        return changed

    def changes(self) -> list[Write]:
        """What has changed since this was asked for, as `journal.Watch.changes`."""
        before, self._now = self._now, self._read()
        names = {**before, **self._now}
        pairs = ((name, before.get(name, MISSING), self._now.get(name, MISSING)) for name in names)
        return [Write(self._places[name], old) for name, old, new in pairs if old is not new]

    def _read(self) -> dict[str, Any]:
        if self._kind is None:
            found = {name: place.get() for name, place in self._places.items()}
            return {name: value for name, value in found.items() if value is not MISSING}
        found = {name: value for name, value in vars(self._kind).items() if not _is_pythons(name)}
        for name in found:
            self._places.setdefault(name, AttributePlace(self._kind, name))
        return found


def of_class(value: Any, log: Sequence[Write]) -> SharedState | None:
    """The state of a class of the user's project; None for anything else."""
    if not isinstance(value, type) or value not in users_classes(value) or is_dependency(file_of(value)):
        return None
    return SharedState(log, value)


def of_code(code: CodeType, namespace: dict[str, Any], log: Sequence[Write]) -> SharedState | None:
    """The state of the global variables that code assigns; None where it assigns none."""
    names = _assigned(code)
    return SharedState(log, places=tuple(GlobalPlace(namespace, name) for name in names)) if names else None


def _is_pythons(name: str) -> bool:
    return name.startswith(("__", "_abc_"))


@weakly_cached
def _assigned(code: CodeType) -> tuple[str, ...]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    return tuple(sorted(names))
