"""Guards: the facts about the Python world that a program was specialised on, as plain data.

A `Source` (`sources.py`) says where a value is found when a static function is called; a guard says what must hold of
it. Both are frozen and know nothing of how they are checked: `runtime/guards/checking.py` makes one Python function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from stillgraph.program.sources import Attribute, Cell, Source


@dataclass(frozen=True)
class TensorGuard:
    """A tensor's metadata.

    ``None`` as a dimension means any size, and as a stride any; ``strides`` is None where a `FactGuard` on the layout
    stands beside it.
    ``lazy`` says whether its elements are yet to be conjugated, and to be negated.
    """

    source: Source
    type: type
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
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
    """None of the names is a key of a namespace: what they stand for is found elsewhere, or nowhere.

    ``hiding`` are names that a module's tables have (its buffers, say): an entry of its ``__dict__`` would hide those.
    """

    source: Source
    names: tuple[str, ...]
    hiding: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.source} lacks {', '.join(self.names + self.hiding)}"


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

    ``expression`` is Python over the names of ``sizes``; each names dimension ``dim`` of the tensor at a source, or
    with ``~dim`` the stride of that dimension.
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
