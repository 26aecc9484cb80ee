"""Taking Python containers apart and putting them together again: one adapter to torch's pytree registry."""

from __future__ import annotations

import collections
import dataclasses
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch.utils import _pytree

from stillgraph.core.lookup import fill_instance, held_by_function, instance_state, is_plainly_kept, own_attributes
from stillgraph.program.outputs import Keys
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex, complex_of
from stillgraph.trace.values.entries import KINDS_OF_DICT, Entry, dict_parts, make_dict, make_set, names_of, set_parts
from stillgraph.trace.values.numbers import Staged


@dataclass(frozen=True, eq=False)
class Parts:
    """A container taken apart: what must agree (``type``, ``context``), the children, and how to rebuild it."""

    type: type
    context: Any
    names: tuple[str, ...]
    children: tuple[Any, ...]
    rebuild: Callable[[list[Any]], Any]
    attributes: bool = False  # an instance whose ``__dict__`` are the children

    @property
    def is_instance(self) -> bool:
        """Whether these are parts of an object of a class of the user's, which is no dataclass."""
        return self.attributes and self.type is not Exit and not dataclasses.is_dataclass(self.type)


def split(value: Any) -> Parts | None:
    """The parts of a container, or None for anything that is not one."""
    kind = type(value)
    if kind is list or kind is tuple:  # a metaclass of the user's may say that its classes are equal to others
        names = tuple(f"[{i}]" for i in range(len(value)))
        return Parts(kind, len(value), names, tuple(value), kind)
    if kind is dict:
        keys, children = dict_parts(value)
        return Parts(dict, keys, names_of(keys), children, lambda new: make_dict(keys, new))
    if any(kind is each for each in KINDS_OF_DICT):
        keys, children = dict_parts(value)
        context = Keys(keys, getattr(value, "default_factory", None))
        return Parts(kind, context, names_of(keys), children, lambda new: context.restore(kind, make_dict(keys, new)))
    if kind is set:
        keys, children = set_parts(value)
        return (
            None
            if any(map(_is_staged, keys))
            else Parts(set, keys, names_of(keys), children, lambda new: make_set(keys, new))
        )
    if kind is Entry:
        children = (value.present, value.value, value.rank)
        return Parts(Entry, None, (" (whether it is there)", "", " (its place)"), children, lambda new: Entry(*new))
    if kind is torch.Size:
        return Parts(kind, len(value), tuple(f"[{i}]" for i in range(len(value))), tuple(value), _size)
    if isinstance(value, slice):
        return Parts(slice, None, ("start", "stop", "step"), (value.start, value.stop, value.step), lambda n: slice(*n))
    if kind is StagedComplex:
        return complex_parts(value)
    if kind is StagedArray:
        scalar = value.scalar
        return Parts(kind, scalar, ("",), (value.tensor,), lambda new: StagedArray(new[0], scalar))
    more = isinstance(value, (list, tuple, dict, set, frozenset, torch.nn.Module))  # than its attributes
    if kind is Exit or (dataclasses.is_dataclass(kind) and not more and not _registered(value)):
        return _split_instance(value)
    return _split_registered(value)


def _size(new: list[Any]) -> Any:
    """A shape; where a path has none, what stands for its sizes there goes into no `torch.Size`."""
    return tuple(new) if any(each is MISSING for each in new) else torch.Size(new)


def complex_parts(value: Any) -> Parts:
    """The two floats of a complex number, staged or not."""
    children = (value.real, value.imag)
    return Parts(complex, None, (".real", ".imag"), children, lambda new: complex_of(*new))


def object_parts(value: Any) -> Parts | None:
    """The parts of a container, or of an object of a class of the user's: loops and paths may leave another one."""
    parts = split(value)
    return instance_parts(value) if parts is None and not isinstance(value, torch.nn.Module) else parts


