"""From the segments of a plan to what is told of them (`report/plan.py`)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import fx

from stillgraph.api.endings import as_written, ending_text, written_at
from stillgraph.bytecode.between.between import Between
from stillgraph.bytecode.between.texts import gives_result, text_of
from stillgraph.bytecode.between.way import Done
from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.machine.table import taken
from stillgraph.bytecode.segments.breaks import place_of
from stillgraph.bytecode.segments.called import keywords_at
from stillgraph.bytecode.segments.layouts import COUNTS, FrameLayout, Layout
from stillgraph.bytecode.segments.whys import Why
from stillgraph.core.location import Location
from stillgraph.core.lookup import stated, stated_signature
from stillgraph.program.graphs import arguments
from stillgraph.program.outputs import BOUND, Constant, Container, Output, Same, Template
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Global
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
            if COUNTS[kind] == 1:
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
    reasons: Callable[[FrameLayout], Why],
    suspended: object,
    gave_up: str | None = None,
    left: tuple[Why, Location | None] | None = None,
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
        left: why Python makes the calls as a whole, and where the function begins, if that is known.
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
            last: str | None = None
            if ending is not None:
                between, values = ends[ending[0]], ending[1]
                step, outputs, shown = _step(program, between, values, reasons)
                goes_on = tuple(None if each is None else places.get(each) for each in between.followed)
                then, last = _then(between, shown, step.result)
            takes = tuple(_parameter_names(original)) if layout is None else tuple(names_of(layout))
            inputs = _inputs(program, takes)
            subgraphs.append(Subgraph(count, program, takes, inputs, outputs, step, goes_on, then, last))
            count += 1
        own = stated(original, "__name__", type(original).__name__) if layout is None else f"at_{position}"
        entries.append(Entry(position, own, _parameters(original, layout), tuple(subgraphs)))
    whole = None
    if left is not None:
        why, place = left
        told = why.text, place, (), why.code, why.advice, why.cause
        whole = Break(_call(entries[0].name, original), "result", *told)
    return PlanExplanation(name, tuple(entries), gave_up, whole)


def _then(between: Between, names: Sequence[str], result: str | None) -> tuple[tuple[Break, ...], str | None]:
    """What Python does behind its step where there is one way on, and with what the call ends there."""
    ways, ending = between.followed, between.ending
    if len(ways) > 1 or not (ways or ending):
        return (), None
    if ending is None or (ways and None not in ways):
        return tuple(_outermost(next(iter(ways.values())))), None
    last, made = ending_text(between.layout, names, result, ending)
    done = [each for each in ending.done if each != made]
    return tuple(_outermost(done, ending.raised)), last


def _call(name: str, original: Any) -> str:
    """A call of a function with its own parameters."""
    found = stated_signature(original)
    given = () if found is None else found.parameters.values()
    return f"{name}({', '.join(_WRITTEN.get(each.kind, '{0}').format(each.name) for each in given)})"


_WRITTEN: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.VAR_KEYWORD: "**{0}",
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
}


def _parameters(original: Any, layout: Layout | None) -> str:
    if layout is None:
        found = stated_signature(original)
        return "(*args, **kwargs)" if found is None else str(found.replace(return_annotation=inspect.Signature.empty))
    return f"({', '.join(_shown_names(layout))})"


def _parameter_names(original: Any) -> list[str]:
    found = stated_signature(original)
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
    program: Program, between: Between, values: list[Template], reasons: Callable[[FrameLayout], Why]
) -> tuple[Break, tuple[str, ...], list[str]]:
    """The step that Python does, what the program hands out for it and later, and all values as they are shown."""
    layout = between.layout
    innermost = layout[-1]
    each = prepared(innermost.code).decoded.instructions[innermost.index]
    places = names_of(layout)
    taking = {name for name in _operands(each, _stack(innermost, places)) if name is not None}
    if not any(following is not None for following in between.followed):
        taking.update(places)
    computed_as = [  # what only stays on the stack is called as the next program calls it
        _computed_as(program, name, value) if name in taking else name for name, value in zip(places, values)
    ]
    names = names_in_turn(computed_as)
    renamed = {name for name, before in zip(names, computed_as) if name != before}
    known = dict(zip(names, values))
    operands = _operands(each, _stack(innermost, names))
    shown = [None if name is None else _shown(name, known[name]) for name in operands]
    place, *callers = reversed([_place(frame) for frame in layout])
    why, around = reasons(innermost), tuple(reversed(callers))
    told = why.text, place, around, why.code, why.advice, why.cause
    seen = operands[:-1] if each.name == "CALL_KW" else operands  # the names of keywords are written out
    used = {text for text, name in zip(shown, seen) if text == name}
    text, hidden = _text(layout, each, shown), set[str | None]()
    if any(name in renamed or _OF_PLACE.search(name) for name in used if name is not None):
        written = as_written(innermost.code, innermost.index)
        if written is not None:
            text, used = written, set()
            hidden = {name for name in operands if name is not None and not isinstance(known[name], Output)}
    step = Break(text, _result_of(innermost), *told)
    again = {name for name in renamed - used if isinstance(known[name], Output)}  # the program hands it out once
    made = [name for name, template in known.items() if name in used or _is_made(name, template)]
    outputs = tuple(name for name in made if not (name in hidden or (name in again and _is_known(known, name))))
    return step, outputs, [_shown(name, template) for name, template in known.items()]


def _operands(each: Instruction, stack: list[str | None]) -> list[str | None]:
    """The names of what an instruction takes from the stack."""
    if each.name == "CALL_FUNCTION_EX":
        return stack[len(stack) - 3 - bool(each.argument) :]
    return stack[len(stack) - taken(each) :] if taken(each) else []


_OF_PLACE = re.compile(r"(^|_)value_\d+$")
"""The names of places on the stack, which nobody has written."""


def _is_known(known: dict[str, Template], name: str) -> bool:
    """Whether a value has another name."""
    return sum(template == known[name] for template in known.values()) > 1


def _text(layout: Layout, each: Instruction, names: Sequence[str | None]) -> str:
    """What Python does where a layout is, given the names of what that takes from the stack."""
    frame = layout[-1]
    if each.name in ("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF"):
        variable = prepared(frame.code).decoded.slots[each.argument]
        return f"{variable} = {names[0]}" if names else f"del {variable}"
    if each.name == "RETURN_VALUE" and len(layout) > 1:
        return f"{names[0]}  # as '{frame.code.co_name}' ends"
    return text_of(each, names, keywords_at(frame.code, frame.index) or ())


def _result_of(frame: FrameLayout) -> str | None:
    """The name of what the instruction that a frame is at gives; None where nothing is done with it."""
    decoded = prepared(frame.code).decoded
    if not gives_result(decoded.instructions[frame.index]):
        return None
    following = decoded.instructions[frame.index + 1 : frame.index + 2]  # none behind the last one, which jumps
    if following and following[0].name == "STORE_FAST":
        return str(decoded.slots[following[0].argument])
    return None if following and following[0].name == "POP_TOP" else "result"


def _is_made(name: str, template: Template) -> bool:
    """Whether a value comes from the program, rather than being there anyway."""
    if isinstance(template, Container) and template.type is MethodType and _method(template) is not None:
        return False
    if isinstance(template, Container) and template.type is tuple:
        return not all(isinstance(each, Constant) for each in template.children)
    return not isinstance(template, (Constant, Same)) and not name.endswith("function")


def _computed_as(program: Program, name: str, template: Template) -> str:
    """The name of a value: of one on the stack that of the operation which computes it, or whose method it is."""
    computed = template if isinstance(template, Output) else _owner(template)
    if "value_" not in name or computed is None:
        return name
    (made,) = arguments(program.graph.graph.output_node())
    node = made[computed.index]
    return node.name if isinstance(node, fx.Node) else name


def _stack(frame: FrameLayout, names: list[str]) -> list[str | None]:
    """The names of the values on the innermost frame's stack; None for nothing."""
    count = sum(COUNTS[kind] for kind in frame.stack)
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


