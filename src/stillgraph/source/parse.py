"""From a function to its place in the syntax tree of its file.

A file is parsed once, however many of its functions are converted.
"""
from __future__ import annotations

import ast
import linecache
import os
import threading
import time
import types
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.source.scopes import FunctionNode, parameters_of

_KEPT_FILES = 64
_STARTED = time.time()
_files: OrderedDict[str, tuple[list[str], ast.Module]] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class FunctionSource:
    """Where a function was found.

    Attributes:
        node: its definition, which must not be changed.
        class_name: the innermost class around it, which decides what `__x` means.
        file: the file name in its code object.
    """

    node: FunctionNode
    class_name: str | None
    file: str


def find_function(code: types.CodeType, namespace: dict[str, object]) -> FunctionSource:
    """Find the definition that a code object was compiled from.

    Args:
        code: the function's code.
        namespace: the function's globals, for modules whose loader has the source.

    Raises:
        CaptureError: SG101 if the source cannot be had or is not that of this code; SG102 if several lambdas fit.
    """
    module = _parsed(code, namespace)
    found = [candidate for candidate in _on_line(module, code.co_firstlineno) if _fits(candidate.node, code)]
    if code.co_name == "<lambda>":
        found = _by_columns(found, code)
        if len(found) > 1:
            raise refuse("SG102", f"line {code.co_firstlineno} has several lambdas that fit", location=_location(code))
    if not found:
        raise _no_source(code, "the file does not have the function on that line; it may have changed since it was loaded")
    node, class_name = found[-1].node, found[-1].class_name
    return FunctionSource(node, class_name, code.co_filename)


def _parsed(code: types.CodeType, namespace: dict[str, object]) -> ast.Module:
    file = code.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, namespace)
    if not lines:
        raise _no_source(code, f"there is no file {file!r} to read")
    with _lock:
        known = _files.get(file)
        if known is not None and (known[0] is lines or known[0] == lines):
            _files.move_to_end(file)
            return known[1]
    try:
        module = ast.parse("".join(lines))
    except (SyntaxError, ValueError) as error:
        raise _no_source(code, f"{file!r} cannot be parsed: {error}") from None
    with _lock:
        _files[file] = lines, module
        while len(_files) > _KEPT_FILES:
            _files.popitem(last=False)
    return module


@dataclass(frozen=True)
class _Candidate:
    node: FunctionNode | ast.AsyncFunctionDef
    class_name: str | None


def _on_line(module: ast.Module, line: int) -> list[_Candidate]:
    """The functions and lambdas that start on a line, outermost first."""
    return [candidate for candidate in _around(module.body, line, None) if _first_line(candidate.node) == line]


def _around(statements: Sequence[ast.AST], line: int, class_name: str | None) -> Iterator[_Candidate]:
    """The functions around a line; only statements that reach over it are looked into."""
    for node in statements:
        first = getattr(node, "lineno", None)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = _first_line(node)
        if first is not None and not first <= line <= (node.end_lineno or line):  # type: ignore[attr-defined]
            continue
        inner_class = node.name if isinstance(node, ast.ClassDef) else class_name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield _Candidate(node, class_name)
        yield from _around(list(ast.iter_child_nodes(node)), line, inner_class)


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _fits(node: FunctionNode | ast.AsyncFunctionDef, code: types.CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    wanted = [arg.arg for arg in parameters_of(node.args)]
    given = code.co_varnames[:count]
    return name == code.co_name and len(wanted) == len(given) and all(
        name == arg or name.endswith(arg) and arg.startswith("__") for arg, name in zip(wanted, given, strict=True))


def _by_columns(found: list[_Candidate], code: types.CodeType) -> list[_Candidate]:
    """Of several lambdas on a line, the innermost that reaches over every instruction of the code."""
    if len(found) < 2:
        return found
    places = [(line, column, end_line, end_column) for line, end_line, column, end_column in code.co_positions()
              if line is not None and end_line is not None and column is not None and end_column is not None
              and (column or end_column)]
    inside = [each for each in found if all(_reaches(each.node, *place) for place in places)]
    if not places or not inside:
        return found
    return [each for each in inside if not any(other is not each and _is_within(other.node, each.node) for other in inside)]


def _reaches(node: ast.AST, line: int, column: int, end_line: int, end_column: int) -> bool:
    assert isinstance(node, ast.Lambda)
    body = node.body
    return ((node.lineno, node.col_offset) <= (line, column)
            and (end_line, end_column) <= (body.end_lineno or 0, body.end_col_offset or 0))


def _is_within(inner: ast.AST, outer: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


def _location(code: types.CodeType) -> Location:
    return Location(code.co_filename, code.co_firstlineno, function=code.co_name)


def _no_source(code: types.CodeType, why: str) -> Exception:
    return refuse("SG101", f"the source of {code.co_qualname} cannot be read: {why}", location=_location(code))
