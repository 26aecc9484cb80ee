"""Guards: the facts about the Python world that a program was specialised on, as plain data.

A `Source` says where a value is found when a static function is called; a guard says what must hold of it. Both are
frozen and know nothing of how they are checked: `runtime/guards/checking.py` turns them into one Python function.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

import torch


# ---- where a value is found
def _hash_once(source: Any) -> int:
    """The hash of a source that begins at another, which would go through all of the path each time it is looked up."""
    fields = vars(source)
    found: int | None = fields.get("_hash")
    if found is None:
        found = fields["_hash"] = hash((type(source), *(fields[name] for name in source.__dataclass_fields__)))
    return found


@dataclass(frozen=True)
class Argument:
    """A call's argument: its position (``self`` of a method or module is position 0) or its keyword."""

    key: int | str

    def __str__(self) -> str:
        return f"args[{self.key}]" if isinstance(self.key, int) else str(self.key)


@dataclass(frozen=True)
class Attribute:
    """``base.name``, read with `getattr`."""

    base: Source
    name: str

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}.{self.name}"


@dataclass(frozen=True)
class Item:
    """``base[key]``: an element of a sequence or mapping.

    Attributes:
        kind: of a container whose own class gives ``[]`` another meaning, the built-in class that keeps its elements.
    """

    base: Source
    key: Any
    kind: Any = None

    def of(self, container: Any) -> Any:
        """The element of a container. No code of the user's is run for it, be it a ``__missing__``.

        Raises:
            LookupError: there is none, or what is there now is no built-in container.
        """
        if self.kind is None and (isinstance(container, torch.Tensor) or not _is_built_in(container, "__getitem__")):
            raise LookupError(f"a {type(container).__qualname__} is no such container")
        mapping = next((kind for kind in _MAPPINGS if isinstance(container, kind)), None)
        if mapping is not None and not mapping.__contains__(container, self.key):
            raise KeyError(self.key)
        return container[self.key] if self.kind is None else self.kind.__getitem__(container, self.key)

    def __eq__(self, other: object) -> bool:
        """As tuples compare: a key that is the same object is not asked (3.13's own would ask)."""
        if type(other) is not Item:
            return NotImplemented
        if isinstance(self.key, torch.Tensor) or isinstance(other.key, torch.Tensor):  # whose `==` compares numbers
            return self.key is other.key and (self.kind, self.base) == (other.kind, other.base)
        return (self.key, self.kind, self.base) == (other.key, other.kind, other.base)

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}[{self.key!r}]"


def _is_built_in(value: Any, name: str) -> bool:
    """Whether a special method of a value's is none that is written in Python."""
    return not isinstance(getattr(type(value), name, None), FunctionType)


@dataclass(frozen=True)
class Slot:
    """``base.__dict__[name]``, or an entry of a module's ``_parameters``, ``_buffers`` or ``_modules``."""

    base: Source
    table: str  # "__dict__", "_parameters", "_buffers" or "_modules"
    name: str

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}.{self.name}"


@dataclass(frozen=True)
class Global:
    """A module-level name, looked up in ``sys.modules[module].__dict__`` at every call."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, eq=False)
class Cell:
    """What a closure cell holds; compared by the cell's identity."""

    name: str
    cell: Any

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.cell is other.cell

    def __hash__(self) -> int:
        return id(self.cell)


@dataclass(frozen=True, eq=False)
class Held:
    """An object the program holds itself, for want of a path to it from the call (compared by identity)."""

    name: str
    value: Any

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True)
class Called:
    """``base()``: what a weak reference refers to."""

    base: Source

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}()"


@dataclass(frozen=True)
class Element:
    """The element of a set, or the key of a mapping, that iterating over it gives at a position."""

    base: Source
    position: int

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"list({self.base})[{self.position}]"


@dataclass(frozen=True)
class Upcoming:
    """What the iterator at ``base`` gives after ``position`` other items; it stays where it is."""

    base: Source
    position: int

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"next({self.base})" if self.position == 0 else f"next({self.base}) after {self.position} others"


Source = Argument | Attribute | Item | Slot | Global | Cell | Held | Called | Element | Upcoming
INNER = (Attribute, Item, Slot, Called, Element, Upcoming)
"""The sources that begin at another, their ``base``."""


