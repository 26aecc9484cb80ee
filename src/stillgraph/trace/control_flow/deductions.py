"""What is known of staged conditions where the program is being recorded, and what follows from which."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from stillgraph.trace.fakes.shape_environment import FakeMode
from stillgraph.trace.graph.region import Region

Decided = list[tuple[Any, bool]]
"""Conditions, each with what it is."""


@dataclass(frozen=True, eq=False)
class _Follows:
    """Where ``condition`` is ``when``, ``flag`` is ``then``; a tensor that was written since says nothing any more."""

    condition: Any
    when: bool
    flag: Any
    then: bool
    versions: tuple[int | None, int | None]

    @property
    def holds(self) -> bool:
        """Whether both conditions are still what they were."""
        return self.versions == (version(self.condition), version(self.flag))


def version(condition: Any) -> int | None:
    """How often a tensor has been written, as autograd counts it; None of what is none.

    A tensor of inference mode has no such count. It counts as written wherever the capture has written to any.
    """
    if not isinstance(condition, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        if not condition.is_inference():
            return condition._version
    assert isinstance(condition, FakeTensor) and isinstance(condition.fake_mode, FakeMode)
    return condition.fake_mode.writes


@dataclass(frozen=True, eq=False)
class _Learned:
    """A condition that is decided from some point of a region on: where it is not, the program has raised."""

    flag: Any
    version: int | None
    region: Region
    value: bool


class Deductions:
    """What one capture knows of its conditions.

    Attributes:
        learned: what is decided from some point on, in order: a loop that is tried again takes its own back.
    """

    def __init__(self) -> None:
        self._taken: dict[int, tuple[int | None, bool]] = {}  # by a condition in whose arm we are: its version, the arm
        self.learned: list[_Learned] = []
        self._follows: dict[int, list[_Follows]] = {}  # by a condition: what is decided with it
        self._opposites: dict[int, list[_Follows]] = {}  # by a condition: what is always its opposite

    @contextlib.contextmanager
    def assuming(self, predicate: Any, taken: bool) -> Iterator[Decided]:
        """Know of a condition during the body; it is given all that is decided with it."""
        before = dict(self._taken)
        conditions = self._decided_with(predicate, taken)
        self._taken = before | {id(condition): (version(condition), value) for condition, value in conditions}
        try:
            yield conditions
        finally:
            self._taken = before

    def learn(self, predicate: Any, taken: bool, region: Region) -> Decided:
        """Know of a condition from here on, as far as a region reaches; gives all that is decided with it."""
        conditions = self._decided_with(predicate, taken)
        self.learned.extend(_Learned(condition, version(condition), region, value) for condition, value in conditions)
        return conditions

    def decided(self, flag: Any, region: Region) -> bool | None:
        """How a condition is decided in a region; None if only the run knows."""
        now = version(flag)
        written, value = self._taken.get(id(flag), (None, None))
        if value is not None and written == now:
            return value
        told = (each for each in self.learned if each.flag is flag and each.version == now)
        return next((each.value for each in told if _is_within(region, each.region)), None)

    def implies(self, condition: Any, when: bool, flag: Any, then: bool) -> None:
        """Be told that where one condition is ``when``, another is ``then``."""
        versions = version(condition), version(flag)
        self._follows.setdefault(id(condition), []).append(_Follows(condition, when, flag, then, versions))

    def are_opposites(self, condition: Any, other: Any) -> None:
        """Be told that two conditions are never the same."""
        for one, another in ((condition, other), (other, condition)):
            for when in (True, False):
                self.implies(one, when, another, not when)
            self._opposites.setdefault(id(one), []).append(self._follows[id(one)][-1])

    def opposite(self, condition: Any, region: Region) -> Any:
        """A condition that a region knows, and that is always the opposite of this one; None if there is none."""
        told = (each.flag for each in self._opposites.get(id(condition), ()) if each.holds)
        return next((flag for flag in told if region.holds(flag)), None)

    def _decided_with(self, predicate: Any, taken: bool) -> Decided:
        found: dict[int, tuple[Any, bool]] = {}
        queue = [(predicate, taken)]
        while queue:
            condition, value = queue.pop()
            if id(condition) not in found:
                found[id(condition)] = condition, value
                follows = self._follows.get(id(condition), ())
                queue.extend((each.flag, each.then) for each in follows if each.when is value and each.holds)
        return list(found.values())


def _is_within(region: Region, outer: Region) -> bool:
    each: Region | None = region
    while each is not None:
        if each is outer:
            return True
        each = each.parent
    return False
