"""The kind of each class of guards."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from stillgraph.program import guards
from stillgraph.runtime.guards.kinds import (
    constants,
    containers,
    functions,
    identity,
    inputs,
    namespaces,
    settings,
    tensors,
    types,
)
from stillgraph.runtime.guards.kinds.kind import Kind

G = TypeVar("G", bound=guards.Guard | inputs.Fetch)

KINDS: Mapping[type, Kind[Any]] = MappingProxyType(
    {
        guards.AliasGuard: identity.OfAliases(),
        guards.ApartGuard: identity.OfWhatIsApart(),
        guards.BehindGuard: types.OfWhatIsBehind(),
        guards.BytesGuard: constants.OfBytes(),
        guards.ConstantGuard: constants.OfConstants(),
        guards.ContentsGuard: constants.OfContents(),
        guards.ElementsGuard: containers.OfElements(),
        guards.EnvironmentGuard: settings.OfEnvironment(),
        guards.FactGuard: tensors.OfFacts(),
        guards.FunctionGuard: functions.OfFunctions(),
        guards.IdentityGuard: identity.OfIdentity(),
        guards.KeysGuard: containers.OfKeys(),
        guards.LengthGuard: containers.OfLengths(),
        guards.MembersGuard: namespaces.OfMembers(),
        guards.MissingGuard: namespaces.OfMissingNames(),
        guards.ModeGuard: settings.OfModes(),
        guards.MemoryGuard: identity.OfMemory(),
        guards.NoAttributeGuard: namespaces.OfNoAttribute(),
        guards.ObjectGuard: types.OfTypes(),
        guards.ReadingGuard: settings.OfReadings(),
        guards.SeparateGuard: identity.OfWhatIsSeparate(),
        guards.SizeGuard: tensors.OfSizes(),
        guards.TensorGuard: tensors.OfTensors(),
        guards.TypeGuard: types.OfTypes(),
        guards.UnsetGuard: namespaces.OfUnset(),
        identity.WeakIdentityGuard: identity.OfIdentity(),
        inputs.Fetch: inputs.OfFetches(),
    }
)


def kind_of(guard: G) -> Kind[G]:
    """What is done with a guard."""
    return KINDS[type(guard)]


def weakened(guard: G) -> G:
    """The same guard, without a reference that keeps a user's object alive.

    What takes no weak reference (descriptors and the like) is held: told by its address alone, it could be mistaken for
    another object that comes to lie there when it is gone.
    """
    return kind_of(guard).weakened(guard)
