"""Places whose old value an effect may write back: a guard is to tell it, or an input."""

from __future__ import annotations

from typing import Any

from stillgraph.program.facts.module_tables import NOT_PERSISTENT
from stillgraph.trace.heap.places import AttributePlace, GlobalPlace, PersistencePlace, Place


class ReliedPlaces:
    """The places on which the effects of one capture rely.

    Attributes:
        attributes: of objects, given by their ids.
        variables: of namespaces.
    """

    def __init__(self) -> None:
        self.attributes: set[tuple[int, str]] = set()
        self.variables: list[tuple[dict[str, Any], str]] = []

    def add(self, place: Place) -> None:
        """Remember a place whose old value an effect may write back: a guard is to tell it, or an input."""
        if isinstance(place, AttributePlace):
            self.attributes.add((id(place.target), place.name))
        elif isinstance(place, PersistencePlace):
            self.attributes.add((id(place.target), NOT_PERSISTENT))
        elif isinstance(place, GlobalPlace):
            self.variables.append((place.namespace, place.name))
