"""Guards on tensors: their metadata, what else the code asked of them, their sizes."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Sequence
from typing import Any

from stillgraph.program.facts.facts import FACTS
from stillgraph.program.guards import FactGuard, SizeGuard, TensorGuard
from stillgraph.program.sources import Source
from stillgraph.runtime.guards.kinds.kind import Kind, Read, Stage
from stillgraph.runtime.guards.words import expected_tensor, shown
from stillgraph.runtime.native.function_writer import FunctionWriter
from stillgraph.runtime.native.tensor_checks import TensorCheck, differing_sizes, tensor_holds


class OfTensors(Kind[TensorGuard]):
    """A tensor's metadata. Tensors that follow each other are checked by one call."""

    cost = 6
    stage = Stage.TENSORS

    def write(self, guards: Sequence[TensorGuard], writer: FunctionWriter) -> None:
        tensors = ", ".join([writer.read(guard.source) for guard in guards])
        check = writer.constant(TensorCheck(tuple(guards)))
        writer.lines.append(f"if not {check}.native({tensors}) and not {check}.accepts({tensors}): return None")

    def why(self, guard: TensorGuard, read: Read) -> str | None:
        value = read(guard.source)
        if tensor_holds(guard, value):
            return None
        sizes = differing_sizes(guard, value)
        if not sizes:
            return f"{expected_tensor(guard)}, but is {shown(value, guard)}"
        expected = " and ".join([f"{guard.source}.shape[{dim}] should be {guard.shape[dim]}" for dim in sizes])
        return f"{expected}, but the shape is {tuple(value.shape)}"


class OfFacts(Kind[FactGuard]):
    """What the code asked of a tensor besides its metadata."""

    cost = 7
    stage = Stage.SIZES

    def miss(self, guard: FactGuard, writer: FunctionWriter) -> str:
        return f"{writer.constant(FACTS[guard.name])}({writer.read(guard.source)}) != {writer.literal(guard.value)}"

    def why(self, guard: FactGuard, read: Read) -> str | None:
        found = FACTS[guard.name](read(guard.source))
        return None if found == guard.value else f"{guard}, but now {shown(found)}"


class OfSizes(Kind[SizeGuard]):
    """A condition on sizes."""

    cost = 7
    stage = Stage.SIZES

    def sources(self, guard: SizeGuard) -> Sequence[Source]:
        return [source for _, source, _ in guard.sizes]

    def miss(self, guard: SizeGuard, writer: FunctionWriter) -> str:
        sizes = {
            name: writer.local((SizeGuard, source, dim), f"{writer.read(source)}.{_size_of(dim)}")
            for name, source, dim in guard.sizes
        }
        return f"not ({_renamed(guard.expression, sizes)})"

    def why(self, guard: SizeGuard, read: Read) -> str | None:
        found = {name: _size(read(source), dim) for name, source, dim in guard.sizes}
        if eval(guard.expression, {"math": math}, found):
            return None
        words = {name: _told(source, dim) for name, source, dim in guard.sizes}
        values = ", ".join(f"{word} is {found[name]}" for name, word in words.items())
        return f"{_renamed(guard.expression, words)} should hold, but {values}"


def _size_of(dim: int) -> str:
    """A size of a tensor, or as ``~dim`` a stride, as Python asks for it."""
    return f"size({dim})" if dim >= 0 else f"stride({~dim})"


def _size(tensor: Any, dim: int) -> int:
    found: int = tensor.size(dim) if dim >= 0 else tensor.stride(~dim)
    return found


def _told(source: Source, dim: int) -> str:
    return f"{source}.shape[{dim}]" if dim >= 0 else f"{source}.stride({~dim})"


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], expression: str) -> None:
        self.names = names
        self.expression = expression

    def visit_Name(self, node: ast.Name) -> ast.Name:
        known = self.names.get(node.id)
        if known is None and node.id != "math" and not hasattr(builtins, node.id):
            raise ValueError(f"size guard {self.expression!r} names {node.id!r}, which is not one of its sizes")
        return ast.Name(known or node.id, node.ctx)


def _renamed(expression: str, names: dict[str, str]) -> str:
    return ast.unparse(_Renamer(names, expression).visit(ast.parse(expression, mode="eval")))
