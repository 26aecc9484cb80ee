"""How the value a program returns (or writes into an object) is rebuilt from what its graph puts out.

A `Template` is a small tree. Its leaves are outputs of the graph, constants, and objects that the caller passed in and
gets back as they are; its nodes rebuild containers of the same Python type eager PyTorch would have returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

from stillgraph.core.diagnostics import Side
from stillgraph.program.sources import Source


@dataclass(frozen=True)
class Output:
    """The graph's output at ``index``: a tensor, or a Python number; ``may_be_unset`` where some path has none."""

    index: int
    may_be_unset: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return f"out[{self.index}]"


@dataclass(frozen=True, eq=False)
class Constant:
    """An object that capture found and that no staged value is part of; returned as it is, an array as a copy.

    Attributes:
        made: whether each call makes one: an exception, of which a copy is returned.
    """

    value: Any
    made: bool = False

    def __str__(self) -> str:
        return shown(self.value)


def shown(value: Any) -> str:
    """An object as it is written where programs are read: functions and classes by name, none with its address."""
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return value.__qualname__
    return value.__name__ if isinstance(value, ModuleType) else re.sub(r" at 0x[0-9a-f]+\b", "", repr(value))


@dataclass(frozen=True)
class Same:
    """The very object that is found at a source now (an argument handed back, a module, a container)."""

    source: Source

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, eq=False)
class Container:
    """A pytree node: `torch.utils._pytree`'s type and context, and a template for each child.

    A method that is bound to an object (`BOUND`) counts as one: of a Python function and that object, or of the object
    alone, with the method's name for its context.
    """

    type: type
    context: Any
    children: tuple[Template, ...]

    def __str__(self) -> str:
        inner = ", ".join(str(c) for c in self.children)
        return f"{self.type.__name__}({inner})"


BOUND = (MethodType, BuiltinMethodType, MethodWrapperType)


@dataclass(frozen=True)
class Keys:
    """The context of a `Container` that is one of the library's kinds of dict: an ``OrderedDict``, a ``Counter`` …"""

    keys: tuple[Any, ...]
    default_factory: Any = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys)

    def __getitem__(self, index: int) -> Any:
        return self.keys[index]

    def restore(self, kind: Any, items: dict[Any, Any]) -> Any:
        """A dict of this kind with these items."""
        made = kind() if self.default_factory is None else kind(self.default_factory)
        for key, value in items.items():
            made[key] = value
        return made


@dataclass(frozen=True)
class Column:
    """Stands in the context of a dict or set whose keys only the run knows: a child has all of them, or all values."""

    name: str

    def __str__(self) -> str:
        return f"its {self.name}"


KEYS, VALUES = Column("keys"), Column("values")


def has_table(context: Any) -> bool:
    """Whether the children of a dict or set are the list of its keys and that of its values."""
    return context is not None and any(key is KEYS for key in context)


@dataclass(frozen=True, eq=False)
class Instance:
    """A fresh plain object (a dataclass, say): its class, and a template for each entry of its ``__dict__``."""

    type: type
    attributes: tuple[tuple[str, Template], ...]

    def __str__(self) -> str:
        inner = ", ".join(f"{n}={t}" for n, t in self.attributes)
        return f"{self.type.__name__}({inner})"


@dataclass(frozen=True)
class Shared:
    """The node numbered ``index`` of this result, once more: two names for one fresh container stay one object."""

    index: int

    def __str__(self) -> str:
        return f"same as #{self.index}"


@dataclass(frozen=True, eq=False)
class Choice:
    """One of two results that no container or tensor type covers; ``flag`` is a truth value among the outputs.

    ``sides``: what the two are and which lines gave them, as messages show it.
    """

    flag: Output
    left: Template
    right: Template
    sides: tuple[Side, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.left} if {self.flag} else {self.right})"


@dataclass(frozen=True)
class Absent:
    """In a choice of what an attribute is to be: on this path the object does not have it."""

    def __str__(self) -> str:
        return "nothing"


ABSENT = Absent()


@dataclass(frozen=True, eq=False)
class Repeated:
    """In a list: as many children as the lists ``columns`` among the outputs are long.

    ``element`` is the template of one child; an `Output` in it is a column's entry, by the column's position here.

    ``sized`` has the positions of columns that are two outputs each: a tensor of all elements one behind another, and
    the next among ``columns``, which does not count as a position, with a row of sizes for each.
    """

    columns: tuple[Output, ...]
    element: Template
    sized: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"*({self.element} for out in zip({', '.join(map(str, self.columns))}))"


