"""Dicts with keys, and sets with elements, that are there on some paths only.

In the user's dict or set a `MaybeKey` stands for such a key, so that the object, its aliases and the copies that Python
makes of it keep their meaning: it has the key's hash, and whoever compares it with that key is refused. Taken apart,
the container has an `Entry` in place of the value.
"""

from __future__ import annotations

import collections
from collections.abc import ItemsView, Sequence, ValuesView
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from torch.utils._pytree import is_namedtuple_instance

from stillgraph.core.diagnostics import refuse
from stillgraph.core.shown import shown_key
from stillgraph.program.outputs import KEYS, VALUES, Keys, has_table
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.number_operands import NUMBERS
from stillgraph.trace.values.numbers import Staged, StagedNumber

if TYPE_CHECKING:
    from stillgraph.trace.values.containers import Parts


KINDS_OF_DICT = (collections.OrderedDict, collections.defaultdict, collections.Counter)
_WITH_TABLES = (dict, set, frozenset, *KINDS_OF_DICT)


def some_keys(value: Any) -> str:
    """A container with keys that may be missing, as messages name it."""
    found = container_of(value)
    if found is not None and table_of(found) is not None:
        return f"a {type(found).__name__} with keys that only the run knows"
    keys = [shown_key(key.key) for key in found or () if type(key) is MaybeKey and key.present is not True]
    kind = type(value if found is None else found).__name__
    if not 0 < len(keys) <= _MOST_SHOWN:
        return f"a {kind} with keys that are there on some paths only"
    return f"a {kind} with {', '.join(keys)} on some paths only"


_MOST_SHOWN = 4


class MaybeKey(Staged):
    """Stands for ``key`` in a dict or set that has it only where ``present`` is true.

    Attributes:
        key: the user's.
        present: a staged truth value, or ``True``.
        rank: where only the run knows the order of a dict's keys, a number by which they are to be sorted: all keys
            of the dict then have one.
    """

    __slots__ = ("key", "present", "rank")

    def __init__(self, key: Any, present: Any, rank: Any = None) -> None:
        self.key = key
        self.present = present
        self.rank = rank

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is _Probe:
            other.found = self
            return other.key is self.key or bool(other.key == self.key)
        if (other.key if isinstance(other, MaybeKey) else other) != self.key:
            return False
        return self._refuse()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise refuse("SG211", f"whether {self.key!r} is there, only the run knows", location=here())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse()

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __call__ = __contains__ = _refuse
    __str__ = __repr__ = __format__ = __getitem__ = __setitem__ = __delitem__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __mod__ = __neg__ = _refuse


class MaybeName(str):
    """The name of a keyword that a call has only where ``present`` is true, on its way to a function's ``**kwargs``.

    To Python it is the name. So it may go only where `some_keywords` says, and `received` takes it there.
    """

    present: Any

    @classmethod
    def of(cls, key: MaybeKey) -> MaybeName:
        """The name for a key."""
        made = cls(key.key)
        made.present = key.present
        return made


class Table(Staged):
    """Stands in a dict or set for all its keys, of numbers that only the run knows, and for what it has by them.

    It is never changed: a dict that is changed gets another.

    Attributes:
        keys: a list, whose length only the run may know.
        values: likewise, in the same order; None for a set.
    """

    __slots__ = ("keys", "values")

    def __init__(self, keys: list[Any], values: list[Any] | None) -> None:
        self.keys = keys
        self.values = values

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise refuse("SG211", "the keys of a dict or set that only the run knows are needed before it", location=here())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse()

    __hash__ = object.__hash__
    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __call__ = __contains__ = _refuse
    __str__ = __repr__ = __format__ = __getitem__ = __setitem__ = __delitem__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __mod__ = __neg__ = _refuse


def table_of(container: Any) -> Table | None:
    """What stands for all keys of a dict or set that only the run knows."""
    if len(container) != 1 or type(container) not in _WITH_TABLES:
        return None
    (key,) = container
    return key if type(key) is Table else None


def refuse_operator(symbol: str, *sides: Any) -> None:
    """Refuse an operator that Python would compute on what stands for keys that only the run knows."""
    for side in sides:
        if symbol in _OF_SETS and isinstance(side, _WITH_TABLES) and table_of(side) is not None:
            raise refuse("SG211", f"{symbol} takes {some_keys(side)}", location=here())
    if symbol in _OF_SETS and isinstance(sides[0], frozenset):
        refuse_frozen(*sides)


