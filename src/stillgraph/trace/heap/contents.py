"""The contents of lists, dicts, sets and deques: copied, replaced in place, compared."""

from __future__ import annotations

import collections
import operator
from typing import Any

from stillgraph.core.contents import replace_deque, replace_dict, replace_set


def is_same(now: Any, before: Any) -> bool:
    """Whether a place holds the very same, or a container of the same."""
    if type(now) is not type(before) or not isinstance(now, (dict, list)):
        return now is before
    mine, others = [*now], [*before]
    if isinstance(now, dict):
        mine, others = [*mine, *now.values()], [*others, *before.values()]
    return len(mine) == len(others) and all(map(operator.is_, mine, others))


def copy_contents(container: Any) -> Any:
    """A plain copy of what a container holds, whatever methods a class of the user's has to look into it."""
    kind = kind_of_container(container)
    if isinstance(container, dict):
        return dict(kind.items(container))
    return (set if kind is set else list)(kind.__iter__(container))


def replace_contents(container: Any, contents: Any) -> None:
    """Make ``container`` hold just ``contents``, in place and past the methods of a class of the user's."""
    kind: Any = kind_of_container(container)
    if kind is set:
        replace_set(kind, container, contents)
    elif isinstance(container, dict):
        replace_dict(kind, container, contents)
    elif kind is list:
        list.__setitem__(container, slice(None), contents)
    else:
        replace_deque(kind, container, contents)


def kind_of_container(container: Any) -> Any:
    """Python's class whose methods are a container's own, whatever a class of the user's makes of them."""
    if id(type(container)) in _KIND_IDS:
        return type(container)
    return next(kind for kind in _KINDS if isinstance(container, kind))


_KINDS = (collections.OrderedDict, dict, list, set, collections.deque)

_KIND_IDS = frozenset(map(id, _KINDS))  # a metaclass may say what its classes are equal to, so none is asked
