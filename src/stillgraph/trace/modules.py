"""What happens to modules behind the journal's back: torch's own methods write their tables directly."""

from __future__ import annotations

from typing import Any

import torch

from stillgraph.program.guards import Source
from stillgraph.trace.join import same_constant

_TABLES = ("_parameters", "_buffers", "_modules")


class ModuleTables:
    """The attributes of every module that a call reaches, as they were before the capture."""

    def __init__(self, found: list[tuple[Any, Source]]) -> None:
        modules = [value for value, _ in found if isinstance(value, torch.nn.Module)]
        self._before = [(m, dict(m.__dict__), {t: dict(m.__dict__[t]) for t in _TABLES}) for m in modules]

    def restore(self) -> str | None:
        """Put everything back; the name of an attribute that had been changed, if one had."""
        changed = None
        for module, attributes, tables in self._before:
            for table, entries in tables.items():
                changed = _restore(module.__dict__[table], entries, module) or changed
            changed = _restore(module.__dict__, attributes, module) or changed
        return changed


def _restore(now: dict[str, Any], before: dict[str, Any], module: torch.nn.Module) -> str | None:
    if now.keys() == before.keys() and all(now[name] is value for name, value in before.items()):
        return None
    names = [n for n in {**now, **before} if n not in now or n not in before or not same_constant(now[n], before[n])]
    now.clear()
    now.update(before)
    return f"{type(module).__name__}.{names[0]}" if names else None
