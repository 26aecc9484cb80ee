"""The native lowering: a program as readable Python, with real ``if`` and ``while`` around its operations.

Nothing is functionalised and nothing is approximated: numbers are Python numbers, autograd is PyTorch's own. With a
compiling backend the straight-line stretches between control flow become functions that the backend compiles.
"""

from __future__ import annotations

import contextlib
import functools
import keyword
import linecache
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from stillgraph.program.context import Context, current_context, write_switches
from stillgraph.program.exceptions import raise_, take_left
from stillgraph.program.facts.info import info
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.guards import ModeGuard
from stillgraph.program.operations import bound, checkpointed, keep, recurse, recursion, try_, unbound
from stillgraph.program.program import Program
from stillgraph.program.so_far import so_far_at
from stillgraph.runtime.native.driver_text import Writer
from stillgraph.runtime.native.expressions import Expressions
from stillgraph.runtime.native.lazy_region import Compile, LazyRegion
from stillgraph.runtime.native.segments import Segment, split_segments
from stillgraph.runtime.native.so_far import UNKNOWN, Noted, names_needed
from stillgraph.runtime.native.tracebacks import PLACES, Places

_COND = torch.ops.higher_order.cond
_WHILE = torch.ops.higher_order.while_loop


@dataclass(frozen=True)
class Driver:
    """A program made callable.

    Attributes:
        run: ``run(*inputs)`` gives the tuple of the graph's outputs.
        code: its source.
        places: which of the user's lines each line of it carries out; 0 stands for where the program begins.
        visits: how often each region began, by `Block.number`, in all calls so far; ``run.visits`` is the same list. A
            loop's test counts how often the loop was reached, a checkpoint's body not what autograd computes again. A
            program without control flow counts nothing.
    """

    run: Callable[..., tuple[Any, ...]]
    code: str
    places: Places
    visits: list[int]


def lower(program: Program, compile: Compile | None) -> Driver:
    """The native driver of a program.

    Args:
        program: what to run.
        compile: the backend that compiles straight-line regions; None runs PyTorch's operators as they are.
    """
    graph = program.graph
    writer = Writer(None if _differentiates(graph) else compile, keeps_account=bool(program.so_far))
    writer.begins = program.location
    return _written(writer, program.name, graph, _ambient(program), program.unset_in_choices)


def _lower_segment(segment: Segment, module: fx.GraphModule, ambient: Context | None) -> Driver:
    """A segment of a region as a driver of its own, which runs PyTorch's operators as they are."""
    region, _, _ = segment.build(module, None)
    writer = Writer(None)
    writer.begins = segment.nodes[0].meta.get("location")
    return _written(writer, "region", region, ambient)


def _written(
    writer: Writer, name: str, graph: fx.GraphModule, ambient: Context | None, lazy: frozenset[int] = frozenset()
) -> Driver:
    """The driver of a graph; the outputs ``lazy`` are looked at only where they have a value."""
    inputs = graph.graph.find_nodes(op="placeholder")
    writer.taken.add(_identifier(name))
    for node in inputs:
        writer.names[node] = writer.fresh(node.name)
    writer.text.lines.append(f"def {_identifier(name)}({', '.join(writer.names[n] for n in inputs)}):")
    found = list(regions(graph))
    if len(found) > 1:
        writer.numbers.update((region, number) for number, region in enumerate(found))
    writer.visits += [0] * len(found)
    writer.count(graph)
    outputs = _Block(writer, graph, ambient).write()
    if _has_unbound(graph):
        check = writer.object("bound", bound)
        outputs = [o if index in lazy else f"{check}({o})" for index, o in enumerate(outputs)]
    writer.line(f"return ({''.join(o + ', ' for o in outputs)})")
    code, tables = writer.finish()
    run = _compile_source(name, code, writer.objects | tables)
    run.visits = writer.visits  # type: ignore[attr-defined]  # for `runtime.static_function`
    return Driver(run, code, tables[PLACES], writer.visits)