def item_of(container: Any, base: Source, key: Any) -> Item:
    """Where a container keeps an element, itself being at ``base``."""
    if type(container) in _PLAIN:
        return Item(base, key)
    kind = next((kind for kind in _CONTAINERS if isinstance(container, kind)), None)
    plain = kind is None or type(container).__getitem__ is kind.__getitem__
    if kind is MappingProxyType or (kind is dict and hasattr(type(container), "__missing__")):
        plain = False  # a guard that looks for what is not there is not to make it
    return Item(base, key) if plain else Item(base, key, kind)


_PLAIN = frozenset({dict, list, tuple})
_MAPPINGS: tuple[Any, ...] = (dict, MappingProxyType)  # the latter, a view's, may be of a `defaultdict`
_CONTAINERS: tuple[Any, ...] = (*_MAPPINGS, list, tuple, collections.deque)


# ---- what must hold of it
@dataclass(frozen=True)
class TensorGuard:
    """A tensor's metadata.

    ``None`` as a dimension means any size; ``strides`` is None where a `FactGuard` on the layout stands beside it.
    ``lazy`` says whether its elements are yet to be conjugated, and to be negated.
    """

    source: Source
    type: type
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int | None, ...]
    strides: tuple[int, ...] | None
    requires_grad: bool
    lazy: tuple[bool, bool] = (False, False)

    def __str__(self) -> str:
        dims = ", ".join("?" if d is None else str(d) for d in self.shape)
        grad = ", requires grad" if self.requires_grad else ""
        return f"{self.source} is {str(self.dtype).removeprefix('torch.')}[{dims}] on {self.device}{grad}"


@dataclass(frozen=True)
class FactGuard:
    """What the code asked of a tensor besides its metadata: ``name`` is one of `program.facts.FACTS`."""

    source: Source
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name} of {self.source} is {self.value}"


@dataclass(frozen=True)
class TypeGuard:
    """``type(value) is type``."""

    source: Source
    type: type

    def __str__(self) -> str:
        return f"{self.source} is a {self.type.__qualname__}"


@dataclass(frozen=True)
class ObjectGuard(TypeGuard):
    """As `TypeGuard`, for an object of which the other guards say all that the code reads: any like it will do."""


@dataclass(frozen=True)
class BehindGuard:
    """What a `types.MappingProxyType` shows is of just this type, which says what a key gives that is not there."""

    source: Source
    type: type

    def __str__(self) -> str:
        return f"{self.source} shows a {self.type.__qualname__}"


@dataclass(frozen=True)
class ConstantGuard:
    """Same type and equal value (identity for ``None``, truth values, enum members and types; NaN equals NaN)."""

    source: Source
    value: Any

    def __str__(self) -> str:
        return f"{self.source} == {self.value!r}"


@dataclass(frozen=True, eq=False)
class IdentityGuard:
    """``value is expected``; the runtime keeps only a weak reference to ``expected`` where its type allows one."""

    source: Source
    expected: Any

    def __str__(self) -> str:
        return f"{self.source} is the same {type(self.expected).__name__}"


@dataclass(frozen=True)
class BytesGuard:
    """What a numpy array is and holds: ``fingerprint(value) == data``."""

    source: Source
    data: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.source} holds what it held"


@dataclass(frozen=True)
class ContentsGuard:
    """A sequence or mapping of numbers and texts equals a copy of it, types and order included."""

    source: Source
    value: Any

    def __str__(self) -> str:
        return f"{self.source} holds what it held"


@dataclass(frozen=True, eq=False)
class MembersGuard:
    """Names of a namespace stand for the very same objects: classes, functions, modules, descriptors.

    ``source`` is the namespace: a dictionary, or the ``__dict__`` of a class.
    """

    source: Source
    members: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.source}: {', '.join(name for name, _ in self.members)} are the same"


@dataclass(frozen=True)
class MissingGuard:
    """None of the names is a key of a namespace: what they stand for is found elsewhere, or nowhere."""

    source: Source
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.source} lacks {', '.join(self.names)}"


@dataclass(frozen=True)
class NoAttributeGuard:
    """``not hasattr(value, name)``."""

    source: Source
    name: str

    def __str__(self) -> str:
        return f"{self.source} has no attribute {self.name}"


