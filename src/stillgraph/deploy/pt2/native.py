"""A program of a file run by the native driver: its branches and loops are Python's, not torch's operators.

`torch.ops.higher_order.while_loop` costs more per iteration than many loops compute. The driver gives what the
operators give, and reads the module's parameters and buffers in each call, for they may be replaced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils._pytree import tree_structure

from stillgraph.passes.regions.regions import COND, WHILE, attribute, copied_module, outputs
from stillgraph.program.graphs import arguments, regions
from stillgraph.runtime.native.lazy_region import Compile
from stillgraph.runtime.native.native import lower_graph

_GUARDS = "_guards_fn"  # torch's module that checks the inputs' sizes


def native_call(module: fx.GraphModule, name: str, compile: Compile | None) -> Callable[..., Any] | None:
    """What gives the results of a module, as it does; None where it has operations that the driver does not write.

    Args:
        module: of a loaded program: tensors in, tensors out.
        name: of the program.
        compile: the backend for what is between branches and loops; None runs PyTorch's operators as they are.
    """
    graph = copied_module(module)
    for node in graph.graph.find_nodes(op="call_module", target=_GUARDS):
        graph.graph.erase_node(node)
    for region in regions(graph):
        _give_tuple(region)
    for region in regions(graph):
        if not _is_written(region):
            return None
        _fit(region, calls_operators=compile is None)
    read = [operator.attrgetter(path) for path in _lift_state(graph)]
    run = lower_graph(graph, name, compile).run
    check = getattr(module, _GUARDS, _accept)
    structure: Any = module._out_spec
    flat = tree_structure((0,) * structure.num_leaves)
    finish = _as_it_is if structure == flat else module.graph.process_outputs

    def call(*inputs: torch.Tensor) -> Any:
        check(*inputs)
        return finish(run(*inputs, *[each(module) for each in read]))

    return call


def _accept(*inputs: torch.Tensor) -> None:
    """What stands for a check where the module has none."""


def _as_it_is(results: Any) -> Any:
    return results


def _give_tuple(region: fx.GraphModule) -> None:
    """A loop's test gives its truth alone; the driver wants all regions to give tuples."""
    result = region.graph.output_node()
    (results,) = result.args
    result.args = (tuple(results) if isinstance(results, (tuple, list)) else (results,),)


def _is_written(region: fx.GraphModule) -> bool:
    """Whether all operations are functions, of which only branches and loops have regions."""
    for node in region.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "call_function", "output"):
            return False
        is_region = node.op == "get_attr" and isinstance(attribute(region, node), fx.GraphModule)
        if is_region and any(user.target not in (COND, WHILE) for user in node.users):
            return False
    return True


def _fit(region: fx.GraphModule, *, calls_operators: bool) -> None:
    """Change a region to what the driver takes, and to what costs least where the driver calls the operators itself."""
    for node in region.graph.nodes:
        if node.target in (COND, WHILE):
            results = outputs(attribute(region, arguments(node)[1]))
            node.meta["val"] = (None,) * len(results)  # the driver asks how many they are
    for node in region.graph.find_nodes(op="call_function", target=WHILE):
        _copy_entries(region.graph, node)
    for node in region.graph.nodes:
        if calls_operators and isinstance(node.target, OpOverload):
            node.target = node.target._op  # a function in C, for one in Python that calls it


def _copy_entries(graph: fx.Graph, node: fx.Node) -> None:
    """Let a loop begin with copies, as the operator gives copies where it has no iteration."""
    test, body, entries, operands = arguments(node)
    with graph.inserting_before(node):
        given = [each if _is_own(each) else graph.call_function(_copied, (each,)) for each in entries]
    node.args = (test, body, given, operands)


def _is_own(entry: Any) -> bool:
    """Whether a value is new and only the loop has it."""
    target = entry.target if isinstance(entry, fx.Node) else None
    if not isinstance(target, OpOverload) or len(entry.users) > 1:
        return not isinstance(entry, fx.Node)
    if target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
        return False  # it may give what it is given, as a dropout that drops nothing
    return all(given.alias_info is None for given in target._schema.returns)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _lift_state(module: fx.GraphModule) -> list[str]:
    """Let a module take its tensors behind its inputs; their paths."""
    graph = module.graph
    paths: list[str] = []
    last = graph.find_nodes(op="placeholder")[-1:]
    for node in graph.find_nodes(op="get_attr"):
        if isinstance(attribute(module, node), fx.GraphModule):
            continue
        with graph.inserting_after(*last) if last else graph.inserting_before(next(iter(graph.nodes))):
            last = [graph.placeholder(f"state_{len(paths)}")]
        last[0].meta["val"] = attribute(module, node)
        paths.append(str(node.target))
        node.replace_all_uses_with(last[0])
        graph.erase_node(node)
    return paths
