"""What instructions look at: which names, which containers, and whether they may show what an object is."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass
from types import BuiltinMethodType, CodeType, FunctionType, MethodWrapperType
from typing import Any

import torch

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.machine.frame import NULL, Frame
from stillgraph.core.files import is_our_module
from stillgraph.core.lookup import is_exactly
from stillgraph.core.parcel import opened
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.values.numbers import Staged

SHOWING = frozenset(
    {
        *("CALL", "CALL_KW", "CALL_FUNCTION_EX", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"),
        *("BINARY_OP", "LOAD_ATTR", "LOAD_METHOD"),
    }
)
"""Instructions that `look` is to be called before."""

NAMING = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF"})
"""Instructions that read what has a name."""

_OF_SLOTS = frozenset({"LOAD_FAST", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_FROM_DICT_OR_DEREF"})

CONTAINERS = frozenset({list, dict, set, collections.deque})
"""Containers that a program depends on only where it does more than move them."""

_LOOKING_UP = frozenset({"LOAD_ATTR", "LOAD_METHOD"})

_TEXTS = (print, str, repr, format, ascii)
_HASHES = (hash, id)
_METHODS = frozenset({"__repr__", "__str__", "__format__", "__hash__"})
_DATA: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


def name_read(frame: Frame, each: Instruction) -> str | None:
    """The name of the global, attribute or free variable that an instruction comes to; None of any other."""
    if each.name in _OF_SLOTS:
        name = frame.name(each.argument)
        return name if name in frame.code.co_freevars else None
    return each.argument if each.name in NAMING else None


def note_name(code: CodeType, name: str) -> None:
    """To be called with what `name_read` gives, before the instruction."""
    capture = session()
    names = None if capture is None else capture.reads.followed.get(code)
    if names is not None:
        names.add(name)


def meet(value: Any) -> None:
    """To be called with what an instruction has come to, but does nothing with yet."""
    capture = session()
    if capture is not None and type(value) in CONTAINERS:
        capture.reads.met[id(value)] = value


def note_operands(each: Instruction, operands: Sequence[Any]) -> list[Any]:
    """To be called before an instruction, with what it does something with; gives what `look_into` has noted."""
    if each.name in _LOOKING_UP and each.argument != "maxlen":
        for value in operands:
            meet(value)  # a method may only be handed on
            if each.argument == "__dict__":
                _note_whole(opened(value))
        return []
    if _asks_for_none(each, operands):
        for value in operands:
            meet(value)  # whose type tells
        return []
    picked = _entry(each, operands)
    noted = [value for value in operands if look_into(value)] if picked is None or not _pick(*picked) else []
    return [] if each.name == "CALL_FUNCTION_EX" else noted  # which takes the elements out


def _note_whole(value: Any) -> None:
    """Note that code takes hold of all of an object's attributes at once."""
    capture = session()
    if capture is not None:
        capture.reads.whole[id(value)] = value


def _asks_for_none(each: Instruction, operands: Sequence[Any]) -> bool:
    """Whether an instruction asks of something no more than whether it is None."""
    compares = each.name == "IS_OP" and any(value is None for value in operands)
    return compares or each.name in ("POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")


def _entry(each: Instruction, operands: Sequence[Any]) -> tuple[Any, Any] | None:
    """The container and the key or index where an instruction does no more than to look for the entry there."""
    if each.name == "BINARY_SUBSCR":
        container, key = operands
        return (container, key) if type(container) is dict or _is_index(container, key) else None
    if each.name == "CONTAINS_OP":
        key, container = operands
        return (container, key) if type(container) is dict else None
    if each.name != "CALL" or len(operands) not in (3, 4):
        return None
    method = next(value for value in operands[:2] if value is not NULL)
    if not isinstance(method, BuiltinMethodType) or method.__name__ != "get" or type(method.__self__) is not dict:
        return None
    key, *default = operands[2:]
    return None if default and type(default[0]) in CONTAINERS else (method.__self__, key)


def _is_index(container: Any, key: Any) -> bool:
    """Whether a list has an element at an index; from the end, one that is data: paths to others are from the front."""
    if type(container) is not list or type(key) is not int or not -len(container) <= key < len(container):
        return False
    return key >= 0 or is_exactly(container[key], _DATA) or isinstance(container[key], Staged)


def _pick(container: Any, key: Any) -> bool:
    """Note that an instruction looks for one entry of a container, at a key that is the same in each call."""
    capture = session()
    if capture is None or not is_exactly(key, (int, str)):
        return False
    keys = capture.reads.picked.setdefault(id(container), (container, {}))[1]
    keys[key] = None
    twice = type(container) is list and {key - len(container), key + len(container)} & keys.keys()
    return not twice  # what is asked for from both ends is one element only at this length


def look_into(value: Any) -> bool:
    """To be called with what an instruction does something with: a container, or a method of one.

    Returns:
        Whether it is a container, of which nobody has noted it before.
    """
    capture = session()
    container = value.__self__ if isinstance(value, (BuiltinMethodType, MethodWrapperType)) else value
    if capture is None or type(container) not in CONTAINERS or id(container) in capture.reads.looked_into:
        return False
    capture.reads.looked_into[id(container)] = container
    return container is value


def only_moved(values: Iterable[Any]) -> None:
    """To be called with what `note_operands` gave, where the instruction has turned out to do nothing else with it."""
    capture = capturing()
    for value in values:
        del capture.reads.looked_into[id(value)]
        meet(value)


def look(each: Instruction, operands: Sequence[Any]) -> None:
    """To be called before an instruction of a segment.

    A program in which an object was shown is for this very object.
    """
    capture = session()
    if capture is not None and not capture.reads.shown and _shows(each, operands):
        capture.reads.shown = True


def _shows(each: Instruction, operands: Sequence[Any]) -> bool:
    if each.name in ("LOAD_ATTR", "LOAD_METHOD"):
        return each.argument in _METHODS
    if each.name == "BINARY_OP":
        return isinstance(opened(operands[0]), (str, bytes)) and not all(map(_is_plain, operands))
    if not each.name.startswith("CALL"):
        return not all(map(_is_plain, operands))
    if any(opened(value) is each for value in operands for each in _HASHES):
        return True
    if any(_is_text(value) for value in operands):
        return not all(_is_text(value) or _is_plain(value) for value in operands)
    owners = (getattr(opened(value), "__self__", None) for value in operands[:2])
    return any(isinstance(owner, (str, bytes)) for owner in owners) and not all(map(_is_plain, operands[1:]))


def _is_text(value: Any) -> bool:
    return any(opened(value) is text for text in _TEXTS)


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Whether the text of a value says what it holds, and not what object it is; what holds others, down to a depth."""
    value = opened(value)
    kind = type(value)
    if is_exactly(value, (tuple, list, torch.Size)):
        return depth > 0 and all(_is_plain(each, depth - 1) for each in value)
    if is_exactly(value, _DATA) or isinstance(value, torch.Tensor) or is_our_module(kind.__module__):
        return True
    own = getattr(kind, "__repr__", None)  # whose code says what it reads; a dataclass's shows all that is in it
    return isinstance(own, FunctionType) and not is_dataclass(kind)
