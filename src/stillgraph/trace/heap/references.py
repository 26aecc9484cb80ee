"""Elements of lists of unknown length: where each was read, so that who changes one changes it there.

Such a list holds the values of its elements, not the objects. What is read is an object made anew. It may be changed
while it is known to be what the list has in that place: the list then gets it there again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Contents = tuple[Any, ...]
_NOTHING = object()


def contents_of(holder: Any) -> Contents:
    """What a container, or a copy of its contents, holds: to be compared by identity."""
    return (*holder, *holder.values()) if isinstance(holder, dict) else tuple(holder)


@dataclass(eq=False)
class Reference:
    """An element, and where it was read.

    Attributes:
        holder: the list or dict.
        key: the index or key of the element, as the user has read it.
        element: what was made of it there.
        put: stores the element in its place again; gives the objects in it that the user could change.
        read: makes another object of what is there.
        parts: the objects in the element that the user could change, by their ids.
        agreed: what the holder held, each time that the element was what it has there.
    """

    holder: Any
    key: Any
    element: Any
    put: Callable[[Reference], list[Any]]
    read: Callable[[], Any]
    parts: dict[int, Any]
    agreed: list[Contents] = field(default_factory=list)

    def agrees(self, contents: Contents) -> bool:
        """Whether the element is what the holder has in that place, when it holds this."""
        return any(len(each) == len(contents) and all(map(operator.is_, each, contents)) for each in self.agreed)


class References:
    """The references of a capture."""

    def __init__(self) -> None:
        self._of: dict[int, Reference] = {}
        self._all: dict[int, list[Reference]] = {}  # by the ids of holders
        self._picked: dict[tuple[int, int], tuple[Any, Any, Any, Contents]] = {}  # by the ids of holders and keys

    def pick(self, holder: Any, key: Any, value: Any) -> None:
        """Remember what an index that only the run knows has given of a list of known length: one of its elements."""
        self._picked[id(holder), id(key)] = holder, key, value, contents_of(holder)

    def is_picked(self, holder: Any, key: Any, value: Any) -> bool:
        """Whether a value is what a list has at such an index, since its elements are still those that they were."""
        _, _, picked, contents = self._picked.get((id(holder), id(key)), (None, None, _NOTHING, ()))
        now = contents_of(holder)
        return picked is value and len(contents) == len(now) and all(map(operator.is_, contents, now))

    def add(self, reference: Reference) -> None:
        """Remember where an element was read."""
        self._all.setdefault(id(reference.holder), []).append(reference)
        self.holds(reference, reference.parts.values())

    def holds(self, reference: Reference, parts: Iterable[Any]) -> None:
        """Told of what is in an element by now."""
        reference.parts = {id(part): part for part in parts}
        self._of.update(dict.fromkeys(reference.parts, reference))

    def of(self, part: Any) -> Reference | None:
        """The reference of which something is a part, while it is what its holder has."""
        found = self._of.get(id(part))
        if found is None or id(part) not in found.parts or not found.agrees(contents_of(found.holder)):
            return None
        return found

    def into(self, holder: Any) -> Iterator[Reference]:
        """Those whose elements a container has."""
        contents = contents_of(holder)
        yield from (each for each in self._all.get(id(holder), ()) if each.agrees(contents))

    def meet(self, holder: Any, sides: Iterable[Any], joined: Any) -> None:
        """Told of what a holder has on some paths, and behind all of them: what agreed on each path agrees there.

        Args:
            holder: a list or dict.
            sides: what it has at the end of each path.
            joined: what it has behind them.
        """
        left = [contents_of(side) for side in sides]
        for each in self._all.get(id(holder), ()) if left else ():
            if all(map(each.agrees, left)):
                each.agreed.append(contents_of(joined))
