"""An operand that a branch takes twice is taken once: torch would name two parameters of its arms alike.

Of sizes this is seen only when torch traces: two of the program may be one to it. It gives the parameters of an arm the
names of the operands (`torch._export.utils`, torch 2.11 to 2.14), and Python refuses a function with one name twice.

The adapter to torch's naming of an exported program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
import torch._export.utils as naming
from torch import fx


@contextlib.contextmanager
def repeated_operands_merged() -> Iterator[None]:
    """Within it torch names what it has exported after repeated operands of branches are one. One thread at a time."""
    name = naming._name_hoo_subgraph_placeholders

    def merge_and_name(gm: fx.GraphModule) -> None:
        merge_repeated_operands(gm)
        name(gm)

    naming._name_hoo_subgraph_placeholders = merge_and_name
    try:
        yield
    finally:
        naming._name_hoo_subgraph_placeholders = name


def merge_repeated_operands(module: fx.GraphModule) -> None:
    """Let the branches of a graph take each operand once.

    Args:
        module: of which torch has traced the branches; changed in place, as are the arms.
    """
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond):
        predicate, then, orelse, operands = node.args
        kept = {(type(each), each): each for each in operands}  # ``True`` and 1 are two
        if len(kept) < len(operands):
            places = {key: place for place, key in enumerate(kept)}
            for arm in (then, orelse):
                _take_once(module.get_submodule(str(arm.target)), [places[type(each), each] for each in operands])
            node.args = (predicate, then, orelse, tuple(kept.values()))


def _take_once(arm: torch.nn.Module, places: list[int]) -> None:
    """Let an arm take one value for all parameters with the same place."""
    assert isinstance(arm, fx.GraphModule)
    first: dict[int, fx.Node] = {}
    for parameter, place in zip(arm.graph.find_nodes(op="placeholder"), places, strict=True):
        if first.setdefault(place, parameter) is not parameter:
            parameter.replace_all_uses_with(first[place])
            arm.graph.erase_node(parameter)
    arm.recompile()
