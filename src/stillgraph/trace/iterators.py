"""Iterators: what happens to them when something runs over them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FunctionType, GeneratorType
from typing import Any

from stillgraph.core.files import is_our_module, is_standard_library, is_torch
from stillgraph.core.lookup import class_member


def is_advanced_unseen(value: Any) -> bool:
    """Whether a value is an iterator that the journal cannot put back: a generator, or one of Python's own.

    What the capture uses for iterators notes it by itself, a user's class writes its attributes.
    Torch's and the standard library's classes do so unseen.
    """
    kind = type(value)  # what stands for an exception is not asked what it is
    if not issubclass(kind, Iterator) or is_our_module(kind.__module__):
        return False
    method = class_member(kind, "__next__")
    if not isinstance(method, FunctionType):
        return True
    return is_torch(method.__code__.co_filename) or is_standard_library(method.__code__.co_filename)


def drawn_from(iterator: Any) -> Any:
    """The generator that an iterator is, or that one of Python's (``enumerate``, ``zip``) draws from; None for none."""
    if isinstance(iterator, GeneratorType):
        return iterator
    held = gc.get_referents(iterator)
    held += [each for several in held if type(several) is tuple for each in several]  # as ``zip`` keeps them
    return next((each for each in held if isinstance(each, GeneratorType)), None)
