"""Which objects may be one: containers, copies of them, and what stands for the elements of lists that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class _Family:
    members: list[Any]
    elsewhere: bool = False
    asked: int = 0  # of how many members it has been asked whether they are known elsewhere


class Families:
    """Of each object, the others that it may be, or that hold what it may be.

    A family is told of everything that may lead to its objects. Where that cannot be so, it is marked as known
    elsewhere: its objects may be arguments of the call, say.
    """

    def __init__(self) -> None:
        self._of: dict[int, _Family] = {}

    def relate(self, *members: Any) -> None:
        """Let objects be of one family."""
        first = self._family(members[0])
        for member in members[1:]:
            other = self._family(member)
            if other is not first:
                first, other = (first, other) if len(first.members) >= len(other.members) else (other, first)
                first.members += other.members
                first.elsewhere = first.elsewhere or other.elsewhere
                first.asked = 0
                self._of.update((id(each), first) for each in other.members)

    def relate_to_elements(self, made: Any, elements: Any) -> None:
        """As `relate`, for what is made of elements; where nobody has told what those are, they are known elsewhere."""
        if id(elements) not in self._of:
            self.know_elsewhere(elements)
        self.relate(elements, made)

    def know_elsewhere(self, member: Any) -> None:
        """Mark the family of an object."""
        self._family(member).elsewhere = True

    def is_known_elsewhere(self, member: Any, asks: Callable[[Any], bool]) -> bool:
        """Whether something outside a family may lead to its objects; ``asks`` says so of one, and is asked once."""
        family = self._of.get(id(member))
        if family is None:
            return True
        family.elsewhere = family.elsewhere or any(map(asks, family.members[family.asked :]))
        family.asked = len(family.members)
        return family.elsewhere

    def of(self, member: Any) -> list[Any]:
        """The objects of a family, itself among them."""
        return self._of[id(member)].members if id(member) in self._of else [member]

    def number_of(self, member: Any) -> int:
        """A number for the family of an object, while there is no new relation."""
        return id(self._of.get(id(member), member))

    def _family(self, member: Any) -> _Family:
        found = self._of.get(id(member))
        if found is None:
            found = self._of[id(member)] = _Family([member])
        return found
