"""Guards on the class of a value."""

from __future__ import annotations

from stillgraph.core.lookup import behind_view
from stillgraph.core.parcel import opened
from stillgraph.program.guards import BehindGuard, TypeGuard
from stillgraph.runtime.guards.kinds.kind import Kind, Read
from stillgraph.runtime.guards.words import kind_expected, kind_found
from stillgraph.runtime.native.function_writer import FunctionWriter


class OfTypes(Kind[TypeGuard]):
    """A value is of just this class."""

    cost = 0

    def miss(self, guard: TypeGuard, writer: FunctionWriter) -> str:
        return f"type({writer.read(guard.source)}) is not {writer.constant(guard.type)}"

    def why(self, guard: TypeGuard, read: Read) -> str | None:
        value, kind = read(guard.source), guard.type
        if type(value) is kind:
            return None
        if type(opened(value)) is kind:
            found = "that is looked into, but is one that is only handed on"
            return f"{guard.source} should be {kind_expected(kind)} {found}"
        return f"{guard.source} should be {kind_expected(kind)}, but is {kind_found(value)}"


class OfWhatIsBehind(Kind[BehindGuard]):
    """What a view of a mapping shows is of just this class."""

    def miss(self, guard: BehindGuard, writer: FunctionWriter) -> str:
        shows = f"{writer.constant(behind_view)}({writer.read(guard.source)})"
        return f"type({shows}) is not {writer.constant(guard.type)}"

    def why(self, guard: BehindGuard, read: Read) -> str | None:
        value = behind_view(read(guard.source))
        if type(value) is guard.type:
            return None
        return f"{guard.source} should show {kind_expected(guard.type)}, not {kind_found(value)}"