def _shown(name: str, template: Template) -> str:
    """A value as it is written in a step: by name, or where it is the same in all calls, as it is."""
    if isinstance(template, Same) and isinstance(template.source, Global):
        return template.source.name
    if isinstance(template, Container) and _owner(template) is not None and "value_" not in name:
        return f"{name}.{template.context}"
    if isinstance(template, Container) and template.type is MethodType:
        return _method(template) or name
    if not isinstance(template, Constant):
        return name
    value = template.value
    if isinstance(value, (FunctionType, BuiltinFunctionType, type, ModuleType)):
        return str(value.__name__)
    shown = repr(value)
    return shown if isinstance(value, (str, int, float, type(None), tuple)) and len(shown) < 40 else name


def _owner(template: Template) -> Output | None:
    """Of a method of C's, the value that it belongs to, if a program computes that."""
    match template:
        case Container(type=kind, context=str(), children=(Output() as owner,)) if kind in BOUND:
            return owner
    return None


def _method(template: Container) -> str | None:
    """A method of an object that is there anyway, as the user writes it; None for any other."""
    function, owner = template.children
    if not isinstance(owner, Same) or not isinstance(function, (Same, Constant)):
        return None
    source = owner.source
    shown = source.name if isinstance(source, Global) else str(source)
    found = function.value.__name__ if isinstance(function, Constant) else getattr(function.source, "key", None)
    return f"{shown}.{found}" if isinstance(found, str) and not _INSIDE.search(shown) else None


_INSIDE = re.compile(r"args\[|cell_contents")


def _place(frame: FrameLayout) -> Location:
    return place_of(frame.code, frame.index)


def _outermost(done: Sequence[Done], raised: Done | None = None) -> Iterator[Break]:
    """Further steps of Python's, as the user wrote them; one that is written inside of a later one is part of it."""
    places = [place_of(*each) for each in (*done, raised) if each is not None]
    for number, (code, index) in enumerate(done):
        if not any(_is_inside(places[number], later) for later in places[number + 1 :]):
            text = written_at(code, index) or _without_names(code, index)
            yield Break(text, None, "", places[number])


def _without_names(code: CodeType, index: int) -> str:
    """What is done at an instruction, where neither the source nor the values are known."""
    each = prepared(code).decoded.instructions[index]
    names: list[str | None] = ["value"] * taken(each)
    if each.name.startswith("CALL"):
        names[0] = None
    return text_of(each, names, keywords_at(code, index) or ())


def _is_inside(place: Location, other: Location) -> bool:
    """Whether something is written inside of something else."""
    if (place.file, place.line) != (other.file, other.line):
        return False
    ends = (place.column, place.end_column, other.column, other.end_column)
    return None not in ends and ends[2] <= ends[0] and ends[1] <= ends[3]  # type: ignore[operator]  # none is None
