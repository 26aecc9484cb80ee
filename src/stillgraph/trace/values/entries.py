"""Dicts with keys, and sets with elements, that are there on some paths only.

In the user's dict or set a `MaybeKey` stands for such a key, so that the object, its aliases and the copies that Python
makes of it keep their meaning: it has the key's hash, and whoever compares it with that key is refused. Taken apart,
the container has an `Entry` in place of the value.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, ItemsView, Sequence, ValuesView
from dataclasses import dataclass
from typing import Any, NoReturn

from torch.utils._pytree import is_namedtuple_instance

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.core.shown import shown_key
from stillgraph.program.outputs import KEYS, VALUES, Column
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.number_operands import NUMBERS
from stillgraph.trace.values.numbers import Staged, StagedNumber

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


def are_of_numbers(*sides: Any) -> bool:
    """Whether sets stand on all sides, and only the run knows the elements of one: numbers."""
    are_sets = all(is_exactly(side, (set, frozenset)) for side in sides)
    return are_sets and any(table_of(side) is not None for side in sides)


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


_CONSTANTS = frozenset({str, int, float, bool, type(None), bytes})


def holds_unknown(value: Any) -> bool:
    """Whether a value is, or has in it, a dict or set of which only the run knows all keys."""
    if container_of(value) is not None:
        return True
    if isinstance(value, (list, tuple, collections.deque)):
        return any(holds_unknown(each) for each in value if type(each) not in _CONSTANTS)
    held = value.values() if isinstance(value, dict) else ()
    return any(holds_unknown(each) for each in held if type(each) not in _CONSTANTS)


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


def names_of(keys: Sequence[Any]) -> tuple[str, ...]:
    """What messages append to the name of a dict or set for each of its children."""
    if len(keys) == 1 and keys[0] is KEYS:
        return ("",)
    return tuple(f".{key.name}()" if isinstance(key, Column) else f"[{shown_key(key)}]" for key in keys)


def make_dict(keys: Sequence[Any], children: Sequence[Any]) -> dict[Any, Any]:
    """The dict with these keys and children."""
    if len(keys) == 2 and keys[0] is KEYS:
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
    if len(elements) == 1 and elements[0] is KEYS:
        return {Table(children[0], None)}
    pairs = zip(elements, children)
    return {e if present is True else MaybeKey(e, present) for e, present in pairs if present is not False}


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


OnlyIf = Callable[[Any, Any], Any]  # what stands in a list for a value that is there where a flag is true


def gathered(
    keys: Sequence[Any], children: Sequence[Any], is_dict: bool, only_if: OnlyIf
) -> tuple[list[Any], list[Any] | None]:
    """The keys and children of a dict or set as a list of keys, and one of values; None for a set's."""
    found: list[Any] = []
    values: list[Any] = []
    for key, child in zip(keys, children):
        held = child.value if isinstance(child, Entry) else child
        present = child.present if isinstance(child, Entry) else is_dict or child
        if present is not False:
            found.append(key if present is True else only_if(key, present))
            values.append(held if present is True or not is_dict else only_if(held, present))
    return found, values if is_dict else None


def is_ranked(container: Any) -> bool:
    """Whether only the run knows the order of a dict's keys."""
    return any(type(key) is MaybeKey and key.rank is not None for key in maybe_keys(container))


