"""What the arguments of a saved program have to be besides tensors and plain values, as JSON and to be checked.

The lengths and keys of containers, values that JSON has no form for, arrays, and which arguments are one object.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import torch

from stillgraph.core.diagnostics import load_error
from stillgraph.deploy.description.asked import asks_gradients, asks_layout, handles_errors
from stillgraph.deploy.description.constants import is_atom
from stillgraph.deploy.description.shared_memory import arguments_written
from stillgraph.deploy.description.signature import is_argument, objects_of
from stillgraph.deploy.description.structure import decode_source, encode_source
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    BytesGuard,
    ConstantGuard,
    FactGuard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    ModeGuard,
    TensorGuard,
    TypeGuard,
)
from stillgraph.program.program import Program
from stillgraph.program.sources import Source
from stillgraph.runtime.native.overlap import overlap

_CONTAINERS = (list, tuple, dict)

Json = Any
Read = Callable[[Source], Any]
Named = Callable[[Source], str]


def encode_preconditions(program: Program, no_leaves: Sequence[Source] = ()) -> list[Json]:
    """The conditions of a program on its arguments: each a kind, places, and what is expected there.

    Args:
        program: to be saved.
        no_leaves: places of tensors that may be no leaves that require gradients.
    """
    known: list[Json] = []
    objects = objects_of(program) - _written_out(program)
    for kind, sources, expected in [*_conditions(program), *(("leaf", (source,), False) for source in no_leaves)]:
        places = [encode_source(source) for source in sources if is_argument(source, objects)]
        condition = [kind, places, expected]
        if len(places) == len(sources) and None not in places and condition not in known:
            known.append(condition)
    return known


def _written_out(program: Program) -> set[Source]:
    """Arguments that are compared by what they show: classes, and members of enumerations."""
    return {guard.source for guard in program.guards if isinstance(guard, IdentityGuard) and _is_named(guard.expected)}


def _is_named(value: Any) -> bool:
    return isinstance(value, (enum.Enum, type))


def _conditions(program: Program) -> Iterator[tuple[str, tuple[Source, ...], Any]]:
    asked = asks_layout(program)
    tensors = [guard for guard in program.guards if isinstance(guard, TensorGuard)]
    if not asks_gradients(program):
        tensors = [guard for guard in tensors if guard.requires_grad and _handled_with_gradients(program)]
    yield from (("gradient", (guard.source,), guard.requires_grad) for guard in tensors)
    for guard in program.guards:
        match guard:
            case TensorGuard(source=source, strides=strides) if asked and strides is not None:
                yield "strides", (source,), list(strides)
            case FactGuard(source=source, name="is_contiguous", value=True) if asked:
                yield "strides", (source,), None
            case FactGuard(source=source, name="storage_offset", value=offset):
                yield "offset", (source,), offset
            case TypeGuard(source=source, type=kind) if kind in _CONTAINERS:
                yield "type", (source,), kind.__name__
            case LengthGuard(source=source, length=length):
                yield "length", (source,), length
            case KeysGuard(source=source, keys=keys):
                yield "keys", (source,), [repr(key) for key in keys]
            case ConstantGuard(source=source, value=value) if not is_atom(value):
                yield "shown", (source,), _shown(value)
            case IdentityGuard(source=source, expected=value) if _is_named(value):
                yield "shown", (source,), _shown(value)
            case BytesGuard(source=source, data=data):
                yield "bytes", (source,), _digest(data)
            case AliasGuard(left=left, right=right, same=same):
                yield "same", (left, right), same
            case ApartGuard(sources=sources):
                yield from (("same", pair, False) for pair in combinations(sources, 2))
    shared = arguments_written(program)
    if shared:
        yield "apart", shared, None


def _handled_with_gradients(program: Program) -> bool:
    """Whether a handler of the function's may have taken what torch raises for gradients."""
    with_gradients = any(isinstance(guard, ModeGuard) and guard.context.grad for guard in program.guards)
    return with_gradients and handles_errors(program)


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def _digest(data: Any) -> str:
    return hashlib.sha256(repr(data).encode()).hexdigest()


