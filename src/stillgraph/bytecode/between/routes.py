"""What Python does between two programs, as one generated function: the way that calls have taken before.

A route is straight: it does the instructions that `resuming.Hand` has done, on variables instead of frames. Where
a call takes another way, or something raises, the frames are made again as they are there, and gone on with by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from stillgraph.bytecode.between.route_instructions import write
from stillgraph.bytecode.between.route_writing import ENDED, OTHER, RAISED, THERE, Place, Unsupported, Writer, frames_at
from stillgraph.bytecode.between.way import Passed
from stillgraph.bytecode.segments.layouts import Layout


@dataclass(frozen=True)
class Route:
    """A way from the end of one program to the beginning of the next, or to the end of the call.

    Attributes:
        run: takes the values that the program has handed out from their list, and gives ``(ENDED, result)``,
            ``(THERE, *values)``, ``(OTHER, number, variables)`` where a jump goes elsewhere, or
            ``(RAISED, number, variables, error)``.
        places: by those numbers.
        target: the layout of what it comes to; None for the end of the call.
    """

    run: Callable[[list[Any]], tuple[Any, ...]]
    places: tuple[Place, ...]
    target: Layout | None
    source: str


def route_of(layout: Layout, functions: Sequence[FunctionType], way: Sequence[Passed], target: Layout | None) -> Route:
    """The route that does what a call has done by hand.

    Args:
        layout: of what the program has handed out.
        functions: of its frames.
        way: the instructions that were carried out, in their order.
        target: the layout that was come to; None for the end of the call.

    Raises:
        Unsupported: an instruction is none that routes have.
    """
    writer = Writer(frames_at(layout, functions))
    first = writer.place()
    names = writer.places[first].names
    result = None
    for each in way:
        if each.position != len(writer.frames) - 1:
            raise Unsupported("a frame has been left by an exception")
        result = write(writer, each)
    if target is None:
        if result is None or writer.frames:
            raise Unsupported("the call has not come to its end")
        ending = f"return {ENDED}, {result}"
    else:
        ending = f"return {THERE}, {', '.join(writer.arrive(target))}"
    spaces = [(frame.function, writer.constant(frame.globals)) for frame in frames_at(layout, functions)]
    return _compiled(writer, names, spaces, ending, layout[0].code.co_name, target)


def _compiled(
    writer: Writer,
    names: Sequence[str],
    spaces: Sequence[tuple[str, str]],
    ending: str,
    name: str,
    target: Layout | None,
) -> Route:
    others = " or ".join(f"{function}.__globals__ is not {space}" for function, space in spaces)
    opened = "[v.value if type(v) is Parcel else v for v in values]"
    body = [
        f"{''.join(f'{each}, ' for each in names)}= {opened}",
        "values.clear()",
        "n = 0",
        f"if {others}: return {OTHER}, n, locals()",  # a function of the same code may have other globals
        "try:",
        *(f"    {line}" for line in (*writer.lines, ending)),
        "except BaseException as error:",
        f"    return {RAISED}, n, locals(), error",
    ]
    source = "\n".join(["def route(values):", *(f"    {line}" for line in body)])
    namespace = dict(writer.namespace)
    exec(compile(source, f"<stillgraph route of {name}>", "exec"), namespace)
    return Route(namespace["route"], tuple(writer.places), target, source)
