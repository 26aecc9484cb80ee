"""What happens to modules and objects behind the journal's back: torch's own methods write their tables directly."""

from __future__ import annotations

import collections
import copy
import functools
import operator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.program.guards import Source
from stillgraph.trace.containers import holds_staged
from stillgraph.trace.join import same_constant
from stillgraph.trace.journal import replace_contents

_TABLES = ("_parameters", "_buffers", "_modules")
_CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict)
_NO_STATE = (torch.nn.Module, torch.Tensor, type, ModuleType, FunctionType, MethodType, functools.partial)


class ModuleTables:
    """Every module, plain object and container that a call reaches, as it was before the capture."""

    def __init__(self, found: list[tuple[Any, Source]]) -> None:
        modules = [value for value, _ in found if isinstance(value, torch.nn.Module)]
        self._before = [(m, dict(m.__dict__), {t: dict(m.__dict__[t]) for t in _TABLES}) for m in modules]
        objects = [value for value, _ in found if not isinstance(value, _NO_STATE)]
        states = [(value, getattr(value, "__dict__", None)) for value in objects]
        self._objects = [(value, dict(state)) for value, state in states if type(state) is dict]
        self._containers = [(v, copy.copy(v), source) for v, source in found if type(v) in _CONTAINERS]

    def accept_containers(self) -> None:
        """Let the containers stay as they are now."""
        self._containers.clear()

    def restore(self, keep_added: bool = False) -> str | None:
        """Put everything back; the name of something that had been changed, if anything had.

        Args:
            keep_added: let stay what an object or dict has computed and kept, as ``functools.cached_property`` does, if
                it is not staged. It belongs to what is put back from then on.
        """
        changed = None
        for module, attributes, tables in self._before:
            for table, entries in tables.items():
                changed = _restore(module.__dict__[table], entries, module) or changed
            changed = _restore(module.__dict__, attributes, module) or changed
        for value, state in self._objects:
            if keep_added:
                state.update(_added(value.__dict__, state))
            found = _restore(value.__dict__, state, value)
            changed = (None if _is_mode(value) else found) or changed
        for value, contents, source in self._containers:
            if keep_added and isinstance(value, dict):
                contents.update(_added(value, contents))
            if not _same(value, contents):
                replace_contents(value, contents)
                changed = changed or f"the {type(value).__name__} {source}"
        return changed


def _added(now: dict[Any, Any], before: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in now.items() if key not in before and not holds_staged(value)}


def _same(now: Any, before: Any) -> bool:
    """Whether a container holds the very objects that it held before."""
    if isinstance(now, dict):
        return now.keys() == before.keys() and all(now[key] is value for key, value in before.items())
    if isinstance(now, set):
        return now.symmetric_difference(before) == set()
    return len(now) == len(before) and all(map(operator.is_, now, before))


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
