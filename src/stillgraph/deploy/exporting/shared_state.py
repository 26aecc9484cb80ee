"""State that the programs of one file have in common: what one writes, the others read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.signature import home_of, written_place
from stillgraph.deploy.exporting.exported_program import Exported
from stillgraph.program.guards import ConstantGuard
from stillgraph.program.sources import Source


def read_as_constants(entries: Mapping[str, Entry]) -> dict[str, set[Source]]:
    """By entry, the places whose values it was captured for, and that another entry writes."""
    writers = _writers(entries)
    found: dict[str, set[Source]] = {}
    for name, entry in entries.items():
        for guard in entry.program.guards:
            if isinstance(guard, ConstantGuard) and writers.get(_home(entry, guard.source), name) != name:
                found.setdefault(name, set()).add(guard.source)
    return found


def check_state(entries: Mapping[str, Entry]) -> None:
    """Refuse entries of which one was captured for a value that another writes.

    Raises:
        ExportError: there is such a value.
    """
    for name, sources in read_as_constants(entries).items():
        entry = entries[name]
        source = sorted(sources, key=str)[0]
        writer = _writers(entries)[_home(entry, source)]
        message = f"{name!r} is captured for one value of {source}, which {writer!r} writes"
        hint = "Keep the value in a tensor, a buffer of the module for example, and compute with that."
        raise refuse("SG402", message, location=entry.program.location, hint=hint)


def shared_places(exported: Mapping[str, Exported]) -> list[list[list[str]]]:
    """What several entries bring along of the same objects: for each the entries' names and its names in them."""
    places: dict[Any, list[list[str]]] = {}
    for name, made in exported.items():
        for path, home in made.homes.items():
            places.setdefault(home, []).append([name, path])
    return [same for same in places.values() if len(same) > 1]


def _writers(entries: Mapping[str, Entry]) -> dict[Any, str]:
    """For each place that is written, the first entry that does."""
    writers: dict[Any, str] = {}
    for name, entry in entries.items():
        for effect in entry.program.effects:
            written = written_place(effect)
            if written is not None:
                writers.setdefault(_home(entry, written), name)
    writers.pop(None, None)
    return writers


def _home(entry: Entry, source: Source) -> Any:
    return home_of(source, entry.args, entry.kwargs)
