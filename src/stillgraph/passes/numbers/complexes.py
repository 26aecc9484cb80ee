"""Complex numbers of Python's in a whole graph: two floats each, for a file has none."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.numbers.promotion import PROMOTING
from stillgraph.passes.regions.regions import call, copied
from stillgraph.passes.regions.values import Fakes, value_of
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import require
from stillgraph.program.program import Program
from stillgraph.program.types import ObjectType

Pair = tuple[Any, Any]
"""The real and the imaginary part of a number: nodes, or plain floats."""


def split_complex(program: Program) -> Program:
    """Compute with the two parts of complex numbers.

    ::

        z = complex(a, b)
        w = z + 1j          →     c = a + 0.0
        r = w.real                d = b + 1.0
        y = x * w                 y = x * torch.complex(full((), c), full((), d))

    Raises:
        ExportError: there is no such form for an operation on a complex number (SG402).
    """
    if not any(_is_complex(node) for module in regions(program.graph) for node in module.graph.nodes):
        return program
    fresh = copied(program)
    fakes = Fakes(fresh.graph)
    for module in regions(fresh.graph):
        _Region(module.graph, fakes).split()
    return fresh


def _is_complex(value: Any) -> bool:
    kind = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(kind, ObjectType) and kind.kind is complex


class _Region:
    """The complex numbers of one region: none is handed from one region to another.

    Args:
        graph: of the region.
        fakes: makes stand-ins.
    """

    def __init__(self, graph: fx.Graph, fakes: Fakes) -> None:
        self.graph = graph
        self.fakes = fakes
        self.pairs: dict[fx.Node, Pair] = {}
        self.at: fx.Node | None = None  # the operation that is being replaced

    def split(self) -> None:
        """Replace all operations on complex numbers."""
        replaced = []
        for node in list(self.graph.nodes):
            if not _is_complex(node) and not any(map(_is_complex, node.all_input_nodes)):
                continue
            self.at = node
            with self.graph.inserting_before(node):
                made = self._made(node)
            if _is_complex(node):
                self.pairs[node] = made
            else:
                node.replace_all_uses_with(made)
            replaced.append(node)
        for node in reversed(replaced):
            self.graph.erase_node(node)

    def _made(self, node: fx.Node) -> Any:
        args = arguments(node)
        if node.target is getattr:
            return self.pairs[args[0]][("real", "imag").index(args[1])]
        if node.target is complex and not any(map(_is_complex, args)):
            return args
        if isinstance(value_of(node), torch.Tensor):
            made = self._of_torch(node)
        else:
            rule = _RULES.get(node.target)
            made = None if rule is None or node.kwargs else rule(self, *map(self._pair, args))
        if made is None:
            name = getattr(node.target, "__name__", str(node.target))
            hint = "Compute with its .real and .imag, or save as .py."
            message = f"{name} of a complex number that only the run knows"
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)
        return made

    def _pair(self, value: Any) -> Pair:
        """The parts of an operand."""
        if isinstance(value, fx.Node):
            return self.pairs[value] if value in self.pairs else (self.emit(float, value), 0.0)
        return (value.real, value.imag) if isinstance(value, complex) else (float(value), 0.0)

    def emit(self, function: Callable[..., Any], *args: Any, kind: type = float) -> Any:
        """``function(*args)`` on floats as a node; its value, where all is known."""
        if not any(isinstance(each, fx.Node) for each in args):
            return function(*args)
        assert self.at is not None
        return call(self.at, function, args, self.fakes.number(kind))

    def require(self, condition: Any, message: str) -> None:
        """Raise in the run unless a condition is true."""
        assert self.at is not None
        call(self.at, require, (condition, message), None)

    # ---- beside tensors
    def _of_torch(self, node: fx.Node) -> fx.Node | None:
        """An operation of torch's that takes a tensor in the place of a number."""
        result = value_of(node)
        if not result.is_complex():
            return None
        if name_of(node) == "full":
            return self._full(node, result)
        positions = PROMOTING.get(name_of(node), frozenset())
        taken = {each for i, each in enumerate(arguments(node)) if i in positions}
        taken |= {each for name, each in node.kwargs.items() if name in positions}
        if not all(each in taken for each in filter(_is_complex, node.all_input_nodes)):
            return None

        def as_tensor(value: fx.Node) -> fx.Node:
            return self._joined((), value, result) if _is_complex(value) else value

        fresh = self.graph.create_node(
            node.op, node.target, fx.map_arg(arguments(node), as_tensor), fx.map_arg(dict(node.kwargs), as_tensor)
        )
        fresh.meta.update(node.meta)
        return fresh

    def _full(self, node: fx.Node, result: torch.Tensor) -> fx.Node | None:
        size, *given = arguments(node)
        options = {name: each for name, each in node.kwargs.items() if name not in ("fill_value", "dtype")}
        value = given[0] if given else node.kwargs.get("fill_value")
        return self._joined(size, value, result) if not options or options.keys() == {"device"} else None

    def _joined(self, size: Any, value: Any, result: torch.Tensor) -> fx.Node:
        """A tensor filled with a complex number, of the dtype of a result."""
        assert self.at is not None
        whole = result.new_empty(()) if size == () else result
        parts = [
            call(self.at, torch.full, (size, part), torch.real(whole), dtype=whole.real.dtype, device=whole.device)
            for part in self._pair(value)
        ]
        return call(self.at, torch.complex, tuple(parts), whole)


