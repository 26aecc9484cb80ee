"""What happens to modules and objects behind the journal's back: torch's own methods write their tables directly."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.program.guards import Source
from stillgraph.trace.containers import holds_staged
from stillgraph.trace.join import same_constant

_TABLES = ("_parameters", "_buffers", "_modules")
_NO_STATE = (torch.nn.Module, torch.Tensor, type, ModuleType, FunctionType, MethodType, functools.partial)


class ModuleTables:
    """The attributes of every module and plain object that a call reaches, as they were before the capture."""

    def __init__(self, found: list[tuple[Any, Source]]) -> None:
        modules = [value for value, _ in found if isinstance(value, torch.nn.Module)]
        self._before = [(m, dict(m.__dict__), {t: dict(m.__dict__[t]) for t in _TABLES}) for m in modules]
        objects = [value for value, _ in found if not isinstance(value, _NO_STATE)]
        states = [(value, getattr(value, "__dict__", None)) for value in objects]
        self._objects = [(value, dict(state)) for value, state in states if type(state) is dict]

    def restore(self) -> str | None:
        """Put everything back; the name of an attribute that had been changed, if one had.

        What an object has computed and kept, as ``functools.cached_property`` does, may stay if it is not staged.
        """
        changed = None
        for module, attributes, tables in self._before:
            for table, entries in tables.items():
                changed = _restore(module.__dict__[table], entries, module) or changed
            changed = _restore(module.__dict__, attributes, module) or changed
        for value, state in self._objects:
            now = value.__dict__
            added = {n: v for n, v in now.items() if n not in state and not holds_staged(v)}
            found = _restore(now, {**state, **added}, value)
            changed = (None if _is_mode(value) else found) or changed
        return changed


def _is_mode(value: Any) -> bool:
    """Whether an object is a context manager of torch's: between two uses it keeps nothing of interest."""
    return hasattr(type(value), "__enter__") and type(value).__module__.startswith("torch.")


def _restore(now: dict[str, Any], before: dict[str, Any], owner: Any) -> str | None:
    if now.keys() == before.keys() and all(now[name] is value for name, value in before.items()):
        return None
    names = [n for n in {**now, **before} if n not in now or n not in before or not same_constant(now[n], before[n])]
    now.clear()
    now.update(before)
    return f"{type(owner).__name__}.{names[0]}" if names else None
