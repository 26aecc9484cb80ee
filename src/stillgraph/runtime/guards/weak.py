"""Identity without ownership: what a guard compares with `is` is not kept alive by it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stillgraph.program.guards import Guard, IdentityGuard, KeysGuard, MembersGuard
from stillgraph.runtime.guards.comparing import BY_IDENTITY, strict_key

_HELD_TYPES = (int, float, complex, str, bytes, range, slice, tuple, type(None), type(Ellipsis), type(NotImplemented))
_HELD_KEYS = (*_HELD_TYPES, *BY_IDENTITY)


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


@dataclass(frozen=True, eq=False)
class WeakIdentityGuard(IdentityGuard):
    """An `IdentityGuard` whose ``expected`` is a `WeakObject`."""

    def __str__(self) -> str:
        return f"{self.source} is the same {self.expected.type.__name__}"


def weakened(guard: Guard) -> Guard:
    """The same guard, without a reference that keeps a user's object alive.

    Args:
        guard: any guard; only an `IdentityGuard`, a `MembersGuard` and a `KeysGuard` are changed.

    Returns:
        A `WeakIdentityGuard`, a `MembersGuard` or `KeysGuard` of `WeakObject` (and of what takes no weak reference:
        descriptors and the like), or the guard itself. What takes no weak reference is held: told by its address alone,
        it could be mistaken for another object that comes to lie there when it is gone.
    """
    if isinstance(guard, KeysGuard) and not all(isinstance(key, _HELD_KEYS) for key in guard.keys):
        keys = (key if isinstance(key, _HELD_KEYS) else _weak_member(key) for key in guard.keys)
        return KeysGuard(guard.source, tuple(keys))
    if isinstance(guard, MembersGuard):
        return MembersGuard(guard.source, tuple((name, _weak_member(member)) for name, member in guard.members))
    if not isinstance(guard, IdentityGuard) or isinstance(guard, WeakIdentityGuard):
        return guard
    expected = guard.expected
    reference = _reference(expected)
    if reference is None:
        return guard
    return WeakIdentityGuard(guard.source, WeakObject(reference, id(expected), type(expected)))


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
    members = [_weak_member(member) for member in members]
    ids = [member.address if isinstance(member, WeakObject) else id(member) for member in members]
    kept: list[Any] = []
    for member in members:
        weak = member.reference if isinstance(member, WeakObject) else None
        target = weak() if weak is not None else None
        if weak is not None and target is None:
            ids.clear()
        kept.append(member if target is None else weakref.ref(target, lambda _: ids.clear()))
    return ids, kept


def _weak_member(member: Any) -> Any:
    reference = None if isinstance(member, WeakObject) else _reference(member)
    return member if reference is None else WeakObject(reference, id(member), type(member))


def _reference(value: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None
