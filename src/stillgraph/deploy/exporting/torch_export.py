"""The adapter to `torch.export`: what may change between releases of torch is used here alone."""

from __future__ import annotations

import contextlib
import logging
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import Dim, ExportedProgram
from torch.utils._pytree import tree_structure, tree_unflatten

from stillgraph.core.diagnostics import refuse
from stillgraph.core.progress import doing
from stillgraph.deploy.exporting.locating import line_of
from stillgraph.deploy.exporting.regions_apart import regions_apart
from stillgraph.deploy.exporting.repeated_operands import repeated_operands_merged
from stillgraph.passes.regions.lazy_code import code_on_demand, make_code
from stillgraph.passes.regions.values import value_of
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.input_spec import Dim as OurDim

_LEAST = 2  # of a dimension that is not a constant: torch takes 0 and 1 for special in the export, not in the run
_END = 2**63 - 1  # as far as a slice can go
_LOGGERS = (
    "torch.export",
    "torch._export",
    "torch.fx.experimental.symbolic_shapes",
    "torch.onnx",
    "onnxscript",
    "onnx_ir",
)


def export(
    module: fx.GraphModule,
    args: tuple[torch.Tensor, ...],
    dynamic: list[set[int]],
    dims: list[tuple[OurDim | None, ...]] | None = None,
) -> ExportedProgram:
    """Trace a module of tensors.

    Args:
        module: takes and gives tensors.
        args: examples; a dimension that is to stay open must not be 0 or 1.
        dynamic: for each example the dimensions that stay open.
        dims: for each example those with a name or range.

    Raises:
        ExportError: torch refuses.
    """
    named = dims or [()] * len(args)
    known: dict[OurDim, Dim] = {}
    shapes = tuple(
        {d: _torch_dim(ours[d] if d < len(ours) else None, known) for d in given} or None
        for given, ours in zip(dynamic, named, strict=True)
    )
    tracing = doing("tracing for the file", "regions", sum(1 for _ in regions(module)) - 1)
    make_code(module)  # torch wants the names of its parameters
    try:
        with tracing, _quiet(), torch.no_grad(), regions_apart(), repeated_operands_merged(), code_on_demand():
            exported = torch.export.export(module, args, dynamic_shapes=shapes, strict=False)
    except Exception as error:
        violated = _violated(error)
        message, hint = f"torch.export: {violated or summary(error)}", _OTHER_SIZES if violated else None
        raise refuse("SG402", message, location=line_of(module, error), hint=hint) from error
    exported._guards_code = []  # Python source, which has no place in a file
    _check_open(exported, dynamic)
    _forget_least(exported)
    _spell_sums(exported.graph_module)
    _spell_slices(exported.graph_module)
    _give_plain_dicts(exported)
    _drop_provenance(exported.graph_module)
    return exported


def _check_open(program: ExportedProgram, dynamic: list[set[int]]) -> None:
    """Refuse a program that torch made for the example's size of a dimension which is to stay open.

    Raises:
        CaptureError: there is such a dimension.
    """
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    for name, dims in zip(program.graph_signature.user_inputs, dynamic, strict=True):
        for dim in dims:
            size = values[name].shape[dim]
            only = size if isinstance(size, int) else size.node.maybe_as_int()
            if only is not None:
                message = f"dimension {dim} of {name!r} was declared open, but torch.export takes only {only} for it"
                raise refuse("SG501", message, hint=f"Give an example with another size than {only}, such as 5.")


def _forget_least(program: ExportedProgram) -> None:
    """Take out what torch asserts for it takes no open dimension to be 0 or 1, where a branch gives one on.

    What an operation needs of its sizes it checks itself, and what the program asserts is another operation.
    """
    for region in regions(program.graph_module):
        for node in region.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_scalar.default):
            asked = arguments(node)[0]
            if isinstance(asked, fx.Node) and asked.target is operator.ge and asked.args[1] == _LEAST:
                region.graph.erase_node(node)
                if not asked.users:
                    region.graph.erase_node(asked)
        region.recompile()


