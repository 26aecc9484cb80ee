"""Abstract classes: any class may be registered with them later, and count as theirs from then on."""

from __future__ import annotations

import abc
import types
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from stillgraph.core.files import is_standard_library, is_torch
from stillgraph.core.lookup import class_member
from stillgraph.trace.capture.session import Session


def note_answer(capture: Session, kind: type, kinds: Any, answer: Any) -> None:
    """To be called with what `issubclass` says; that a class is none of some is guarded, and what is one stays one.

    Args:
        capture: which asks.
        kind: the class, or that of the object.
        kinds: a class, or a tuple or union of some.
        answer: what Python says.
    """
    abstract = tuple(dict.fromkeys(each for each in _listed(kinds) if _takes_others(each)))
    if answer is False and abstract:
        capture.reads.settings.append((issubclass, (kind, abstract), False))


def asks_itself(kinds: Any) -> bool:
    """Whether a function of the user's, or of a library's, says what is an instance of one of some classes.

    It may look at the value. What those of Python and torch say, the class tells.
    """
    found = (class_member(type(each), "__instancecheck__") for each in _listed(kinds))
    files = [each.__code__.co_filename for each in found if isinstance(each, FunctionType)]
    return not all(is_standard_library(file) or is_torch(file) for file in files)


def _listed(kinds: Any) -> Iterator[Any]:
    if isinstance(kinds, tuple | types.UnionType):
        for each in kinds if isinstance(kinds, tuple) else kinds.__args__:
            yield from _listed(each)
    else:
        yield kinds


def _takes_others(kind: Any) -> bool:
    """Whether classes may be registered with a class; protocols have guards of their own."""
    if not isinstance(kind, abc.ABCMeta):
        return False
    own, plain = type(kind), abc.ABCMeta
    return own.__instancecheck__ is plain.__instancecheck__ and own.__subclasscheck__ is plain.__subclasscheck__
