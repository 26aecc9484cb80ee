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
    DEBUGGER = auto()       # starts a debugger in the frame that calls it
    FRAME = auto()          # others that look at the frame that calls them, harmlessly
    EVALUATES = auto()      # eval and exec


_OF_THE_FRAME = {
    id(builtins.super): Callee.SUPER,
    id(builtins.locals): Callee.LOCALS, id(builtins.vars): Callee.LOCALS, id(builtins.dir): Callee.LOCALS,
    id(builtins.globals): Callee.FRAME, id(builtins.breakpoint): Callee.DEBUGGER,
    id(builtins.eval): Callee.EVALUATES, id(builtins.exec): Callee.EVALUATES,
}
_DEBUGGERS = frozenset({"pdb", "ipdb", "pudb", "pdbpp", "IPython", "remote_pdb", "pydevd", "debugpy", "_pytest"})
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
        callee = Callee.DEBUGGER if _starts_debugger(value) else _OF_THE_FRAME.get(id(value))
        if callee is None and plain is not None and plain(value):
            callee = Callee.PLAIN
        if callee is not None:
            found[path] = callee
    return found


def _starts_debugger(value: object) -> bool:
    """Whether an object is the ``set_trace`` of a debugger, or what a test runner has put in its place."""
    if not isinstance(value, types.FunctionType | types.MethodType):
        return False
    return value.__name__ == "set_trace" and str(value.__module__).partition(".")[0] in _DEBUGGERS


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