def _identifier(name: str) -> str:
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return cleaned if cleaned.isidentifier() and not keyword.iskeyword(cleaned) else f"program_{cleaned}"


def _nodes(module: fx.GraphModule) -> Iterable[fx.Node]:
    return (node for region in regions(module) for node in region.graph.nodes)


def _differentiates(graph: fx.GraphModule) -> bool:
    """Whether a program takes gradients in a way that shows where one compiled region ends and the next begins.

    A region is differentiated as a whole, and once: its graph goes with the first backward pass, whatever of it that
    pass came by, and there are no second derivatives.
    """
    takers = (torch.autograd.grad, torch.autograd.backward, "backward")
    taking = [node for node in _nodes(graph) if node.target in takers]
    if not taking:
        return False
    at_top = len(taking) == 1 and taking[0].graph is graph.graph
    create_graph = taking[0].kwargs.get("create_graph", len(taking[0].args) > 3)
    results = graph.graph.output_node().all_input_nodes
    return not at_top or create_graph is not False or any(_may_require_grad(node.meta.get("val")) for node in results)


def _may_require_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.requires_grad or info(value).grad_differs)


def _has_unbound(module: fx.GraphModule) -> bool:
    """Whether some path of the program leaves a variable without a value."""
    return any(node.target is unbound for node in _nodes(module))


def _ambient(program: Program) -> Context | None:
    return next((guard.context for guard in program.guards if isinstance(guard, ModeGuard)), None)


def _compile_source(name: str, code: str, objects: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    namespace = dict(objects)
    file = f"<stillgraph {name} {id(namespace):x}>"
    exec(compile(code, file, "exec"), namespace)
    driver: Callable[..., tuple[Any, ...]] = namespace[_identifier(name)]
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    weakref.finalize(driver, linecache.cache.pop, file, None)
    return driver


@dataclass
class _Block(Expressions):
    """Writes one region; values that are not used any more are let go, as eager PyTorch would."""

    writer: Writer
    module: fx.GraphModule
    ambient: Context | None
    around: _Block | None = None

    def write(self) -> list[str]:
        """Write the region's operations; the names of its outputs."""
        nodes = list(self.module.graph.nodes)
        context = self.ambient
        self._by_name = {node.name: node for node in nodes} if self.writer.keeps_account else {}
        self._noted = {name for node in nodes for name in names_needed(node)} if self._by_name else set()
        self._last = _last_uses(nodes, self._by_name)
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
        block: _Block | None = self
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
        self, region: Any, operands: Any, node: fx.Node, carried: list[str] | None = None, *, counted: bool = True
    ) -> list[str]:
        """Write a region of a construct, where it is too deep for Python as a call; its outputs."""
        writer = self.writer
        module = _attribute(self.module, str(region.target))
        self._bind(module, operands, carried)
        block = _Block(writer, module, node.meta.get("context", self.ambient), self)
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
        writer = self.writer
        name = writer.fresh("checkpointed")
        module = _attribute(self.module, str(body.target))
        writer.count(module)
        stems = [writer.fresh(p.name) for p in module.graph.find_nodes(op="placeholder")]
        kept = [f"{stem}={self.value(o)}" for stem, o in zip(stems[len(inputs) :], operands, strict=True)]
        header = [*stems[: len(inputs)], *(["*", *kept] if kept else [])]
        with writer.inside(f"def {name}({', '.join(header)}):"):
            outputs = self._write_region(body, (), node, stems, counted=False)
            writer.line(f"return ({''.join(o + ', ' for o in outputs)})")
        given = [name, *map(self.value, inputs), *(f"{key}={self.value(value)}" for key, value in options.items())]
        return f"{writer.object('checkpoint', checkpoint)}({', '.join(given)})"

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
        gone = [self.writer.names[n] for n in self._last.get(node, ()) if n in self.writer.names and _own(n)]
        if gone:
            self.writer.line(f"{' = '.join(gone)} = None")

    def _write_segment(self, segment: Segment) -> None:
        writer = self.writer
        writer.place, writer.so_far = segment.nodes[0].meta.get("location"), self._so_far(segment.nodes[0])
        assert writer.compile is not None
        module, inputs, outputs = segment.build(self.module, self.ambient)
        in_eager = functools.partial(_lower_segment, segment, self.module, self.ambient)
        function = writer.object(writer.fresh("region"), LazyRegion(module, writer.compile, in_eager, self.ambient))
        for node in outputs:
            writer.names[node] = writer.fresh(node.name)
        call = f"{function}({', '.join(writer.names[n] for n in inputs)})"
        writer.line(f"{''.join(writer.names[n] + ', ' for n in outputs)}= {call}" if outputs else call)
        writer.place = writer.so_far = None
        for node in segment.nodes:
            self._let_go(node)


