"""Looking names up without running anybody's code."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import (
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any


def class_member(kind: type, name: str) -> Any:
    """What a class, or else its first base, has under a name, descriptors as they are; None if there is nothing."""
    for base in kind.__mro__:
        members = vars(base)
        if name in members:
            return members[name]
    return None


def is_exactly(value: Any, kinds: Iterable[type]) -> bool:
    """Whether a value's class is one of these; ``in`` would ask a metaclass of the user's what it is equal to."""
    kind = type(value)
    return any(kind is each for each in kinds)


def of_class(value: Any, name: str) -> Any:
    """What the class of a value has for an operator, such as ``__len__``; None if there is nothing.

    As Python looks for it: what a metaclass has is for the class itself.
    """
    kind = type(value)
    return None if class_member(kind, name) is None else type.__getattribute__(kind, name)


def has_special(value: Any, name: str) -> bool:
    """Whether the class of a value has something for an operator; None is something: Python calls it, and fails."""
    return any(name in vars(base) for base in type(value).__mro__)


def is_slot(member: Any, special: str) -> bool:
    """Whether what a class has as ``__setattr__``, say, is one written in C for just that, as ``object``'s is."""
    return isinstance(member, WrapperDescriptorType) and member.__name__ == special


def own_attributes(value: Any) -> Any:
    """The ``__dict__`` of an object; None if it has none, whatever a ``__getattr__`` of the user's says.

    A `weakref.proxy` has none: what it shows is another object's.
    """
    if is_proxy(value):
        return None
    look_up: Any = type.__getattribute__(type(value), "__getattribute__")
    try:
        return (look_up if is_slot(look_up, "__getattribute__") else object.__getattribute__)(value, "__dict__")
    except AttributeError:
        return None


def slots(kind: type) -> list[str]:
    """The attributes that objects of a class keep outside their dictionary (``__slots__``)."""
    bases = (base for base in kind.__mro__ if base.__flags__ & _HEAP_TYPE and not base.__flags__ & _IMMUTABLE_TYPE)
    members = ((name, member) for base in bases for name, member in vars(base).items())
    named = [name for name, member in members if isinstance(member, MemberDescriptorType)]
    return [name for name in named if isinstance(class_member(kind, name), MemberDescriptorType)]


def instance_state(value: Any) -> Any:
    """The attributes that an object keeps itself, in slots and in its ``__dict__``; None if it keeps none."""
    own, kind = own_attributes(value), type(value)
    names = slots(kind)
    if not names:
        return own
    missing = object()
    held = {name: slot_value(value, name, missing) for name in names}
    return {**{name: each for name, each in held.items() if each is not missing}, **(own or {})}


def is_plainly_kept(value: Any) -> bool:
    """Whether each attribute that an object keeps has a name of its own: no slot hides another, or an entry."""
    names = slots(type(value))
    return len({*names}) == len(names) and not {*names} & {*(own_attributes(value) or ())}


def fill_instance(fresh: Any, state: Mapping[str, Any]) -> None:
    """Give an object attributes, past all that its class says of that: in its slots, or else in its ``__dict__``."""
    kind = type(fresh)
    kept = {*slots(kind)}
    for name in kept & state.keys():
        class_member(kind, name).__set__(fresh, state[name])
    if kept.issuperset(state):
        return
    fresh.__dict__.update({name: value for name, value in state.items() if name not in kept})


def stated(value: Any, name: str, default: Any = None) -> Any:
    """What a callable says of itself under a name; a ``__getattr__``, which may answer anything, is not asked."""
    if not _answers(value):
        return getattr(value, name, default)
    own = own_attributes(value)
    if own is not None and name in own:
        return own[name]
    member = class_member(type(value), name)
    return default if member is None or hasattr(type(member), "__get__") else member


def stated_signature(function: Any) -> inspect.Signature | None:
    """The signature of a callable, found as by `stated`; None for one that does not tell, as builtins may not."""
    if _answers(function):
        given, wrapped = stated(function, "__signature__"), stated(function, "__wrapped__")
        if isinstance(given, inspect.Signature):
            return given
        call = class_member(type(function), "__call__")
        if wrapped is None and not isinstance(call, FunctionType):
            return None
        function = MethodType(call, function) if wrapped is None else wrapped
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _answers(value: Any) -> bool:
    """Whether code of the class says what attributes an object has."""
    kind = type(value)
    if class_member(kind, "__getattr__") is not None:
        return True
    return not is_slot(class_member(kind, "__getattribute__"), "__getattribute__")


def shown_attributes(value: Any) -> Any:
    """What ``value.__dict__`` gives, for a guard to read: a ``__getattribute__`` of the user's may give anything."""
    look_up = class_member(type(value), "__getattribute__")
    return own_attributes(value) if is_slot(look_up, "__getattribute__") else getattr(value, "__dict__", None)


def slot_value(value: Any, name: str, default: Any = None) -> Any:
    """What an object has in a slot of its class; ``default`` if there is nothing."""
    try:
        return class_member(type(value), name).__get__(value, type(value))
    except AttributeError:
        return default


def exception_state(error: BaseException) -> Iterator[tuple[str, Any]]:
    """What Python keeps of an exception outside its ``__dict__``: its arguments, what its class adds (``errno``)."""
    for base in type(error).__mro__:
        for name, member in () if base.__flags__ & _HEAP_TYPE else vars(base).items():
            kept = isinstance(member, (MemberDescriptorType, GetSetDescriptorType))
            if kept and name not in _LEFT_OUT and class_member(type(error), name) is member:
                held = slot_value(error, name, _NOTHING)
                if held is not _NOTHING:
                    yield name, held


def name_in_errors(kind: type) -> str:
    """A class as Python names it in its errors: one that is written in C has a module before it."""
    is_plain = kind.__flags__ & _HEAP_TYPE or kind.__module__ == "builtins"
    return kind.__name__ if is_plain else f"{kind.__module__}.{kind.__name__}"


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that is written in Python, most often
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_LEFT_OUT = frozenset({"__dict__", "__traceback__"})
_NOTHING = object()


def is_proxy(value: Any) -> bool:
    """Whether an object is a `weakref.proxy`; a metaclass may say what its classes are equal to, so none is asked."""
    kind = type(value)
    return kind is weakref.ProxyType or kind is weakref.CallableProxyType


def behind_proxy(value: Any) -> Any:
    """What a `weakref.proxy` stands for; any other object is itself.

    Raises:
        ReferenceError: it is gone.
    """
    if not is_proxy(value):
        return value
    return getattr(value.__repr__, "__self__", value)  # no class of the user's is to be asked for anything


def behind_view(value: Any) -> Any:
    """The mapping that a `types.MappingProxyType` shows; any other object is itself."""
    return gc.get_referents(value)[0] if type(value) is MappingProxyType else value


def is_unset(cell: CellType) -> bool:
    """Whether a variable that functions share holds nothing."""
    try:
        cell.cell_contents  # noqa: B018  # there is no other way to ask
    except ValueError:
        return True
    return False


def held_by_function(function: FunctionType) -> list[Any]:
    """What a function holds itself: its closure's cells, defaults and attributes."""
    defaults, keywords = function.__defaults__ or (), function.__kwdefaults__ or {}
    return [*(function.__closure__ or ()), *defaults, *keywords.values(), *function.__dict__.values()]
