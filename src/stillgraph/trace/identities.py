"""Containers that are another one on each path, or made anew in each iteration: what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Origin:
    """A joined container that stands, on one path or both, for an object from before: which one, by ``flag``.

    A side that is older may be an `Origin` itself: one of several, by a flag that the path has handed out.
    """

    joined: Any
    flag: Any
    left: Any
    right: Any
    older: tuple[bool, bool]  # whether the left, and the right, was there before


AMBIGUOUS = "Assign to local variables inside the branch or loop, and store or change them afterwards."  # a hint


class Identities:
    """What is known of the containers that joins and loops have made.

    Attributes:
        origins: what stands for several containers, by the id of the joined one.
        frozen: containers that other names would have to see change, by their ids.
        copies: some of them, each with what it may be.
    """

    def __init__(self) -> None:
        self.origins: dict[int, Origin] = {}
        self.frozen: dict[int, Any] = {}
        self.copies: dict[int, tuple[Any, dict[int, Any]]] = {}
        self._sides: dict[int, Any] = {}  # what the joined containers stand for

    def stands_for(self, origin: Origin) -> None:
        """Remember a joined container: from now on neither it nor what it stands for may be changed."""
        self.origins[id(origin.joined)] = origin
        sides = [origin]
        for each in sides:
            sides += [side for side in (each.left, each.right) if isinstance(side, Origin)]
            self._sides.update({id(side): side for side in (each.left, each.right)})

    def is_ambiguous(self, target: Any) -> bool:
        """Whether a container has two names on one path, and only one on the other."""
        return id(target) in self.origins or id(target) in self._sides or id(target) in self.frozen

    def freeze(self, value: Any) -> None:
        """Remember a container that is one of several copies of one: it may not be changed any more."""
        self.frozen[id(value)] = value

    def copy_of(self, copy: Any, originals: Iterable[Any]) -> None:
        """As `freeze`, for one that a loop or handler makes anew while other names lead to what it may be."""
        self.freeze(copy)
        mine = self.copies.setdefault(id(copy), (copy, {}))[1]
        for original in originals:
            mine[id(original)] = original
            mine.update(self.copies.get(id(original), (None, {}))[1])
