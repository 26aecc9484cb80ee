"""Lists of which only the run knows the length.

The elements of such a list have one structure. Each leaf of it is a *column*, a `StagedList`: in the program a real
Python list of tensors or numbers. In the user's list a `StagedSpread` stands where the elements are, so that the
object, its aliases and what Python itself does with lists (append, ``+``, a copy) keep their meaning: a list is a
sequence of elements and of spreads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.constants import Known
from stillgraph.program.types import (
    DENSE,
    JoinFailure,
    ListType,
    NumberType,
    ObjectType,
    TableType,
    TensorType,
    Type,
    join_types,
    optional,
    table_of,
)
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.containers import Parts, complex_parts, instance_parts, split
from stillgraph.trace.values.entries import maybe_keys
from stillgraph.trace.values.numbers import OfComplex, Staged, is_number
from stillgraph.trace.values.several import Several, known_in
from stillgraph.trace.values.text import StagedText
from stillgraph.trace.values.texts_of_paths import covering_texts

TypeOf = Callable[[Any], Type]
IsOlder = Callable[[Any], bool]


class StagedList(Staged):
    """One column of a list of unknown length: a leaf like a tensor or a number."""

    __slots__ = ("type",)

    def __init__(self, type: ListType) -> None:
        self.type = type


# ---- the structure of an element
@dataclass(frozen=True, eq=False)
class Leaf:
    """A tensor or number: one column."""

    type: Type


@dataclass(frozen=True, eq=False)
class Same:
    """The same constant in every element; no column."""

    value: Any


@dataclass(frozen=True, eq=False)
class Node:
    """A container of fixed structure."""

    parts: Parts
    children: tuple[Element, ...]


@dataclass(frozen=True, eq=False)
class Inner:
    """A list or tuple of any length in it: its columns are lists of lists. ``element`` is None while all are empty."""

    element: Element | None
    kind: type = list


Element = Leaf | Same | Node | Inner
READ_ANEW = "Read it anew where it is used: rows[i] in place of a variable that was row = rows[i] before the change."
_COUNT = NumberType(int)  # the column of a list whose elements have no leaf


class StagedSpread(Staged):
    """Stands in a list for as many elements as its columns have; it has none where another copy was changed."""

    __slots__ = ("_columns", "element")

    def __init__(self, element: Element, columns: tuple[StagedList, ...] | None) -> None:
        self.element = element
        self._columns = columns

    @property
    def columns(self) -> tuple[StagedList, ...]:
        """The columns, in the order of the leaves of an element."""
        return refuse_outdated() if self._columns is None else self._columns

    @property
    def is_outdated(self) -> bool:
        """Whether the list that it stands in is."""
        return self._columns is None

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise refuse("SG210", "the elements of a list are used as one value", location=here())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        raise refuse("SG210", f"{getattr(func, '__name__', func)} takes no list of unknown length", location=here())

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __call__ = __contains__ = _refuse
    __str__ = __repr__ = __format__ = __getitem__ = __setitem__ = __delitem__ = __eq__ = __ne__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __neg__ = __hash__ = _refuse


def refuse_outdated() -> NoReturn:
    """Refuse a list whose elements have been changed by another name."""
    message = "a list is used whose elements, or which itself, may have been changed by another name"
    raise refuse("SG305", message, location=here(), hint=READ_ANEW)


def has_spread(value: Any) -> bool:
    """Whether a list or tuple holds elements that only the run counts."""
    for key in maybe_keys(value):
        key._refuse()  # Python has copied a dict's keys: how many those are, nobody can say
    return any(type(item) is StagedSpread for item in value)


# ---- from elements to their structure
def structure(
    children: Sequence[Any],
    type_of: TypeOf,
    is_older: IsOlder = lambda value: True,
    inside: tuple[int, ...] = (),
) -> Element:
    """The structure that covers all elements of a list.

    Args:
        children: the elements.
        type_of: the type of a leaf.
        is_older: whether an object was there before the paths that make the list: it stays the object that it is.
        inside: the ids of what the list is in.

    Raises:
        JoinFailure: there is none, or the list has no element.
    """
    element: Element | None = None
    for child in children:
        spread = type(child) is StagedSpread
        mine = _spread_structure(child, type_of) if spread else _of(child, type_of, is_older, inside)
        element = cover(element, mine)
    if element is None:
        raise JoinFailure("SG203", "a list that is always empty")
    return element


def _spread_structure(spread: StagedSpread, type_of: TypeOf) -> Element:
    return _typed(spread.element, iter([_element_type(type_of(column)) for column in spread.columns]))


def _element_type(type_: Type) -> Type:
    assert isinstance(type_, ListType)
    return type_.element


def _typed(element: Element, given: Iterator[Type]) -> Element:
    """The same structure with other types of its leaves."""
    if isinstance(element, Leaf):
        return Leaf(next(given))
    if isinstance(element, Node):
        return replace(element, children=tuple(_typed(child, given) for child in element.children))
    if isinstance(element, Inner):
        inner = [_element_type(next(given)) for _ in leaf_types(element)]
        return element if element.element is None else Inner(_typed(element.element, iter(inner)), element.kind)
    return element


def _of(value: Any, type_of: TypeOf, is_older: IsOlder, inside: tuple[int, ...] = ()) -> Element:
    several = known_in(value) if issubclass(type(value), Several) else None
    if several is not None:
        return Leaf(table_of(several))
    if isinstance(value, (torch.Tensor, StagedText)) or is_number(value):
        type_ = type_of(value)
        if isinstance(type_, TensorType) and type_.layout is not torch.strided:
            raise JoinFailure("SG203", f"a list of unknown length holds a tensor of layout {type_.layout}", DENSE)
        return Leaf(type_)
    if isinstance(value, (Staged, Iterator)) and not isinstance(value, OfComplex):
        held = "a numpy array" if type(value).__name__ == "StagedArray" else f"a {type(value).__name__}"
        raise JoinFailure("SG203", f"a list of unknown length holds {held}", INSTEAD)
    if id(value) in inside:
        held = f"a {type(value).__name__} that leads to itself"
        raise JoinFailure("SG203", f"a list of unknown length holds {held}", INSTEAD)
    inside = (*inside, id(value))
    if type(value) is list or (type(value) is tuple and has_spread(value)):
        try:
            inner = structure(value, type_of, is_older, inside) if value else None
            if has_spread(value) or not _is_mixed(inner):
                return Inner(inner, type(value))
        except JoinFailure:  # a record: what it holds has no one structure
            if has_spread(value):
                raise
    parts = complex_parts(value) if type(value) is complex else split(value)
    if parts is None and not is_older(value):
        parts = instance_parts(value)
    if parts is None:
        return Same(value)
    if any(type(child) is StagedSpread for child in parts.children):
        raise JoinFailure("SG203", f"a list holds a {type(value).__name__} of unknown length")
    return Node(parts, tuple(_of(child, type_of, is_older, inside) for child in parts.children))


def _is_mixed(element: Element | None) -> bool:
    """Whether an element is a tensor or a number, or an int or a float: each place of a record has one of them."""
    return isinstance(element, Leaf) and any(getattr(element.type, each, False) for each in ("may_be_number", "mixed"))


INSTEAD = "Such a list can hold tensors and numbers, and containers of them: put the tensors themselves into it."


def cover(left: Element | None, right: Element | None) -> Element | None:
    """The structure that covers both.

    Raises:
        JoinFailure: there is none.
    """
    if left is None or right is None:
        return left or right
    text = covering_texts(*(each.type if isinstance(each, Leaf) else _entries(each) for each in (left, right)))
    if text is not None:
        return Leaf(text)
    if isinstance(left, Leaf) and isinstance(right, Leaf):
        return Leaf(join_types(left.type, right.type))
    if isinstance(left, Same) and isinstance(right, Same) and _equal(left.value, right.value):
        return left
    if isinstance(left, Node) and isinstance(right, Node) and _agree(left, right):
        children = [cover(a, b) for a, b in zip(left.children, right.children)]
        return Node(left.parts, tuple(child for child in children if child is not None))
    mine, others = _held(left), _held(right)
    if mine is not None and others is not None and mine[0] is others[0]:
        return Inner(functools.reduce(cover, (*mine[1], *others[1]), None), mine[0])
    for nothing, other in ((left, right), (right, left)):
        if isinstance(nothing, Same) and nothing.value is None and isinstance(other, Leaf) and _entries(other) is None:
            return Leaf(optional(other.type, none=True))
    first, second = _entries(left), _entries(right)
    if first is not None and second is not None:
        return Leaf(table_of(first, second))
    raise JoinFailure("SG203", "the elements of a list differ in kind or structure")


def _held(element: Element) -> tuple[type, tuple[Element | None, ...]] | None:
    """Whether it is a list or a tuple, and the structures of what is in it; None for anything else."""
    if isinstance(element, Inner):
        return element.kind, (element.element,)
    if isinstance(element, Node) and any(element.parts.type is kind for kind in (list, tuple)):
        return element.parts.type, element.children
    return None


def _entries(element: Element) -> tuple[Known, ...] | None:
    """The constants of which an element is one; None where it may be something else."""
    if isinstance(element, Leaf):
        return element.type.entries if isinstance(element.type, TableType) else None
    return known_in(element.value) if isinstance(element, Same) else None


def _equal(left: Any, right: Any) -> bool:
    return left is right or (type(left) is type(right) and isinstance(left, (str, bytes)) and left == right)


def _agree(left: Node, right: Node) -> bool:
    alike = left.parts.type is right.parts.type and len(left.children) == len(right.children)
    return alike and bool(left.parts.context == right.parts.context)


def is_text(element: Element | None) -> bool:
    """Whether elements are texts that only the run knows."""
    return isinstance(element, Leaf) and is_text_type(element.type)


def is_text_type(type_: Type) -> bool:
    return is_text_type(type_.element) if isinstance(type_, ListType) else isinstance(type_, ObjectType)


def types(element: Element) -> list[Type]:
    """What each column holds."""
    return leaf_types(element) or [_COUNT]


def leaf_types(element: Element | None) -> list[Type]:
    """What each column of leaves holds: none where an element has no leaf."""
    if isinstance(element, Leaf):
        return [element.type]
    if isinstance(element, Node):
        return [type_ for child in element.children for type_ in leaf_types(child)]
    if isinstance(element, Inner):
        return [ListType(type_) for type_ in (types(element.element) if element.element else [_COUNT])]
    return []
