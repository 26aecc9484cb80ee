"""Running a program that writes to Python's objects midway: for code that it calls as it is, and that looks at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from stillgraph.program.exceptions import take_left
from stillgraph.program.graphs import regions
from stillgraph.program.operations import settle, settling
from stillgraph.program.outputs import Constant
from stillgraph.program.program import Program
from stillgraph.program.types import ListType
from stillgraph.runtime.native.results import compile_prepared

Run = Callable[..., Sequence[Any]]
Settled = Callable[[tuple[Any, ...], tuple[Any, ...], dict[str, Any]], Any]


def settles(program: Program) -> bool:
    """Whether a program writes to Python's objects before it is done."""
    return any(node.target is settle for region in regions(program.graph) for node in region.graph.nodes)


def _lists(program: Program) -> frozenset[int]:
    """The positions of the inputs that are lists of the caller's and that the program reads."""
    nodes = program.graph.graph.find_nodes(op="placeholder")
    read = [isinstance(item.value, ListType) and bool(node.users) for item, node in zip(program.inputs, nodes)]
    return frozenset(index for index, is_read in enumerate(read) if is_read)


def compile_settled(program: Program, run: Run, exclusive: Callable[[], AbstractContextManager[None]]) -> Settled:
    """Compile a program that `settles`.

    Args:
        program: the program.
        run: its graph, compiled.
        exclusive: a block that runs while no other thread captures.

    Returns:
        ``settled(inputs, args, kwargs)``, which runs the program and gives the result of the call. Objects are looked
        up before the program runs: by then, what it writes midway may lead elsewhere. Lists that the program reads are
        copied, for what it writes midway may make them longer.
    """
    lists = _lists(program)
    prepare = compile_prepared(program.result, program.effects)
    midway = [compile_prepared(Constant(None), effects) for effects in program.midway]

    def settled(inputs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if lists:
            inputs = tuple([[*value] if index in lists else value for index, value in enumerate(inputs)])
        finish = prepare(args, kwargs)
        steps = [each(args, kwargs) for each in midway]

        def carry_out(index: int, values: Sequence[Any]) -> None:
            with exclusive():
                steps[index](values)

        try:
            with settling(carry_out):
                outputs = run(*inputs)
        except BaseException as error:  # of any kind: an operation's, or the user's own
            left = take_left(error)
            if left is not None:
                carry_out(*left)
            raise
        with exclusive():
            return finish(outputs)

    return settled
