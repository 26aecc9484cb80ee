"""What the run hands to Python's own functions that show or store it: as it is when they are called.

The capture's containers and objects change after the call that is recorded, and are put back at its end. So containers
are made anew by the program, or copied, and an object that the call has changed is refused.
"""

from __future__ import annotations

import copy
import enum
import io
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_ours, is_standard_library
from stillgraph.core.lookup import class_member, is_exactly
from stillgraph.operators.conditions.given import accepted
from stillgraph.operators.dispatch import call
from stillgraph.operators.outside.texts_of_errors import template_of
from stillgraph.program.acts import Shown
from stillgraph.program.operations import made, ordered
from stillgraph.program.types import ObjectType
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.errors import in_eagers_words
from stillgraph.trace.values.lists import StagedList, has_spread
from stillgraph.trace.values.numbers import Staged
from stillgraph.trace.values.outcome import Outcome

Part = Callable[[Session, Any], Any]

_KEYS = (str, int, float, bool, type(None))
_UNCHANGING = (
    *(*_KEYS, complex, bytes, type, enum.Enum, ModuleType, FunctionType, BuiltinMethodType),
    *(os.PathLike, torch.dtype, torch.device, range, type(...)),
)
_HINT = "Hand over the values themselves: numbers, text, tensors, or lists, tuples and dicts of them."


class Asked(enum.Enum):
    """Which texts Python asks an object for, where it shows it: the methods, and ``None`` where nobody can tell."""

    STR = ("__str__",)
    REPR = ("__repr__",)
    BOTH = ("__str__", "__repr__")
    EITHER = None
    NOTHING = ()


def shown(capture: Session, value: Any, asked: Asked = Asked.STR) -> Any:
    """What is to be printed or logged, as an argument of a node.

    Args:
        capture: the one going on.
        value: what is shown.
        asked: which of its texts are shown; of what it holds, it is what ``repr`` gives.

    Raises:
        CaptureError: only the run knows what its text is.
    """
    if _leads_to_itself(value):
        message = f"a {type(value).__name__} that leads to itself is turned into text"
        raise refuse("SG302", message, location=here(), hint=_HINT)
    capture.iterators.require_known(*torch.utils._pytree.tree_leaves(value))
    own = _own_text(value)
    known = None if own else _known(capture, value, _SHOWN_INSIDE[asked is Asked.NOTHING])
    if known is not None:
        return known[0]
    if isinstance(value, BaseException):
        in_eagers_words(value)
        parts = [*value.args, *vars(value).values()]
        if any(map(holds_staged, parts)):
            texts = _texts(capture, value, asked)
            if texts is not None:
                return texts
            message = f"a {type(value).__name__} with a value that only the run knows is turned into text"
            raise refuse("SG302", message, location=here(), hint=_HINT)
        shown(capture, parts, Asked.NOTHING)
        return _without_frames(value)
    if isinstance(value, MethodType):
        shown(capture, value.__self__, Asked.NOTHING)
        return value
    if isinstance(value, torch.distributions.Distribution):  # of the user's objects, torch's code knows less
        return shown(capture, call(repr, value))
    staged = str(type(value).__module__).startswith("stillgraph.") or isinstance(value, Outcome) or holds_staged(value)
    changed = _is_changed(capture, value)
    if staged or changed:
        texts = _texts(capture, value, asked)
        if texts is not None:
            return texts
    if staged:
        message = f"a {type(value).__name__} that holds what only the run knows is turned into text"
        raise refuse("SG302", message, location=here(), hint=_HINT)
    if changed:
        message = f"a {type(value).__name__} that the call has changed is turned into text"
        raise refuse("SG305", message, location=here(), hint=_HINT)
    return value


_SHOWN_INSIDE: dict[bool, Part] = {
    False: lambda capture, value: shown(capture, value, Asked.REPR),
    True: lambda capture, value: shown(capture, value, Asked.NOTHING),
}
"""What is done with the elements of a container, whether or not its text is asked for."""


def _leads_to_itself(value: Any, inside: tuple[int, ...] = ()) -> bool:
    if not isinstance(value, (tuple, list, dict)):
        return False
    if id(value) in inside:
        return True
    return any(_leads_to_itself(each, (*inside, id(value))) for each in _elements(value))


