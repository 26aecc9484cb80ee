"""Values of many lanes: what a group of calls of one program has in one place.

A value that is the same for all lanes of a group stays as it is. One that differs is a `Batch`, a tensor with the lanes
in its first dimension, or a `Lanes`, a list with a value for each lane: numbers, and tensors of more than one shape.
Both may stand in tuples, lists, dicts and slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor


class Resists(Exception):
    """Something cannot be done for a group of lanes at once. The lanes are run one after the other then."""


class _Opaque:
    """A value that Python must not look into: only the batched run knows what it stands for."""

    __slots__ = ()

    def _resist(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Resists("Python looks into a value that differs among the lanes")

    __bool__ = __len__ = __iter__ = __index__ = __int__ = __float__ = __getitem__ = __contains__ = __call__ = _resist
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _resist
    __hash__ = None  # type: ignore[assignment]  # nor hashed

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        raise Resists("an operation is given a value that differs among the lanes")


class Batch(_Opaque):
    """A tensor for each lane, all of one shape and dtype: ``tensor`` has the lanes in its first dimension."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"Batch({self.tensor!r})"


class Lanes(_Opaque):
    """A value for each lane, of any kind."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Lanes({self.values!r})"


class Truths(_Opaque):
    """A truth value of Python's for each lane, as a tensor: what decides by it needs no number of Python's."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"Truths({self.tensor!r})"

    def numbers(self) -> Any:
        """Them as Python's."""
        return gathered(self.tensor.tolist())


DIFFERING = frozenset({Batch, Lanes, Truths})


