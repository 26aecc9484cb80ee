"""Lists that a loop makes longer and nobody reads: what has no form in a graph is no reason to refuse it then."""

from __future__ import annotations

import operator
from collections.abc import Iterator

from torch import fx

from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.passes.regions.regions import Loop, all_regions, control_of, copied, outputs, placeholders, set_outputs
from stillgraph.passes.regions.values import Fakes, value_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import build_list
from stillgraph.program.program import Program
from stillgraph.program.types import ListType


def drop_dead_lists(program: Program) -> Program:
    """Let a loop carry a number in place of a list that it only appends to, and of which nothing is used behind it.

    ::

        rows = []                                n = 0
        while …: rows = [*rows, [x, y]]   →      while …: n = n
        return x                                 return x
    """
    if not any(_dead_lists(program.graph)):
        return program
    fresh = copied(program)
    fakes = Fakes(fresh.graph)
    for loop, index in _dead_lists(fresh.graph):
        _empty(loop, index, fakes)
    return drop_dead_code(fresh)


def _dead_lists(graph: fx.GraphModule) -> Iterator[tuple[Loop, int]]:
    """The loops that carry such a list, with its index among what they carry."""
    for module in all_regions(graph):
        for node in module.graph.nodes:
            loop = control_of(module, node)
            if isinstance(loop, Loop):
                yield from ((loop, index) for index in range(len(loop.entries)) if _is_dead(loop, index))


def _is_dead(loop: Loop, index: int) -> bool:
    """Whether what a loop carries is a list that is only made longer, for nobody."""
    carried = placeholders(loop.body)[index]
    if not isinstance(value_of(carried), ListType) or placeholders(loop.test)[index].users:
        return False
    if any(arguments(user)[1] == index and user.users for user in loop.node.users):
        return False
    queue, found = [carried], {carried}
    while queue:
        for user in queue.pop().users:
            if user.target is build_list and user not in found:
                found.add(user)
                queue.append(user)
            elif user.target is not build_list and user.op != "output":
                return False
    return [at for at, value in enumerate(outputs(loop.body)) if value in found] == [index]


def _empty(loop: Loop, index: int, fakes: Fakes) -> None:
    number = fakes.number(int)
    entries, given = list(loop.entries), outputs(loop.body)
    given[index] = placeholders(loop.body)[index]
    set_outputs(loop.body, given)
    entries[index] = 0
    loop.node.args = (*loop.node.args[:2], tuple(entries), loop.operands)
    values = list(loop.node.meta["val"])
    values[index] = number
    loop.node.meta["val"] = tuple(values)
    read = [user for user in loop.node.users if user.target is operator.getitem and arguments(user)[1] == index]
    same: list[fx.Node] = [*(placeholders(region)[index] for region in loop.regions), *read]
    for node in same:
        node.meta["val"] = number
