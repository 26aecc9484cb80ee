"""The regions of a program as data: boxes of operations, each with its inputs, its type and the line it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from stillgraph.core.location import Location
from stillgraph.program.blocks import CONSTRUCTS, Block, blocks, region_of, written_as
from stillgraph.program.context import Context
from stillgraph.program.graphs import arguments
from stillgraph.program.guards import ModeGuard
from stillgraph.program.operations import checkpointed
from stillgraph.program.printer import expression, in_words, is_part, size_words, type_text
from stillgraph.program.program import Program


@dataclass(frozen=True)
class Place:
    """A line, and where they are known the columns, of a file. Lines count from 1, columns from 0."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"


@dataclass(frozen=True)
class Value:
    """A value of a region.

    Attributes:
        name: by which the operations of its region name it.
        type: ``f32[3, 4]``, ``int``, ….
        kind: of a region's input, where it comes from: ``"argument"``, ``"parameter"``, ``"buffer"``, ``"tensor"``,
            ``"state"`` or ``"list"`` from outside the program; ``"carried"`` from the last iteration; ``"outer"`` from
            the region around. Empty for what an operation gives.
    """

    name: str
    type: str
    kind: str = ""


@dataclass(frozen=True)
class Operation:
    """An operation, or a construct with regions of its own.

    Attributes:
        id: ``"region/name"``, as in `Program.source_map`.
        text: what it computes, as Python would write it; of a construct, its head.
        inputs: the names of the values of its region that it reads.
        outputs: what it gives.
        place: the user's line.
        callers: the lines that called the function it stands in, the outermost first.
        boxes: the numbers of a construct's regions.
        construct: ``"if"``, ``"while"``, ``"try"``, ``"recursion"`` or ``"checkpoint"``; empty for an operation.
        written: what the user wrote for a construct, as `program.blocks.written_as` has it; empty for a branch that the
            program has for a flag (whether a loop was left, say), and for an operation.
        modes: torch's modes in which it runs, where they are not those that the call finds; else empty.
    """

    id: str
    text: str
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    place: Place | None
    callers: tuple[Place, ...]
    boxes: tuple[int, ...] = ()
    construct: str = ""
    written: str = ""
    modes: str = ""


@dataclass(frozen=True)
class Box:
    """A region.

    Attributes:
        number: its number in `Program.regions`.
        role: ``"top"``, ``"then"``, ``"else"``, ``"test"``, ``"body"`` or ``"except"``.
        construct: what it is a region of; ``"program"`` for the top.
        depth: how many regions are around it.
        inputs: its inputs.
        operations: in the order of the program.
        returns: what it gives, as names or constants.
        visits: how often it was entered; None where nobody counted.
    """

    number: int
    role: str
    construct: str
    depth: int
    inputs: tuple[Value, ...]
    operations: tuple[Operation, ...]
    returns: tuple[str, ...]
    visits: int | None = None


def boxes(program: Program, visits: Sequence[int | None] | None = None) -> tuple[Box, ...]:
    """The regions of a program, in the order of `Program.regions`.

    Args:
        program: the program.
        visits: how often each region was entered; None for the lot or for one means not counted.
    """
    found = blocks(program.graph)
    entry = next((guard.context for guard in program.guards if isinstance(guard, ModeGuard)), None)
    children: dict[tuple[int, fx.Node], list[int]] = {}
    for block in found:
        if block.parent is not None and block.node is not None:
            children.setdefault((block.parent.number, block.node), []).append(block.number)
    first = (node.name for node in program.graph.graph.nodes if node.op == "placeholder")
    kinds: dict[int, dict[str, str]] = {0: {name: each.kind for name, each in zip(first, program.inputs)}}
    made = []
    for block in sorted(found, key=lambda each: each.depth):
        if block.parent is not None:
            kinds[block.number] = _kinds(block, kinds[block.parent.number])
        count = visits[block.number] if visits is not None and block.number < len(visits) else None
        made.append(_box(block, kinds[block.number], children, count, entry))
    words = size_words(program)
    made = [_worded(box, words) for box in made] if words else made
    return tuple(sorted(made, key=lambda box: box.number))


