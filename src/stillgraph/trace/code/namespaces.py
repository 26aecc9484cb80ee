"""Namespaces: the globals of a function, what is read of modules, and the classes that attributes are looked up in."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

from stillgraph.core.files import is_below_torch, is_standard_library
from stillgraph.program.sources import Attribute, Global, Held, Item, Source
from stillgraph.trace.code.names import Names

_KEPT = (
    type,
    ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    property,
    classmethod,
    staticmethod,
    functools.cached_property,
)
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8  # Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE
_OF_EVERY_CLASS = frozenset(vars(type("C", (), {})))  # __doc__, __module__, …
_LOOKED_UP = """
bool len length_hint contains iter next reversed getitem setitem delitem missing call hash eq ne lt le gt ge
repr str format bytes int float complex index round trunc floor ceil abs neg pos invert
add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or
radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor ror
iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ixor ior
getattr getattribute setattr delattr get set delete dir enter exit new init class_getitem instancecheck
subclasscheck fspath copy deepcopy reduce reduce_ex getstate setstate torch_function array sizeof
"""
SPECIAL = frozenset(f"__{name}__" for name in _LOOKED_UP.split())  # by Python, torch or the standard library in a class
_EVERY_MODULE = ("__call__", "_call_impl", "_wrapped_call_impl", "__getattr__")


def is_kept(value: Any) -> bool:
    """Whether a guard may keep an object alive: it has no state of the user's, and little beside itself."""
    if isinstance(value, FunctionType):
        return value.__code__.co_freevars in ((), ("__class__",))
    if isinstance(value, types.BuiltinFunctionType):
        return isinstance(value.__self__, (type, ModuleType, type(None)))
    return isinstance(value, _KEPT)


def is_of_its_module(value: Any) -> bool:
    """Whether a library keeps an object in the module of its class: Python's generator of random numbers, say."""
    kind = type(value)
    module = sys.modules.get(kind.__module__)
    if module is None or not is_standard_library(getattr(module, "__file__", None) or ""):
        return False
    return any(each is value for each in vars(module).values())


# ---- globals
def namespace_of(table: dict[str, Any]) -> Source:
    """The source of a dictionary of globals or builtins."""
    return Held(str(table.get("__name__", "globals")), table)


def variable(namespace: dict[str, Any], name: str) -> Source:
    """The source of a global."""
    module = str(namespace.get("__name__"))
    if getattr(sys.modules.get(module), "__dict__", None) is namespace:
        return Global(module, name)
    return Item(namespace_of(namespace), name)


# ---- modules
def module_attributes(
    names: Names, namespace: dict[str, Any], function: FunctionType | None = None
) -> Iterator[tuple[ModuleType, str]]:
    """The modules that code can name, each with the attributes of it that the code mentions.

    Args:
        names: of the code.
        namespace: its globals.
        function: one that has the code, whose closure may name modules too.
    """
    found = [namespace[name] for name in names.variables if isinstance(namespace.get(name), ModuleType)]
    held = [cell_contents(cell) for cell in (function.__closure__ or ())] if function is not None else []
    found += [value for value in held if isinstance(value, ModuleType)]
    for path in names.modules:
        prefixes = [path.rsplit(".", cut)[0] for cut in range(path.count(".") + 1)]
        found += [sys.modules[prefix] for prefix in prefixes if prefix in sys.modules]
    return attributes_below(found, names.attributes)


def attributes_below(modules: Iterable[Any], names: frozenset[str]) -> Iterator[tuple[ModuleType, str]]:
    """Modules, and those they lead to by names, each with the names that it has; anything else is left out."""
    found = [module for module in modules if isinstance(module, ModuleType)]
    seen: set[int] = set()
    while found:
        module = found.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name in names:
            if (name in vars(module) or _has_own(type(module), name)) and (module, name) != (sys, "modules"):
                yield module, name
                value = vars(module).get(name)
                if isinstance(value, ModuleType):
                    found.append(value)


def _has_own(kind: type, name: str) -> bool:
    """Whether a class of modules defines an attribute, as that of ``torch.backends.cudnn`` does."""
    return any(name in vars(base) and not name.startswith("__") for base in kind.__mro__ if base not in _PLAIN_MODULE)


_PLAIN_MODULE = ModuleType.__mro__


