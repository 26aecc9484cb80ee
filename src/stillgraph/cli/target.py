"""What a command works on: the function or module that ``MODULE:NAME`` names."""
from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from stillgraph.cli.inputs import Example
from stillgraph.cli.usage import WrongUsage, first_line, split_target


def load(target: str, *, training: bool = False, made_with: Example | None = None) -> Any:
    """Import what ``MODULE:NAME`` names.

    Args:
        target: MODULE is an importable module or a .py file; NAME may have dots.
        training: leave an nn.Module in the mode it was made in, rather than calling `eval` on it.
        made_with: the arguments that a class of modules is called with; none by default.

    Returns:
        a function, a module, or an instance where a class of modules is named.

    Raises:
        WrongUsage: there is no such thing, or it cannot be made.
    """
    module_name, name = split_target(target)
    found: Any = _import_file(Path(module_name)) if module_name.endswith(".py") else _import_module(module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            raise WrongUsage(f"{module_name!r} has no {name!r}{_own_names(found)}")
        found = getattr(found, part)
    if isinstance(found, type):
        found = _instance(found, made_with or Example((), {}, None))
    if not callable(found):
        raise WrongUsage(f"{target!r} is a {type(found).__name__}, not a function or module")
    return found if training or not isinstance(found, nn.Module) else found.eval()


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    with _importing(name):
        return importlib.import_module(name)


def _import_file(path: Path) -> ModuleType:
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_file"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    assert spec is not None and spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))  # so that the file finds its neighbours
    sys.modules[name] = module
    with _importing(str(path)):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _importing(name: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:  # whatever a user's module raises while it is imported
        raise WrongUsage(f"cannot import {name!r}: {type(error).__name__}: {first_line(error)}") from error


def _own_names(found: Any) -> str:
    """What could have been meant: the callables that a module or class defines itself."""
    home, members = getattr(found, "__name__", None), getattr(found, "__dict__", {})
    names = [name for name, value in members.items() if callable(value) and getattr(value, "__module__", "") == home]
    return f"; it has {', '.join(sorted(names))}" if names else ""


def _instance(made: type, example: Example) -> Any:
    if not issubclass(made, nn.Module):
        raise WrongUsage(f"the class {made.__name__} is not an nn.Module")
    try:
        return made(*example.args, **example.kwargs)
    except Exception as error:  # whatever a user's constructor raises
        instead = "name an instance instead, or give migrate its arguments with --init"
        raise WrongUsage(f"{made.__name__}() fails: {first_line(error)}; {instead}") from error
