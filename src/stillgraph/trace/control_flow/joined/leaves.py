"""The leaves of a join: what two paths hand out, and what a place holds that a path does not reach."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stillgraph.program.facts.info import info
from stillgraph.program.types import JoinFailure, NumberType, Type
from stillgraph.trace.control_flow.joined.elements import View
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, is_leaf
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import Staged
from stillgraph.trace.values.several import known_in


class _Dead:
    def __repr__(self) -> str:
        return "<never reached>"


DEAD = _Dead()  # what every place holds after a path that raises


def is_empty(value: Any) -> bool:
    """Whether a place holds nothing that could be handed out."""
    return value is None or value is MISSING or value is DEAD


def same_constant(left: Any, right: Any) -> bool:
    """Whether two values are one constant, whichever path is taken."""
    if left is right:
        return True
    if type(left) is not type(right) or isinstance(left, (torch.Tensor, Staged)):
        return False
    if isinstance(left, float):
        return left == right and str(left) == str(right)
    return isinstance(left, (int, str, bytes, complex, torch.dtype, torch.device, range)) and bool(left == right)


Build = Callable[[Sequence[Any]], Any]
"""How a joined value is built out of the instantiated leaves."""


def nothing(_: Sequence[Any]) -> None:
    """Builds None."""


def has_leaf(value: Any, view: View, inside: tuple[int, ...] = ()) -> bool:
    """Whether a tensor, a number, an entry of a table or a list of unknown length is in a value, seen by ``view``."""
    if isinstance(value, Unjoined):
        return known_in(value) is not None
    if value is None or is_leaf(value) or isinstance(value, StagedSpread):
        return value is not None
    parts = None if id(value) in inside else view(value)
    return parts is not None and any(has_leaf(child, view, (*inside, id(value))) for child in parts.children)


def may_be_parameter(value: Any) -> bool:
    """Whether a tensor is a parameter, or was joined of one: a module then has it among its parameters."""
    return isinstance(value, torch.nn.Parameter) or bool(info(value).parameters)


@dataclass(frozen=True, eq=False)
class Pair:
    """A leaf that two paths have to hand out, and the type that covers what they have."""

    left: Any
    right: Any
    type: Type
    place: str

    def side(self, index: int) -> Any:
        """What the left (0) or right (1) path has."""
        return self.right if index else self.left


@dataclass
class Leaves:
    """The leaves that two paths have to hand out, in order, and the one that tells which path was taken."""

    pairs: list[Pair] = field(default_factory=list)
    _flag: int | None = None

    def add(self, left: Any, right: Any, type_: Type, place: str) -> int:
        """Hand out one more leaf: its index; there is one alone that tells which path was taken."""
        if left is True and right is False:
            if self._flag is not None:
                return self._flag
            self._flag = len(self.pairs)
        self.pairs.append(Pair(left, right, type_, place))
        return len(self.pairs) - 1

    def flag(self, place: str) -> int:
        """The index of the leaf that tells which path was taken."""
        return self.add(True, False, NumberType(bool), place)

    @contextlib.contextmanager
    def tried(self) -> Iterator[None]:
        """While something is being joined that may have no join: then it hands out nothing."""
        flag, count = self._flag, len(self.pairs)
        try:
            yield
        except JoinFailure:
            self._flag = flag
            del self.pairs[count:]
            raise
