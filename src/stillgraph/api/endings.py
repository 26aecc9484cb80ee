"""How a call comes to its end behind a step of Python's, as a statement: what it returns, or that it raises."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

from stillgraph.bytecode.between.texts import text_of
from stillgraph.bytecode.between.way import Done, Ending, Passed
from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.code.depths import effect
from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.segments.breaks import place_of
from stillgraph.bytecode.segments.called import keywords_at
from stillgraph.bytecode.segments.layouts import Layout


@dataclass(frozen=True)
class _Value:
    """A value as it is written, and the instruction that has made it, if one has."""

    text: str
    made: Done | None = None


@dataclass
class _Frame:
    """A frame; where there is nothing on its stack is None."""

    code: CodeType
    slots: dict[int, _Value]
    stack: list[_Value | None]


class _Handled(Exception):
    """A handler has got an exception on the way: what is on the stack there is not told."""


def ending_text(layout: Layout, names: Sequence[str], result: str | None, ending: Ending) -> tuple[str, Done | None]:
    """The statement with which a call ends, and the instruction that has made what it returns, if one has on the way.

    Args:
        layout: where Python begins.
        names: of its values, or what these are where they are always the same.
        result: the name of what the first step gives.
        ending: how the call has come to its end.
    """
    if ending.raised is not None:
        return _written(*ending.raised, "raise"), ending.raised
    try:
        value = _returned(list(_frames(layout, names)), result, ending.way)
    except _Handled:
        return _written(layout[0].code, ending.way[-1].index, "return"), None
    if value is None or value.text == "None":
        return "return", None
    return f"return {value.text}", value.made


def _written(code: CodeType, index: int, keyword: str) -> str:
    """A statement as the user wrote it; the keyword alone where what is written there is something else."""
    text = written_at(code, index)
    return text if text is not None and text.startswith(keyword) else keyword


def written_at(code: CodeType, index: int) -> str | None:
    """What the user wrote for an instruction, as far as it stands in one line; None where there is no source."""
    place = place_of(code, index)
    line = place.source_line()
    return None if line is None else line.encode()[place.column : place.end_column].decode().strip()


def as_written(code: CodeType, index: int) -> str | None:
    """The expression of the user's that an instruction is; None where none is known to be just that."""
    each = prepared(code).decoded.instructions[index]
    ending = _ENDINGS.get(each.name)
    text = None if ending is None else written_at(code, index)
    if text is None or ending is None or not text.endswith(ending.format(each.argument)):
        return None
    with contextlib.suppress(SyntaxError, ValueError):
        ast.parse(text, mode="eval")
        return text
    return None


_ENDINGS = {
    **dict.fromkeys(("CALL", "CALL_KW", "CALL_FUNCTION_EX"), ")"),
    **dict.fromkeys(("BINARY_SUBSCR", "BINARY_SLICE"), "]"),
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD"), ".{}"),
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP"), ""),
}
"""Instructions that are an expression of their own, and how that ends."""


def _frames(layout: Layout, names: Sequence[str]) -> Iterator[_Frame]:
    given = map(_Value, names)
    for each in layout:
        next(given)  # the function
        slots = {slot: next(given) for slot in each.slots}
        stack: list[_Value | None] = []
        for kind in each.stack:
            stack.append(None if kind == "null" else next(given))
            if kind == "iteration":
                next(given)
        for _ in range(each.handled):
            next(given)
        yield _Frame(each.code, slots, stack)


def _returned(frames: list[_Frame], result: str | None, way: Sequence[Passed]) -> _Value | None:
    """What the last instruction of a way returns."""
    for number, passed in enumerate(way):
        frame = frames[-1]
        each = prepared(frame.code).decoded.instructions[passed.index]
        if each.name == "RETURN_VALUE":
            value = frames.pop().stack.pop()
            if not frames:
                return value
            frames[-1].stack.append(value)
            continue
        if passed.position != len(frames) - 1 or passed.next not in (passed.index + 1, each.argument):
            raise _Handled
        if each.name == "FOR_ITER" and passed.next == each.argument:
            frame.stack.pop()  # the loop has come to its end
            continue
        _carry_out(frame, each, passed.index, result if number == 0 else None)
    raise _Handled


def _carry_out(frame: _Frame, each: Instruction, index: int, result: str | None) -> None:
    stack = frame.stack
    if each.name == "LOAD_FAST":
        stack.append(frame.slots[each.argument])
    elif each.name == "STORE_FAST":
        value = stack.pop()
        if value is None or not value.text.isidentifier():
            value = _Value(prepared(frame.code).decoded.slots[each.argument])
        frame.slots[each.argument] = value
    elif each.name == "COPY":
        stack.append(stack[-each.argument])
    elif each.name == "SWAP":
        stack[-1], stack[-each.argument] = stack[-each.argument], stack[-1]
    elif each.name == "PUSH_NULL":
        stack.append(None)
    elif each.name == "LOAD_CONST":
        stack.append(_Value(repr(each.argument)))
    elif each.name == "LOAD_GLOBAL":
        stack.append(_Value(each.argument))
    else:
        takes, puts = effect(each)
        operands = [None if value is None else value.text for value in stack[len(stack) - takes :]]
        del stack[len(stack) - takes :]
        text = result or text_of(each, operands, keywords_at(frame.code, index) or ())
        stack += [_Value(text, (frame.code, index))] * puts
        if each.name == "LOAD_METHOD":
            stack[-1] = None  # the text has the receiver
