"""Classes that are found among the members of a set: a registry may hold very many, and code only asks for one."""

from __future__ import annotations

import collections
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from stillgraph.core.lookup import class_member


@dataclass(eq=False)
class Members:
    """Which objects the walk over what a call reaches has found by way of such classes alone.

    Attributes:
        by: by id of such an object the ids of the sets by which it was found.
        waiting: classes to go on with once all else is found, each with the id of its set.
        within: the id of the set whose members are being walked; None where it is none.
    """

    by: dict[int, set[int]] = field(default_factory=dict)
    waiting: collections.deque[tuple[type, int]] = field(default_factory=collections.deque)
    within: int | None = None

    def found(self, key: int) -> None:
        """Note that an object was found for the first time."""
        if self.within is not None:
            self.by[key] = {self.within}

    def found_again(self, key: int) -> bool:
        """Note that an object was found once more; whether that is news for all that it leads to."""
        known = self.by.get(key)
        if known is None or self.within in known:
            return False
        if self.within is None:
            del self.by[key]
        else:
            known.add(self.within)
        return True

    def put_off(self, member: type, container: AbstractSet[object]) -> bool:
        """Keep a class for later, unless some class is being walked, or who asks for it runs code of the user's."""
        is_later = self.within is None and _is_itself(member)
        if is_later:
            self.waiting.append((member, id(container)))
        return is_later

    def clear(self) -> None:
        """Let go of the classes."""
        self.by.clear()
        self.waiting.clear()


def _is_itself(kind: type) -> bool:
    """Whether a class is equal to itself alone: a metaclass may say otherwise, by what it reads of its classes."""
    return all(class_member(type(kind), name) is vars(object)[name] for name in ("__eq__", "__hash__"))
