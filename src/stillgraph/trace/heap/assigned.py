"""Where a block of the user's assigns a variable or returns: the lines that messages show for each of two paths."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from stillgraph.core.files import is_ours
from stillgraph.core.location import Location
from stillgraph.core.lookup import is_exactly
from stillgraph.trace.code.frames import function_here, here
from stillgraph.trace.heap.places import AttributePlace

Line = Callable[[str], "Location | None"]  # of a place, what assigned it


def nowhere(place: str) -> Location | None:
    """No line at all."""
    return None


def assigned_by(*blocks: Any) -> Line:
    """What finds the line of blocks, which run one after another, that assigned a place or returned.

    Args:
        blocks: rewritten functions; partial ones stand for their first argument.
    """
    return functools.partial(_in_blocks, tuple(code for block in blocks if (code := _code_of(block)) is not None))


def _code_of(block: Any) -> CodeType | None:
    while isinstance(block, functools.partial):
        block = block.args[0] if block.args else None
    if not isinstance(block, FunctionType) or is_ours(block.__code__.co_filename):
        return None
    return block.__code__


def assigned_before() -> Line:
    """What finds the line that assigned a variable before the line that is being run, or the argument that it is."""
    location, function = here(), function_here()
    if location is None or function is None:
        return nowhere
    return functools.partial(_before, function, location)


def _before(function: CodeType, now: Location, place: str) -> Location | None:
    found = [each for each in _changes(function, place) if each.line < now.line]
    found = found or [each for each in _stores(function, place) if each.line < now.line]
    return _named(max(found, key=_order), now) if found else _argument(function, now, place)


def literal_before(place: str, value: Any) -> Location | None:
    """The line before the one that is being run which gives a variable this plain value, spelled out there."""
    if not is_exactly(value, (str, int, float, bool, type(None))) and (not is_exactly(value, (list, dict)) or value):
        return None
    found = assigned_before()(place) if place.isidentifier() else None
    if found is None or found.column is None:
        return None
    text = _text(found.file, found.line).encode()[found.column : found.end_column].decode()
    try:
        literal = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return found if type(literal) is type(value) and literal == value else None


def _in_blocks(codes: tuple[CodeType, ...], place: str) -> Location | None:
    now = here()
    for code in reversed(codes):
        if place.startswith("return"):
            found = list(_returns(code))
        else:
            found = [*_changes(code, place), *_stores(code, place)]
        if found and now is not None:
            return _named(max(found, key=_order), now)
    return None


def _order(location: Location) -> tuple[int, int]:
    return location.line, location.column or 0


def _named(location: Location, now: Location) -> Location:
    """A line as one of the function that is being run."""
    return replace(location, function=now.function, callers=now.callers)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_filename == code.co_filename:
            yield from _codes(constant)


def _stores(code: CodeType, name: str) -> Iterator[Location]:
    """The values that a code object and those in it assign to a variable, or to the one that a place is in."""
    name = re.split(r"\W", name, maxsplit=1)[0]
    for each in _codes(code):
        for instruction in dis.get_instructions(each):
            at = instruction.positions
            if instruction.opname.startswith("STORE_") and instruction.argval == name and at and at.lineno:
                target = Location(each.co_filename, at.lineno, at.col_offset, _end(at))
                yield _assigned(each.co_filename, at.lineno, name) or target


def _changes(code: CodeType, place: str) -> Iterator[Location]:
    """The lines of a code object, and of those in it, that change an item or attribute in a place, or delete it.

    They are found by their text: rewritten code calls operators for them.
    """
    name, assigned = re.escape(place), r"\s*[-+*/@&|^%]*=(?!=).*"
    ways = [rf"del\s+{name}\b.*", rf"{name}\.(?:{_CHANGING})\(.*", rf"{name}\[.*\]{assigned}"]
    if not place.isidentifier():
        ways.append(name + assigned)
    changing = re.compile(rf"(?<![\w.])(?:{'|'.join(ways)})")
    for line in sorted({number for each in _codes(code) for *_, number in each.co_lines() if number}):
        text = _text(code.co_filename, line).partition("  #")[0].rstrip()
        found = changing.search(text)
        if found is not None:
            start, end = (len(text[:index].encode()) for index in found.span())
            yield Location(code.co_filename, line, start, end)


_CHANGING = "add|append|appendleft|clear|discard|extend|extendleft|insert|pop|popitem|popleft|remove|setdefault|update"


def _returns(code: CodeType) -> Iterator[Location]:
    """The values that a block returns."""
    made: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname != "RETURN_VALUE":
            made = instruction
            continue
        at = None if made is None else made.positions
        if at is None or not at.lineno or made is None:
            continue
        if code.co_name == "<lambda>":
            yield Location(code.co_filename, at.lineno, at.col_offset, _end(at))
        elif (found := _returned(code.co_filename, at.lineno)) is not None:
            yield found
        elif _text(code.co_filename, at.lineno).lstrip().startswith("return"):
            yield Location(code.co_filename, at.lineno)


def returned_by(code: CodeType | None, run: Iterable[tuple[CodeType, int]] = ()) -> list[Location]:
    """The ``return``s of a function that have given its value; of a generator, the first ``yield``.

    Args:
        code: the function's own; None for none.
        run: the instructions of rewritten code that have run for a ``return`` in a block.

    Returns:
        One for each line, in order; none if there are several of which nobody knows which ones have run.
    """
    if code is None:
        return []
    gives = list(_yields(code))[:1] or list(_returns(code))
    found = {each.line: replace(each, function=code.co_name) for each in gives}
    if len(found) > 1:
        lines = {_line(each, offset) for each, offset in run if each.co_filename == code.co_filename}
        found = {line: each for line, each in found.items() if line in lines}
    return [found[line] for line in sorted(found)]


def _line(code: CodeType, offset: int) -> int | None:
    return next((line for start, end, line in code.co_lines() if start <= offset < end), None)


def _yields(code: CodeType) -> Iterator[Location]:
    """The ``yield`` expressions of a generator that stand in one line."""
    for instruction in dis.get_instructions(code):
        at = instruction.positions
        if instruction.opname == "YIELD_VALUE" and at and at.lineno and "yield" in _text(code.co_filename, at.lineno):
            yield Location(code.co_filename, at.lineno, at.col_offset, _end(at))


def stored_by(code: CodeType | None, place: Any) -> Location | None:
    """The line of a function that sets an attribute, if there is one."""
    if code is None or not isinstance(place, AttributePlace):
        return None
    for each in _codes(code):
        for instruction in dis.get_instructions(each):
            at = instruction.positions
            if instruction.opname == "STORE_ATTR" and instruction.argval == place.name and at and at.lineno:
                return Location(each.co_filename, at.lineno, at.col_offset, _end(at), code.co_name)
    return None


def _end(at: Any) -> int | None:
    return at.end_col_offset if at.end_lineno == at.lineno else None


def _text(file: str, line: int) -> str:
    return linecache.getline(file, line)


def _assigned(file: str, line: int, name: str) -> Location | None:
    """The expression that a statement of one line assigns to a name."""
    for node in _statements(file, line):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        plain = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if plain and isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and value is not None:
            return _span(file, line, value)
        if plain and isinstance(node, ast.AugAssign):
            return _span(file, line, node)
    return None


def _returned(file: str, line: int) -> Location | None:
    for node in _statements(file, line):
        if isinstance(node, ast.Return) and node.value is not None:
            return _span(file, line, node.value)
    return None


def _statements(file: str, line: int) -> Iterator[ast.AST]:
    text, _ = _statement(file, line)
    try:
        tree = ast.parse(text + " pass" if text.endswith(":") else text)
    except SyntaxError:  # a statement of several lines
        return
    yield from ast.walk(tree)


def _statement(file: str, line: int) -> tuple[str, int]:
    """What a line has that can be parsed alone, and how many bytes of the line stand before it."""
    text = _text(file, line)
    begun = _CLAUSE.match(text)
    start = 0 if begun is None else begun.end()
    return text[start:].strip(), len(text[:start].encode())


_CLAUSE = re.compile(r"\s*(?:(?:else|try|finally)\s*:\s*(?=[^\s#])|el(?=if\b))?")  # of a statement that begins above


def _span(file: str, line: int, node: ast.expr | ast.stmt) -> Location:
    shift = _statement(file, line)[1]
    end = node.end_col_offset
    return Location(file, line, node.col_offset + shift, None if end is None else end + shift)


def _argument(function: CodeType, now: Location, name: str) -> Location | None:
    """The parameter of a function, in the line of its ``def`` that names it."""
    name = re.split(r"\W", name, maxsplit=1)[0]
    count = function.co_argcount + function.co_kwonlyargcount
    count += bool(function.co_flags & inspect.CO_VARARGS) + bool(function.co_flags & inspect.CO_VARKEYWORDS)
    if name not in function.co_varnames[:count]:
        return None
    begun = False
    for line in range(function.co_firstlineno, now.line):
        text = _text(function.co_filename, line)
        begun = begun or text.lstrip().startswith(("def ", "async def "))
        match = re.search(rf"\b{re.escape(name)}\b", text) if begun else None
        if match is not None:
            start, end = (len(text[:index].encode()) for index in match.span())
            return _named(Location(function.co_filename, line, start, end), now)
    return None