@dataclass(frozen=True, eq=False)
class Maybe:
    """In a dict or set: a child that is there only where ``flag`` is true.

    A dict's children all have a ``rank`` where only the run knows their order: a number by which they are sorted.
    """

    flag: Output | Constant
    child: Template
    rank: Output | Constant | None = None

    def __str__(self) -> str:
        return f"({self.child} if {self.flag})"


@dataclass(frozen=True, eq=False)
class OrNone:
    """``None`` where ``flag`` is true, else ``child``: only a file's result has it, where ``child`` is always there."""

    flag: Output
    child: Template

    def __str__(self) -> str:
        return f"(None if {self.flag} else {self.child})"


@dataclass(frozen=True, eq=False)
class OfKind:
    """A number whose kind depends on the path: only a file's result has it, where ``value`` is of the widest kind.

    ``kind``: an output that tells the kind, see `operations.kind_code`.
    """

    value: Output
    kind: Output

    def __str__(self) -> str:
        return f"{self.value} as {self.kind} says"


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of several values: ``entries`` has a template by each number that ``index`` may be."""

    index: Output
    entries: tuple[tuple[int, Template], ...]

    def __str__(self) -> str:
        return f"{{{', '.join(f'{number}: {each}' for number, each in self.entries)}}}[{self.index}]"


Template = (
    Output
    | Constant
    | Same
    | Container
    | Instance
    | Shared
    | Choice
    | Absent
    | Repeated
    | Maybe
    | OrNone
    | OfKind
    | OneOf
)


def may_be_absent(template: Template) -> bool:
    """Whether an attribute that is given a value is deleted on some path."""
    match template:
        case Choice(left=left, right=right):
            return may_be_absent(left) or may_be_absent(right)
        case OneOf(entries=entries):
            return any(may_be_absent(each) for _, each in entries)
    return isinstance(template, Absent)


def outputs_of(template: Template) -> Iterator[Output]:
    """The outputs of the graph that a template has in it."""
    match template:
        case Output():
            yield template
        case Choice(flag=flag, left=left, right=right):
            yield flag
            yield from outputs_of(left)
            yield from outputs_of(right)
        case Maybe(flag=flag, child=child, rank=rank):
            for each in (flag, child, rank):
                yield from () if each is None else outputs_of(each)
        case OrNone(flag=flag, child=child):
            yield flag
            yield from outputs_of(child)
        case OfKind(value=value, kind=kind):
            yield from (value, kind)
        case OneOf(index=index):
            yield index
        case Repeated(columns=columns):
            yield from columns
        case Container(children=children):
            for child in children:
                yield from outputs_of(child)
        case Instance(attributes=attributes):
            for _, child in attributes:
                yield from outputs_of(child)


def nodes_of(template: Template) -> Iterator[Container | Instance]:
    """The containers and instances of a template, in the order of the numbers by which `Shared` refers to them."""
    match template:
        case Container() | Instance():
            yield template
            for child in _children(template):
                yield from nodes_of(child)
        case Choice(left=left, right=right):
            yield from nodes_of(left)
            yield from nodes_of(right)
        case Maybe(child=child):
            yield from nodes_of(child)


def certain_outputs(templates: Iterable[Template], nodes: Sequence[Container | Instance]) -> Iterator[Output]:
    """The outputs that templates have whichever way their choices go.

    Args:
        templates: them.
        nodes: what `Shared` refers to.
    """
    queue, seen = list(templates), set()
    while queue:
        template = queue.pop()
        template = nodes[template.index] if isinstance(template, Shared) else template
        if id(template) in seen:
            continue
        seen.add(id(template))
        match template:
            case Choice(flag=flag) | OrNone(flag=flag):
                queue.append(flag)
            case Maybe(flag=flag, rank=rank):
                queue += [flag] if rank is None else [flag, rank]
            case Container() | Instance():
                queue += _children(template)
            case _:
                yield from outputs_of(template)


def unset_in_choices(templates: Sequence[Template]) -> frozenset[int]:
    """The outputs that may be unset, and that only choices have, which look at them where they have a value."""
    unset = {output.index for each in templates for output in outputs_of(each) if output.may_be_unset}
    if not unset:
        return frozenset()
    nodes = [node for each in templates for node in nodes_of(each)]
    return frozenset(unset - {output.index for output in certain_outputs(templates, nodes)})


def _children(template: Container | Instance) -> Sequence[Template]:
    return template.children if isinstance(template, Container) else [child for _, child in template.attributes]
