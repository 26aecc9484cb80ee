"""The names that a code object reads, by what it reads them of."""

from __future__ import annotations

import dis
import operator
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import torch

from stillgraph.core.identity_cache import weakly_cached

_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
_ASKING = frozenset({"getattr", "hasattr"})
_CATCHING = frozenset({"AttributeError", "Exception", "BaseException"})


@dataclass(frozen=True)
class Names:
    """What a code object, or one inside it, mentions other than to store it.

    Attributes:
        variables: names looked up among the globals, then among Python's builtins.
        attributes: names of attributes; strings that may name one too (``getattr(self, "name")``).
        asked: those of them that need not be there, for the code asks (``hasattr``, ``getattr``) or catches the error.
        modules: what it imports.
        catches: whether it may catch the error of an attribute that is not there, be it in code that it calls.
    """

    variables: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    catches: bool = False

    def __or__(self, other: Names) -> Names:
        return Names(
            self.variables | other.variables,
            self.attributes | other.attributes,
            self.asked | other.asked,
            self.modules | other.modules,
            self.catches or other.catches,
        )


@weakly_cached
def names_of(code: CodeType) -> Names:
    """The names that a code object reads."""
    found: dict[str, set[str]] = {"variables": set(), "attributes": set(), "modules": set(), "asked": set()}
    catches, before = False, ""
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        catches = catches or (before, instruction.opname) == ("PUSH_EXC_INFO", "POP_TOP")  # ``except:``
        before = instruction.opname
        if instruction.opname in _GLOBAL:
            found["variables"].add(name)
        elif instruction.opname in _ATTRIBUTE:
            found["attributes"].add(name)
        elif instruction.opname == "IMPORT_NAME":
            found["modules"].add(name)
    strings = set(_strings(code.co_consts))
    found["attributes"] |= strings
    if found["variables"] & {"vars", "dir"}:
        found["attributes"].add("__dict__")  # all attributes of an object
    if not _ASKING.isdisjoint(found["variables"]):
        found["asked"] |= strings  # the name may stand behind a call: ``getattr(copy(c), "name")``
    catches = catches or not _CATCHING.isdisjoint(found["variables"])
    if catches:
        found["asked"] |= found["attributes"]
    if "globals" in found["variables"]:
        found["variables"] |= strings
    names = Names(**{kind: frozenset(each) for kind, each in found.items()}, catches=catches)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_of(constant)
    return names


@weakly_cached
def taken_otherwise(code: CodeType) -> frozenset[str]:
    """The globals that a code object does more with than to ask what is in them (``x in SEEN``) and to add to them."""
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _NOTHING_DONE]
    found: set[str] = set()
    for each, after in zip(instructions, [*instructions[1:], None]):
        if each.opname in _GLOBAL and (after is None or not _only_asks(after)):
            found.add(each.argval)
    inner = (taken_otherwise(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(found).union(*inner)


_NOTHING_DONE = frozenset({"CACHE", "EXTENDED_ARG", "NOP"})


def _only_asks(each: dis.Instruction) -> bool:
    """Whether an instruction gives away nothing of a set but an answer."""
    called = each.opname == "LOAD_METHOD" or "NULL|self" in each.argrepr  # which is all that later versions say
    return each.opname == "CONTAINS_OP" or (called and each.argval in ("add", "discard"))


_PLAIN = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"})
_LOOKING = frozenset({"vars", "dir", "globals", "locals", "getattr", "hasattr", "eval", "exec"})


def names_come_to(code: CodeType, come_to: AbstractSet[str]) -> Names:
    """The names that code reads of which only a part has run.

    Args:
        code: of the function.
        come_to: the globals and attributes that the instructions which have run look up.
    """
    names = names_of(code)
    if names.variables & _LOOKING:
        return names
    only = {each.argval for each in dis.get_instructions(code) if each.opname in _PLAIN}
    others = {each.argval for each in dis.get_instructions(code) if each.opname in (_GLOBAL | _ATTRIBUTE) - _PLAIN}
    inner = [names_of(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    kept = {*come_to, *others, *_strings(code.co_consts)}.union(*(each.attributes | each.variables for each in inner))
    left = only - kept
    return Names(names.variables - left, names.attributes - left, names.asked - left, names.modules, names.catches)


def takes_all_unseen(code: CodeType) -> bool:
    """Whether code may take all of an object's attributes otherwise than by an instruction that loads ``__dict__``."""
    if "__dict__" not in names_of(code).attributes:
        return False
    others = (each for each in dis.get_instructions(code) if each.opname in (_GLOBAL | _ATTRIBUTE) - _PLAIN)
    loads = any(each.argval == "__dict__" for each in others)
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    looks = not names_of(code).variables.isdisjoint(_LOOKING - {"getattr", "hasattr"})
    return loads or looks or "__dict__" in _strings(code.co_consts) or any(map(takes_all_unseen, inner))


def free_come_to(code: CodeType, come_to: AbstractSet[str]) -> AbstractSet[str]:
    """The free variables that code reads of which only a part has run; as `names_come_to`."""
    names = names_of(code)
    if names.variables & _LOOKING or not names.attributes.isdisjoint(_OF_CLOSURES):
        return frozenset(code.co_freevars)
    return come_to | {"__class__"}  # which ``super()`` reads


_OF_CLOSURES = frozenset({"__closure__", "cell_contents", "f_locals"})


def _strings(constants: tuple[Any, ...]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            parts = constant.split(".")  # as ``operator.attrgetter`` takes them
            yield from parts if all(map(str.isidentifier, parts)) else ()
        elif isinstance(constant, tuple):
            yield from _strings(constant)


def names_in_getter(value: Any) -> Iterator[str]:
    """The attributes that an ``operator.attrgetter`` or ``operator.methodcaller`` reads; none of anything else."""
    if isinstance(value, (operator.attrgetter, operator.methodcaller)):
        yield from _strings(tuple(value.__reduce__()[1]))


@weakly_cached
def names_in_torch(kind: Any) -> frozenset[str]:
    """The attributes that torch's own code reads of one of its modules, or of a class derived from one, in use."""
    names: set[str] = set()
    queue = [*_USES]
    while queue:
        name = queue.pop()
        method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base) and _is_layer(base)), None)
        if isinstance(method, FunctionType):
            new = names_of(method.__code__).attributes - names
            names |= new
            queue += new
    return frozenset(names)


def _is_layer(kind: type) -> bool:
    """Whether a class is torch's, with a ``forward`` that runs in a capture: that of a parallel module is a step."""
    module = kind.__module__
    return kind is not torch.nn.Module and module.startswith("torch.") and not module.startswith("torch.nn.parallel")


_USES = ("forward", "__iter__", "__len__", "__getitem__", "__contains__", "keys", "values", "items")


@weakly_cached
def assigned_outer_variables(code: CodeType) -> tuple[str, ...]:
    """The free variables of a function that it, or a function inside it, assigns or deletes."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(assigned_outer_variables(constant))
    return tuple(name for name in code.co_freevars if name in names)