def _product(region: _Region, left: Pair, right: Pair) -> Pair:
    emit = region.emit
    (a, b), (c, d) = left, right
    real = emit(operator.sub, emit(operator.mul, a, c), emit(operator.mul, b, d))
    return real, emit(operator.add, emit(operator.mul, a, d), emit(operator.mul, b, c))


def _quotient(region: _Region, left: Pair, right: Pair) -> Pair | None:
    """By a real number, as Python does it: by another, which part it begins with depends on the number."""
    (a, b), (c, d) = left, right
    if isinstance(d, fx.Node) or d != 0:
        return None
    emit = region.emit
    if isinstance(c, fx.Node):
        region.require(emit(operator.ne, c, 0.0, kind=bool), "ZeroDivisionError: complex division by zero")
    elif c == 0:
        return None
    ratio = emit(operator.truediv, d, c)
    denominator = emit(operator.add, c, emit(operator.mul, d, ratio))
    real = emit(operator.truediv, emit(operator.add, a, emit(operator.mul, b, ratio)), denominator)
    return real, emit(operator.truediv, emit(operator.sub, b, emit(operator.mul, a, ratio)), denominator)


def _absolute(region: _Region, value: Pair) -> Any:
    emit = region.emit
    made = emit(math.hypot, *value)
    finite = [emit(math.isfinite, part, kind=bool) for part in value]
    infinite = emit(operator.not_, emit(operator.and_, *finite, kind=bool), kind=bool)
    fits = emit(operator.or_, emit(math.isfinite, made, kind=bool), infinite, kind=bool)
    region.require(fits, "OverflowError: absolute value too large")
    return made


def _part_by_part(function: Callable[..., Any]) -> Callable[..., Pair]:
    def rule(region: _Region, left: Pair, right: Pair) -> Pair:
        return region.emit(function, left[0], right[0]), region.emit(function, left[1], right[1])

    return rule


def _compared(function: Callable[..., Any], both: Callable[..., Any]) -> Callable[..., Any]:
    def rule(region: _Region, left: Pair, right: Pair) -> Any:
        parts = [region.emit(function, mine, other, kind=bool) for mine, other in zip(left, right)]
        return region.emit(both, *parts, kind=bool)

    return rule


_RULES: dict[Any, Callable[..., Any]] = {
    operator.add: _part_by_part(operator.add),
    operator.sub: _part_by_part(operator.sub),
    operator.mul: _product,
    operator.truediv: _quotient,
    operator.eq: _compared(operator.eq, operator.and_),
    operator.ne: _compared(operator.ne, operator.or_),
    abs: _absolute,
}
"""What operations on complex numbers are on their parts."""
