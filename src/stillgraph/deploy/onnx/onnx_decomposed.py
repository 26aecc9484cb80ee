"""What `torch.onnx` does to an exported program before it translates it: each thing once, and only where it is needed.

torch traces the whole program anew to write its operations with those that have a translation, and reads the sources of
all translations for that. Most operations have one, so here the others alone are traced, each by itself. Only a program
that writes in place is traced as a whole: torch knows what becomes of views.

The adapter to `torch.onnx`'s preparation of a program.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from onnxscript.function_libs.torch_lib import registration
from torch import fx
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.fx.experimental.proxy_tensor import make_fx
from torch.onnx._internal.exporter import _constants, _decomp, _fx_passes, _registration
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.onnx._internal.fx.passes import type_promotion
from torch.utils._pytree import tree_flatten

from stillgraph.deploy.exporting.regions_apart import regions_apart
from stillgraph.passes.kernels.attention import OPERATOR, in_parts_of_operator
from stillgraph.passes.regions.regions import outputs, placeholders
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts import schemas
from stillgraph.program.facts.writes import writes_in_place
from stillgraph.program.graphs import arguments, regions

Table = Mapping[Any, Callable[..., Any]]
_TRANSLATIONS: Any = _registration


@contextlib.contextmanager
def decomposed_once() -> Iterator[None]:
    """Within it `torch.onnx` prepares programs so. What is exchanged is the process's: for one thread at a time."""
    passes: Any = _fx_passes
    theirs = passes.decompose_with_registry, passes.insert_type_promotion_nodes
    apis, registries = _TRANSLATIONS.onnxscript_apis, _TRANSLATIONS.ONNXRegistry
    passes.decompose_with_registry, passes.insert_type_promotion_nodes = decomposed, _promote
    _TRANSLATIONS.onnxscript_apis, _TRANSLATIONS.ONNXRegistry = _Translations(), _Registry
    try:
        with regions_apart():
            yield
    finally:
        passes.decompose_with_registry, passes.insert_type_promotion_nodes = theirs
        _TRANSLATIONS.onnxscript_apis, _TRANSLATIONS.ONNXRegistry = apis, registries


class _Registry(ONNXRegistry):
    """A registry of torch's translations, of which torch reads all signatures once in a process, not for each file."""

    @classmethod
    def from_torchlib(cls, opset_version: int = _constants.TORCHLIB_OPSET) -> _Registry:
        registry = cls()
        registry._opset_version = opset_version
        registry.functions = {target: [*found] for target, found in _translations_of(opset_version).items()}
        return registry


@functools.cache
def _translations_of(opset_version: int) -> dict[Any, Any]:
    functions: dict[Any, Any] = ONNXRegistry.from_torchlib(opset_version).functions
    return functions


def decomposed(program: ExportedProgram, registry: Any) -> ExportedProgram:
    """A program of operations that have a translation, as far as others can be written with such.

    Args:
        program: changed in place.
        registry: the translations.
    """
    for region in regions(program.graph_module):
        _write_to_fresh_results_apart(region)
        _count_by_sizes(region)
    known = set(_decomp.get_onnx_implemented_overloads(registry))
    missing = [
        (region, node)
        for region in regions(program.graph_module)
        for node in region.graph.nodes
        if isinstance(node.target, torch._ops.OpOverload) and node.target not in known
    ]
    writing = any(writes_in_place(each) or _keeps_statistics(each) for each in regions(program.graph_module))
    table: Table = _table(known) if missing or writing else {}
    if writing:
        whole: ExportedProgram = program.run_decompositions(dict(table))
        for region in regions(whole.graph_module):
            _count_by_sizes(region)
        return whole
    for region, node in missing:
        if node.target in table or _is_composite(node.target):
            _write_out(region, node, table)
    for region in regions(program.graph_module):
        _count_by_sizes(region)
        region.recompile()
    _name_results(program)
    return program