def _worded(box: Box, words: Mapping[str, str]) -> Box:
    """A box with words for open sizes in the types of its values."""

    def told(values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(replace(value, type=in_words(value.type, words)) for value in values)

    operations = tuple(replace(each, outputs=told(each.outputs)) for each in box.operations)
    return replace(box, inputs=told(box.inputs), operations=operations)


def place_of(location: Location | None) -> Place | None:
    """A location as data, without the lines that called."""
    if location is None:
        return None
    return Place(location.file, location.line, location.column, location.end_column, location.function)


def _modes(context: Context, entry: Context) -> str:
    return str(context) if str(context) != str(entry) else "a setting of torch's is another one"


def _box(
    block: Block,
    kinds: dict[str, str],
    children: dict[tuple[int, fx.Node], list[int]],
    count: Any,
    entry: Context | None,
) -> Box:
    inputs = tuple(
        Value(node.name, type_text(node.meta.get("val")), kinds.get(node.name, "outer"))
        for node in block.module.graph.nodes
        if node.op == "placeholder"
    )
    operations = tuple(
        _operation(block, node, tuple(sorted(children.get((block.number, node), ()))), entry)
        for node in block.module.graph.nodes
        if node.op in ("call_function", "call_method") and not is_part(node)
    )
    (returned,) = arguments(block.module.graph.output_node())
    returns = tuple(each.name if isinstance(each, fx.Node) else repr(each) for each in returned)
    return Box(block.number, block.role, block.construct, block.depth, inputs, operations, returns, count)


def _operation(block: Block, node: fx.Node, regions: tuple[int, ...], entry: Context | None) -> Operation:
    location: Location | None = node.meta.get("location")
    construct = CONSTRUCTS.get(node.target)
    parts = [user for user in node.users if is_part(user) and user.args[0] is node]
    given = parts or ([] if construct else [node])
    outputs = tuple(Value(each.name, type_text(each.meta.get("val"))) for each in given)
    inputs = tuple(dict.fromkeys(each.name for each in node.all_input_nodes if each.op != "get_attr"))
    callers = () if location is None else tuple(filter(None, map(place_of, location.callers)))
    kind = "" if construct is None else construct[0]
    text = _head(kind, block.module, node) if kind else expression(node)
    written = written_as(node) if kind else ""
    context = node.meta.get("context")
    modes = "" if entry is None or context is None or context == entry else _modes(context, entry)
    name = f"{block.number}/{node.name}"
    return Operation(name, text, inputs, outputs, place_of(location), callers, regions, kind, written, modes)


def _head(kind: str, module: fx.GraphModule, node: fx.Node) -> str:
    """A construct without its regions: ``if gt``, ``while x = add, steps = 0``."""
    given = arguments(node)
    if kind == "if":
        return f"if {given[0]}"
    if kind == "try":
        caught = [each.__name__ if isinstance(each, type) else str(each) for each in given[3]]
        return f"try, except {', '.join(caught)}"
    if kind == "backward":
        return f"backward of {', '.join(map(str, given[1]))}"
    entries = {"while": 2, "recursion": 2, "checkpoint": 1}[kind]
    body = region_of(module, given[0 if kind == "checkpoint" else 1])
    names = [each.name for each in body.graph.nodes if each.op == "placeholder"]
    return f"{kind} {', '.join(f'{name} = {value}' for name, value in zip(names, given[entries]))}"


def _kinds(block: Block, outside: dict[str, str]) -> dict[str, str]:
    """Where each input of a region comes from: the last of them are the values that it reads from around it."""
    assert block.node is not None
    names = [node.name for node in block.module.graph.nodes if node.op == "placeholder"]
    read = list(_read_from_around(block.node))
    own = len(names) - len(read)
    carried = "carried" if block.construct in ("while", "recursion", "checkpoint", "backward") else "outer"
    kinds = dict.fromkeys(names[:own], carried)
    for name, value in zip(names[own:], read):
        outer = outside.get(value.name, "outer") if isinstance(value, fx.Node) else "outer"
        kinds[name] = "outer" if outer in ("carried", "argument") else outer
    return kinds


def _read_from_around(node: fx.Node) -> Iterator[Any]:
    given = arguments(node)
    last = given[2] if node.target is checkpointed else given[-1]
    yield from last if isinstance(last, (tuple, list)) else ()