_WRITTEN_OUT: dict[Any, Callable[[_Block, fx.Node], str]] = {
    recursion: _Block._recursion,
    checkpointed: _Block._checkpoint,
}


def _named_by(module: fx.GraphModule) -> Iterator[Any]:
    """The names of the recursions that a region goes on with, and of the tries for which it keeps something."""
    return (arguments(node)[0] for node in _nodes(module) if node.target in (recurse, keep))


def _own(node: fx.Node) -> bool:
    """Whether a variable is made by the region itself and is one value of its own."""
    return (
        node.op in ("call_function", "call_method")
        and node.target not in (_COND, _WHILE, try_)
        and not (
            node.target is operator.getitem
            and isinstance(arguments(node)[0], fx.Node)
            and arguments(node)[0].target in (_COND, _WHILE, try_)
        )
    )


def _last_uses(nodes: list[fx.Node], by_name: dict[str, fx.Node]) -> dict[fx.Node, list[fx.Node]]:
    """By a node: the nodes whose values nobody asks for once it has run.

    Args:
        nodes: of a graph, in order.
        by_name: the same by their names, where those count that are looked at if an operation fails.
    """
    last: dict[fx.Node, fx.Node] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            last[used] = node
        for name in names_needed(node) if by_name else ():
            if name in by_name:
                last[by_name[name]] = node
    grouped: dict[fx.Node, list[fx.Node]] = {}
    for used, user in last.items():
        if user.op != "output":
            grouped.setdefault(user, []).append(used)
    return grouped


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


class entered:
    """Run a block under a context's modes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open = contextlib.ExitStack()

    def __enter__(self) -> None:
        context = self._context
        with contextlib.ExitStack() as stack:
            # Inference mode first: on leaving, it puts back the grad mode it found.
            if context.inference:
                stack.enter_context(torch.inference_mode())
            else:
                stack.enter_context(torch.set_grad_enabled(context.grad))
            enabled = {a.device_type: a for a in context.autocast}
            for device in ("cpu", "cuda"):
                wanted = enabled.get(device)
                if wanted is not None:
                    stack.enter_context(torch.autocast(device, wanted.dtype, True, wanted.cache_enabled))
                elif torch.is_autocast_enabled(device):
                    stack.enter_context(torch.autocast(device, enabled=False))
            if context.switches:
                stack.callback(write_switches, current_context().switches)
                write_switches(context.switches)
            if context.hooks is not None:
                stack.enter_context(saved_tensors_hooks(*context.hooks))
            self._open = stack.pop_all()

    def __exit__(self, *error: Any) -> None:
        self._open.close()


def _raises_itself(body: fx.GraphModule) -> bool:
    """Whether a region may raise an exception that is there before the call: it is not to keep what a program adds."""
    return any(
        node.target is raise_ and node.kwargs.get("itself") for region in regions(body) for node in region.graph.nodes
    )
