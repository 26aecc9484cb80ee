"""Dimensions that differ from call to call, in the words of `torch.export.export` and of torch's compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.input_spec import InputSpec
from stillgraph.program.sources import Argument, Attribute, Item, Source


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
    return size


Specs = Sequence[InputSpec | None] | DynamicShapes
"""What is declared of the arguments of a call."""


# ---- what torch's compiler was told of a tensor
@dataclass(frozen=True)
class Marks:
    """Dimensions that `torch._dynamo.mark_dynamic` and its like have marked.

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
