"""What is known of arguments before the call: `InputSpec`, torch.export's ``dynamic_shapes``, marks on tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.sources import Argument, Attribute, Item, Source


@dataclass(frozen=True, init=False)
class Dim:
    """A dimension of any size in a range. Dimensions of one name have one size.

    Attributes:
        name: a Python name.
        min, max: the smallest and the largest size; None for any.
    """

    name: str
    min: int | None
    max: int | None

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        """Describe a dimension.

        Raises:
            TypeError: the name is no text, or a bound neither an ``int`` nor None.
            ValueError: the name is no Python name, or no two sizes are in the range.
        """
        if not isinstance(name, str) or any(type(bound) not in (int, type(None)) for bound in (min, max)):
            raise TypeError(f"Dim: a name and bounds that are int or None, not {name!r}, {min!r}, {max!r}")
        if not name.isidentifier():
            raise ValueError(f"Dim: {name!r} is no Python name")
        if (min or 0) < 0 or (max is not None and max <= (min or 0)) or (max is not None and max < 2):
            raise ValueError(f"Dim: from {min} to {max} there are no two sizes of which one is 2 or more")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "min", min)
        object.__setattr__(self, "max", max)

    def holds(self, size: int) -> bool:
        """Whether a size is in the range."""
        return (self.min is None or size >= self.min) and (self.max is None or size <= self.max)

    def __str__(self) -> str:
        if self.min is None and self.max is None:
            return self.name
        low, high = ("" if bound is None else str(bound) for bound in (self.min, self.max))
        return f"{self.name}: {low}..{high}"


@dataclass(frozen=True, init=False)
class InputSpec:
    """The shape and dtype of a tensor argument.

    Attributes:
        shape: sizes; ``None`` is a symbolic dimension: one program serves every size.
        dims: for each dimension its `Dim`, where it has one; it is symbolic then. A `torch.export.Dim` does as well.
        dtype: a ``torch.dtype``.
        name: for the reader; inputs of a file have the names of the arguments.
    """

    shape: tuple[int | None, ...]
    dtype: torch.dtype
    name: str | None
    dims: tuple[Dim | None, ...]

    def __init__(
        self, shape: Sequence[Any], dtype: str | torch.dtype = "float32", name: str | None = None
    ) -> None:
        """Describe an argument.

        Raises:
            ValueError: a dimension is negative (other than -1, which is None as in Paddle), or the dtype is unknown.
            TypeError: a dimension is neither an ``int`` nor None nor a `Dim`.
        """
        dims = []
        named = tuple(_as_dim(dim) for dim in shape)
        for dim in (None if ours is not None else given for given, ours in zip(shape, named)):
            if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
                raise TypeError(f"InputSpec: a dimension is an int, a Dim or None, not {dim!r}")
            if dim is not None and dim < -1:
                raise ValueError(f"InputSpec: {dim} is no size")
            dims.append(None if dim == -1 else dim)
        object.__setattr__(self, "shape", tuple(dims))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dims", named)

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, name: str | None = None) -> InputSpec:
        """The spec of a tensor, with its exact shape."""
        return cls(tuple(int(d) for d in tensor.shape), tensor.dtype, name)

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        shape = ", ".join(str(size) if dim is None else f"<{dim}>" for size, dim in zip(self.shape, self.dims))
        return f"InputSpec([{shape}], {dtype!r}" + (f", {self.name!r})" if self.name else ")")


def _as_dim(dim: Any) -> Dim | None:
    if not isinstance(dim, torch.export.Dim):
        return dim if isinstance(dim, Dim) else None
    low, high = (bound if type(bound) is int else None for bound in (dim.min, dim.max))  # else infinity
    return Dim(dim.__name__, min=low or None, max=high)


def as_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """A torch dtype from its name.

    Raises:
        ValueError: torch has no dtype of that name.
    """
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"InputSpec: torch has no dtype {dtype!r}")
    return found


@dataclass(frozen=True)
class DynamicShapes:
    """Which dimensions of tensors differ, as `torch.export.export` takes it.

    Attributes:
        shapes: an entry for each argument, by position or name. That of a tensor is a dict from dimensions, or a
            sequence, of a `torch.export.Dim`, ``Dim.DYNAMIC`` or ``Dim.AUTO`` (any size: one program serves all),
            ``Dim.STATIC``, an ``int`` (this size) or None (that of the call). Those of lists, tuples, dicts and
            dataclasses are sequences or dicts of entries. None stands for sizes that are those of the call throughout.
    """

    shapes: Mapping[str, Any] | Sequence[Any]

    def __len__(self) -> int:
        return len(self.shapes)

    def of(self, source: Source, tensor: torch.Tensor, names: Sequence[str], receivers: int) -> InputSpec | None:
        """What is said of a tensor.

        Args:
            source: where the call has it.
            tensor: it, or one with its sizes.
            names: of the function's parameters.
            receivers: how many of them ``shapes`` is not about, ``self`` of a method.

        Raises:
            CaptureError: the entry is none of a tensor's, or has a dimension that the tensor has not.
        """
        entry = self._at(source, names, receivers)
        return None if entry is None else InputSpec(_shape(entry, tensor), tensor.dtype)

    def _at(self, source: Source, names: Sequence[str], receivers: int) -> Any:
        match source:
            case Argument(key=key):
                position = names.index(key) if isinstance(key, str) and key in names else key
                if isinstance(position, str) or not isinstance(self.shapes, Mapping):
                    return _part(self.shapes, position if isinstance(position, str) else position - receivers)
                return _part(self.shapes, names[position]) if position < len(names) else None
            case Item(base=base, key=key) | Attribute(base=base, name=key):
                return _part(self._at(base, names, receivers), key)
        return None


def _part(entries: Any, key: Any) -> Any:
    """The entry of an argument, or of a part of one; None where there is none."""
    if isinstance(entries, Mapping):
        return entries.get(key)
    if isinstance(entries, (list, tuple)):
        return entries[key] if isinstance(key, int) and 0 <= key < len(entries) else None
    return getattr(entries, key, None) if isinstance(key, str) else None


def _shape(entry: Any, tensor: torch.Tensor) -> list[Any]:
    """The shape that an entry gives to a tensor, as `InputSpec` takes it."""
    if not isinstance(entry, (Mapping, list, tuple)):
        raise refuse("SG501", f"dynamic_shapes has {entry!r} for a tensor, not a dict or sequence of its dimensions")
    given = entry if isinstance(entry, Mapping) else dict(enumerate(entry))
    wrong = [dim for dim in given if not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim()]
    if wrong or (not isinstance(entry, Mapping) and len(entry) != tensor.dim()):
        raise refuse("SG501", f"dynamic_shapes has {entry!r} for a tensor of {tensor.dim()} dimensions")
    shape: list[Any] = list(tensor.shape)
    for dim, size in given.items():
        shape[dim] = _size(size, shape[dim])
    return shape


def _size(size: Any, found: int) -> Any:
    """One of its dimensions."""
    named = torch.export.Dim  # which torch imports when it is first asked for
    if size is None or size is named.STATIC:
        return found
    if size in (named.AUTO, named.DYNAMIC):
        return None
    if isinstance(size, named) and type(size) is not named:
        message = f"dynamic_shapes has {size}, which is computed from another dimension"
        raise refuse("SG501", message, hint="Give it a Dim of its own: the capture finds out how they go together.")
    if not isinstance(size, (named, Dim)) and (type(size) is not int or size < 0):
        hint = "Give a torch.export.Dim, Dim.DYNAMIC, Dim.STATIC, a size, or None for the size of the call."
        raise refuse("SG501", f"dynamic_shapes has {size!r} for a dimension", hint=hint)
    return size


Specs = Sequence[InputSpec | None] | DynamicShapes
"""What is declared of the arguments of a call."""


# ---- what torch's compiler was told of a tensor
@dataclass(frozen=True)
class Marks:
    """Dimensions that ``mark_dynamic`` of torch's compiler, and its like, have marked.

    Attributes:
        open: those that are to be of any size.
        maybe: those that are, where the code takes any.
        static: those that are of one size.
    """

    open: frozenset[int]
    maybe: frozenset[int]
    static: frozenset[int]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Marks:
        """Those of a tensor."""
        return cls(*(frozenset().union(*(_marked(tensor, name) for name in names)) for names in _MARKS))


def _marked(tensor: torch.Tensor, name: str) -> Iterable[int]:
    """The dimensions that an attribute of a tensor names. Looking for it makes no dictionary of attributes."""
    try:
        found: Iterable[int] = object.__getattribute__(tensor, name)
    except AttributeError:
        return ()
    return found


_MARKS = (
    ("_dynamo_dynamic_indices", "_dynamo_unbacked_indices"),
    ("_dynamo_weak_dynamic_indices",),
    ("_dynamo_static_indices",),
)
