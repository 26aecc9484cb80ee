"""Whether a program does nothing but compute and draw: a call that failed half way may be made once more."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from stillgraph.passes.regions.purity import is_local
from stillgraph.passes.regions.regions import COND, WHILE
from stillgraph.passes.regions.values import value_of
from stillgraph.passes.state.memory import flow_of
from stillgraph.program import exceptions, operations
from stillgraph.program.acts import Logging, Warning_
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.exceptions import raise_, raise_made, reraise
from stillgraph.program.facts.schemas import draws, is_known
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import (
    EFFECTFUL,
    act,
    assert_,
    checkpointed,
    closed_over,
    hooked_inputs,
    hooked_outputs,
    keep,
    module_hooks,
    recurse,
    recursion,
    try_,
)

_OPERATIONS = (*vars(operations).values(), *vars(exceptions).values())
_OURS = frozenset(filter(callable, _OPERATIONS)) - EFFECTFUL | {
    *(assert_, raise_, raise_made, reraise, try_, keep, recursion, recurse, checkpointed)
}
_WITH_HOOKS = frozenset({closed_over, module_hooks, hooked_inputs, hooked_outputs})
_METHODS_OF_LISTS = frozenset({"index", "count"})
_MODULES = frozenset({"_operator", "math", "builtins"})


def may_repeat(module: fx.GraphModule) -> bool:
    """Whether a program leaves nothing behind but its results, and torch's own random generators behind what it drew.

    Only what is known to do nothing but compute counts: Python's operators, torch's own operators that draw from no
    generator of the user's and write to no memory but what the program itself has made, and what a program is built of.
    Anything else may leave something: operators of the user's, whatever autograd differentiates or calls, hooks.
    """
    return not acting_regions(module) and _writes_to_its_own(module)


def acting_regions(module: fx.GraphModule) -> tuple[int, ...]:
    """The numbers of the regions that leave something behind, see `may_repeat`; by their places in `regions`."""
    found = enumerate(regions(module))
    return tuple(number for number, region in found if not all(map(_leaves_nothing, region.graph.nodes)))


def may_repeat_unless_entered(module: fx.GraphModule) -> tuple[int, ...] | None:
    """The regions that leave something behind: a call that has entered none of them may be made once more.

    Returns:
        Their numbers, none of them where `may_repeat` holds; None where no call may be made once more.
    """
    acting = acting_regions(module)
    return None if 0 in acting or not _writes_to_its_own(module) else acting


def only_tells(module: fx.GraphModule, acting: Sequence[int]) -> bool:
    """Whether all that regions leave behind is warnings and lines of a log, which may be told once more.

    Args:
        module: the program.
        acting: the numbers of the regions.
    """
    all_regions = tuple(regions(module))
    nodes = (node for number in acting for node in all_regions[number].graph.nodes)
    return all(_leaves_nothing(node) or _tells(node) for node in nodes)


def _tells(node: fx.Node) -> bool:
    return node.target is act and isinstance(value_of(arguments(node)[0]), (Logging, Warning_))


def draws_at_random(module: fx.GraphModule) -> bool:
    """Whether a program may draw from a random generator of torch's."""
    return any(map(draws, _nodes(module)))


def _nodes(module: fx.GraphModule) -> Iterator[fx.Node]:
    return (node for region in regions(module) for node in region.graph.nodes)


def _leaves_nothing(node: fx.Node) -> bool:
    context = node.meta.get("context")
    if context is not None and context.hooks is not None:
        return False
    if node.op in ("placeholder", "output", "get_attr") or node.target in CONSTRUCTS:
        return True
    if node.op == "call_function" and node.target in _OURS:
        return node.target not in _WITH_HOOKS
    return _is_of_python_or_torch(node) and is_local(node) and not _draws_from_users(node)


def _draws_from_users(node: fx.Node) -> bool:
    given = (value_of(each) for each in (*node.args, *node.kwargs.values()))
    return any(isinstance(each, torch.Generator) for each in given) or node.kwargs.get("generator") is not None


def _is_of_python_or_torch(node: fx.Node) -> bool:
    """Whether a call is of Python's operators or of torch's."""
    if node.op == "call_function":
        return is_known(node.target) or getattr(node.target, "__module__", "") in _MODULES
    on = node.args[0] if node.args else None
    if isinstance(on, fx.Node) and isinstance(on.meta.get("val"), torch.Tensor):
        return is_known(node.target)
    return node.target in _METHODS_OF_LISTS


def _writes_to_its_own(module: fx.GraphModule) -> bool:
    """Whether a program writes, if at all, to memory that it has made."""
    if not any(map(written_arguments, _nodes(module))):
        return True
    values = (leaf for node in _nodes(module) for leaf in tree_leaves(node.meta.get("val")))
    if any(isinstance(leaf, torch.Tensor) and leaf.layout is not torch.strided for leaf in values):
        return False
    if any(node.target in CONSTRUCTS and node.target not in (COND, WHILE, try_) for node in _nodes(module)):
        return False
    return all(map(_makes, flow_of(module).written))


def _makes(node: fx.Node) -> bool:
    """Whether what a node gives, in memory that no node before it has, is in memory of its own."""
    if node.op not in ("call_function", "call_method") or node.target in CONSTRUCTS:
        return False
    on = node.args[0] if node.args else None
    if node.target is operator.getitem and isinstance(on, fx.Node) and not isinstance(on.meta.get("val"), torch.Tensor):
        return _makes(on)
    return _is_of_python_or_torch(node)
