"""Namespaces that code gets hold of as dictionaries: globals, what ``vars`` gives of a module, ``sys.modules``.

What is read of them is noted, for the code need not mention the names (``globals()["k" + "1"]``).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from stillgraph.trace.capture.session import session

_WHOLE = frozenset({"items", "values", "copy", "__iter__", "__or__", "__ror__"})


def is_namespace(target: Any) -> bool:
    """Whether it is the dictionary of a module, or of code that was run in one of its own."""
    return type(target) is dict and (target is sys.modules or "__builtins__" in target or "__spec__" in target)


def note_name(target: Any, key: Any) -> None:
    """To be called before a dictionary is asked for a key."""
    capture = session()
    if capture is not None and isinstance(key, str) and is_namespace(target):
        capture.reads.variables.append((target, key))


def note_method(target: Any, name: str, args: tuple[Any, ...]) -> None:
    """To be called before a method of a dictionary."""
    capture = session()
    if capture is None or not is_namespace(target):
        return
    if name in _WHOLE:
        capture.reads.spaces[id(target)] = target
    elif args:
        note_name(target, args[0])


def _import_module(name: str, package: str | None = None) -> Any:
    module = importlib.import_module(name, package)
    note_name(sys.modules, importlib.util.resolve_name(name, package))
    return module


MEANINGS: dict[Any, Callable[..., Any]] = {importlib.import_module: _import_module}
