"""Reading and copying syntax nodes, quickly: conversion spends its time here."""
from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

AnyNode = TypeVar("AnyNode", bound=ast.AST)

_LEAVES = frozenset({ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, *ast.operator.__subclasses__(),
                     *ast.cmpop.__subclasses__(), *ast.unaryop.__subclasses__(), *ast.boolop.__subclasses__()})


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes directly inside a node, apart from constants, operators and the like."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST) and type(each) not in _LEAVES]
        elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
            found.append(value)
    return found


def contains(node: ast.AST, *wanted: type[ast.AST]) -> bool:
    """Whether a node is in an expression, not counting lambdas in it."""
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, wanted):
            return True
        if not isinstance(at, ast.Lambda):
            pending += child_nodes(at)
    return False


def with_fields(node: AnyNode, **changes: Any) -> AnyNode:
    """A copy of a node with some fields replaced."""
    return type(node)(**{**vars(node), **changes})


def walrus_names(node: ast.AST) -> set[str]:
    """The names that `:=` binds anywhere in an expression."""
    return {inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)}


_warning_filters = threading.Lock()         # they belong to the whole process


@contextmanager
def without_warnings() -> Iterator[None]:
    """Parse or compile text about which Python has warned its author already."""
    with _warning_filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
