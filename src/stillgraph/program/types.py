"""The types of staged values, and their join.

A type says what is known before the run. Two paths that meet leave two types in one place; `join_types` gives the type
that covers both, or says why there is none. Shapes follow MindSpore's ShapeJoin rules 1-4 (seed 002), extended: two
known but different dimensions of one rank join to an unknown one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from stillgraph.core.diagnostics import Side
from stillgraph.program.constants import MOST_ENTRIES, Known, united


class JoinFailure(Exception):
    """Two types have no join.

    Attributes:
        code: a reason of the catalogue.
        message: what is wrong with the two.
        sides: the two values as messages name them, each with where it was made; empty until somebody knows.
        place: the variable, attribute or item that has the two, once somebody knows.
        in_loop: whether the two are of one path: before a loop and after an iteration, or of two calls.
        hint: what to write instead, where it is another thing than the reason's; ``{place}`` stands for the place.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.sides: tuple[Side, ...] = ()
        self.place: str | None = None
        self.in_loop = False
        self.hint = hint


@dataclass(frozen=True)
class TensorType:
    """A tensor. A dimension is an ``int``, a symbolic size (``SymInt``), or None where it is unknown.

    ``grad_differs``: whether ``requires_grad`` depends on the path. ``may_be_number``, ``may_be_none`` and
    ``may_be_unbound``: on some path the place holds a Python number, ``None``, or nothing. ``classes``: which of
    `torch.Tensor`, `torch.nn.Parameter` and `torch.nn.Buffer` it is, on one path or another.
    """

    dtype: torch.dtype
    device: torch.device
    shape: tuple[Any, ...]
    requires_grad: bool = False
    grad_differs: bool = False
    may_be_number: bool = False
    may_be_none: bool = False
    may_be_unbound: bool = False
    layout: torch.layout = torch.strided
    classes: frozenset[type] = frozenset({torch.Tensor})


@dataclass(frozen=True)
class NumberType:
    """A Python number of ``kind`` ``bool``, ``int`` or ``float``; ``mixed`` where that depends on the path."""

    kind: type
    mixed: bool = False
    may_be_none: bool = False
    may_be_unbound: bool = False


@dataclass(frozen=True)
class TableType(NumberType):
    """One of some constants that are no numbers, or not all: in the graph, the whole number of its entry."""

    kind: type = int
    entries: tuple[Known, ...] = ()

    def __str__(self) -> str:
        return " | ".join(map(repr, self.entries))


@dataclass(frozen=True)
class ListType:
    """A Python list of as many elements as the run says, all of one type: tensors, numbers, or lists again.

    ``may_be_unbound``: on some path the place holds nothing.
    """

    element: Type
    may_be_unbound: bool = False


@dataclass(frozen=True)
class ObjectType:
    """An object of Python's that only the run has, such as the handle of a hook. Only texts are joined and carried."""

    kind: type
    may_be_none: bool = False
    may_be_unbound: bool = False


TEXT = ObjectType(str)
Type = TensorType | NumberType | ListType | ObjectType

_KIND_ORDER = (bool, int, float)


def same_dimension(left: Any, right: Any) -> bool:
    """Whether two dimensions are known to be equal."""
    if left is None or right is None:
        return False
    if isinstance(left, torch.SymInt) or isinstance(right, torch.SymInt):
        both = isinstance(left, torch.SymInt) and isinstance(right, torch.SymInt)
        return both and bool(left.node.expr == right.node.expr)
    return bool(left == right)


Shape = tuple[Any, ...] | None
"""The dimensions of a tensor, None for one that is unknown; or None: not even their number is known."""


def join_shapes(left: Shape, right: Shape) -> Shape:
    """The shape that covers both, by the ShapeJoin rules of seed 002.

    Equal dimensions stay (rule 1), others become unknown (rule 2; further than it, also two known ones that differ).
    The rank becomes unknown if it is on one side (rule 3), or if the longer shape goes on with unknown dimensions where
    the shorter ends, and the two agree before (rule 4).

    Raises:
        JoinFailure: the shapes differ in rank otherwise.
    """
    if left is None or right is None:
        return None
    if len(left) == len(right):
        return tuple(a if same_dimension(a, b) else None for a, b in zip(left, right))
    short, long = sorted((left, right), key=len)
    agree = all((a is None and b is None) or same_dimension(a, b) for a, b in zip(short, long))
    if agree and all(dimension is None for dimension in long[len(short) :]):
        return None
    raise JoinFailure("SG201", f"Shape Join Failed: {_both(left, right)}.")


def _both(left: Shape, right: Shape) -> str:
    return f"shape1 = {show_shape(left)}, shape2 = {show_shape(right)}"


