"""Guards on names: what they stand for, and that they stand for nothing."""

from __future__ import annotations

import operator

from stillgraph.core.lookup import is_unset
from stillgraph.program.guards import MembersGuard, MissingGuard, NoAttributeGuard, UnsetGuard
from stillgraph.program.sources import Cell
from stillgraph.runtime.guards.kinds.kind import Kind, Read
from stillgraph.runtime.guards.weak import ids_while_alive, is_member, weak_object
from stillgraph.runtime.native.function_writer import FunctionWriter

_FEW, _MANY = 4, 16  # what is quickly asked one after another; more names than most namespaces have


class OfMembers(Kind[MembersGuard]):
    """Names of a namespace stand for the very same objects."""

    def miss(self, guard: MembersGuard, writer: FunctionWriter) -> str:
        # Comparing ids takes a third of the time of comparing the objects. The ids go with the first object that dies.
        value, members = writer.read(guard.source), guard.members
        found = "*map(id, {0}({1}))" if len(members) > 1 else "id({0}({1}))"
        names = writer.constant(operator.itemgetter(*(name for name, _ in members)))
        ids, alive = ids_while_alive([member for _, member in members])
        writer.constant(alive)
        return f"[{found.format(names, value)}] != {writer.constant(ids)}"

    def why(self, guard: MembersGuard, read: Read) -> str | None:
        space = read(guard.source)
        changed = next((name for name, member in guard.members if not is_member(space[name], member)), None)
        return None if changed is None else f"{guard.source}[{changed!r}] should be what it was, but was replaced"

    def weakened(self, guard: MembersGuard) -> MembersGuard:
        return MembersGuard(guard.source, tuple((name, weak_object(member)) for name, member in guard.members))


class OfMissingNames(Kind[MissingGuard]):
    """Names stand for nothing in a namespace."""

    def miss(self, guard: MissingGuard, writer: FunctionWriter) -> str:
        value, names = writer.read(guard.source), guard.names + guard.hiding
        if len(names) <= _FEW:
            return " or ".join(f"{name!r} in {value}" for name in names)
        if len(names) > _MANY:
            return f"not {writer.constant(frozenset(names))}.isdisjoint({value})"
        return f"not {value}.keys().isdisjoint({writer.constant(names)})"

    def why(self, guard: MissingGuard, read: Read) -> str | None:
        made = next((name for name in guard.names + guard.hiding if name in read(guard.source)), None)
        return None if made is None else f"{guard.source} should lack {made!r}, but has it"


class OfNoAttribute(Kind[NoAttributeGuard]):
    """An object has no attribute of a name."""

    def miss(self, guard: NoAttributeGuard, writer: FunctionWriter) -> str:
        return f"hasattr({writer.read(guard.source)}, {guard.name!r})"

    def why(self, guard: NoAttributeGuard, read: Read) -> str | None:
        has = hasattr(read(guard.source), guard.name)
        return f"{guard.source} should have no attribute {guard.name!r}, but has one" if has else None


class OfUnset(Kind[UnsetGuard]):
    """A variable that functions share holds nothing."""

    def miss(self, guard: UnsetGuard, writer: FunctionWriter) -> str:
        source = guard.source
        cell = writer.constant(source.cell) if isinstance(source, Cell) else writer.read(source.base)
        return f"not {writer.constant(is_unset)}({cell})"

    def why(self, guard: UnsetGuard, read: Read) -> str | None:
        source = guard.source
        cell = source.cell if isinstance(source, Cell) else read(source.base)
        return None if is_unset(cell) else f"{source} should be unset, but holds a value"
