"""Instructions of a route: each as lines of Python on the variables that hold the values of its frames."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.bytecode.between.route_writing import OTHER, At, Unsupported, Writer
from stillgraph.bytecode.between.way import Passed
from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.handlers.values import BINARY, COMPARED, CONVERSIONS, UNARY
from stillgraph.bytecode.handlers.variables import global_or_builtin
from stillgraph.bytecode.machine.frame import builtins_of
from stillgraph.bytecode.machine.iteration import SEQUENCES
from stillgraph.bytecode.segments.called import SHOWING_VARIABLES, keywords_at
from stillgraph.operators.objects.attribute_stores import set_attr
from stillgraph.operators.objects.attributes import attr
from stillgraph.operators.objects.stores import set_item
from stillgraph.operators.objects.subscripts import item

_LOOKING = (super, builtins.globals, *SHOWING_VARIABLES)
"""Functions that look at the frame which calls them."""


def write(writer: Writer, passed: Passed) -> str | None:
    """Write an instruction; gives what the call ends with, if it does. What nothing holds behind it is let go."""
    before = [name for frame in writer.frames for name in frame.names()]
    result = _write(writer, passed)
    after = {name for frame in writer.frames for name in frame.names()}
    gone = dict.fromkeys(name for name in before if name not in after and name not in writer.known)
    if gone and writer.frames:
        writer.lines.append(f"del {', '.join(gone)}")
    return result


def _write(writer: Writer, passed: Passed) -> str | None:
    frame = writer.frames[-1]
    if frame.index != passed.index:
        raise Unsupported("the way is broken")
    each = prepared(frame.code).decoded.instructions[passed.index]
    if each.name == "RETURN_VALUE":
        value = frame.stack.pop()
        assert isinstance(value, str)
        writer.frames.pop()
        if not writer.frames:
            return value
        writer.frames[-1].stack.append(value)
        writer.frames[-1].index += 1
        return None
    if each.name.startswith("POP_JUMP"):
        _write_jump(writer, frame, each, passed.next)
    elif each.name == "FOR_ITER":
        _write_iteration(writer, frame, each, passed.next)
    else:
        write = _WRITTEN.get(each.name)
        if write is None:
            raise Unsupported(each.name)
        write(writer, frame, each)
        if passed.next != passed.index + 1 and each.name != "JUMP":
            raise Unsupported("an exception was handled")
    frame.index = passed.next
    return None


def _risky(writer: Writer) -> None:
    """What comes may raise: note where the frames are."""
    writer.lines.append(f"n = {writer.place()}")


def _write_jump(writer: Writer, frame: At, each: Instruction, following: int) -> None:
    _risky(writer)
    value = _popped(frame)
    if each.name.endswith("NONE"):
        asked, wanted = f"{value} is None", each.name == "POP_JUMP_IF_NONE"
    else:
        asked, wanted = writer.act(writer.constant(bool), [value]), each.name == "POP_JUMP_IF_TRUE"
    jumps = following == each.argument
    here = frame.index
    frame.index = here + 1 if jumps else each.argument
    other = writer.place()
    frame.index = here
    expected = wanted if jumps else not wanted
    writer.lines.append(f"if ({asked}) is not {expected}: return {OTHER}, {other}, locals()")


def _write_iteration(writer: Writer, frame: At, each: Instruction, following: int) -> None:
    """A sequence gives its next element, or has none left; otherwise, or of no sequence, it is done by hand."""
    iteration = frame.stack[-1]
    if not isinstance(iteration, tuple):
        raise Unsupported("what a loop runs over is no sequence")
    values, index = iteration
    goes_on = following != each.argument
    kinds, expected = writer.constant(SEQUENCES), "<" if goes_on else ">="
    asked = f"type({values}) in {kinds} and {index} {expected} len({values})"
    writer.lines.append(f"if not ({asked}): return {OTHER}, {writer.place()}, locals()")
    if goes_on:
        frame.stack[-1] = values, writer.fresh(f"{index} + 1")
        frame.stack.append(writer.fresh(f"{values}[{index}]"))
    else:
        frame.stack.pop()


def _popped(frame: At) -> str:
    value = frame.stack.pop()
    if not isinstance(value, str):
        raise Unsupported("what is on the stack is no value")
    return value


def _taken(frame: At, count: int) -> list[str]:
    found = [_popped(frame) for _ in range(count)]
    found.reverse()
    return found


def _load_fast(writer: Writer, frame: At, each: Instruction) -> None:
    if each.argument not in frame.slots:
        raise Unsupported("a variable has no value")
    frame.stack.append(frame.slots[each.argument])


def _store_fast(writer: Writer, frame: At, each: Instruction) -> None:
    frame.slots[each.argument] = _popped(frame)


def _delete_fast(writer: Writer, frame: At, each: Instruction) -> None:
    if each.argument not in frame.slots:
        raise Unsupported("a variable has no value")
    del frame.slots[each.argument]


def _load_const(writer: Writer, frame: At, each: Instruction) -> None:
    name = writer.fresh(writer.constant(each.argument))
    writer.known[name] = each.argument
    frame.stack.append(name)


def _load_global(writer: Writer, frame: At, each: Instruction) -> None:
    _risky(writer)
    spaces = [writer.constant(frame.globals), writer.constant(builtins_of(frame.globals))]
    found = writer.act(writer.constant(global_or_builtin), [*spaces, repr(each.argument)])
    frame.stack.append(writer.fresh(found))


def _push_null(writer: Writer, frame: At, each: Instruction) -> None:
    frame.stack.append(None)


def _pop_top(writer: Writer, frame: At, each: Instruction) -> None:
    frame.stack.pop()


def _copy(writer: Writer, frame: At, each: Instruction) -> None:
    frame.stack.append(frame.stack[-each.argument])


def _swap(writer: Writer, frame: At, each: Instruction) -> None:
    stack = frame.stack
    stack[-1], stack[-each.argument] = stack[-each.argument], stack[-1]


def _jump(writer: Writer, frame: At, each: Instruction) -> None:
    """Nothing: where it leads is known."""


def _call(writer: Writer, frame: At, each: Instruction, names: Sequence[str] = ()) -> None:
    _risky(writer)
    if names:
        frame.stack.pop()
    args = _taken(frame, each.argument)
    second, first = frame.stack.pop(), frame.stack.pop()
    if first is None:
        function = second
    elif second is None:
        function = first
    elif isinstance(second, str):
        function, args = first, [second, *args]
    else:
        raise Unsupported("an iterator that is not made yet is passed")
    if not isinstance(function, str):
        raise Unsupported("nothing is called")
    looking = " or ".join(f"{function} is {writer.constant(known)}" for known in _LOOKING)
    writer.lines.append(f"if {looking}: return {OTHER}, {len(writer.places) - 1}, locals()")
    split = len(args) - len(names)
    keywords = "{" + ", ".join(f"{name!r}: {value}" for name, value in zip(names, args[split:])) + "}"
    frame.stack.append(writer.fresh(writer.act(function, args[:split], keywords)))


def _call_kw(writer: Writer, frame: At, each: Instruction) -> None:
    names = keywords_at(frame.code, frame.index)
    if names is None:
        raise Unsupported("the names of keywords are not known")
    _call(writer, frame, each, names)


def _doing(count: int, function: Callable[[Instruction], Any]) -> Callable[[Writer, At, Instruction], None]:
    """An instruction that calls something with what it takes from the stack, and puts there what that gives."""

    def write(writer: Writer, frame: At, each: Instruction) -> None:
        _risky(writer)
        args = _taken(frame, count)
        frame.stack.append(writer.fresh(writer.act(writer.constant(function(each)), args)))

    return write


def _load_attr(writer: Writer, frame: At, each: Instruction) -> None:
    _risky(writer)
    frame.stack.append(writer.fresh(writer.act(writer.constant(attr), [_popped(frame), repr(each.argument)])))


def _load_method(writer: Writer, frame: At, each: Instruction) -> None:
    _load_attr(writer, frame, each)
    frame.stack.append(None)


def _store_attr(writer: Writer, frame: At, each: Instruction) -> None:
    _risky(writer)
    value, target = _taken(frame, 2)
    writer.lines.append(writer.act(writer.constant(set_attr), [target, repr(each.argument), value]))


def _store_item(writer: Writer, frame: At, each: Instruction) -> None:
    _risky(writer)
    value, target, key = _taken(frame, 3)
    writer.lines.append(writer.act(writer.constant(set_item), [target, key, value]))


def _format(writer: Writer, frame: At, each: Instruction) -> None:
    _risky(writer)
    (value,) = _taken(frame, 1)
    shown = writer.act(writer.constant(format), [value])
    frame.stack.append(writer.fresh(f"{value} if type({value}) is {writer.constant(str)} else {shown}"))


def _build_string(writer: Writer, frame: At, each: Instruction) -> None:
    parts = "".join(f"{name}, " for name in _taken(frame, each.argument))
    frame.stack.append(writer.fresh(f"''.join(({parts}))"))


def _build(opening: str, closing: str) -> Callable[[Writer, At, Instruction], None]:
    def write(writer: Writer, frame: At, each: Instruction) -> None:
        parts = "".join(f"{name}, " for name in _taken(frame, each.argument))
        frame.stack.append(writer.fresh(f"{opening}{parts}{closing}"))

    return write


_WRITTEN: dict[str, Callable[[Writer, At, Instruction], None]] = {
    "LOAD_FAST": _load_fast,
    "STORE_FAST": _store_fast,
    "DELETE_FAST": _delete_fast,
    "LOAD_CONST": _load_const,
    "LOAD_GLOBAL": _load_global,
    "PUSH_NULL": _push_null,
    "POP_TOP": _pop_top,
    "COPY": _copy,
    "SWAP": _swap,
    "JUMP": _jump,
    "CALL": _call,
    "CALL_KW": _call_kw,
    "LOAD_ATTR": _load_attr,
    "LOAD_METHOD": _load_method,
    "STORE_ATTR": _store_attr,
    "BINARY_SUBSCR": _doing(2, lambda each: item),
    "STORE_SUBSCR": _store_item,
    "BINARY_OP": _doing(2, lambda each: BINARY[each.argument]),
    "COMPARE_OP": _doing(2, lambda each: COMPARED[each.argument]),
    "IS_OP": _doing(2, lambda each: COMPARED[each.argument]),
    "CONTAINS_OP": _doing(2, lambda each: COMPARED[each.argument]),
    "UNARY_OP": _doing(1, lambda each: UNARY[each.argument]),
    "CONVERT_VALUE": _doing(1, lambda each: CONVERSIONS[each.argument][1]),
    "FORMAT_SIMPLE": _format,
    "FORMAT_WITH_SPEC": _doing(2, lambda each: format),
    "BUILD_STRING": _build_string,
    "BUILD_TUPLE": _build("(", ")"),
    "BUILD_LIST": _build("[", "]"),
}
