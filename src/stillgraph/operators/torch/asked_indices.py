"""Objects of the user's that torch's functions in C take for whole numbers: those that they ask for ``__index__``.

Which arguments these are, torch's parser alone knows: a size may be such an object, the end of ``torch.arange`` not.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinMethodType, ModuleType
from typing import Any, NoReturn

import torch
from torch.overrides import TorchFunctionMode

from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.dispatch import indexed

Args = tuple[Any, ...]
Keywords = dict[str, Any]


def with_indices(function: Any, args: Args, kwargs: Keywords) -> tuple[Args, Keywords] | None:
    """The arguments with numbers in the place of objects that a function of torch's in C asks; None if there are none.

    What such an object gives is worked out by the code of the user's, followed like any other.
    """
    if not isinstance(function, BuiltinMethodType) or not _has_parser(function):
        return None
    if not any(map(_is_asked, _items((args, kwargs)))):
        return None
    asked = _asked_in(function, args, kwargs)
    return _mapped((args, kwargs), lambda each: indexed(each) if id(each) in asked else each) if asked else None


def _has_parser(function: BuiltinMethodType) -> bool:
    """Whether a function tells modes of its call once it has taken the arguments, and does nothing before."""
    receiver = function.__self__
    is_of_room = isinstance(receiver, ModuleType) and receiver.__name__.startswith("torch._C._")
    return receiver is None or isinstance(receiver, torch.Tensor) or is_of_room


def _is_asked(value: Any) -> bool:
    return not isinstance(value, int) and method_of(value, "__index__") is not None


def _asked_in(function: BuiltinMethodType, args: Args, kwargs: Keywords) -> set[int]:
    """The ids of the objects that a function asks for a number; none where it does not take the arguments."""
    probes: dict[int, _Probe] = {}

    def probing(value: Any) -> Any:
        return probes.setdefault(id(value), _Probe()) if _is_asked(value) else value

    tried, named = _mapped((args, kwargs), probing)
    try:
        with _Parsing():
            function(*tried, **named)
    except _Parsed:
        return {at for at, probe in probes.items() if probe.is_asked}
    except Exception:  # of any kind: what the function says to the objects themselves is what the user gets
        return set()
    return set()


class _Probe:
    """Stands for an object of the user's, and notes whether somebody asks it for a number."""

    is_asked = False

    def __index__(self) -> int:
        self.is_asked = True
        return 1


class _Parsed(BaseException):
    """Torch has taken the arguments; no handler between here and there is for it."""


class _Parsing(TorchFunctionMode):
    """In it, functions of torch's look at what they are given, and do nothing with it."""

    def __torch_function__(self, *_: Any) -> NoReturn:
        raise _Parsed


def _items(value: Any) -> list[Any]:
    """What there is in arguments, in lists and tuples among them, too."""
    if type(value) is dict:
        value = [*value.values()]
    return [each for inner in value for each in _items(inner)] if type(value) in (list, tuple) else [value]


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Arguments with something else in the place of each that `_items` gives."""
    if type(value) is dict:
        return {name: _mapped(each, function) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(each, function) for each in value)
    return function(value)