def _keeps_statistics(region: fx.GraphModule) -> bool:
    """Whether an operation writes running statistics, as a batch norm in training does."""
    return any(isinstance(each, fx.Node) for node in region.graph.nodes for each in schemas.statistics(node))


def _count_by_sizes(region: fx.GraphModule) -> None:
    """Put the product of a tensor's sizes in the place of its number of elements, which torch loses track of."""
    for node in region.graph.find_nodes(op="call_function", target=torch.ops.aten.sym_numel.default):
        (tensor,) = node.all_input_nodes
        count: Any = 1
        with region.graph.inserting_before(node):
            for dim, size in enumerate(value_of(tensor).shape):
                each = region.graph.call_function(torch.ops.aten.sym_size.int, (tensor, dim))
                each.meta["val"] = size
                count = each if dim == 0 else _product(region.graph, count, each)
        node.replace_all_uses_with(count)
        region.graph.erase_node(node)


def _product(graph: fx.Graph, left: fx.Node, right: fx.Node) -> fx.Node:
    made = graph.call_function(operator.mul, (left, right))
    made.meta["val"] = left.meta["val"] * right.meta["val"]
    return made


def _write_to_fresh_results_apart(region: fx.GraphModule) -> None:
    """Put an operation that writes nowhere in the place of one that writes to a result which nothing else sees.

    torch makes such of ``torch.tensor(…)``: a new tensor, filled in place, and detached in place.
    """
    for node in region.graph.nodes:
        functional = _functional(node.target)
        if functional is None or not isinstance(node.args[0], fx.Node) or not _is_seen_by(node.args[0], node):
            continue
        value = value_of(node)
        if isinstance(value, torch.Tensor) and _dtype_of(functional, node) is value.dtype:
            node.target = functional


def _functional(operation: Any) -> Any | None:
    """The operation that gives what another one writes to its first argument, if torch has it."""
    if not isinstance(operation, torch._ops.OpOverload) or not operation._schema.is_mutable:
        return None
    name, namespace = operation._opname, getattr(torch.ops, operation.namespace)
    packet = getattr(namespace, name.removesuffix("_"), None) if name.endswith("_") else None
    return getattr(packet, operation._overloadname, None)


def _dtype_of(functional: Any, node: fx.Node) -> torch.dtype | None:
    """The dtype that a functional operation gives: one in place keeps that of what it writes to. None if unknown."""

    def sample(given: fx.Node) -> Any:
        value = value_of(given)
        if isinstance(value, torch.Tensor):
            return torch.empty((), dtype=value.dtype, device="meta")
        return 1.0 if isinstance(value, (float, torch.SymFloat)) else 1

    args, kwargs = fx.map_arg((node.args, node.kwargs), sample)
    with contextlib.suppress(RuntimeError, IndexError, TypeError, ValueError):  # one that wants dimensions, say
        made = functional(*args, **kwargs)
        return made.dtype if isinstance(made, torch.Tensor) else None
    return None


def _is_seen_by(value: fx.Node, user: fx.Node) -> bool:
    """Whether a value has memory of its own, and one operation alone takes it."""
    if not isinstance(value.target, torch._ops.OpOverload) or list(value.users) != [user]:
        return False
    return all(given.alias_info is None for given in value.target._schema.returns)


def _table(known: set[Any]) -> Table:
    """What operations are made of that have no translation, ours included."""
    return {**_decomp.create_onnx_friendly_decomposition_table(known), OPERATOR: in_parts_of_operator}