def instance_parts(value: Any) -> Parts | None:
    """The parts of a module, or an object of a class of the user's; None for any other object."""
    kind: Any = type(value)
    ordinary = kind.__new__ is object.__new__ and isinstance(getattr(kind, "__init__", None), (FunctionType, _SLOT))
    foreign = not issubclass(kind, torch.nn.Module) and _is_foreign(kind.__module__)
    if not ordinary or foreign:
        return None
    return _split_instance(value)


_SLOT = type(object.__init__)


def _is_foreign(module: str) -> bool:
    if module.startswith("torch.distributions."):
        return False  # classes written as users write theirs
    root = module.partition(".")[0]
    return (root in sys.stdlib_module_names and root != "__main__") or root in ("torch", "numpy", "stillgraph")


def _is_staged(value: Any) -> bool:
    return isinstance(value, (Staged, torch.Tensor))


def _split_instance(value: Any) -> Parts | None:
    state = instance_state(value)
    if state is None or isinstance(value, type) or not is_plainly_kept(value):
        return None
    return attribute_parts(type(value), state)


def attribute_parts(kind: Any, state: Mapping[str, Any]) -> Parts:
    """The parts of an object of a class with some attributes."""
    names = tuple(state)

    def rebuild(children: list[Any]) -> Any:
        fresh = object.__new__(kind)
        fill_instance(fresh, dict(zip(names, children)))
        return fresh

    return Parts(kind, names, tuple(f".{n}" for n in names), tuple(state.values()), rebuild, attributes=True)


def _node_type(value: Any) -> Any:
    kind = type(value)
    if _pytree.is_namedtuple_instance(value) and kind not in _pytree.SUPPORTED_NODES:
        return collections.namedtuple
    return kind


def _registered(value: Any) -> bool:
    return _node_type(value) in _pytree.SUPPORTED_NODES


def _split_registered(value: Any) -> Parts | None:
    kind = _node_type(value)
    node = _pytree.SUPPORTED_NODES.get(kind)
    if node is None:
        return None
    children, context = node.flatten_fn(value)
    names = tuple(f"[{i}]" for i in range(len(children)))
    return Parts(type(value), context, names, tuple(children), lambda new: node.unflatten_fn(new, context))


_INERT = (str, bytes, int, float, complex, type(None), type, ModuleType, CodeType, torch.dtype, torch.device)


def element_parts(value: Any) -> Parts | None:
    """The parts of an element of a list of unknown length; None where it has none, or is out of date."""
    return complex_parts(value) if type(value) is complex else split(value) or instance_parts(value)


def parts_of(value: Any) -> Parts:
    """Those of an element whose structure has parts."""
    parts = element_parts(value)
    assert parts is not None
    return parts


def held_in(value: Any) -> Iterator[Any]:
    """All that is in an object that is taken apart, however deep."""
    queue, seen = [value], set[int]()
    while queue:
        parts = object_parts(queue.pop())
        new = [child for child in (() if parts is None else parts.children) if id(child) not in seen]
        seen.update(map(id, new))
        queue += new
        yield from new


def holds_staged(value: Any) -> bool:
    """Whether something staged can be reached from an object that would be handed out as it is."""
    return _reaches(value, lambda item: isinstance(item, Staged) or is_fake(item))


def leads_to(value: Any, target: Any) -> bool:
    """Whether an object can be reached from another that would be handed out as it is."""
    return _reaches(value, lambda item: item is target)


def _reaches(value: Any, is_it: Callable[[Any], bool]) -> bool:
    seen: set[int] = set()
    queue = [value]
    while queue and len(seen) < 1000:
        item = queue.pop()
        if is_it(item):
            return True
        if isinstance(item, _INERT) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            queue += (own_attributes(item) or {}).values()  # where one that wraps others has them
            continue
        if isinstance(item, FunctionType):
            queue += held_by_function(item)
        elif is_array(item) and item.dtype.hasobject:
            queue += item.flat
        else:
            queue += gc.get_referents(item)
    return False