def show_shape(shape: Shape) -> str:
    """A shape as the messages print it; ``?`` is an unknown dimension."""
    if shape is None:
        return "of unknown rank"
    inner = ", ".join(str(d) if isinstance(d, int) else "?" for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def join_types(left: Type, right: Type) -> Type:
    """The type that covers both.

    A number meets a tensor as a 0-d tensor of that dtype, provided torch's promotion would not change the dtype. Lists
    are joined by their elements.

    Raises:
        JoinFailure: with the reason, when no one type covers both.
    """
    if isinstance(left, ListType) or isinstance(right, ListType):
        return _join_lists(left, right)
    if isinstance(left, TableType) or isinstance(right, TableType):
        return _join_tables(left, right)
    if isinstance(left, ObjectType) or isinstance(right, ObjectType):
        joined: Type = _join_texts(left, right)
    elif isinstance(left, NumberType) and isinstance(right, NumberType):
        kind = max(left.kind, right.kind, key=_KIND_ORDER.index)
        joined = NumberType(kind, left.mixed or right.mixed or left.kind is not right.kind)
    elif isinstance(left, TensorType) and isinstance(right, TensorType):
        joined = _join_tensors(left, right)
    elif isinstance(left, TensorType) and isinstance(right, NumberType):
        joined = _join_tensors(left, as_tensor_type(right, left))
    else:
        assert isinstance(left, NumberType) and isinstance(right, TensorType)
        joined = _join_tensors(as_tensor_type(left, right), right)
    return optional(
        joined,
        none=left.may_be_none or right.may_be_none,
        unbound=left.may_be_unbound or right.may_be_unbound,
    )


def optional(type_: Type, *, none: bool = False, unbound: bool = False) -> Type:
    """The type of a place that holds, on some path, ``None`` or nothing."""
    if isinstance(type_, ListType):
        return replace(type_, may_be_unbound=type_.may_be_unbound or unbound)
    return replace(type_, may_be_none=type_.may_be_none or none, may_be_unbound=type_.may_be_unbound or unbound)


def _join_lists(left: Type, right: Type) -> Type:
    if not isinstance(left, ListType) or not isinstance(right, ListType):
        raise JoinFailure("SG203", "a list on one path, a tensor or number on the other")
    return ListType(join_types(left.element, right.element), left.may_be_unbound or right.may_be_unbound)


def _join_tables(left: Type, right: Type) -> Type:
    if not isinstance(left, TableType) or not isinstance(right, TableType):
        raise JoinFailure("SG203", "a constant such as a text on one path, a tensor or number on the other")
    return table_of(left.entries, right.entries)


def _join_texts(left: Type, right: Type) -> Type:
    if not isinstance(left, ObjectType) or not isinstance(right, ObjectType) or left.kind is not right.kind:
        raise JoinFailure("SG203", "a text that only the run knows on one path, a tensor or number on the other")
    return left


def table_of(*tables: tuple[Known, ...]) -> TableType:
    """The type of one of the entries of some tables.

    Raises:
        JoinFailure: they are too many.
    """
    entries = united(*tables)
    if len(entries) > MOST_ENTRIES:
        raise JoinFailure("SG203", f"one of more than {MOST_ENTRIES} constants")
    return TableType(entries=entries)


def _join_tensors(left: TensorType, right: TensorType) -> TensorType:
    if left.dtype != right.dtype:
        raise JoinFailure("SG202", f"outputs differ in dtype: {left.dtype} and {right.dtype}")
    if left.device != right.device:
        raise JoinFailure("SG202", f"outputs differ in device: {left.device} and {right.device}")
    if left.layout != right.layout:
        raise JoinFailure("SG203", f"outputs differ in layout: {left.layout} and {right.layout}", DENSE)
    shape = join_shapes(left.shape, right.shape)
    if left.layout is not torch.strided and left.shape != right.shape:
        raise JoinFailure("SG201", f"two sparse tensors have other shapes: {_both(left.shape, right.shape)}", DENSE)
    if shape is None:
        message = f"Shape Join Failed: {_both(left.shape, right.shape)}: their join has an unknown rank."
        raise JoinFailure("SG201", message)
    return TensorType(
        left.dtype,
        left.device,
        shape,
        left.requires_grad or right.requires_grad,
        left.grad_differs or right.grad_differs or left.requires_grad != right.requires_grad,
        left.may_be_number or right.may_be_number,
        layout=left.layout,
        classes=left.classes | right.classes,
    )


DENSE = "Give {place} dense tensors (to_dense()) on all paths, and make a sparse one of it behind the branch or loop."


def as_tensor_type(number: NumberType, like: TensorType) -> TensorType:
    """The type of a number that becomes a 0-d tensor where the other path has the tensor ``like``.

    Raises:
        JoinFailure: the number's kind does not fit the tensor's dtype.
    """
    fits = (
        like.dtype == torch.bool
        if number.kind is bool
        else like.dtype != torch.bool
        if number.kind is int
        else like.dtype.is_floating_point or like.dtype.is_complex
    )
    if not fits:
        raise JoinFailure("SG202", f"a Python {number.kind.__name__} meets a tensor of {like.dtype}")
    return TensorType(like.dtype, like.device, (), may_be_number=True)