_OF_SETS = frozenset("&|^-")


def refuse_frozen(*sides: Any) -> None:
    """Refuse a frozenset of elements that only the run knows: Python makes its hash of what stands for these."""
    for side in sides:
        if container_of(side) is not None:
            hint = "Keep it a set: in, len, loops and its methods take that."
            message = f"a frozenset, which has a hash, is made of {some_keys(side)}"
            raise refuse("SG211", message, location=here(), hint=hint)


@dataclass(frozen=True, eq=False)
class Entry:
    """What a dict has for a `MaybeKey`; a child of the dict's `Parts`."""

    present: Any
    value: Any
    rank: Any = None


def maybe_keys(container: Any) -> list[Any]:
    """What stands for keys of which only the run knows whether they are there: a `MaybeKey` each, or one `Table`."""
    return [key for key in container if type(key) is MaybeKey or type(key) is Table]


class _Probe:
    """A key that finds the `MaybeKey` for it, in the time of one lookup; a key of the user's sees its like in it."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.found: MaybeKey | None = None

    @property  # type: ignore[misc]  # for isinstance in an __eq__ of the user's
    def __class__(self) -> type:
        return type(self.key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.key, name)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return bool(other == self.key)


def find(container: Any, key: Any) -> MaybeKey | None:
    """What stands for a key, if only the run knows whether that is there."""
    if isinstance(key, Staged) or table_of(container) is not None:
        return None
    if type(key).__module__ != "builtins":  # whose __eq__ may be the user's, and seen
        return next((each for each in maybe_keys(container) if each.key is key or each.key == key), None)
    probe = _Probe(key)
    return probe.found if probe in container else None


# ---- looking
def container_of(value: Any) -> Any:
    """The dict or set behind a value, if only the run knows all of its keys; None for anything else."""
    if isinstance(value, (dict, set, frozenset)):
        return value if maybe_keys(value) else None
    if isinstance(value, _VIEWS):
        return value.mapping if maybe_keys(value.mapping) else None
    return None


_VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()))


def holds_unknown(value: Any) -> bool:
    """Whether a value is, or has in it, a dict or set of which only the run knows all keys."""
    if container_of(value) is not None:
        return True
    if isinstance(value, (list, tuple, collections.deque)):
        return any(map(holds_unknown, value))
    return isinstance(value, dict) and any(map(holds_unknown, value.values()))


def length(container: Any) -> Any:
    """``len(container)``."""
    unknown = maybe_keys(container)
    total: Any = len(container) - len(unknown)
    for key in unknown:
        total = total + key.present
    return total


def elements(value: Any) -> list[tuple[Any, Any]]:
    """What iterating gives: whether each element is there, and the element."""
    if is_ranked(getattr(value, "mapping", value)):
        raise refuse("SG211", "a dict is run over whose keys are in another order on each path", location=here())
    if isinstance(value, (ValuesView, ItemsView)):
        view: Any = value  # the stubs give only the views of dicts their mapping
        pairs = list(view.mapping.items())
        if isinstance(value, ValuesView):
            return [(key.present if type(key) is MaybeKey else True, item) for key, item in pairs]
        return [(k.present, (k.key, v)) if type(k) is MaybeKey else (True, (k, v)) for k, v in pairs]
    keys = getattr(value, "mapping", value)
    return [(key.present, key.key) if type(key) is MaybeKey else (True, key) for key in keys]


# ---- taking apart
def dict_parts(value: dict[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The keys of a dict and its children."""
    table = table_of(value)
    if table is not None:
        return (KEYS, VALUES), (table.keys, table.values)
    if is_ranked(value) and len(maybe_keys(value)) < len(value):
        raise refuse("SG211", "a dict whose keys have no one order is put together with another", location=here())
    pairs = [(k.key, Entry(k.present, v, k.rank)) if type(k) is MaybeKey else (k, v) for k, v in value.items()]
    return tuple(key for key, _ in pairs), tuple(child for _, child in pairs)


