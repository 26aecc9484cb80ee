"""What a program does to Python objects that outlive the call, as data; `runtime/native/effects.py` carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stillgraph.program.outputs import Template
from stillgraph.program.sources import Source


@dataclass(frozen=True)
class SetAttribute:
    """``setattr(target, name, value)``; ``past`` the class's own ``__setattr__`` if that ran during capture.

    Where the value is `Absent`, the attribute is deleted, if it is there.
    """

    target: Source
    name: str
    value: Template
    past: bool = False

    def __str__(self) -> str:
        return f"{self.target}.{self.name} = {self.value}"


@dataclass(frozen=True)
class SetSlot:
    """An entry made in a table of a module's, ``_buffers`` say, as ``register_buffer`` does; or as `SetAttribute`."""

    target: Source
    table: str
    name: str
    value: Template

    def __str__(self) -> str:
        return f"{self.target}.{self.table}[{self.name!r}] = {self.value}"


@dataclass(frozen=True)
class SetPersistence:
    """Whether ``state_dict`` has a buffer of a module's: ``register_buffer(..., persistent=value)``."""

    target: Source
    name: str
    value: Template

    def __str__(self) -> str:
        return f"{self.target}.{self.name} is persistent: {self.value}"


@dataclass(frozen=True)
class DeleteAttribute:
    """``delattr(target, name)``; ``past`` the class's own ``__delattr__`` if that ran during capture."""

    target: Source
    name: str
    past: bool = False

    def __str__(self) -> str:
        return f"del {self.target}.{self.name}"


@dataclass(frozen=True)
class SetContents:
    """The whole contents of a list, dict, set or deque replaced in place: ``target[:] = value``."""

    target: Source
    value: Template

    def __str__(self) -> str:
        return f"{self.target}[:] = {self.value}"


@dataclass(frozen=True)
class ExtendContents:
    """``target.extend(value)``, for a list of which the call reads nothing."""

    target: Source
    value: Template

    def __str__(self) -> str:
        return f"{self.target} += {self.value}"


@dataclass(frozen=True)
class SetItem:
    """``target[key] = value`` for a mapping of which only single entries were written (module globals)."""

    target: Source
    key: Any
    value: Template

    def __str__(self) -> str:
        return f"{self.target}[{self.key!r}] = {self.value}"


@dataclass(frozen=True)
class SetCell:
    """A ``nonlocal`` of the captured function: ``cell.cell_contents = value``."""

    target: Source
    value: Template

    def __str__(self) -> str:
        return f"{self.target} = {self.value}"


@dataclass(frozen=True)
class SetGlobal:
    """A module-level name: ``sys.modules[module].__dict__[name] = value``."""

    module: str
    name: str
    value: Template

    def __str__(self) -> str:
        return f"{self.module}.{self.name} = {self.value}"


@dataclass(frozen=True)
class Advance:
    """As many items drawn from an iterator as ``value`` says, the end included."""

    target: Source
    value: Template

    def __str__(self) -> str:
        return f"{self.target} is advanced by {self.value}"


Effect = (
    SetAttribute
    | SetSlot
    | SetPersistence
    | DeleteAttribute
    | SetContents
    | ExtendContents
    | SetItem
    | SetCell
    | SetGlobal
    | Advance
)
