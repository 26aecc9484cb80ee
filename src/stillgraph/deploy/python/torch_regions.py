"""Regions with `torch.cond` and torch's ``while_loop``: what compiles and exports again."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.deploy.python.conditions import condition, unbracketed
from stillgraph.deploy.python.regions import Regions
from stillgraph.deploy.python.variables import stem_of
from stillgraph.passes.regions.regions import COND, WHILE
from stillgraph.passes.regions.values import value_of
from stillgraph.program.blocks import region_of
from stillgraph.program.context import Context
from stillgraph.program.graphs import arguments
from stillgraph.runtime.native.expressions import primary

_OPERATORS: dict[Any, str] = {
    torch.add: "+",
    torch.sub: "-",
    torch.mul: "*",
    torch.true_divide: "/",
    torch.floor_divide: "//",
    torch.gt: ">",
    torch.ge: ">=",
    torch.lt: "<",
    torch.le: "<=",
    torch.eq: "==",
    torch.ne: "!=",
    torch.logical_not: "~",
}
"""What number operations were lowered to, as tensors have them for operators."""


class TorchRegions(Regions):
    """As `Regions`, with torch's operators for control flow; for a program that has gone through the passes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._slot_names: dict[fx.Node, list[str]] = {}  # of loops: what they carry

    def expression(self, node: fx.Node) -> str:
        given = arguments(node)
        operator = None if isinstance(node.target, str) else _OPERATORS.get(node.target)
        if operator is None or node.kwargs or not isinstance(value_of(given[0]), torch.Tensor):
            return super().expression(node)
        first = self.value(given[0])
        if operator == "~":
            return f"~{primary(first)}" if value_of(given[0]).dtype == torch.bool else super().expression(node)
        return f"{first} {operator} {self.value(given[1])}"

    def construct(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        if node.target is COND:
            self._cond(module, node, context)
        else:
            assert node.target is WHILE, "the passes leave nothing else"
            self._while(module, node, context)

    def _cond(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        predicate, true, false, operands = arguments(node)
        place, test = self.at, unbracketed(self.value(predicate))
        given = [self.value(each) for each in operands]
        names = []
        for stem, region in (("then", true), ("otherwise", false)):
            child = region_of(module, region)
            inside = child.graph.find_nodes(op="placeholder")
            taken: list[str] = []
            for text, placeholder in zip(given, inside, strict=True):
                taken.append(self._inner_name(text, stem_of(placeholder.name), taken))
            names.append(self._define(child, node, stem, taken, taken, context))
        call = f"torch.cond({test}, {names[0]}, {names[1]}, ({', '.join(given)}{',' if len(given) == 1 else ''}))"
        self.at = place
        self._unpack(node, call)

    def _while(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        test, body, entries, operands = arguments(node)
        place, given = self.at, [self.value(each) for each in operands]
        parts = self.parts_of(node)
        inside = region_of(module, body).graph.find_nodes(op="placeholder")
        slots: list[str] = []
        for index in range(len(entries)):
            wanted = stem_of(parts[index].name if index in parts else inside[index].name)
            wanted = stem_of(inside[index].name) if wanted == "getitem" else wanted
            slots.append(self._inner_name("", wanted, [*slots, *given]))
        names = [
            self._define(region_of(module, region), node, stem, slots, [*slots, *given], context, single=stem == "test")
            for stem, region in (("test", test), ("body", body))
        ]
        self._slot_names[node] = slots
        self.spelling.imports.add("from torch._higher_order_ops import while_loop")
        begin = ", ".join(unbracketed(self.value(each)) for each in entries)
        self.at = place
        self._unpack(node, f"while_loop({names[0]}, {names[1]}, ({begin}{',' if len(entries) == 1 else ''}))")

    def name_of_part(self, node: fx.Node, index: int, part: fx.Node) -> str:
        return self._slot_names[node][index] if node in self._slot_names else super().name_of_part(node, index, part)

    def _inner_name(self, text: str, stem: str, taken: list[str]) -> str:
        """A parameter of an inner function: the name that its value has outside, where that is one."""
        wanted = text if text.isidentifier() else stem
        name, count = wanted, 1
        while name in taken or name in self.scope.reserved:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def _define(
        self,
        child: fx.GraphModule,
        node: fx.Node,
        stem: str,
        parameters: list[str],
        texts: list[str],
        context: Context | None,
        single: bool = False,
    ) -> str:
        """Write a region as a function inside the one being written; its name."""
        name = self.scope.choose(stem)
        self.scope.reserved.add(name)
        self.lines.space()
        self.lines.add(f"def {name}({', '.join(parameters)}):")
        self.lines.depth += 1
        with self.function_scope(node, parameters):
            self._bind(child, texts)
            if single:
                (go,) = arguments(child.graph.output_node())[0]
                self.inlined |= condition([n for n in child.graph.nodes if n.op.startswith("call_")], go)
            outputs = self.write(child, context)
            assert outputs is not None
            given = [unbracketed(text) for text in outputs]
            alone = len(given) == 1 and not single
            self.lines.add(f"return ({given[0]},)" if alone else f"return {', '.join(given)}")
        self.lines.depth -= 1
        self.lines.add("")
        return name
