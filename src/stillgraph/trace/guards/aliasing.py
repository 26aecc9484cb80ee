"""Guards on aliasing: which paths lead to one object, and which lead to different ones."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from stillgraph.program.guards import AliasGuard, ApartGuard
from stillgraph.program.sources import Source

Reached = Iterable[tuple[Any, Source]]


def opened_alike(paths_of_each: Iterable[Iterable[Source]]) -> Iterator[AliasGuard]:
    """That all paths to an object lead to one where it is another one in each call; `told` says what lies apart."""
    for each in paths_of_each:
        paths = [*each]
        yield from (AliasGuard(paths[0], source, same=True) for source in paths[1:])


def cells_apart(reached: Reached) -> Iterator[ApartGuard]:
    """That variables of functions made anew are different ones: the code may write to one and read another."""
    places = [source for value, source in reached if isinstance(value, types.CellType)]
    if len(places) > 1:
        yield ApartGuard(tuple(places))


def containers_apart(reached: Reached, told: Callable[[Iterable[int]], bool], by_keys: bool) -> Iterator[ApartGuard]:
    """That containers and modules that look alike are not one, where the code can tell.

    Args:
        reached: what the code reads.
        told: whether the code can tell some of them, given by their ids, from one another: it writes, or compares.
        by_keys: whether the guards on dicts tell their keys.
    """
    alike: dict[Any, dict[int, Source]] = {}  # by what their own guards do not tell apart
    for value, source in reached:
        if isinstance(value, (list, dict, set, collections.deque, torch.nn.Module)):
            keys = tuple(value) if isinstance(value, dict) and by_keys else None
            alike.setdefault((type(value), keys), {})[id(value)] = source
    for places in alike.values():
        if told(places) and len(places) > 1:
            yield ApartGuard(tuple(places.values()))