def make_dict(keys: Sequence[Any], children: Sequence[Any]) -> dict[Any, Any]:
    """The dict with these keys and children."""
    if tuple(keys) == (KEYS, VALUES):
        return {Table(*children): None}
    made: dict[Any, Any] = {}
    for key, child in zip(keys, children):
        if not isinstance(child, Entry):
            made[key] = child
        elif child.present is True and child.rank is None:
            made[key] = child.value
        elif child.present is not False:
            made[MaybeKey(key, child.present, child.rank)] = child.value
    return made


def set_parts(value: set[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The elements of a set and, as its children, whether each is there."""
    table = table_of(value)
    if table is not None:
        return (KEYS,), (table.keys,)
    pairs = [(e.key, e.present) if type(e) is MaybeKey else (e, True) for e in value]
    return tuple(element for element, _ in pairs), tuple(present for _, present in pairs)


def make_set(elements: Sequence[Any], children: Sequence[Any]) -> set[Any]:
    """The set of those elements that are there."""
    if tuple(elements) == (KEYS,):
        return {Table(children[0], None)}
    pairs = zip(elements, children)
    return {e if present is True else MaybeKey(e, present) for e, present in pairs if present is not False}


# ---- making two alike
def is_keyed(parts: Parts | None) -> bool:
    """Whether parts are those of a container that may have a key on some paths only."""
    return parts is not None and any(parts.type is kind for kind in (dict, set, *KINDS_OF_DICT))


def alike(first: Parts, second: Parts) -> tuple[Parts, Parts]:
    """Parts of two dicts or sets, both as columns of keys and values where one is.

    Raises:
        JoinFailure: the other has keys that are no numbers, or are there on some paths only.
    """
    tables = [has_table(parts.context) for parts in (first, second)]
    if tables[0] == tables[1]:
        return first, second
    return (first, _as_table(second)) if tables[0] else (_as_table(first), second)


def _as_table(parts: Parts) -> Parts:
    require_numbers(parts.context)
    if any(isinstance(child, Entry) or (parts.type is set and child is not True) for child in parts.children):
        raise JoinFailure("SG203", "a dict or set has keys that only the run knows, and one on some paths only")
    keys = list(parts.context)
    if parts.type is set:
        return with_keys(parts, (KEYS,), (keys,))
    return with_keys(parts, (KEYS, VALUES), (keys, list(parts.children)))


def with_keys(parts: Parts, keys: tuple[Any, ...], children: tuple[Any, ...]) -> Parts:
    """The parts of a dict or set of the same kind with other keys."""
    kind, context = parts.type, parts.context

    def rebuild(new: list[Any]) -> Any:
        made: Any = make_set(keys, new) if kind is set else make_dict(keys, new)
        return context.restore(kind, made) if isinstance(context, Keys) else made

    now = replace(context, keys=keys) if isinstance(context, Keys) else keys
    names = tuple(f"[{shown_key(key)}]" for key in keys)
    return replace(parts, context=now, names=names, children=children, rebuild=rebuild)


def is_of_run(key: Any) -> bool:
    """Whether a key is a number which only the run knows, or a tuple with one in it, and no more than plain values."""
    return isinstance(key, StagedNumber) or (_is_row(key) and any(map(is_of_run, key)) and is_sought(key))


def is_sought(key: Any) -> bool:
    """Whether a key may be looked for in the run: a number, or a tuple of numbers, texts and None."""
    if isinstance(key, StagedNumber):
        return True
    if _is_row(key):
        return all(is_sought(each) or type(each) in (str, bytes, type(None)) for each in key)
    return type(key) in NUMBERS


def _is_row(key: Any) -> bool:
    """Whether a key is a tuple, which compares and has a hash as Python's own do."""
    kind: Any = type(key)
    if kind is tuple:
        return True
    return is_namedtuple_instance(key) and kind.__eq__ is tuple.__eq__ and kind.__hash__ is tuple.__hash__


def require_numbers(keys: Any) -> None:
    """Refuse keys that are no plain numbers, or tuples of such, beside those that only the run knows.

    Raises:
        JoinFailure: there is one.
    """
    for key in keys:
        if not is_sought(key):
            raise JoinFailure("SG203", f"a dict or set has keys that only the run knows, and {key!r}")


def is_ranked(container: Any) -> bool:
    """Whether only the run knows the order of a dict's keys."""
    return any(type(key) is MaybeKey and key.rank is not None for key in maybe_keys(container))


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