def cell_contents(cell: Any) -> Any:
    """What a closure's cell holds; ``...`` if nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return ...


def module_member(module: ModuleType, name: str) -> tuple[Source, Source, Any]:
    """An attribute of a module: the namespace it is in, where it is found, and what it is."""
    space = namespace_of(vars(module))
    if name in vars(module):
        return space, variable(vars(module), name), vars(module)[name]
    return space, Attribute(Held(module.__name__, module), name), getattr(module, name)


# ---- classes
def class_space(kind: type) -> Source:
    """The source of a class's own namespace."""
    return Attribute(Held(kind.__qualname__, kind), "__dict__")


def users_classes(kind: type) -> list[type]:
    """The classes that an object's attributes are looked up in, but for Python's own, and what every module has."""
    return [base for base in kind.__mro__ if base is not torch.nn.Module and _can_change(base)]


def _can_change(kind: type) -> bool:
    """Whether attributes of a class can be set: not of those written in C."""
    return bool(kind.__flags__ & _HEAP_TYPE) and not kind.__flags__ & _IMMUTABLE_TYPE


def classes_read(
    kind: type, names: frozenset[str], of_protocols: frozenset[str] = frozenset()
) -> Iterator[tuple[Source, type, list[str], list[str]]]:
    """What is read of a class and its bases.

    Args:
        kind: the class.
        names: what the code mentions.
        of_protocols: what makes a class fit a protocol, if it has it.

    Yields:
        The namespace, the class, the names found there, and the names that are found in a later class (Python's and
        torch's, too), by a method ``__getattr__`` or, if it is Python that looks them up, nowhere.
    """
    names = names - _OF_EVERY_CLASS
    bases = [*users_classes(kind), *users_classes(type(kind))]
    read = [_names_read(base, names) for base in bases]
    by_method = any("__getattr__" in vars(base) for base in bases)
    others = (base for base in kind.__mro__ if all(base is not each for each in bases))
    in_pythons = {name for base in others for name in vars(base)}
    later = [set(names) if by_method else names & in_pythons]
    for present in reversed(read):
        later.append(later[-1].union(present))
    for base, present, elsewhere in zip(bases, read, reversed(later[:-1]), strict=True):
        awaited = SPECIAL | of_protocols if is_users(base) else of_protocols
        yield class_space(base), base, present, sorted((elsewhere | awaited) - vars(base).keys())
    if issubclass(kind, torch.nn.Module):
        yield class_space(torch.nn.Module), torch.nn.Module, list(_EVERY_MODULE), []


def protocol_names(kind: type) -> frozenset[str]:
    """The attributes that an object must have to be an instance of a runtime protocol; none for other classes."""
    if not getattr(kind, "_is_protocol", False):
        return frozenset()
    names = (name for base in users_classes(kind) for name in (*vars(base), *vars(base).get("__annotations__", ())))
    return frozenset(name for name in names if not name.startswith("_"))


def _names_read(base: type, names: frozenset[str]) -> list[str]:
    """Of a class, ``names``, and methods of the user's that Python calls by itself (``__len__``), or ``forward``."""
    called = SPECIAL if is_users(base) else frozenset()
    special = not is_below_torch(file_of(base))

    def is_method(name: str, member: Any) -> bool:
        called_so = special and name.startswith("__") and name.endswith("__")
        return (called_so or name == "forward") and isinstance(member, FunctionType)

    return [name for name, m in vars(base).items() if name in names or name in called or is_method(name, m)]


def is_users(owner: type | ModuleType) -> bool:
    """Whether a class or module is neither Python's nor torch's."""
    file = file_of(owner)
    name = owner.__name__ if isinstance(owner, ModuleType) else str(owner.__module__)
    if not file and name.partition(".")[0] in sys.stdlib_module_names:  # ``sys`` and others without a file
        return False
    return not (is_below_torch(file) or is_standard_library(file))


def class_attributes(kind: type) -> list[str]:
    """The attributes that objects have of their class, but for those that every object or module has."""
    names = dict.fromkeys(name for base in users_classes(kind) for name in vars(base))
    return [name for name in names if not (name.startswith("__") and name.endswith("__"))]


def file_of(owner: type | ModuleType) -> str:
    """Where a module, or a class, was defined; empty if nobody knows."""
    module = owner if isinstance(owner, ModuleType) else sys.modules.get(str(owner.__module__))
    return getattr(module, "__file__", None) or ""
