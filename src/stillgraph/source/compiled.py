"""From a rewritten definition to a code object, and from that to a function."""
from __future__ import annotations
import __future__

import ast
import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce

from stillgraph.core.rewritten import BLOCK, REWRITTEN, is_rewritten
from stillgraph.source import build
from stillgraph.source.scopes import FunctionNode
from stillgraph.source.tree import without_warnings

_FUTURES = reduce(lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0)


def is_converted(code: types.CodeType) -> bool:
    """Whether a code object, of a function or of anything nested in one, was made by `convert`."""
    return is_rewritten(code)


@dataclass(frozen=True)
class Origin:
    """What the code of a rewritten function takes over from the code it was rewritten from."""

    file: str
    name: str
    qualname: str
    futures: int

    @classmethod
    def of(cls, code: types.CodeType) -> Origin:
        return cls(code.co_filename, code.co_name, code.co_qualname, code.co_flags & _FUTURES)


def compile_function(node: FunctionNode, origin: Origin, *, class_name: str | None,
                     name: str, free: Sequence[str], helpers: Set[str],
                     twins: Mapping[str, str]) -> types.CodeType:
    """Compile a rewritten function as it would be inside its class and with its free variables.

    Args:
        node: the function; a definition goes by `name`, so that its own name means to it what it meant before.
        origin: the code it was rewritten from.
        class_name: the class around it: Python then expands `__x` itself.
        name: a name that the function does not use.
        free: the names that are to be free variables: operators and the original ones.
        helpers: the names of generated functions, which do not count in the qualified names of the user's.
        twins: the names of generators that are defined in the function, by those of their twins.
    """
    statement: ast.stmt = node if isinstance(node, ast.FunctionDef) else build.statement(node)
    outer: ast.stmt = build.function("factory", build.parameters(free, node), [statement], node)
    if class_name is not None:
        outer = build.class_around(class_name, [outer], node)
    module = ast.Module([outer], [])
    with without_warnings():
        compiled = compile(module, origin.file, "exec", flags=origin.futures, dont_inherit=True)
    if class_name is not None:
        compiled = _inside(compiled, class_name)
    factory = _inside(compiled, "factory")
    code = _inside(factory, name if isinstance(node, ast.FunctionDef) else "<lambda>")
    return _labelled(code.replace(co_name=origin.name), origin.qualname, origin.qualname, helpers, twins)


def _inside(code: types.CodeType, name: str) -> types.CodeType:
    return next(each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name == name)


def _labelled(code: types.CodeType, name: str, prefix: str, helpers: Set[str],
              twins: Mapping[str, str]) -> types.CodeType:
    """The code with the user's qualified names, and a mark at the end of its constants.

    Args:
        code: the code of a function or class body.
        name: its qualified name.
        prefix: what the names of the user's functions in it start with.
        helpers: the names of generated functions.
        twins: see `compile_function`.
    """
    constants: list[object] = []
    is_class_body = not code.co_flags & 0x02            # CO_NEWLOCALS
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name in helpers:
                constant = _labelled(constant, f"{name}.<locals>.{constant.co_name}", prefix, helpers, twins)
                constant = constant.replace(co_consts=(*constant.co_consts[:-1], BLOCK, REWRITTEN))
            else:
                separator = "." if is_class_body else ".<locals>."
                is_global = constant.co_qualname == constant.co_name
                own = twins.get(constant.co_name, constant.co_name)
                inner = own if is_global else f"{prefix}{separator}{own}"
                constant = _labelled(constant.replace(co_name=own), inner, inner, helpers, twins)
        elif isinstance(constant, str) and constant == code.co_qualname and is_class_body:
            constant = name                 # from which a class body sets __qualname__
        constants.append(constant)
    return code.replace(co_consts=(*constants, REWRITTEN), co_qualname=name)


def bind(code: types.CodeType, fn: types.FunctionType, supplied: Mapping[str, object]) -> types.FunctionType:
    """A function like `fn` that runs other code.

    Args:
        code: the code, whose free variables are those of `fn` and the supplied ones.
        fn: the function whose globals, closure, defaults and attributes it gets.
        supplied: values of the other free variables.
    """
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    closure = tuple(cells[name] if name in cells else types.CellType(supplied[name]) for name in code.co_freevars)
    made = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__qualname__ = fn.__qualname__
    made.__doc__ = fn.__doc__
    made.__module__ = fn.__module__
    made.__annotations__ = fn.__annotations__
    if hasattr(fn, "__type_params__"):              # Python 3.12 and later
        setattr(made, "__type_params__", fn.__type_params__)  # noqa: B010 (unknown to the types of 3.11)
    made.__dict__.update(fn.__dict__)
    return made
