"""Numbers that only the run knows become 0-d tensors, or sizes where torch wants sizes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.numbers import indexing
from stillgraph.passes.numbers.lowered_number import Number
from stillgraph.passes.numbers.number_operations import lower_number
from stillgraph.passes.numbers.promotion import FROM_NUMBER, PROMOTING, TRUTHS, as_operand, joined
from stillgraph.passes.numbers.selecting import selected
from stillgraph.passes.regions.regions import COND, WHILE, all_regions, attribute, is_result, outputs, placeholders
from stillgraph.passes.regions.values import Fakes, dtype_of, is_number, kind_of, storage_of, value_of
from stillgraph.program import operations
from stillgraph.program.facts.writes import name_of, written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program


def lower_numbers(program: Program) -> Program:
    """Let tensors stand for numbers at the borders of all regions and in between, where torch takes a tensor.

    ::

        n = t.item()                     n = t.reshape(()).to(int64)
        y = x * n                →       y = x * n.to(float32)
        z = torch.zeros(n)               z = torch.zeros(n.item())

    ``bool``, ``int`` and ``float`` are 0-d tensors of ``bool``, ``int64`` and ``float64``; they are converted to the
    dtype that eager PyTorch computes in before they meet a tensor. Sizes of tensors stay torch's symbolic sizes.

    Raises:
        ExportError: an operation on numbers that torch has nothing for.
    """
    fakes = Fakes(program.graph)
    written = {
        storage_of(w.meta["val"])
        for module in all_regions(program.graph)
        for node in module.graph.nodes
        for w in written_arguments(node)
    }
    root = _Region(program.graph, fakes, written)
    return replace(program, graph=root.translate([None] * len(placeholders(program.graph)), None))


@dataclass(eq=False)
class _Region:
    """Writes one region anew."""

    old: fx.GraphModule
    fakes: Fakes
    written: set[int | None]
    is_test: bool = False
    graph: fx.Graph = field(default_factory=fx.Graph)
    made: dict[fx.Node, Any] = field(default_factory=dict)
    anchor: fx.Node | None = None

    def translate(self, symbols: list[Any], results: list[Any] | None) -> fx.GraphModule:
        """The region with tensors for numbers.

        Args:
            symbols: for each placeholder what stands for it if it is handed in as a size, or None.
            results: what stands for the outputs, where the region is an arm or a body.
        """
        holder = torch.nn.Module()
        for node, symbol in zip(placeholders(self.old), symbols):
            self.made[node] = self._placeholder(node, symbol)
        for node in self.old.graph.nodes:
            self.anchor = node
            if node.op == "output":
                self.graph.output(tuple(self._outputs(results)))
            elif node.op == "get_attr":
                self._attribute(node, holder)
            elif node.op != "placeholder":
                self._node(node, holder)
        return fx.GraphModule(holder, self.graph, class_name="Region")

    # ---- pieces
    def emit(self, target: Any, *args: Any, kind: type | None = None, value: Any = None, **kwargs: Any) -> fx.Node:
        """A new node; ``kind`` says that it is the 0-d tensor of a number."""
        op = "call_method" if isinstance(target, str) else "call_function"
        node = self.graph.create_node(op, target, args, kwargs)
        if self.anchor is not None:
            node.meta.update({k: v for k, v in self.anchor.meta.items() if k in ("location", "context")})
        node.meta["val"] = self.fakes.scalar(kind) if kind is not None else value
        return node

    def _placeholder(self, node: fx.Node, symbol: Any) -> Any:
        kind = kind_of(node.meta["val"])
        fresh = self.graph.placeholder(node.name)
        fresh.target = fresh.name
        fresh.meta.update(node.meta)
        if kind is None:
            return fresh
        if symbol is not None:
            fresh.meta["val"] = symbol
            return self._size(kind, fresh)
        fresh.meta["val"] = self.fakes.scalar(kind)
        return self._leaf(kind, fresh)

    def _leaf(self, kind: type, tensor: fx.Node) -> Number:
        """A number that is there as a tensor."""
        return Number(kind, lambda: tensor, lambda: self.emit("item", tensor, value=self.fakes.number(kind)))

    def _size(self, kind: type, symbol: Any) -> Number:
        """A number that is there as a size."""
        make = lambda: self.emit(torch.full, (), symbol, dtype=dtype_of(kind), kind=kind)  # noqa: E731
        return Number(kind, make, lambda: symbol, is_size=True)

    def _attribute(self, node: fx.Node, holder: torch.nn.Module) -> None:
        value = attribute(self.old, node)
        if not isinstance(value, fx.GraphModule):
            setattr(holder, str(node.target), value)
            self.made[node] = self.graph.get_attr(str(node.target))
            self.made[node].meta.update(node.meta)

    def _outputs(self, results: list[Any] | None) -> list[Any]:
        given = outputs(self.old)
        if self.is_test:
            return [self.truth(value) for value in given]
        kinds = [kind_of(value_of(g)) for g in given] if results is None else [kind_of(r) for r in results]
        return [self._as(value, kind) for value, kind in zip(given, kinds)]

    def _as(self, value: Any, kind: type | None) -> Any:
        """A value as a tensor of a number's kind, or as it is."""
        if kind is None:
            return self.made[value] if isinstance(value, fx.Node) else value
        made = self.made[value] if isinstance(value, fx.Node) else value
        if not isinstance(made, Number):
            return self.emit(torch.full, (), kind(made), dtype=dtype_of(kind), kind=kind)
        return made.tensor if made.kind is kind else self.emit("to", made.tensor, dtype_of(kind), kind=kind)

    # ---- nodes
    def _node(self, node: fx.Node, holder: torch.nn.Module) -> None:
        if node.target is COND:
            self._cond(node, holder)
        elif node.target is WHILE:
            self._while(node, holder)
        elif node.target is operations.invoke:
            called = arguments(node)[0]
            function = getattr(holder, str(called.target), None) if isinstance(called, fx.Node) else called
            name = getattr(function, "__qualname__", None) or str(called if function is None else function)
            hint = f"Call {name} outside, and pass what it gives as an argument."
            message = f"the program calls {name} anew at every run, which only Python can do"
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)
        elif node.target is operations.act:
            what = f"the program does something outside itself: {value_of(arguments(node)[0])!r}"
            hint = "Do it outside, with what the function returns."
            raise refuse("SG402", what, location=node.meta.get("location"), hint=hint)
        elif node.target is operations.outside:
            raise refuse("SG402", "torch.distributed takes part in the program", location=node.meta.get("location"))
        elif is_number(node.meta.get("val")):
            self.made[node] = self._number(node)
        else:
            self.made[node] = self._tensor_operation(node)

    def _number(self, node: fx.Node) -> Any:
        kind = kind_of(node.meta["val"])
        assert kind is not None
        if is_result(node):
            source = self.made[arguments(node)[0]]
            return self._leaf(kind, self.emit(operator.getitem, source, arguments(node)[1], kind=kind))
        if node.target is operator.getitem and isinstance(arguments(node)[0], (list, tuple)):
            return self._leaf(kind, self._chosen(node, kind))
        of_tensors = [a for a in node.all_input_nodes if not isinstance(self.made[a], Number)]
        if not of_tensors:
            return self._arithmetic(node, kind)
        truth = TRUTHS.get(name_of(node))
        if truth is not None:
            args = [self.made[a] if isinstance(a, fx.Node) else a for a in arguments(node)]
            return self._leaf(bool, truth(self, args, dict(node.kwargs)))
        value = value_of(arguments(node)[0])
        if name_of(node) in ("item", "int", "float", "bool", "not_", "__int__", "__float__", "__bool__", "index"):
            return self._read(node, self.made[arguments(node)[0]], value, kind)
        symbol = self._copy(node)
        return self._size(kind, symbol)

    def _read(self, node: fx.Node, tensor: fx.Node, value: torch.Tensor, kind: type) -> Number:
        """The only element of a tensor, as it is now."""
        flat = tensor if value.dim() == 0 else self.emit("reshape", tensor, (), value=value.new_empty(()))
        if value.dtype != dtype_of(kind):
            flat = self.emit("to", flat, dtype_of(kind), kind=kind)
        elif storage_of(value) in self.written:
            flat = self.emit("clone", flat, kind=kind)
        return self._leaf(kind, self.emit(torch.logical_not, flat, kind=bool) if name_of(node) == "not_" else flat)

    def _arithmetic(self, node: fx.Node, kind: type) -> Number:
        function = node.target
        args = [self.made[a] if isinstance(a, fx.Node) else a for a in arguments(node)]
        kinds: list[Any] = [a.kind if isinstance(a, Number) else kind_of(a) for a in args]
        location = node.meta.get("location")

        def tensor() -> fx.Node:
            if None not in kinds and not node.kwargs:
                operands = [(k, a.tensor if isinstance(a, Number) else a) for k, a in zip(kinds, args)]
                made = lower_number(self.emit, function, kind, operands)
                if made is not None:
                    return made  # type: ignore[no-any-return]  # of Any
            name = getattr(function, "__name__", str(function))
            raise refuse("SG402", f"{name} on numbers that only the run knows", location=location)

        def symbol() -> Any:
            if function is operations.divisor:
                return args[0].symbol
            given = tuple(a.symbol if isinstance(a, Number) else a for a in args)
            return self.emit(_SYMBOLIC.get(function, function), *given, value=node.meta["val"])

        sizes = all(a.is_size for a in args if isinstance(a, Number))
        return Number(kind, tensor, symbol, sizes and kind is int and function in _ON_SIZES)

    def _copy(self, node: fx.Node) -> fx.Node:
        """The same operation, numbers in it as symbols."""
        copy = self.graph.node_copy(node, self.symbol_of)
        return copy

    def symbol_of(self, node: fx.Node) -> Any:
        made = self.made[node]
        return made.symbol if isinstance(made, Number) else made

    # ---- operations that give tensors
    def _tensor_operation(self, node: fx.Node) -> Any:
        numbers = [a for a in node.all_input_nodes if isinstance(self.made[a], Number)]
        if node.target is operator.getitem and isinstance(arguments(node)[0], (list, tuple)):
            return self._chosen(node, None)
        if node.target is operations.as_tensor:
            return joined(self, node)
        if numbers:
            name = name_of(node)
            if name in FROM_NUMBER:
                made = FROM_NUMBER[name](self, node)
                if made is not None:
                    return made
        on_items = node.target in (operator.getitem, operator.setitem)
        if on_items and isinstance(value_of(arguments(node)[0]), torch.Tensor):
            made = self._indexed(node)
            if made is not None:
                return made
        if self._stores_number(node):
            target, index, given = arguments(node)
            stored = self._stored(given, value_of(target))
            args = fx.map_arg((target, index), self.symbol_of)
            return self.emit(operator.setitem, *args, stored, value=None)
        if numbers and name_of(node) in PROMOTING:
            return self._promoted(node)
        return self._copy(node)

    def _promoted(self, node: fx.Node) -> fx.Node:
        """An operation that takes a tensor for a number."""
        tensors = [value_of(a) for a in node.all_input_nodes if not isinstance(self.made[a], Number)]

        def as_tensor(argument: fx.Node) -> fx.Node:
            made = self.made[argument]
            return as_operand(self, made, tensors) if isinstance(made, Number) else made

        positions = PROMOTING[name_of(node)]
        given = enumerate(arguments(node))
        args = tuple(fx.map_arg(a, as_tensor if i in positions else self.symbol_of) for i, a in given)
        kwargs = {k: fx.map_arg(a, as_tensor if k in positions else self.symbol_of) for k, a in node.kwargs.items()}
        fresh = self.graph.create_node(node.op, node.target, args, kwargs, node.name)
        fresh.meta.update(node.meta)
        return fresh

    def _indexed(self, node: fx.Node) -> fx.Node | None:
        tensor = self.made[arguments(node)[0]]
        value = value_of(arguments(node)[0])
        if node.target is operator.getitem and storage_of(node.meta["val"]) in self.written:
            return selected(self, node)
        split = indexing.split_index(arguments(node)[1], value.dim(), self._index_tensor)
        if split is None:
            return None
        if not split.is_trivial:
            with self.fakes.mode:
                value = value[fx.map_arg(split.basic, value_of)]
            tensor = self.emit(operator.getitem, tensor, fx.map_arg(split.basic, self.symbol_of), value=value)
        if node.target is operator.getitem:
            return self.emit(indexing.GET, tensor, split.indices, value=node.meta["val"])
        stored = self._stored(arguments(node)[2], value)
        if storage_of(value_of(stored)) == storage_of(value):  # ``x[i] += 1`` stores what has been changed there
            stored = self.emit("clone", stored, value=value_of(stored).clone())
        return self.emit(indexing.PUT, tensor, split.indices, stored, value=value)

    def _stored(self, given: Any, target: torch.Tensor) -> fx.Node:
        """What is stored into a tensor, as a tensor of its dtype: torch would make a constant of a number."""
        made = self.made[given] if isinstance(given, fx.Node) else given
        if isinstance(made, Number):
            made = as_operand(self, made, [target])
        elif not isinstance(made, fx.Node):
            made = self.emit(torch.full, (), made, dtype=target.dtype, device=target.device, value=target.new_empty(()))
        if value_of(made).dtype != target.dtype:
            made = self.emit("to", made, target.dtype, value=value_of(made).to(target.dtype))
        return made

    def _stores_number(self, node: fx.Node) -> bool:
        return node.target is operator.setitem and is_number(value_of(arguments(node)[2]))

    def _chosen(self, node: fx.Node, kind: type | None) -> fx.Node:
        """An element of a list at a place that only the run knows."""
        items = [self._as(item, kind) for item in arguments(node)[0]]
        with self.fakes.mode:
            rows = torch.stack([value_of(item) for item in items])
        stacked = self.emit(torch.stack, items, value=rows)
        index = self.made[arguments(node)[1]]
        value = self.fakes.scalar(kind) if kind is not None else node.meta["val"]
        return self.emit(indexing.GET, stacked, [index.tensor if isinstance(index, Number) else index], value=value)

    def _index_tensor(self, node: fx.Node) -> fx.Node | None:
        """The 0-d tensor of an index that selects: torch would ask for the value of one, and make a size of it."""
        made = self.made[node]
        if isinstance(made, Number):
            return made.tensor if made.kind is int else None
        value = value_of(node)
        whole = value.dim() == 0 and value.dtype in (torch.int64, torch.int32, torch.int16, torch.int8)
        return made if whole else None

    # ---- control flow
    def _cond(self, node: fx.Node, holder: torch.nn.Module) -> None:
        predicate, true, false, operands = arguments(node)
        given, symbols = self._operands(operands)
        values = list(node.meta["val"])
        arms = [self._child(region, symbols, values, holder) for region in (true, false)]
        self._control(node, (self.truth(predicate), *arms, given), values)

    def _while(self, node: fx.Node, holder: torch.nn.Module) -> None:
        test, body, entries, operands = arguments(node)
        values = list(node.meta["val"])
        given, symbols = self._operands(operands)
        carried = tuple(self._as(entry, kind_of(value)) for entry, value in zip(entries, values))
        symbols = [None] * len(values) + symbols
        check = self._child(test, symbols, [], holder, is_test=True)
        step = self._child(body, symbols, values, holder)
        self._control(node, (check, step, carried, given), values)

    def _control(self, node: fx.Node, args: tuple[Any, ...], values: list[Any]) -> None:
        fresh = self.graph.create_node("call_function", node.target, args, {}, node.name)
        fresh.meta.update(node.meta)
        kinds = [kind_of(value) for value in values]
        fresh.meta["val"] = tuple(v if k is None else self.fakes.scalar(k) for v, k in zip(values, kinds))
        self.made[node] = fresh

    def _operands(self, operands: Any) -> tuple[tuple[Any, ...], list[Any]]:
        """The operands, and for each that is handed in as a size what stands for it."""
        given, symbols = [], []
        for operand in operands:
            made = self.made[operand]
            size = isinstance(made, Number) and made.is_size
            given.append(made.symbol if size else made.tensor if isinstance(made, Number) else made)
            symbols.append(operand.meta["val"] if size else None)
        return tuple(given), symbols

    def _child(
        self, region: Any, symbols: list[Any], results: list[Any], holder: torch.nn.Module, is_test: bool = False
    ) -> fx.Node:
        child = _Region(attribute(self.old, region), self.fakes, self.written, is_test)
        fresh = child.translate(symbols, results)
        setattr(holder, str(region.target), fresh)
        node = self.graph.get_attr(str(region.target))
        node.meta["val"] = fresh
        return node

    def truth(self, value: Any) -> fx.Node:
        """A condition as a 0-d tensor of bool."""
        made = self.made[value] if isinstance(value, fx.Node) else value
        if isinstance(made, Number):
            return made.tensor if made.kind is bool else self.emit(torch.ne, made.tensor, 0, kind=bool)
        if not isinstance(made, fx.Node):
            return self.emit(torch.full, (), bool(made), dtype=torch.bool, kind=bool)
        tensor = value_of(value)
        if tensor.dim() != 0:
            made = self.emit("reshape", made, (), value=tensor.new_empty(()))
        return made if tensor.dtype == torch.bool else self.emit("to", made, torch.bool, kind=bool)


_SYMBOLIC: dict[Any, Any] = {
    max: torch.sym_max,
    min: torch.sym_min,
    operator.not_: torch.sym_not,
    int: torch.sym_int,
    float: torch.sym_float,
}
_ON_SIZES = frozenset(
    {
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.mod,
        operator.neg,
        operations.divisor,
        max,
        min,
    }
)
