"""From the segments of a plan to what is told of them (`report/plan.py`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from torch import fx

from stillgraph.bytecode.between import Between
from stillgraph.bytecode.breaks import place_of
from stillgraph.bytecode.layouts import FrameLayout, Layout
from stillgraph.bytecode.prepared import prepared
from stillgraph.bytecode.table import taken
from stillgraph.bytecode.texts import gives_result, text_of
from stillgraph.core.location import Location
from stillgraph.program.guards import Argument
from stillgraph.program.outputs import Constant, Container, Output, Same, Template
from stillgraph.program.program import Program
from stillgraph.report.plan import Break, Entry, PlanExplanation, Subgraph, names_in_turn


def names_of(layout: Layout) -> list[str]:
    """The names of a layout's values: of the function, a variable, or a place on the stack."""
    names: list[str] = []
    for position, frame in enumerate(layout):
        prefix = "" if position == 0 else f"{_plain(frame.code.co_name)}_"
        slots = prepared(frame.code).decoded.slots
        names.append(f"{prefix}function")
        names += (prefix + _plain(slots[slot]) for slot in frame.slots)
        for number, kind in enumerate(frame.stack):
            if kind == "value":
                names.append(f"{prefix}value_{number}")
            elif kind == "iteration":
                names += [f"{prefix}iterated_{number}", f"{prefix}index_{number}"]
        names += (f"{prefix}handled_{number}" for number in range(frame.handled))
    return names_in_turn(names)


def _plain(name: str) -> str:
    found = "".join(each if each.isidentifier() or each.isdigit() else "_" for each in name).strip("_")
    return found if found.isidentifier() else f"v_{found}"


def signature_of(layout: Layout) -> inspect.Signature:
    """The parameters of a segment that begins with a layout."""
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in names_of(layout)])


def ending_of(program: Program, suspended: object) -> tuple[int, list[Template]] | None:
    """The number of the layout that a segment ends with, and its values; None where the call ends with it."""
    made = program.result
    if not isinstance(made, Container) or made.type is not tuple or not made.children:
        return None
    first, *rest = made.children
    if not isinstance(first, Constant) or first.value is not suspended:
        return None
    number = rest[0]
    assert isinstance(number, Constant)
    return number.value, rest[1:]


def explained(
    name: str,
    original: Any,
    parts: Sequence[tuple[Layout | None, Sequence[Program]]],
    ends: Sequence[Between],
    reasons: Callable[[FrameLayout], str],
    suspended: object,
    gave_up: str | None = None,
    left: tuple[str, Location] | None = None,
) -> PlanExplanation:
    """What is told of a plan.

    Args:
        name: of the function.
        original: the function.
        parts: by the layout with which they begin (None: the function's own beginning) the programs.
        ends: by number how frames are where programs end, and how calls go on there.
        reasons: why Python does the instruction that a frame is at.
        suspended: what marks the result of a program that has not come to the end of the call.
        gave_up: why calls are made in plain PyTorch from now on.
        left: why Python makes the calls as a whole, and where the function begins.
    """
    places = {layout: number for number, (layout, _) in enumerate(parts)}
    entries, count = [], 0
    for position, (layout, programs) in enumerate(parts):
        subgraphs = []
        for program in reversed(programs):
            ending = ending_of(program, suspended)
            step: Break | None = None
            outputs: tuple[str, ...] = ()
            goes_on: tuple[int | None, ...] = ()
            then: tuple[Break, ...] = ()
            if ending is not None:
                number, values = ending
                step, outputs = _step(program, ends[number].layout, values, reasons)
                ways = ends[number].followed
                goes_on = tuple(None if each is None else places[each] for each in ways)
                then = tuple(_done(*each) for each in next(iter(ways.values()), ())) if len(ways) == 1 else ()
            takes = tuple(_parameter_names(original)) if layout is None else tuple(names_of(layout))
            inputs = _inputs(program, takes)
            subgraphs.append(Subgraph(count, program, takes, inputs, outputs, step, goes_on, then))
            count += 1
        own = getattr(original, "__name__", type(original).__name__) if layout is None else f"at_{position}"
        entries.append(Entry(position, own, _parameters(original, layout), tuple(subgraphs)))
    whole = None if left is None else Break(_call(entries[0].name, original), "result", *left)
    return PlanExplanation(name, tuple(entries), gave_up, whole)


def _call(name: str, original: Any) -> str:
    """A call of a function with its own parameters."""
    found = _signature(original)
    given = () if found is None else found.parameters.values()
    return f"{name}({', '.join(_WRITTEN.get(each.kind, '{0}').format(each.name) for each in given)})"