def _give_plain_dicts(program: ExportedProgram) -> None:
    """Let a program give dicts: torch says of one among a graph's results that it is of a class of its own."""
    (whole, *_) = program.module_call_graph
    if whole.signature is not None:
        spec = whole.signature.out_spec
        given = tree_unflatten([0] * spec.num_leaves, spec)
        plain = tuple(dict(value) if isinstance(value, dict) else value for value in given)
        whole.signature.out_spec = tree_structure(plain)


def _drop_provenance(module: fx.GraphModule) -> None:
    """Drop out of which nodes torch has made the nodes: they are of graphs that nobody has, and named by addresses."""
    for region in regions(module):
        for node in region.graph.nodes:
            node.meta.pop("from_node", None)


def _spell_sums(module: fx.GraphModule) -> None:
    """Put additions of two in the place of ``torch.sym_sum``, which torch makes of sizes and cannot write."""
    for region in regions(module):
        for node in region.graph.find_nodes(op="call_function", target=torch.sym_sum):
            first, *rest = arguments(node)[0]
            for other in rest:
                with region.graph.inserting_before(node):
                    total = region.graph.call_function(operator.add, (first, other))
                total.meta.update(node.meta, val=value_of(first) + value_of(other))
                first = total
            node.replace_all_uses_with(first)
            region.graph.erase_node(node)
        region.recompile()


def _spell_slices(module: fx.GraphModule) -> None:
    """Say where a slice begins and ends: of one without a beginning AOTInductor (torch 2.13) writes wrong C++."""
    for region in regions(module):
        for node in region.graph.find_nodes(op="call_function", target=torch.ops.aten.slice.Tensor):
            given = [*arguments(node), *(0, None, None, 1)[len(arguments(node)) - 1 :]]
            given[2:4] = [0 if given[2] is None else given[2], _END if given[3] is None else given[3]]
            node.args = tuple(given)
        region.recompile()


def ask_of_sizes_later(program: ExportedProgram) -> None:
    """Let torch's assertions about sizes stand behind the program's own.

    torch asserts what an operation needs (``x[0]``: an element) where the size is made. Of a call for which the program
    raises an exception before it comes to that operation, they would tell instead. The operations check their operands
    themselves, so nothing depends on the order.
    """
    graph = program.graph
    own = [node for node in graph.nodes if node.target is torch.ops.aten._assert_async.msg]
    if own:
        for node in reversed(graph.find_nodes(op="call_function", target=torch.ops.aten._assert_scalar.default)):
            if node < own[-1]:
                own[-1].append(node)
        program.graph_module.recompile()


def _torch_dim(dim: OurDim | None, known: dict[OurDim, Dim]) -> Any:
    """Torch's object for a dimension: one object for those of one name."""
    if dim is None:
        return Dim.DYNAMIC
    least = max(dim.min or 0, _LEAST)
    return known.setdefault(dim, Dim(dim.name, min=least, max=dim.max))


_OTHER_SIZES = (
    "Declare the dimension as the example has it, or with a range in which all sizes take this way through the code;"
    " or save as .py."
)


def _violated(error: BaseException) -> str | None:
    """What torch says of an open dimension that the code fixes or bounds: its second line tells which, and how."""
    first, *lines = str(error).splitlines() or [""]
    if not first.startswith("Constraints violated") or not lines:
        return None
    told = lines[0].strip().removeprefix("- ")
    return min((told.partition(mark)[0] for mark in _ENDS), key=len)[:300]


_ENDS = (". ", ".Specializations", " For more information")
"""Where torch goes on to speak of itself."""


def summary(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


@contextlib.contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Keep torch's own remarks on the way to an export away from the user's terminal, those of more loggers as well."""
    loggers = [logging.getLogger(name) for name in (*_LOGGERS, *names)]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels):
                logger.setLevel(level)


quiet: Any = _quiet