def _is_composite(operation: Any) -> bool:
    """Whether torch itself writes an operation with others."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CompositeImplicitAutograd")


def _name_results(program: ExportedProgram) -> None:
    """Let the signature of a program name the nodes that it gives now."""
    specs = program.graph_signature.output_specs
    for spec, given in zip(specs, arguments(program.graph.output_node())[0], strict=True):
        if isinstance(spec.arg, TensorArgument):
            spec.arg = TensorArgument(given.name)


def _write_out(region: fx.GraphModule, node: fx.Node, table: Table) -> None:
    """Put what an operation is made of in its place."""
    made = _traced(node, table)
    taken = dict.fromkeys(each for each in tree_flatten((node.args, node.kwargs))[0] if isinstance(each, fx.Node))
    values: dict[fx.Node, Any] = dict(zip(placeholders(made), taken, strict=True))
    told = {key: value for key, value in node.meta.items() if key != "val"}
    with region.graph.inserting_before(node):
        for inner in made.graph.nodes:
            if inner.op in ("placeholder", "output"):
                continue
            if inner.op == "get_attr":
                name = f"{node.name}_{inner.target}"
                setattr(region, name, getattr(made, str(inner.target)))
                values[inner] = region.graph.get_attr(name)
            else:
                values[inner] = region.graph.node_copy(inner, lambda each: values[each])
            values[inner].meta = {**told, **inner.meta}
    results = [values[each] if isinstance(each, fx.Node) else each for each in outputs(made)]
    if isinstance(value_of(node), (tuple, list)):
        for user in list(node.users):
            assert user.target is operator.getitem, "the results of an operation are taken one by one"
            user.replace_all_uses_with(results[arguments(user)[1]])
            region.graph.erase_node(user)
    elif results:
        node.replace_all_uses_with(results[0])
    region.graph.erase_node(node)


def _traced(node: fx.Node, table: Table) -> fx.GraphModule:
    """The graph of an operation on what its node takes, without operations that write."""
    leaves, structure = tree_flatten((node.args, node.kwargs))
    taken = list(dict.fromkeys(each for each in leaves if isinstance(each, fx.Node)))

    def run(*given: Any) -> list[Any]:
        values = dict(zip(taken, given, strict=True))
        args, kwargs = structure.unflatten([values[each] if isinstance(each, fx.Node) else each for each in leaves])
        return list(tree_flatten(node.target(*args, **kwargs))[0])  # type: ignore[operator]  # an overload is callable

    given = [value_of(each) for each in taken]
    mode = detect_fake_mode(given)
    with mode if mode is not None else contextlib.nullcontext():
        made: fx.GraphModule = make_fx(run, dict(table))(*given)
        if writes_in_place(made):  # a decomposition may write to what it has made
            made = make_fx(torch.func.functionalize(fx.Interpreter(made).run))(*given)
    made.graph.eliminate_dead_code()
    return made


# ---- types
def _promote(module: fx.GraphModule) -> None:
    """Let operands be converted where PyTorch promotes their types. The graph tells what its values are."""
    for region in regions(module):
        transform = type_promotion.InsertTypePromotion(region)
        transform.interpreter = _Promotion(region, type_promotion.TypePromotionTable())
        transform.run()


class _Promotion(type_promotion._TypePromotionInterpreter):
    """As torch's, which runs every operation anew; this one takes the values of those that it leaves as they are."""

    def run_node(self, n: fx.Node) -> Any:
        if "val" not in n.meta:
            return super().run_node(n)
        with self._set_current_node(n):
            rule = type_promotion.get_type_promotion_rule(n, self.type_promotion_table)
            if rule is not None:
                self._maybe_promote_node(n, rule)
        return n.meta["val"]


# ---- translations
@dataclass(frozen=True)
class _Translation:
    """What torch asks of a translation."""

    qualified_name: str
    function: Any
    is_complex: bool


class _Translations:
    """In the place of onnxscript's interface, which reads the source of each translation to tell its domain."""

    def get_torchlib_ops(self) -> list[_Translation]:
        """The translations of operations."""
        from onnxscript.function_libs.torch_lib import ops  # importing it registers them

        del ops
        return [
            _Translation(name, function, is_complex)
            for name, overloads in registration.default_registry.items()
            if not name.startswith("internal::")
            for functions, is_complex in ((overloads.overloads, False), (overloads.complex, True))
            for function in functions
        ]
