import sys

import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.blocks import blocks

COMPREHENSION = ("<listcomp>",) if sys.version_info < (3, 12) else ()  # from then on part of the function around it


def halve(x: Tensor, n: int) -> Tensor:
    while x.sum() > 1:
        if x.max() > n:
            x = x / 2
        else:
            x = x - 1
    return x


def test_every_region_has_its_place() -> None:
    program = sg.export(halve, (torch.ones(3), 2))
    found = blocks(program.graph)
    assert [block.module for block in found] == list(program.regions)
    first = halve.__code__.co_firstlineno
    assert [str(block) for block in found] == [
        "the top level",
        f"'test' of the while at test_blocks.py:{first + 1}",
        f"'body' of the while at test_blocks.py:{first + 1}",
        f"'then' of the if at test_blocks.py:{first + 2}",
        f"'else' of the if at test_blocks.py:{first + 2}",
    ]
    assert [block.depth for block in found] == [0, 1, 1, 2, 2]
    assert found[3].parent is not None
    assert found[3].parent.number == 2


def twice(x: Tensor) -> Tensor:
    return halve(x, 2) + x.exp()


def solve(x: Tensor) -> Tensor:
    y = x * 2 if x.sum() > 3 else halve(x, 3)
    return y * sum([twice(each) for each in (x, y)])


def test_an_operation_knows_its_columns_and_who_called() -> None:
    program = sg.export(solve, (torch.ones(3),))
    told = {
        (str(each.source_line())[each.column : each.end_column], *(c.function for c in each.callers), each.function)
        for each in program.source_map.values()
    }
    assert ("x.max()", "solve", "halve") in told
    assert ("x / 2", "solve", *COMPREHENSION, "twice", "halve") in told
    assert ("x.exp()", "solve", *COMPREHENSION, "twice") in told