# ---- trees
def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A value with ``change`` applied to each of its leaves."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([mapped(change, each) for each in value])
    if kind is dict:
        return {key: mapped(change, each) for key, each in value.items()}
    if kind is slice:
        return slice(*(mapped(change, each) for each in (value.start, value.stop, value.step)))
    if isinstance(value, tuple) and kind is not torch.Size:
        parts = [mapped(change, each) for each in value]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    return change(value)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of a value, in order."""
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is slice:
        value = (value.start, value.stop, value.step)
    elif kind is not list and (not isinstance(value, tuple) or kind is torch.Size):
        yield value
        return
    for each in value:
        yield from leaves(each)


def varies(value: Any) -> bool:
    """Whether a value differs among the lanes of its group."""
    return any(type(each) in DIFFERING for each in leaves(value))


# ---- some of the lanes
def lane(value: Any, position: int) -> Any:
    """The value of one lane; of a batch a view."""

    def of(leaf: Any) -> Any:
        if type(leaf) is Batch:
            return leaf.tensor[position]
        if type(leaf) is Truths:
            return bool(leaf.tensor[position])
        return leaf.values[position] if type(leaf) is Lanes else leaf

    return mapped(of, value)


def selected(value: Any, positions: Sequence[int], stack: bool = True) -> Any:
    """The value of some lanes: a batch is copied, and so are the tensors of lanes where they may be stacked."""
    indices: dict[torch.device, Tensor] = {}

    def of(leaf: Any) -> Any:
        if type(leaf) is Batch or type(leaf) is Truths:
            device = leaf.tensor.device
            if device not in indices:
                indices[device] = torch.tensor(positions, device=device)
            return type(leaf)(leaf.tensor.index_select(0, indices[device]))
        return gathered([leaf.values[each] for each in positions], stack) if type(leaf) is Lanes else leaf

    return mapped(of, value)


# ---- put together
def gathered(values: list[Any], stack: bool = True) -> Any:
    """One value of a group, given the value of each lane.

    Args:
        values: of the lanes.
        stack: whether tensors may be copied into a batch.
    """
    first = values[0]
    if isinstance(first, Tensor):
        if stack and all(isinstance(each, Tensor) and _alike(first, each) for each in values):
            return first if all(each is first for each in values) else Batch(torch.stack(values))
        return Lanes(values)
    if all(_same(first, each) for each in values):
        return first
    if _is_container(first) and all(_structure(first) == _structure(each) for each in values):
        return _rebuilt(first, [gathered(list(column), stack) for column in zip(*map(_children, values))])
    return Lanes(values)


def merged(pieces: Sequence[tuple[Sequence[int], Any]]) -> Any:
    """One value of a group, given those of parts of it: for each the positions of its lanes, and its value."""
    order = [place for positions, _ in pieces for place in positions]
    if len(pieces) == 1 and order == list(range(len(order))):
        return pieces[0][1]
    return _merged([positions for positions, _ in pieces], [value for _, value in pieces], _Back(order))


_NUMBERS = (bool, int, float)


class _Back:
    """Brings what stands in the order of the parts into that of the lanes."""

    def __init__(self, order: list[int]) -> None:
        self._order = order
        self._indices: dict[torch.device, Tensor] = {}

    def __call__(self, together: Tensor) -> Tensor:
        if together.device not in self._indices:
            places = [0] * len(self._order)
            for index, place in enumerate(self._order):
                places[place] = index
            self._indices[together.device] = torch.tensor(places, device=together.device)
        return together.index_select(0, self._indices[together.device])


def _merged(positions: list[Sequence[int]], values: list[Any], back: _Back) -> Any:
    first = values[0]
    if _is_container(first) and all(_structure(first) == _structure(each) for each in values):
        return _rebuilt(first, [_merged(positions, list(column), back) for column in zip(*map(_children, values))])
    if not any(map(varies, values)) and all(_same(first, each) for each in values):
        return first
    if all(type(each) is Truths or type(each) is bool for each in values):
        return Truths(back(torch.cat([_truths(value, len(some)) for some, value in zip(positions, values)])))
    tensors = [_batched(value, len(some)) for some, value in zip(positions, values)]
    if all(each is not None and _alike_but_first(each, tensors[0]) for each in tensors):
        return Batch(back(torch.cat(tensors)))  # type: ignore[arg-type]  # none is None
    result: list[Any] = [None] * sum(map(len, positions))
    for some, value in zip(positions, values):
        alike = not varies(value)
        for index, place in enumerate(some):
            result[place] = value if alike else lane(value, index)
    return Lanes(result)


def chosen(mask: Tensor, left: Any, right: Any) -> Any:
    """For each lane one of two values, by a tensor that has a truth value for each.

    Raises:
        Resists: the two are not of one kind.
    """
    if _is_container(left) and _structure(left) == _structure(right):
        return _rebuilt(left, [chosen(mask, a, b) for a, b in zip(_children(left), _children(right))])
    if not varies(left) and not varies(right) and _same(left, right):
        return left
    if all(type(each) is Truths or type(each) is bool for each in (left, right)):
        count = mask.shape[0]
        return Truths(torch.where(mask, _truths(left, count).to(mask.device), _truths(right, count).to(mask.device)))
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        return Lanes([left if holds else right for holds in mask.tolist()])
    one, other = (_batched(value, mask.shape[0]) for value in (left, right))
    if one is None or other is None or not _alike_but_first(one, other):
        raise Resists("the arms leave values of different kinds")
    return Batch(torch.where(mask.reshape(-1, *(1,) * (one.dim() - 1)).to(one.device), one, other))


def _batched(value: Any, count: int) -> Tensor | None:
    """A value as a tensor with the lanes in its first dimension, where it is one tensor for each."""
    if type(value) is Batch:
        return value.tensor
    return value.expand(count, *value.shape) if isinstance(value, Tensor) else None


def _truths(value: Any, count: int) -> Tensor:
    found: Tensor = value.tensor if type(value) is Truths else torch.full((count,), value)
    return found


def _alike(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and _of_one_kind(left, right)


def _alike_but_first(left: Tensor, right: Tensor | None) -> bool:
    return right is not None and left.shape[1:] == right.shape[1:] and _of_one_kind(left, right)


def _of_one_kind(left: Tensor, right: Tensor) -> bool:
    return left.dtype == right.dtype and left.device == right.device and left.layout == right.layout


def _same(left: Any, right: Any) -> bool:
    """Whether two values are one and the same, whatever is asked of them."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right) or kind not in (bool, int, float, complex, str, torch.Size, torch.dtype, torch.device):
        return False
    if kind is float:
        return bool(left == right and math.copysign(1.0, left) == math.copysign(1.0, right))
    return bool(left == right) and (kind is not complex or repr(left) == repr(right))


def _is_container(value: Any) -> bool:
    kind = type(value)
    return kind in (list, dict, slice) or (isinstance(value, tuple) and kind is not torch.Size)


def _structure(value: Any) -> Any:
    kind = type(value)
    if not _is_container(value):
        return None
    return kind, tuple(value) if kind is dict else 3 if kind is slice else len(value)


def _children(value: Any) -> Sequence[Any]:
    kind = type(value)
    if kind is slice:
        return value.start, value.stop, value.step
    return tuple(value.values()) if kind is dict else value


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    kind = type(like)
    if kind is dict:
        return dict(zip(like, parts))
    if kind is slice or hasattr(kind, "_fields"):
        return kind(*parts)
    return kind(parts)
