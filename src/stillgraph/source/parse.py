"""From a function to its place in the syntax tree of its file.

A file is parsed once, however many of its functions are converted.
"""
from __future__ import annotations

import ast
import linecache
import threading
import time
import types
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location, start_of
from stillgraph.source.scopes import FunctionNode, parameters_of
from stillgraph.source.tree import child_nodes, without_warnings

_KEPT_FILES = 64
_STARTED = time.time()


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


@dataclass(frozen=True)
class _SourceFile:
    """A parsed file.

    Attributes:
        lines: its text.
        module: its syntax tree.
        changed: when it was last written, if that was after this program started; it may not be what was loaded then.
    """

    name: str
    lines: list[str]
    module: ast.Module
    changed: float | None

    @cached_property
    def codes(self) -> set[tuple[object, ...]]:
        """What tells apart the code of all functions that the file has now."""
        found: set[tuple[object, ...]] = set()
        with without_warnings():
            pending = [compile(self.module, self.name, "exec", dont_inherit=True)]
        while pending:
            code = pending.pop()
            found.add(_identity(code))
            pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        return found


_files: OrderedDict[str, _SourceFile] = OrderedDict()
_lock = threading.Lock()


def find_function(code: types.CodeType, namespace: dict[str, object]) -> FunctionSource:
    """Find the definition that a code object was compiled from.

    Args:
        code: the function's code.
        namespace: the function's globals, for modules whose loader has the source.

    Raises:
        CaptureError: SG101 if the source cannot be had or is not that of this code; SG102 if several lambdas fit.
    """
    file = _source_file(code, namespace)
    found = [each for each in _around(file.module.body, code.co_firstlineno, None) if _fits(each.node, code)]
    if code.co_name == "<lambda>":
        found = _by_columns(found, code)
        if len(found) > 1:
            raise refuse("SG102", f"line {code.co_firstlineno} has several lambdas that fit", location=location(code))
    if not found or (file.changed is not None and _identity(code) not in file.codes):
        raise _no_source(code, "the file has changed since the function was loaded")
    return FunctionSource(found[-1].node, found[-1].class_name, code.co_filename)


def _source_file(code: types.CodeType, namespace: dict[str, object]) -> _SourceFile:
    name = code.co_filename
    linecache.checkcache(name)
    lines = linecache.getlines(name, namespace)
    if not lines:
        raise _no_source(code, f"there is no file {name!r} to read")
    with _lock:
        known = _files.get(name)
        if known is not None and (known.lines is lines or known.lines == lines):
            _files.move_to_end(name)
            return known
    try:
        with without_warnings():
            module = ast.parse("".join(lines))
    except (SyntaxError, ValueError) as error:
        raise _no_source(code, f"{name!r} cannot be parsed: {error}") from None
    entry = linecache.cache.get(name, ())
    written = entry[1] if len(entry) == 4 else None
    made = _SourceFile(name, lines, module, written if written is not None and written > _STARTED else None)
    with _lock:
        _files[name] = made
        while len(_files) > _KEPT_FILES:
            _files.popitem(last=False)
    return made


def _identity(code: types.CodeType) -> tuple[object, ...]:
    """What differs between the codes of different texts. Constants are left out: some cannot be hashed."""
    return code.co_name, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, code.co_freevars


@dataclass(frozen=True)
class _Candidate:
    node: FunctionNode
    class_name: str | None


def _around(nodes: Sequence[ast.AST], line: int, class_name: str | None) -> Iterator[_Candidate]:
    """The functions and lambdas that start on a line, outermost first."""
    for node in nodes:
        first = _first_line(node)           # only what reaches over the line is looked into
        if first is not None and not first <= line <= (getattr(node, "end_lineno", None) or line):
            continue
        if isinstance(node, ast.FunctionDef | ast.Lambda) and first == line:
            yield _Candidate(node, class_name)
        yield from _around(child_nodes(node), line, node.name if isinstance(node, ast.ClassDef) else class_name)


def _first_line(node: ast.AST) -> int | None:
    """The line on which a node starts, decorators included; None for nodes that have no place."""
    first: int | None = getattr(node, "lineno", None)
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else first


def _fits(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether a definition has the name and the parameters of a code object."""
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    wanted = [arg.arg for arg in parameters_of(node.args)]
    given = code.co_varnames[:count]
    return name == code.co_name and len(wanted) == len(given) and all(
        real == arg or (arg.startswith("__") and real.endswith(arg)) for arg, real in zip(wanted, given, strict=True))


def _by_columns(found: list[_Candidate], code: types.CodeType) -> list[_Candidate]:
    """Of several lambdas on a line, the innermost whose body has every instruction of the code."""
    if len(found) < 2:
        return found
    places = [place for place in code.co_positions() if None not in place and place[3]]     # the first has no column
    inside = [each for each in found if all(_reaches(each.node.body, place) for place in places)]
    if not places or not inside:
        return found
    bodies = [each.node.body for each in inside]
    return [each for each in inside
            if not any(body is not each.node.body and _within(body, each.node.body) for body in bodies)]


def _reaches(body: object, place: tuple[int | None, ...]) -> bool:
    line, end_line, column, end_column = place
    assert isinstance(body, ast.expr)
    return ((body.lineno, body.col_offset) <= (line or 0, column or 0)
            and (end_line or 0, end_column or 0) <= (body.end_lineno or 0, body.end_col_offset or 0))


def _within(inner: object, outer: object) -> bool:
    assert isinstance(inner, ast.expr)
    return _reaches(outer, (inner.lineno, inner.end_lineno, inner.col_offset, inner.end_col_offset))


def location(code: types.CodeType) -> Location:
    """Where a function starts."""
    return start_of(code)


def _no_source(code: types.CodeType, why: str) -> BaseException:
    return refuse("SG101", f"the source of '{code.co_name}' cannot be read: {why}", location=location(code))