class Precondition:
    """A condition on the arguments of a loaded program.

    Args:
        data: as `encode_preconditions` gives it.
    """

    def __init__(self, data: Json) -> None:
        self._kind, places, self._expected = data
        self._sources = [decode_source(place) for place in places]
        count = {"same": 2, "apart": len(self._sources)}.get(self._kind, 1)
        if self._kind not in _FAULTS or len(self._sources) != count:
            raise load_error(f"it has a condition on arguments that is not known here: {str(self._kind)[:100]!r}")

    def fault(self, read: Read, named: Named) -> str | None:
        """What is wrong with the arguments of a call, if anything is: ``xs of length 2, not 3``."""
        values = [read(source) for source in self._sources]
        names = [named(source) for source in self._sources]
        return _FAULTS[self._kind](names, values, self._expected)


def _type(names: list[str], values: list[Any], expected: str) -> str | None:
    found = type(values[0]).__name__
    return None if found == expected else f"{names[0]} being a {expected}, not a {found}"


def _length(names: list[str], values: list[Any], expected: int) -> str | None:
    found = len(values[0]) if hasattr(values[0], "__len__") else None
    other = f"a {type(values[0]).__name__}" if found is None else str(found)
    return None if found == expected else f"{names[0]} of length {expected}, not {other}"


def _keys(names: list[str], values: list[Any], expected: list[str]) -> str | None:
    (value,) = values
    wanted = f"{names[0]} with {', '.join(expected) or 'nothing'} in it"
    if not hasattr(value, "__iter__"):
        return f"{wanted}, not a {type(value).__name__}"
    found = [repr(key) for key in value]
    if sorted(found) != sorted(expected):
        return f"{wanted}, not {', '.join(found) or 'nothing'}"
    if found != expected and not isinstance(value, (set, frozenset)):
        return f"{wanted} in this order, not {', '.join(found)}"
    return None


def _as_shown(names: list[str], values: list[Any], expected: str) -> str | None:
    wanted, found = expected.partition(" ")[2], values[0]
    return None if _shown(found) == expected else f"{names[0]} = {wanted}, not {found!r}"[:300]


def _bytes(names: list[str], values: list[Any], expected: str) -> str | None:
    try:
        same = _digest(fingerprint(values[0])) == expected
    except (TypeError, AttributeError):
        same = False
    return None if same else f"other numbers in {names[0]}"


def _same(names: list[str], values: list[Any], expected: bool) -> str | None:
    if (values[0] is values[1]) is expected:
        return None
    return f"{names[0]} and {names[1]} {'being one object' if expected else 'being two objects'}"


def _strides(names: list[str], values: list[Any], expected: list[int] | None) -> str | None:
    """What is wrong with how a tensor lies in memory; None expects it to be contiguous."""
    (value,) = values
    if not isinstance(value, torch.Tensor):
        return None  # that is told otherwise
    if value.is_contiguous() if expected is None else list(value.stride()) == expected:
        return None
    wanted = "contiguous" if expected is None else f"of strides {tuple(expected)}"
    return f"{names[0]} {wanted}, not of strides {tuple(value.stride())}: it asks how its tensors lie in memory"


def _offset(names: list[str], values: list[Any], expected: int) -> str | None:
    found = values[0].storage_offset() if isinstance(values[0], torch.Tensor) else expected
    return None if found == expected else f"{names[0]} with a storage offset of {expected}, not {found}"


def _gradient(names: list[str], values: list[Any], expected: bool) -> str | None:
    found = values[0].requires_grad if isinstance(values[0], torch.Tensor) else expected
    return None if found == expected else f"{names[0]}.requires_grad = {expected}, not {found}"


def _leaf(names: list[str], values: list[Any], expected: bool) -> str | None:
    (value,) = values
    if not torch.is_grad_enabled() or not isinstance(value, torch.Tensor) or not value.requires_grad:
        return None
    if not (value.is_leaf or (value._is_view() and value._base is not None and value._base.is_leaf)):
        return None
    what = f"{names[0]} being no leaf that requires a gradient, which PyTorch lets nobody write to in place"
    return f"{what}: call it under torch.no_grad()"


def _apart(names: list[str], values: list[Any], expected: None) -> str | None:
    return f"{', '.join(names)} with memory of their own, for the program writes to some" if overlap(values) else None


_FAULTS: dict[str, Callable[[list[str], list[Any], Any], str | None]] = {
    "type": _type,
    "length": _length,
    "keys": _keys,
    "shown": _as_shown,
    "bytes": _bytes,
    "same": _same,
    "apart": _apart,
    "strides": _strides,
    "offset": _offset,
    "gradient": _gradient,
    "leaf": _leaf,
}