@dataclass(frozen=True)
class UnsetGuard:
    """A variable that functions share holds nothing: ``source`` is where its value would be."""

    source: Cell | Attribute

    def __str__(self) -> str:
        return f"{self.source} is unset"


@dataclass(frozen=True)
class FunctionGuard:
    """A function runs the code it ran; ``defaults`` and ``kwdefaults`` say whether it has any."""

    source: Source
    code: CodeType
    defaults: bool
    kwdefaults: bool

    def __str__(self) -> str:
        return f"the code of {self.source} is the same"


@dataclass(frozen=True, eq=False)
class ReadingGuard:
    """``function(*args)``, which reads a setting, gives what it gave."""

    function: Any
    args: tuple[Any, ...]
    value: Any

    @property
    def call(self) -> str:
        """The call that reads the setting."""
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{name}({', '.join(map(repr, self.args))})"

    def __str__(self) -> str:
        return f"{self.call} gives {self.value!r}"


@dataclass(frozen=True)
class EnvironmentGuard:
    """An environment variable, or with None all of them, is what it was: ``value``, which is shown to nobody."""

    name: str | None
    value: Any = field(repr=False)

    def __str__(self) -> str:
        return f"{'os.environ' if self.name is None else f'os.environ[{self.name!r}]'} is what it was"


@dataclass(frozen=True)
class LengthGuard:
    """``len(value) == length``, for sequences."""

    source: Source
    length: int

    def __str__(self) -> str:
        return f"len({self.source}) == {self.length}"


@dataclass(frozen=True)
class ElementsGuard:
    """Every element of a list has just this type."""

    source: Source
    type: type

    def __str__(self) -> str:
        return f"{self.source} holds only {self.type.__qualname__}s"


@dataclass(frozen=True)
class KeysGuard:
    """A mapping has exactly these keys, or a set these elements, in this order."""

    source: Source
    keys: tuple[Any, ...]

    def __str__(self) -> str:
        return f"keys of {self.source} == {list(self.keys)!r}"


@dataclass(frozen=True)
class AliasGuard:
    """Two sources are (``same``) or are not one and the same object."""

    left: Source
    right: Source
    same: bool

    def __str__(self) -> str:
        return f"{self.left} is {'' if self.same else 'not '}{self.right}"


@dataclass(frozen=True)
class ApartGuard:
    """What is found at some sources is another object at each."""

    sources: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.sources))} are different objects"


@dataclass(frozen=True)
class SeparateGuard:
    """None of some iterators draws from another, or from one of the containers (see `upcoming.are_separate`)."""

    iterators: tuple[Source, ...]
    containers: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, (*self.iterators, *self.containers)))} have nothing to do with each other"


@dataclass(frozen=True)
class MemoryGuard:
    """No two of some tensors share memory."""

    tensors: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.tensors))} share no memory"


@dataclass(frozen=True)
class SizeGuard:
    """A condition on symbolic sizes that the capture relied on.

    ``expression`` is Python over the names of ``sizes``; each names dimension ``dim`` of the tensor at a source.
    """

    expression: str
    sizes: tuple[tuple[str, Source, int], ...]

    def __str__(self) -> str:
        return self.expression


@dataclass(frozen=True)
class ModeGuard:
    """torch's thread-wide modes at capture: what `program.context.Context` holds, and the defaults for new tensors.

    ``switches_matter``: whether the context's switches have to be the same; operations take them as they find them.
    """

    context: Any  # program.context.Context
    default_dtype: torch.dtype
    default_device: torch.device
    switches_matter: bool = False

    def __str__(self) -> str:
        return str(self.context)


Guard = (
    TensorGuard
    | FactGuard
    | TypeGuard
    | BehindGuard
    | ConstantGuard
    | IdentityGuard
    | BytesGuard
    | ContentsGuard
    | MembersGuard
    | MissingGuard
    | NoAttributeGuard
    | UnsetGuard
    | FunctionGuard
    | ReadingGuard
    | EnvironmentGuard
    | LengthGuard
    | ElementsGuard
    | KeysGuard
    | AliasGuard
    | ApartGuard
    | SeparateGuard
    | MemoryGuard
    | SizeGuard
    | ModeGuard
)
