"""Guards on what a value is equal to."""

from __future__ import annotations

import math
from typing import Any

from stillgraph.core.parcel import opened
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.guards import BytesGuard, ConstantGuard, ContentsGuard
from stillgraph.runtime.guards.comparing import BY_IDENTITY, Contents, strict_key
from stillgraph.runtime.guards.differences import difference
from stillgraph.runtime.guards.kinds.kind import Kind, Read
from stillgraph.runtime.guards.words import shown
from stillgraph.runtime.native.function_writer import FunctionWriter


class OfConstants(Kind[ConstantGuard]):
    """A value is equal to a constant, and of its class."""

    def miss(self, guard: ConstantGuard, writer: FunctionWriter) -> str:
        value, expected = writer.read(guard.source), guard.value
        if isinstance(expected, BY_IDENTITY):
            return f"{value} is not {writer.constant(expected)}"
        kind = type(expected)
        if kind in (int, str, bytes):
            return f"type({value}) is not {kind.__name__} or {value} != {writer.literal(expected)}"
        if kind is float:
            return _float_miss(value, expected, writer)
        # An equal key ends with the value's own ``==``, which may answer with anything that has a truth value.
        return f"{writer.constant(strict_key)}({value}) != {writer.constant(strict_key(expected))}"

    def why(self, guard: ConstantGuard, read: Read) -> str | None:
        value, expected = read(guard.source), guard.value
        if strict_key(value) == strict_key(expected):
            return None
        value = opened(value)
        kinds = (f" ({type(expected).__name__})", f" ({type(value).__name__})")
        if type(value) is type(expected):
            kinds = ("", "")
        return f"{guard.source} should be {shown(expected)}{kinds[0]}, but is {shown(value)}{kinds[1]}"


def _float_miss(value: str, expected: float, writer: FunctionWriter) -> str:
    wrong_type = f"type({value}) is not float"
    sign = math.copysign(1.0, expected)
    if math.isnan(expected):
        return f"{wrong_type} or {value} == {value} or math.copysign(1.0, {value}) != {sign}"
    if expected == 0.0:
        return f"{wrong_type} or {value} != 0.0 or math.copysign(1.0, {value}) != {sign}"
    return f"{wrong_type} or {value} != {writer.constant(expected)}"


class OfContents(Kind[ContentsGuard]):
    """A container of numbers and texts holds what it held."""

    def miss(self, guard: ContentsGuard, writer: FunctionWriter) -> str:
        return f"not {writer.constant(Contents.of(guard.value).are_in)}({writer.read(guard.source)})"

    def why(self, guard: ContentsGuard, read: Read) -> str | None:
        value = read(guard.source)
        if Contents.of(guard.value).are_in(value):
            return None
        return difference(str(guard.source), guard.value, value, shown)


class OfBytes(Kind[BytesGuard]):
    """A numpy array is what it was and holds what it held."""

    def miss(self, guard: BytesGuard, writer: FunctionWriter) -> str:
        return f"{writer.constant(fingerprint)}({writer.read(guard.source)}) != {writer.constant(guard.data)}"

    def why(self, guard: BytesGuard, read: Read) -> str | None:
        found: tuple[Any, ...] = fingerprint(read(guard.source))
        if found == guard.data:
            return None
        parts = zip(("type", "dtype", "shape", "strides", "writability"), guard.data, found)
        other = next((part for part, old, new in parts if new != old), None)
        return f"the array {guard.source} {'holds other numbers' if other is None else f'is of another {other}'}"
