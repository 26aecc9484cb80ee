"""The cover of two dicts or sets: the keys of both, and the children of each for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from stillgraph.program.outputs import KEYS, VALUES, Keys, has_table
from stillgraph.program.types import JoinFailure
from stillgraph.trace.heap.places import MISSING

if TYPE_CHECKING:
    from stillgraph.trace.values.containers import Parts
from stillgraph.trace.values.entries import (
    KINDS_OF_DICT,
    Entry,
    OnlyIf,
    gathered,
    make_dict,
    make_set,
    names_of,
    require_numbers,
)


# ---- making two alike
def is_keyed(parts: Parts | None) -> bool:
    """Whether parts are those of a container that may have a key on some paths only."""
    return parts is not None and any(parts.type is kind for kind in (dict, set, *KINDS_OF_DICT))


def alike(first: Parts, second: Parts, *only_if: OnlyIf) -> tuple[Parts, Parts]:
    """Parts of two dicts or sets, both as columns of keys and values where one is.

    Args:
        first, second: the parts.
        only_if: for each of the two, what makes a list of a key that is there on some paths only; none refuses those.

    Raises:
        JoinFailure: the other has keys that are no numbers, or are in another order on each path.
    """
    tables = [has_table(parts.context) for parts in (first, second)]
    if tables[0] == tables[1]:
        return first, second
    makes = only_if or (_refuse_some, _refuse_some)
    return (first, _as_table(second, makes[1])) if tables[0] else (_as_table(first, makes[0]), second)


def _as_table(parts: Parts, only_if: OnlyIf) -> Parts:
    require_numbers(parts.context)
    if _has_ranks(parts):
        raise JoinFailure("SG203", "a dict has keys that only the run knows, and some in another order on each path")
    keys, values = gathered(tuple(parts.context), parts.children, parts.type is not set, only_if)
    return with_keys(parts, (KEYS,), (keys,)) if values is None else with_keys(parts, (KEYS, VALUES), (keys, values))


def _refuse_some(value: Any, present: Any) -> NoReturn:
    raise JoinFailure("SG203", "a dict or set has keys that only the run knows, and one on some paths only")


def with_keys(parts: Parts, keys: tuple[Any, ...], children: tuple[Any, ...]) -> Parts:
    """The parts of a dict or set of the same kind with other keys."""
    kind, context = parts.type, parts.context

    def rebuild(new: list[Any]) -> Any:
        made: Any = make_set(keys, new) if kind is set else make_dict(keys, new)
        return context.restore(kind, made) if isinstance(context, Keys) else made

    now = replace(context, keys=keys) if isinstance(context, Keys) else keys
    return replace(parts, context=now, names=names_of(keys), children=children, rebuild=rebuild)


@dataclass(frozen=True)
class Cover:
    """The keys of two dicts or sets, and how the children for them are to be given."""

    keys: tuple[Any, ...]
    ranked: bool  # with ranks, because the keys have no one order
    entries: frozenset[int]  # the positions of those keys of a dict that are to be entries
    is_unknown: bool = False  # whether one of the two may lack what the other has

    def of(self, parts: Parts) -> Parts:
        """One of the two, with children for all the keys."""
        mine = dict(zip(parts.context, parts.children))
        if parts.type is set:
            children = [mine.get(key, False) for key in self.keys]
        else:
            children = [self._child(parts, mine, index) for index in range(len(self.keys))]
        return with_keys(parts, self.keys, tuple(children))

    def _child(self, parts: Parts, mine: dict[Any, Any], index: int) -> Any:
        key = self.keys[index]
        if key not in mine:
            return replace(ABSENT, rank=-1 if self.ranked else None)
        if index not in self.entries:
            return mine[key]
        child = mine[key] if isinstance(mine[key], Entry) else Entry(True, mine[key])
        if self.ranked and child.rank is None:
            child = replace(child, rank=list(parts.context).index(key))
        return child


ABSENT = Entry(False, MISSING)


def cover(first: Parts, second: Parts) -> Cover:
    """What covers two dicts, or two sets.

    Raises:
        JoinFailure: two keys are equal and not the same.
    """
    left, right = list(first.context), list(second.context)
    for key in left:
        if key in right and type(key) is not type(right[right.index(key)]):
            raise JoinFailure("SG203", f"{key!r} on one path, {right[right.index(key)]!r} on the other, are one key")
    sides = [dict(zip(parts.context, parts.children)) for parts in (first, second)]
    merged = None if first.type is set or any(map(_has_ranks, (first, second))) else _merged(left, right)
    ranked = merged is None and first.type is not set
    keys = merged if merged is not None else [*left, *(key for key in right if key not in sides[0])]
    entries = (i for i, k in enumerate(keys) if ranked or any(isinstance(side.get(k, ABSENT), Entry) for side in sides))
    has_flags = first.type is set and not has_table(first.context)
    is_unknown = has_flags and any(side.get(key) is not True for side in sides for key in keys)
    found = frozenset(entries)
    return Cover(tuple(keys), ranked, found, is_unknown or bool(found))


def _has_ranks(parts: Parts) -> bool:
    return any(isinstance(child, Entry) and child.rank is not None for child in parts.children)


def _merged(left: list[Any], right: list[Any]) -> list[Any] | None:
    """The keys of both in an order that each of the two has for its own, if there is one."""
    merged: list[Any] = []
    for key in left:
        if key in right:
            cut = right.index(key)
            merged += right[:cut]
            right = right[cut + 1 :]
        merged.append(key)
    merged += right
    return merged if len(set(merged)) == len(merged) else None
