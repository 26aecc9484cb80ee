"""Classes of a written file that stand for the user's: they look alike, and have none of the methods."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.python.spelling import Spelling, is_at_hand

_DATA = (object, int, float, str, bytes, complex)  # what members may be besides members
_SHOWING = ("__str__", "__repr__", "__format__")


def stand_ins(spelling: Spelling) -> list[str]:
    """The text of each class, behind those that it needs."""
    made = {kind: _stand_in(spelling, kind) for kind in _all(spelling)}
    return [made[kind] for kind in sorted(made, key=_order(spelling))]


def _all(spelling: Spelling) -> Iterator[type]:
    """The classes; writing one may need another one."""
    done: set[type] = set()
    while left := [kind for kind in spelling.stand_ins.values() if kind not in done]:
        done.update(left)
        yield from left


def _order(spelling: Spelling) -> Callable[[type], tuple[int, str]]:
    """A key that sorts classes by name, but behind those of which they need the class or the members."""

    def depth(kind: type) -> int:
        if issubclass(kind, enum.Enum):
            used = {type(member.value) for member in kind} & set(spelling.stand_ins.values()) - {kind}
            return 1 + max(map(depth, used), default=-1)
        above = [each for each in spelling.stand_ins.values() if each is not kind and issubclass(kind, each)]
        return len(above) if issubclass(kind, BaseException) else 0

    return lambda kind: (depth(kind), kind.__name__)


def _stand_in(spelling: Spelling, kind: type) -> str:
    """A class of the file's own for one of the user's."""
    module = kind.__module__.rpartition(".")[2]
    where = "" if module == "__main__" else f" in {module}"
    said = f'"""Stands for the class of that name{where}: the same fields, none of its methods."""'
    if issubclass(kind, BaseException):
        listed = ", ".join(_exception_bases(spelling, kind))
        return f'class {kind.__name__}({listed}):\n    """Stands for the exception of that name{where}."""'
    if issubclass(kind, enum.Enum):
        return _enumeration(spelling, kind, where)
    if issubclass(kind, tuple):
        spelling.imports.add("import collections")
        listed = ", ".join(f'"{name}"' for name in kind._fields)  # type: ignore[attr-defined]  # a named tuple
        remark = f"  # stands for the class of that name{where}"
        return f'{kind.__name__} = collections.namedtuple("{kind.__name__}", [{listed}]){remark}'
    fields = spelling.fields[kind.__name__]
    if dataclasses.is_dataclass(kind):
        spelling.imports.add("import dataclasses")
        listed = "".join(f"\n    {name}: object" for name in fields)
        return f"@dataclasses.dataclass\nclass {kind.__name__}:\n    {said}\n{listed}"
    return (
        f"class {kind.__name__}:\n    {said}\n\n"
        "    def __init__(self, **attributes):\n        self.__dict__.update(attributes)"
    )


def _exception_bases(spelling: Spelling, kind: type) -> list[str]:
    """What the stand-in of an exception derives from: what catches the user's is to catch it."""
    mine = kind.__mro__[1:]
    known = [each for each in mine if each in spelling.stand_ins.values() or is_at_hand(each.__module__)]
    nearest = [each for each in known if not any(other is not each and issubclass(other, each) for other in known)]
    return [each.__name__ if each in spelling.stand_ins.values() else spelling.function(each) for each in nearest]


# ---- enumerations
def _enumeration(spelling: Spelling, kind: type[enum.Enum], where: str) -> str:
    """An enumeration with the same members.

    Raises:
        ExportError: its members are what a file cannot make.
    """
    base, data = _kind_of_enumeration(kind), _data_of(kind)
    bases = [f"{spelling.imported('enum')}.{base.__name__}"]
    if data is not object and _data_of(base) is object:
        bases.insert(0, data.__name__)
    if data is object:  # others are compared by what they are besides
        bases.insert(0, spelling.helper("_Alike"))
    boundary, given = (getattr(each, "_boundary_", None) for each in (kind, base))  # flags alone have one
    if boundary is not None and boundary is not given:
        bases.append(f"boundary=enum.{boundary.name}")
    _check_data(spelling, kind, data)
    listed = [f"    {name} = {spelling.literal(member._value_)}" for name, member in kind.__members__.items()]
    said = f'"""Stands for the class of that name{where}: the same members, none of its methods."""'
    return "\n".join([f"class {kind.__name__}({', '.join(bases)}):", f"    {said}", "", *listed])


def _check_data(spelling: Spelling, kind: type[enum.Enum], data: type) -> None:
    told = all(
        name.isidentifier() and (data is object or _is_data(member, data)) for name, member in kind.__members__.items()
    )
    if data not in _DATA or not told:
        message = f"a file of torch alone cannot make the members of '{kind.__qualname__}' anew"
        hint = "Let its members be texts, numbers or tuples of them, under plain names, or save as .pt2."
        raise refuse("SG402", message, location=spelling.location, hint=hint)


def _is_data(member: Any, data: type) -> bool:
    """Whether a member is as a text, say, what its value is."""
    same: Any = data.__eq__  # of the members' own class nobody asks
    return type(member._value_) is data and bool(same(member, member._value_))


def _data_of(kind: type[enum.Enum]) -> type:
    found: type = kind._member_type_  # type: ignore[attr-defined]  # an attribute of `enum`'s that typeshed lacks
    return found


def _kind_of_enumeration(kind: type[enum.Enum]) -> type[enum.Enum]:
    """The class of Python's that an enumeration derives from."""
    return next(each for each in kind.__mro__ if each.__module__ == "enum" and issubclass(each, enum.Enum))


def shows_itself(member: enum.Enum) -> bool:
    """Whether the class of a member says how it is shown, which its stand-in does not."""
    return any(_is_own(type(member), name) for name in _SHOWING)


def computes_itself(member: enum.Enum) -> bool:
    """Whether the class of a member says what operators do with it."""
    kind = type(member)
    names = {name for base in kind.__mro__ for name in vars(base) if name.startswith("__") and name.endswith("__")}
    return any(_is_own(kind, name) for name in names if name.strip("_") in _OPERATORS)


def _is_own(kind: type, name: str) -> bool:
    """Whether a method is the user's: Python puts some of its own into each enumeration."""
    given = [vars(base).get(name) for base in kind.__mro__ if is_at_hand(base.__module__)]
    return not any(getattr(kind, name) is each for each in given)


_ARITHMETIC = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow")
_OF_BITS = ("lshift", "rshift", "and", "or", "xor")
_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
_OF_ONE = ("neg", "pos", "abs", "invert", "int", "float", "index", "bool")
_REFLECTED = tuple(f"r{name}" for name in (*_ARITHMETIC, *_OF_BITS))
_OPERATORS = frozenset({*_ARITHMETIC, *_OF_BITS, *_REFLECTED, *_COMPARING, *_OF_ONE})
