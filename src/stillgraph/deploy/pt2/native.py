"""A program of a file run by the native driver: its branches and loops are Python's, not torch's operators.

`torch.ops.higher_order.while_loop` costs more per iteration than many loops compute. The driver gives what the
operators give, and reads the module's parameters and buffers in each call, for they may be replaced.
"""

from __future__ import annotations

import operator
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


class NativeCall:
    """What gives the results of a module of a loaded program, as the module does.

    Attributes:
        module: tensors in, tensors out; it runs itself where somebody has put hooks on it.
    """

    def __init__(self, module: fx.GraphModule, name: str, compile: Compile | None, graph: fx.GraphModule) -> None:
        """Write the driver.

        Args:
            module: the module.
            name: of the program.
            compile: the backend for what is between branches and loops; None runs PyTorch's operators as they are.
            graph: a copy of the module of which all operations can be written; it is changed.
        """
        self.module = module
        self._made_of = module, name, compile
        self._hooks = _hooks(module)  # torch's own, for what `_GUARDS` and the binding of arguments check
        for region in regions(graph):
            _fit(region, calls_operators=compile is None)
        paths = _lift_state(graph)
        self._state = [operator.attrgetter(path) for path in paths]
        self._takes_parameters = compile is None  # a backend does not look at what is a parameter
        self._run = lower_graph(graph, name, compile).run
        structure: Any = module._out_spec
        flat = tree_structure((0,) * structure.num_leaves)
        self._finish = _as_it_is if structure == flat else module.graph.process_outputs

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """The results for these inputs."""
        module = self.module
        if _hooks(module) != self._hooks:
            return module(*inputs)
        module.get_submodule(_GUARDS)(*inputs)
        state = [each(module) for each in self._state]
        return self._finish(self._run(*inputs, *(state if self._takes_parameters else map(torch.Tensor.detach, state))))

    def __reduce__(self) -> Any:
        return native_call, self._made_of  # a copy is of the copied module


def native_call(module: fx.GraphModule, name: str, compile: Compile | None) -> NativeCall | None:
    """A call of a module's program by the native driver; None where it has what the driver does not write.

    The arguments are those of `NativeCall`.
    """
    if not hasattr(module, _GUARDS):
        return None  # another release of torch's, which checks in another way
    graph = copied_module(module)
    for node in graph.graph.find_nodes(op="call_module", target=_GUARDS):
        graph.graph.erase_node(node)
    for region in regions(graph):
        _give_tuple(region)
    return NativeCall(module, name, compile, graph) if all(map(_is_written, regions(graph))) else None


def _hooks(module: fx.GraphModule) -> int:
    return len(module._forward_hooks) + len(module._forward_pre_hooks)


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
    handed = [*entries, *operands]
    own = [_is_own(each) and handed.count(each) == 1 for each in entries]
    with graph.inserting_before(node):
        given = [
            each if is_own else graph.call_function(_copied, (each,)) for each, is_own in zip(entries, own, strict=True)
        ]
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
        path, value = str(node.target), attribute(module, node)
        if not isinstance(value, torch.Tensor):
            continue
        with graph.inserting_after(*last) if last else graph.inserting_before(next(iter(graph.nodes))):
            last = [graph.placeholder(f"state_{len(paths)}")]
        like = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        last[0].meta["val"] = like  # not the tensor itself, which may be replaced
        paths.append(path)
        node.replace_all_uses_with(last[0])
        node.meta.clear()  # which has the tensor; the graph does not forget the node
        graph.erase_node(node)
    for path in set(paths):
        owner, _, attribute_name = path.rpartition(".")
        delattr(module.get_submodule(owner), attribute_name)
    return paths