def _elements(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return dict.values(container)
    return list.__iter__(container) if isinstance(container, list) else tuple.__iter__(container)


def _own_text(value: Any) -> bool:
    """Whether a named tuple is of a class of the user's that says itself how it is shown."""
    if not (isinstance(value, tuple) and hasattr(value, "_fields")):
        return False
    methods = (text_method(value, name) for name in Asked.BOTH.value)
    return any(method is not None and not is_standard_library(method.__code__.co_filename) for method in methods)


def _texts(capture: Session, value: Any, asked: Asked) -> Any:
    """What stands for a user's object where it is shown; None where Python code does not tell its texts."""
    if asked is Asked.EITHER and text_method(value, "__str__") is text_method(value, "__repr__"):
        asked = Asked.BOTH
    made: dict[FunctionType, Any] = {}
    texts: dict[str, Any] = {}
    for name in asked.value or ():
        method = text_method(value, name)
        if method is None and template_of(value, name) is not None:
            texts[name] = call(_SHOWING[name], value)
            continue
        if method is None:
            return None
        if method not in made:
            made[method] = text_by(method, value, name)
        texts[name] = made[method]
    if not texts or asked is Asked.STR:
        return texts.get("__str__")
    node = capture.emit("call_function", Shown, (texts.get("__str__"), texts.get("__repr__")), {})
    node.meta["val"] = ObjectType(Shown)
    return node


_SHOWING: dict[str, Callable[[Any], Any]] = {"__str__": str, "__repr__": repr}


def text_method(value: Any, name: str = "__str__") -> FunctionType | None:
    """The method by which a user's object says what its text is, if it is written in Python.

    Args:
        value: any object.
        name: of the method that is asked for it.
    """
    if isinstance(value, (torch.nn.Module, torch.Tensor, Staged, BaseException)):
        return None
    method = class_member(type(value), name)
    if method is object.__str__:  # which asks for this one
        method = class_member(type(value), "__repr__")
    return method if isinstance(method, FunctionType) and not is_ours(method.__code__.co_filename) else None


def text_by(method: FunctionType, value: Any, name: str = "__str__", *spec: Any) -> Any:
    """The text of an object by its class's method, which is rewritten.

    Args:
        method: what gives the text.
        value: the object.
        name: of the method for which Python asks.
        spec: what ``__format__`` is told.
    """
    result = accepted(name, type(value).__name__, call(method, value, *spec))
    if isinstance(result, Unjoined):
        result.refuse()
    return result


def handed(capture: Session, value: Any) -> Any:
    """What is given to a function that does with it what it likes, as an argument of a node."""
    return shown(capture, value, Asked.NOTHING)


def stored(capture: Session, value: Any) -> Any:
    """What is to be written to a file, as an argument of a node: nothing that Python itself would look into."""
    known = _known(capture, value, stored)
    if known is not None:
        return known[0]
    if isinstance(value, io.IOBase) and capture.is_outer(value):
        return value
    raise refuse("SG305", f"a {type(value).__name__} is written to a file", location=here(), hint=_HINT)


def _known(capture: Session, value: Any, part: Part) -> tuple[Any] | None:
    """A value of a kind that is handed out whatever it is for, in a tuple of one."""
    if isinstance(value, torch.Size):
        return (capture.emit("call_function", torch.Size, (tuple(value),), {}),)
    if isinstance(value, (torch.Tensor, Staged, StagedArray, StagedList, *_UNCHANGING)):
        return (value,)
    if isinstance(value, (tuple, list, dict)):
        return (_container(capture, value, part),)
    if isinstance(value, (set, frozenset, bytearray)) or is_array(value):
        return (_copied(value),)
    return None


def _container(capture: Session, value: Any, part: Part) -> Any:
    if container_of(value) is not None or (isinstance(value, (tuple, list)) and has_spread(value)):
        return value  # a list of unknown length becomes a node of its own, other such things are refused
    if is_exactly(value, (list, tuple)):
        return type(value)(part(capture, each) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = tuple(part(capture, each) for each in value)
        return capture.emit("call_function", made, (type(value), items), {})
    plain = isinstance(value, dict) and all(isinstance(key, _KEYS) for key in value)
    if plain and type(value) is dict:
        return {key: part(capture, each) for key, each in value.items()}
    if plain and type(value) is OrderedDict:
        pairs = [(key, part(capture, each)) for key, each in value.items()]
        state = {name: _copied(each) for name, each in vars(value).items()}
        return capture.emit("call_function", ordered, (OrderedDict, pairs, state), {})
    return _copied(value)


def _copied(value: Any) -> Any:
    """A container in which nothing is staged, as it is now."""
    if holds_staged(value):
        message = f"a {type(value).__name__} that holds what only the run knows is handed out"
        raise refuse("SG302", message, location=here(), hint=_HINT)
    return copy.copy(value)


def _is_changed(capture: Session, value: Any) -> bool:
    changed = capture.journal.written(0)
    return any(isinstance(key, tuple) and len(key) > 1 and key[1] == id(value) for key in changed)


def _without_frames(error: BaseException) -> BaseException:
    """A copy: the exception itself would hold the frames of the capture."""
    try:
        return copy.copy(error).with_traceback(None)
    except Exception:  # its constructor takes other arguments than the exception has
        message = f"a {type(error).__name__} that cannot be copied is turned into text"
        raise refuse("SG302", message, location=here()) from None
