"""Modules that a capture makes: torch's own methods write their tables, on one path as elsewhere."""

from __future__ import annotations

from typing import Any

import torch

from stillgraph.program.facts.module_tables import entries
from stillgraph.trace.effects.modules import State
from stillgraph.trace.heap.journal import Journal, Write


class MadeModules:
    """Finds what is written to modules that the capture has made: a `journal.Watch`."""

    def __init__(self, journal: Journal) -> None:
        self._now: dict[int, State] = {}
        journal.watches.append(self)

    def add(self, made: Any) -> Any:
        """Something has been made, which is given: where it is a module, it and those in it are watched."""
        if isinstance(made, torch.nn.Module) and id(made) not in self._now:
            self._now[id(made)] = State(made)
            for inner in entries(made, "_modules").values():
                self.add(inner)
        return made

    def changes(self) -> list[Write]:
        """As `journal.Watch.changes`."""
        found = []
        for key, before in self._now.items():
            if not before.is_current():
                self._now[key] = State(before.owner)
                found += before.writes()
        return found

    def forget(self) -> None:
        """Let go of the modules."""
        self._now.clear()
