"""Block writer: a region of a program as Python statements, with real `if`, `while` and `try` for its constructs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils.checkpoint import checkpoint

from stillgraph.program.context import Context, in_backward
from stillgraph.program.exceptions import raise_, take_left
from stillgraph.program.facts.rerouting import reroute, rerouted
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import checkpointed, keep, recurse, recursion, try_
from stillgraph.program.so_far import so_far_at
from stillgraph.runtime.native.driver_text import Writer
from stillgraph.runtime.native.expressions import Expressions
from stillgraph.runtime.native.lazy_region import LazyRegion
from stillgraph.runtime.native.lifetimes import is_own, last_uses
from stillgraph.runtime.native.modes import entered
from stillgraph.runtime.native.segments import Segment, split_segments
from stillgraph.runtime.native.so_far import UNKNOWN, Noted, names_needed

_COND = torch.ops.higher_order.cond
_WHILE = torch.ops.higher_order.while_loop


def nodes_of(module: fx.GraphModule) -> Iterable[fx.Node]:
    """The operations of a program, those of its regions among them."""
    return (node for region in regions(module) for node in region.graph.nodes)


LowerSegment = Callable[[Segment, fx.GraphModule, Context | None], Any]
"""Gives a `Driver`, and needs a `Block` for it: what lowers a program hands it down."""


@dataclass
class Block(Expressions):
    """Writes one region; values that are not used any more are let go, as eager PyTorch would.

    Attributes:
        writer: of the driver.
        module: the region.
        ambient: torch's modes where the driver is called.
        lower_segment: makes a driver of a straight-line stretch, which runs PyTorch's operators as they are.
        around: the block that this one is a part of.
    """

    writer: Writer
    module: fx.GraphModule
    ambient: Context | None
    lower_segment: LowerSegment
    around: Block | None = None

    def write(self) -> list[str]:
        """Write the region's operations; the names of its outputs."""
        nodes = list(self.module.graph.nodes)
        context = self.ambient
        self._by_name = {node.name: node for node in nodes} if self.writer.keeps_account else {}
        self._noted = {name for node in nodes for name in names_needed(node)} if self._by_name else set()
        self._last = last_uses(nodes, self._by_name)
        items: Iterable[Any] = nodes if self.writer.compile is None else split_segments(nodes, self.ambient)
        outputs: list[str] = []
        for item in items:
            if isinstance(item, Segment):
                context = self._switch(context, self.ambient)
                self._write_segment(item)
                continue
            if item.op == "output":
                context = self._switch(context, self.ambient)
                outputs = [self.value(a) for a in item.args[0]]
            elif item.op != "placeholder":
                takes_part = item.target is operator.getitem and item.meta.get("bookkeeping")
                if item.op != "get_attr" and not takes_part:
                    context = self._switch(context, item.meta.get("context", context))
                self._write_node(item)
                self._let_go(item)
        return outputs

    def _switch(self, now: Context | None, then: Context | None) -> Context | None:
        """Leave one torch mode and enter another, where they differ."""
        if then is None or now == then:
            return then if now is None else now
        text = self.writer.text
        if now != self.ambient:
            text.depth, text.blocks = text.depth - 1, text.blocks - 1
        if then != self.ambient:
            name = self.writer.object("modes", then)
            enter = self.writer.object("entered", entered)
            self.writer.line(f"with {enter}({name}):")
            text.depth, text.blocks = text.depth + 1, text.blocks + 1
        return then

    # ---- nodes
    def _write_node(self, node: fx.Node) -> None:
        writer = self.writer
        around, before = writer.place, writer.so_far
        writer.place, writer.so_far = node.meta.get("location", around), self._so_far(node)
        self._write_operation(node)
        writer.place, writer.so_far = around, before

    def _so_far(self, node: fx.Node) -> Noted | None:
        """What is written when an operation begins; None where it is nothing, or the operation is no line."""
        noted = so_far_at(node) if self.writer.keeps_account and node.target not in (_COND, _WHILE, try_) else None
        if noted is None:
            return None
        values = [self._variable(hops, name) for hops, name in noted.values]
        if None in values:
            return Noted(None, (), UNKNOWN)
        return Noted(noted.index, tuple(map(str, values)), noted.left_out)

    def _variable(self, hops: int, name: str) -> str | None:
        """The variable of a node that is known so many blocks further out; None if it has none by now."""
        block: Block | None = self
        for _ in range(hops):
            block = None if block is None else block.around
        if block is None:
            return None
        node = block._by_name.get(name)
        text = None if node is None else self.writer.names.get(node)
        return None if text == "_" else text

    def _write_operation(self, node: fx.Node) -> None:
        writer, given = self.writer, arguments(node)
        if node.op == "get_attr":
            value = _attribute(self.module, str(node.target))
            if not isinstance(value, fx.GraphModule):
                writer.names[node] = writer.object(str(node.target).replace(".", "_"), value)
        elif node.target is _COND:
            self._write_cond(node)
        elif node.target is _WHILE:
            self._write_while(node)
        elif node.target is try_:
            self._write_try(node)
        elif node.target is keep:
            writer.line(f"{writer.functions[given[0]]}[:] = {self.value(tuple(given[1]))}")
        elif node.target is operator.getitem and isinstance(given[0], fx.Node) and given[0] in self._parts:
            writer.names[node] = self._parts[given[0]][given[1]]
        else:
            write = _WRITTEN_OUT.get(node.target)
            text = self.expression(node) if write is None else write(self, node)
            if node.users or node.name in self._noted:
                writer.names[node] = writer.fresh(node.name)
                writer.line(f"{writer.names[node]} = {text}")
            else:
                writer.line(text)

    def named(self, node: fx.Node) -> str:
        return self.writer.names[node]

    def recursive(self, name: Any) -> str:
        return self.writer.functions[name]

    def function(self, target: Any) -> str:
        name = getattr(target, "__name__", "function")
        return self.writer.object(name if name.isidentifier() else "function", target)

    def constant(self, value: Any) -> str:
        name = str(value).removeprefix("torch.")
        return self.writer.object(name if name.isidentifier() else "constant", value)

    # ---- control flow
    @property
    def _parts(self) -> dict[fx.Node, list[str]]:
        return self.__dict__.setdefault("_part_names", {})  # type: ignore[no-any-return]  # of Any

    def _write_cond(self, node: fx.Node) -> None:
        predicate, true, false, operands = arguments(node)
        names = self._output_names(node)
        self._write_arm(f"if {self.value(predicate)}:", true, operands, names, node)
        self._write_arm("else:", false, operands, names, node)

    def _write_try(self, node: fx.Node) -> None:
        name, body, handler, kinds, operands = arguments(node)
        writer = self.writer
        names = self._output_names(node)
        kept, error = writer.fresh("kept"), writer.fresh("error")
        writer.functions[name] = kept
        inside = _attribute(self.module, str(handler.target)).graph.find_nodes(op="placeholder")
        held = [f"{kept}[{i}]" for i in range(len(inside) - 1 - len(operands))]
        writer.line(f"{kept} = []")
        self._write_arm("try:", body, operands, names, node)
        head = f"except {self.value(tuple(kinds))} as {error}:"
        takes = _raises_itself(_attribute(self.module, str(body.target)))
        first = f"{writer.object('take_left', take_left)}({error})" if takes else None
        self._write_arm(head, handler, operands, names, node, [error, *held], first)

    def _write_arm(
        self,
        head: str,
        region: Any,
        operands: Any,
        names: list[str],
        node: fx.Node,
        carried: list[str] | None = None,
        first: str | None = None,
    ) -> None:
        writer = self.writer
        with writer.inside(head, blocks=node.target is try_):
            if first is not None:
                writer.line(first)
            outputs = self._write_region(region, operands, node, carried)
            for name, output in zip(names, outputs):
                if name != "_":
                    writer.line(f"{name} = {output}")

    def _write_while(self, node: fx.Node) -> None:
        test, body, entries, operands = arguments(node)
        writer = self.writer
        stems = self._output_names(node, keep_all=True)
        for name, entry in zip(stems, entries):
            writer.line(f"{name} = {self.value(entry)}")
        writer.count(_attribute(self.module, str(test.target)))
        with writer.inside("while True:", blocks=1):
            (go,) = self._write_region(test, operands, node, stems, counted=False)
            writer.line(f"if not {go}:")
            writer.line("    break")
            outputs = self._write_region(body, operands, node, stems)
            changed = [(n, o) for n, o in zip(stems, outputs) if n != o]
            if changed:
                writer.line(f"{', '.join(n for n, _ in changed)} = {', '.join(o for _, o in changed)}")

    def _write_region(
        self, region: Any, operands: Any, node: fx.Node, carried: list[str] | None = None, *, counted: bool = True,
        ambient: Context | None = None
    ) -> list[str]:
        """Write a region of a construct, where it is too deep for Python as a call; its outputs."""
        writer = self.writer
        module = _attribute(self.module, str(region.target))
        self._bind(module, operands, carried)
        ambient = ambient or node.meta.get("context", self.ambient)
        block = Block(writer, module, ambient, self.lower_segment, self)
        if not writer.text.is_deep:
            if counted:
                writer.count(module)
            return block.write()
        placeholders = module.graph.find_nodes(op="placeholder")
        given = [writer.names[each] for each in placeholders]
        writer.names.update((each, writer.fresh(each.name)) for each in placeholders)
        around = [writer.functions[name] for name in dict.fromkeys(_named_by(module)) if name in writer.functions]
        name = writer.fresh("deeper")
        with writer.apart(f"def {name}({', '.join([*(writer.names[each] for each in placeholders), *around])}):"):
            if counted:
                writer.count(module)
            outputs = block.write()
            writer.line(f"return ({''.join(o + ', ' for o in outputs)})")
        parts = [writer.fresh(f"{name}_{index}") for index in range(len(outputs))]
        call = f"{name}({', '.join([*given, *around])})"
        writer.line(f"{''.join(part + ', ' for part in parts)}= {call}" if parts else call)
        return parts

    def _recursion(self, node: fx.Node) -> str:
        """Write a region that calls itself as a function, which sees the variables around it; its first call."""
        name, body, entries, operands = arguments(node)
        writer = self.writer
        writer.functions[name] = writer.fresh(str(name))
        module = _attribute(self.module, str(body.target))
        stems = [writer.fresh(p.name) for p in module.graph.find_nodes(op="placeholder")[: len(entries)]]
        with writer.inside(f"def {writer.functions[name]}({', '.join(stems)}):"):
            outputs = self._write_region(body, operands, node, stems)
            writer.line(f"return ({''.join(o + ', ' for o in outputs)})")
        return f"{writer.functions[name]}({', '.join(self.value(entry) for entry in entries)})"

    def _checkpoint(self, node: fx.Node) -> str:
        """Write a region as a function of its own, which keeps what it uses: autograd calls it a second time."""
        body, inputs, operands, options = arguments(node)
        name = self._kept_function("checkpointed", body, len(inputs), operands, node, None)
        given = [name, *map(self.value, inputs), *(f"{key}={self.value(value)}" for key, value in options.items())]
        return f"{self.writer.object('checkpoint', checkpoint)}({', '.join(given)})"

    def _rerouted(self, node: fx.Node) -> str:
        """Write a backward pass as a function of its own, which autograd calls."""
        body, results, saved, inputs, options, operands = arguments(node)
        context = node.meta.get("context", self.ambient)
        inside = None if context is None else in_backward(context)
        name = self._kept_function("backward", body, len(results) + len(options["own"]), operands, node, inside)
        given = [name, *map(self.value, (tuple(results), tuple(saved), tuple(inputs), dict(options)))]
        return f"{self.writer.object('reroute', reroute)}({', '.join(given)})"

    def _kept_function(
        self, stem: str, body: Any, count: int, operands: Any, node: fx.Node, ambient: Context | None
    ) -> str:
        """Write a region as a function that keeps its operands; ``count`` of its inputs come from its caller."""
        writer = self.writer
        name = writer.fresh(stem)
        module = _attribute(self.module, str(body.target))
        writer.count(module)
        stems = [writer.fresh(p.name) for p in module.graph.find_nodes(op="placeholder")]
        kept = [f"{stem}={self.value(o)}" for stem, o in zip(stems[count:], operands, strict=True)]
        header = [*stems[:count], *(["*", *kept] if kept else [])]
        with writer.inside(f"def {name}({', '.join(header)}):"):
            outputs = self._write_region(body, (), node, stems, counted=False, ambient=ambient)
            writer.line(f"return ({''.join(o + ', ' for o in outputs)})")
        return name

    def _bind(self, module: fx.GraphModule, operands: Any, carried: list[str] | None = None) -> None:
        """Let a region's placeholders be the variables of the block around it."""
        names = [*(carried or []), *(self.value(o) for o in operands)]
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        for placeholder, name in zip(placeholders, names, strict=True):
            self.writer.names[placeholder] = name

    def _output_names(self, node: fx.Node, keep_all: bool = False) -> list[str]:
        parts: dict[int, fx.Node] = {arguments(n)[1]: n for n in node.users if n.target is operator.getitem}
        count = len(node.meta["val"])
        names = [
            self.writer.fresh(f"{node.name}_{i}") if keep_all or (i in parts and parts[i].users) else "_"
            for i in range(count)
        ]
        self._parts[node] = names
        return names

    # ---- lifetimes and segments
    def _let_go(self, node: fx.Node) -> None:
        gone = [self.writer.names[n] for n in self._last.get(node, ()) if n in self.writer.names and is_own(n)]
        if gone:
            self.writer.line(f"{' = '.join(gone)} = None")

    def _write_segment(self, segment: Segment) -> None:
        writer = self.writer
        writer.place, writer.so_far = segment.nodes[0].meta.get("location"), self._so_far(segment.nodes[0])
        assert writer.compile is not None
        module, inputs, outputs = segment.build(self.module, self.ambient)
        in_eager = functools.partial(self.lower_segment, segment, self.module, self.ambient)
        function = writer.object(writer.fresh("region"), LazyRegion(module, writer.compile, in_eager, self.ambient))
        for node in outputs:
            writer.names[node] = writer.fresh(node.name)
        call = f"{function}({', '.join(writer.names[n] for n in inputs)})"
        writer.line(f"{''.join(writer.names[n] + ', ' for n in outputs)}= {call}" if outputs else call)
        writer.place = writer.so_far = None
        for node in segment.nodes:
            self._let_go(node)


_WRITTEN_OUT: dict[Any, Callable[[Block, fx.Node], str]] = {
    recursion: Block._recursion,
    checkpointed: Block._checkpoint,
    rerouted: Block._rerouted,
}


def _named_by(module: fx.GraphModule) -> Iterator[Any]:
    """The names of the recursions that a region goes on with, and of the tries for which it keeps something."""
    return (arguments(node)[0] for node in nodes_of(module) if node.target in (recurse, keep))


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _raises_itself(body: fx.GraphModule) -> bool:
    """Whether a region may raise an exception that is there before the call: it is not to keep what a program adds."""
    return any(
        node.target is raise_ and node.kwargs.get("itself") for region in regions(body) for node in region.graph.nodes
    )
