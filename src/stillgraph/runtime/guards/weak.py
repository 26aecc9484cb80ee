"""Identity without ownership: what a guard compares with `is` is not kept alive by it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stillgraph.runtime.guards.comparing import strict_key


@dataclass(frozen=True, eq=False, repr=False)
class WeakObject:
    """Stands for an object without keeping it alive."""

    reference: weakref.ref[Any]
    address: int
    type: type

    def matches(self, value: Any) -> bool:
        """Whether a value is the object; False once the object is gone."""
        return value is not None and self.reference() is value

    def equals(self, value: Any) -> bool:
        """Whether a value is the object or, by its own ``==``, as good; False once the object is gone."""
        target = self.reference()
        return target is not None and bool(strict_key(value) == strict_key(target))

    def __repr__(self) -> str:
        return f"<{self.type.__qualname__}>"


def is_member(value: Any, member: Any) -> bool:
    """Whether a value is what a `MembersGuard`, weakened or not, has for it."""
    return member.matches(value) if isinstance(member, WeakObject) else value is member


def are_keys(values: Iterable[Any], keys: tuple[Any, ...]) -> bool:
    """Whether values are, one by one, what a `KeysGuard`, weakened or not, has."""
    values = (*values,)
    pairs = zip(values, keys)
    return len(values) == len(keys) and all(
        key.equals(value) if isinstance(key, WeakObject) else strict_key(value) == strict_key(key)
        for value, key in pairs
    )


def ids_while_alive(members: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The ids of what a `MembersGuard` has; the list is emptied as soon as one of the objects is gone.

    Returns:
        The ids, and what has to be kept for as long as they are in use.
    """
    members = [weak_object(member) for member in members]
    ids = [member.address if isinstance(member, WeakObject) else id(member) for member in members]
    kept: list[Any] = []
    for member in members:
        weak = member.reference if isinstance(member, WeakObject) else None
        target = weak() if weak is not None else None
        if weak is not None and target is None:
            ids.clear()
        kept.append(member if target is None else weakref.ref(target, lambda _: ids.clear()))
    return ids, kept


def weak_object(value: Any) -> Any:
    """A `WeakObject` that stands for a value, or the value where its class allows no weak reference."""
    reference = None if isinstance(value, WeakObject) else _reference(value)
    return value if reference is None else WeakObject(reference, id(value), type(value))


def _reference(value: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None
