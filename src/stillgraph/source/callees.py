"""Which called names are known when a function is converted, and need no `call` operator."""
from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

Path = tuple[str, ...]


class Callee(Enum):
    """What a dotted name stands for."""

    ORDINARY = auto()
    PLAIN = auto()          # the caller of `convert` wants it called as it is
    SUPER = auto()
    LOCALS = auto()         # locals and vars: see the variables of the frame that calls them
    FRAME = auto()          # others that look at the frame that calls them, harmlessly
    EVALUATES = auto()      # eval and exec


_OF_THE_FRAME = {
    id(builtins.super): Callee.SUPER,
    id(builtins.locals): Callee.LOCALS, id(builtins.vars): Callee.LOCALS, id(builtins.dir): Callee.LOCALS,
    id(builtins.globals): Callee.FRAME, id(builtins.breakpoint): Callee.FRAME,
    id(builtins.eval): Callee.EVALUATES, id(builtins.exec): Callee.EVALUATES,
}
_MISSING = object()


def known_callees(paths: Iterable[Path], fn: types.FunctionType,
                  plain: Callable[[object], bool] | None) -> dict[Path, Callee]:
    """What the called names of a function stand for now.

    Args:
        paths: dotted names that do not start at a local variable.
        fn: the function, whose closure and globals give the names their meaning.
        plain: whether an object is to be called without the `call` operator.

    Returns:
        The names about which there is something to know.
    """
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    found = {}
    for path in paths:
        value = _look_up(path, cells, fn.__globals__)
        if value is _MISSING:
            continue
        callee = _OF_THE_FRAME.get(id(value))
        if callee is None and plain is not None and plain(value):
            callee = Callee.PLAIN
        if callee is not None:
            found[path] = callee
    return found


def _look_up(path: Path, cells: Mapping[str, types.CellType], namespace: Mapping[str, object]) -> object:
    """The object of a dotted name; attributes are followed through modules only, without running any code."""
    root = path[0]
    if root in cells:
        try:
            value = cells[root].cell_contents
        except ValueError:                              # an empty cell
            return _MISSING
    else:
        value = namespace.get(root, _MISSING)
        if value is _MISSING:
            value = vars(builtins).get(root, _MISSING)
    for name in path[1:]:
        if not isinstance(value, types.ModuleType):
            return _MISSING
        value = vars(value).get(name, _MISSING)
    return value
