"""Containers that get other contents in place, changed no more than is needed: somebody may be running over them."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any


def replace_dict(kind: Any, target: Any, contents: Mapping[Any, Any]) -> None:
    """Make a dict hold just ``contents``, in their order, by the methods of Python's class ``kind``.

    What comes first in both stays where it is, for an iterator knows positions.
    """
    mine, wanted = list(kind.__iter__(target)), list(contents)
    if not _begins_alike(mine, wanted):
        kind.clear(target)
        mine = []
    for key in reversed(mine[len(wanted) :]):
        kind.__delitem__(target, key)
    for key, value in contents.items():
        if len(mine) < len(wanted) or kind.__getitem__(target, key) is not value:
            kind.__setitem__(target, key, value)


def replace_set(kind: Any, target: Any, contents: Collection[Any]) -> None:
    """Make a set hold just ``contents``."""
    if sorted(map(id, kind.__iter__(target))) != sorted(map(id, contents)):
        kind.clear(target)
        kind.update(target, contents)


def replace_deque(kind: Any, target: Any, contents: Sequence[Any]) -> None:
    """Make a deque hold just ``contents``."""
    mine = list(kind.__iter__(target))
    if len(mine) != len(contents) or not _begins_alike(mine, contents):
        deque.clear(target)
        deque.extend(target, contents)


def _begins_alike(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(map(operator.is_, left, right))
