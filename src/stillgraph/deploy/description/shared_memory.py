"""Tensors that share memory, of a program's state or its arguments: in a file each has memory of its own."""

from __future__ import annotations

import itertools

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.signature import is_argument, objects_of
from stillgraph.passes.regions.regions import all_nodes
from stillgraph.passes.regions.values import storage_of
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.program import Input, Program
from stillgraph.program.sources import Source


def refuse_shared_memory(program: Program) -> None:
    """Refuse a program that writes to memory which two tensors of its state have: a buffer, and a row of it, say.

    Raises:
        ExportError: it does.
    """
    objects = objects_of(program)
    state = [each for each in program.inputs if _is_strided(each.value) and not is_argument(each.source, objects)]
    shared = [pair for pair in itertools.combinations(state, 2) if _overlap(*pair)]
    if not shared:
        return
    written = _written(program)
    for one, other in shared:
        if storage_of(one.value) in written:
            both = f"{one.source} and {other.source}"
            message = f"{both} share memory that the program writes to, and in a file each has its own"
            hint = "Keep one of the two, and take the other from it where it is used: self.buf[0]."
            raise refuse("SG402", message, location=program.location, hint=hint)


def arguments_written(program: Program) -> tuple[Source, ...]:
    """The tensors among the arguments, if the program writes to one of several: in the file they lie apart."""
    objects = objects_of(program)
    given = [each for each in program.inputs if _is_strided(each.value) and is_argument(each.source, objects)]
    written = _written(program) if len(given) > 1 else frozenset()
    return tuple(each.source for each in given) if any(storage_of(each.value) in written for each in given) else ()


def _written(program: Program) -> frozenset[int | None]:
    """The memory that a program writes to."""
    nodes = (written for node in all_nodes(program.graph) for written in written_arguments(node))
    return frozenset(storage_of(node.meta.get("val")) for node in nodes)


def _is_strided(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _overlap(one: Input, other: Input) -> bool:
    if storage_of(one.value) != storage_of(other.value):
        return False
    (first, last), (start, end) = _extent(one.value), _extent(other.value)
    return first <= end and start <= last


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of the storage between which a tensor lies, the last one included; of an empty one they are crossed."""
    sizes = zip(tensor.shape, tensor.stride())
    length = -1 if tensor.numel() == 0 else sum((size - 1) * stride for size, stride in sizes)
    begin = int(tensor.storage_offset())
    return begin * tensor.element_size(), (begin + int(length) + 1) * tensor.element_size() - 1