_WRITTEN: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.VAR_KEYWORD: "**{0}",
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
}


def _signature(original: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(original)
    except (TypeError, ValueError):
        return None


def _parameters(original: Any, layout: Layout | None) -> str:
    if layout is None:
        found = _signature(original)
        return "(*args, **kwargs)" if found is None else str(found.replace(return_annotation=inspect.Signature.empty))
    return f"({', '.join(_shown_names(layout))})"


def _parameter_names(original: Any) -> list[str]:
    found = _signature(original)
    return [] if found is None else list(found.parameters)


def _inputs(program: Program, takes: Sequence[str]) -> tuple[str, ...]:
    """The names of the values that a program computes with."""
    names = (_name_at(each.source, takes) for each in program.inputs)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _name_at(source: Any, takes: Sequence[str]) -> str | None:
    while not isinstance(source, Argument):
        source = getattr(source, "base", None)
        if source is None:
            return None
    if isinstance(source.key, str):
        return source.key
    return takes[source.key] if source.key < len(takes) else f"args[{source.key}]"


def _shown_names(layout: Layout) -> list[str]:
    """The names of values that a person looks for: not those of functions."""
    return [name for name in names_of(layout) if not name.endswith("function")]


def _step(
    program: Program, layout: Layout, values: list[Template], reasons: Callable[[FrameLayout], str]
) -> tuple[Break, tuple[str, ...]]:
    innermost = layout[-1]
    each = prepared(innermost.code).decoded.instructions[innermost.index]
    names = names_in_turn([_computed_as(program, *each) for each in zip(names_of(layout), values)])
    known = dict(zip(names, values))
    stack = _stack(innermost, names)
    operands = stack[len(stack) - taken(each) :] if taken(each) else []
    if each.name == "CALL_FUNCTION_EX":
        operands = stack[len(stack) - 3 - bool(each.argument) :]
    shown = [None if name is None else _shown(name, known[name]) for name in operands]
    constants = [_constant(known[name]) if name is not None else None for name in operands]
    following = prepared(innermost.code).decoded.instructions[innermost.index + 1]
    result = "result" if gives_result(each) and following.name != "POP_TOP" else None
    if result is not None and following.name == "STORE_FAST":
        result = prepared(innermost.code).decoded.slots[following.argument]
    place, *callers = reversed([_place(frame) for frame in layout])
    step = Break(text_of(each, shown, constants), result, reasons(innermost), place, tuple(reversed(callers)))
    used = {text for text, name in zip(shown, operands) if text == name}
    outputs = tuple(
        name
        for name, template in known.items()
        if name in used or (not isinstance(template, (Constant, Same)) and not name.endswith("function"))
    )
    return step, outputs


def _computed_as(program: Program, name: str, template: Template) -> str:
    """The name of a value: of one on the stack that of the operation which computes it."""
    if "value_" not in name or not isinstance(template, Output):
        return name
    (made,) = next(node for node in program.graph.graph.nodes if node.op == "output").args
    node = made[template.index]
    return node.name if isinstance(node, fx.Node) else name


def _stack(frame: FrameLayout, names: list[str]) -> list[str | None]:
    """The names of the values on the innermost frame's stack; None for nothing."""
    count = sum({"value": 1, "iteration": 2}.get(kind, 0) for kind in frame.stack)
    end = len(names) - frame.handled
    given = iter(names[end - count : end])
    found: list[str | None] = []
    for kind in frame.stack:
        if kind == "null":
            found.append(None)
        else:
            found.append(next(given))
            if kind == "iteration":
                next(given)
    return found


def _constant(template: Template) -> Any:
    return template.value if isinstance(template, Constant) else None


def _shown(name: str, template: Template) -> str:
    """A value as it is written in a step: by name, or where it is the same in all calls, as it is."""
    if not isinstance(template, Constant):
        return name
    value = template.value
    if isinstance(value, (FunctionType, BuiltinFunctionType, type, ModuleType)):
        return str(value.__name__)
    shown = repr(value)
    return shown if isinstance(value, (str, int, float, type(None), tuple)) and len(shown) < 40 else name


def _place(frame: FrameLayout) -> Location:
    return place_of(frame.code, frame.index)


def _done(code: CodeType, index: int) -> Break:
    """A further step of Python's, as the user wrote it."""
    place = place_of(code, index)
    line = place.source_line()
    each = prepared(code).decoded.instructions[index]
    text = each.name.lower() if line is None else line.encode()[place.column : place.end_column].decode().strip()
    return Break(text, None, "", place)
