"""Regions with Python's own statements: ``if``, ``while``, ``try``, functions that call themselves."""

from __future__ import annotations

from typing import Any

from torch import fx

from stillgraph.deploy.python.conditions import condition, is_one_if, negatable, unbracketed
from stillgraph.deploy.python.regions import Regions
from stillgraph.deploy.python.statements import exception_type
from stillgraph.deploy.python.variables import result_name, stem_of
from stillgraph.passes.regions.regions import COND, WHILE
from stillgraph.passes.regions.values import value_of
from stillgraph.program.blocks import region_of
from stillgraph.program.context import Context, in_backward
from stillgraph.program.facts.rerouting import reroute, rerouted
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import checkpointed, recursion, try_


class PythonRegions(Regions):
    """As `Regions`, with the statements that the user wrote; for a program as it was captured."""

    def construct(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        """Write a branch, a loop, a ``try``, a recursion or a checkpoint."""
        write = {
            COND: self._branch,
            WHILE: self._loop,
            try_: self._try,
            recursion: self._recursion,
            checkpointed: self._checkpoint,
            rerouted: self._rerouted,
        }[node.target]
        write(module, node, context)

    def _branch(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        predicate, true, false, operands = arguments(node)
        test, place = unbracketed(self.value(predicate)), self.at
        names = self.result_names(module, node, (true, false))
        then = self._arm(module, true, operands, names, node, context)
        otherwise = self._arm(module, false, operands, names, node, context)
        if not then and otherwise:
            test, then, otherwise = f"not {negatable(test)}", otherwise, []
        self.lines.add(f"if {test}:", place)
        self.lines.lines += then or ["    " * (self.lines.depth + 1) + "pass"]
        indent = "    " * self.lines.depth
        if otherwise and is_one_if(otherwise, indent + "    "):
            self.lines.lines.append(f"{indent}el{otherwise[0].strip()}")
            self.lines.lines += [line[4:] for line in otherwise[1:]]
        elif otherwise:
            self.lines.lines += [f"{indent}else:", *otherwise]
        self.give_results(node, names)

    def _arm(
        self,
        module: fx.GraphModule,
        region: Any,
        operands: Any,
        names: list[str | None],
        node: fx.Node,
        context: Context | None,
        carried: list[str] | None = None,
    ) -> list[str]:
        """The lines of one path, which leaves its results in variables of these names."""
        start = len(self.lines.lines)
        self.lines.depth += 1
        child = region_of(module, region)
        with self._inside(node, frozenset(operands if node.target is try_ else ())):
            self._bind(child, [*(carried or []), *(self.value(each) for each in operands)])
            self._want(child, names)
            outputs = self.write(child, context)
            if outputs is not None:
                self._leave_in(names, outputs)
        self.lines.depth -= 1
        return self.lines.taken_from(start)

    def _leave_in(self, names: list[str | None], values: list[str]) -> None:
        changed = [(name, value) for name, value in zip(names, values) if name is not None and name != value]
        if len({value for _, value in changed}) == 1 and len(changed) > 1:
            self.lines.add(f"{' = '.join(name for name, _ in changed)} = {changed[0][1]}")
        elif changed:
            self.lines.add(f"{', '.join(n for n, _ in changed)} = {', '.join(unbracketed(v) for _, v in changed)}")

    def _want(self, child: fx.GraphModule, names: list[str | None]) -> None:
        """Let what a region hands out have the names that it is wanted under."""
        for name, output in zip(names, arguments(child.graph.output_node())[0]):
            if name is not None and isinstance(output, fx.Node) and output.op != "placeholder":
                self.hints[output] = name

    def result_names(self, module: fx.GraphModule, node: fx.Node, regions: tuple[Any, ...]) -> list[str | None]:
        """Variables for the results of a construct, None for those that nobody uses."""
        parts = self.parts_of(node)
        names: list[str | None] = [None] * len(node.meta["val"])
        frame = self.scope.frames[-1]
        frame.active = node
        for index, part in sorted(parts.items()):
            wanted = self._wanted_name(module, part, index, regions)
            names[index] = self.scope.choose(wanted, also=[name for name in names if name is not None])
        frame.active = None
        return names

    def _wanted_name(self, module: fx.GraphModule, part: fx.Node, index: int, regions: tuple[Any, ...]) -> str:
        stem = result_name(part)
        if stem not in ("getitem", "cond", "while_loop"):
            return stem
        for region in regions:
            child = region_of(module, region)
            output = arguments(child.graph.output_node())[0][index]
            name = self.user_lines.hints(child).get(output) if isinstance(output, fx.Node) else None
            if name is not None:
                return name
        return "result"

    def _loop(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        test, body, entries, operands = arguments(node)
        place = self.at
        slots = self._slots(module, node, body, entries, operands)
        kept = frozenset(each for each in operands if isinstance(each, fx.Node))
        texts = [self.value(each) for each in operands]
        with self._inside(node, kept):
            self.scope.locked |= set(slots)
            child = region_of(module, test)
            self._bind(child, [*slots, *texts])
            nodes = [each for each in child.graph.nodes if each.op not in ("get_attr", "placeholder", "output")]
            (go,) = arguments(child.graph.output_node())[0]
            inlined = condition(nodes, go) if isinstance(go, fx.Node) else set()
            if len(inlined) == len(nodes):
                self.inlined |= inlined
                written = self.write(child, context)
                assert written is not None
                self.lines.add(f"while {unbracketed(written[0])}:", place)
                self.lines.depth += 1
            else:
                self.lines.add("while True:", place)
                self.lines.depth += 1
                written = self.write(child, context)
                if written is not None:
                    self.lines.add(f"if not {negatable(unbracketed(written[0]))}:")
                    self.lines.add("    break")
            self.scope.locked -= set(slots)
        start = len(self.lines.lines)
        with self._inside(node, kept):
            child = region_of(module, body)
            for name in slots:
                self.scope.holders.pop(name, None)
            self._bind(child, [*slots, *texts])
            self._want(child, list(slots))
            outputs = self.write(child, context)
            if outputs is not None:
                self._leave_in(list(slots), outputs)
        if len(self.lines.lines) == start:
            self.lines.add("pass")
        self.lines.depth -= 1
        self.give_results(node, list(slots))

    def _slots(self, module: fx.GraphModule, node: fx.Node, body: Any, entries: Any, operands: Any) -> list[str]:
        """The variables that a loop carries; one that already holds what the loop begins with is taken as it is."""
        parts, frame = self.parts_of(node), self.scope.frames[-1]
        inside = region_of(module, body).graph.find_nodes(op="placeholder")
        slots: list[str] = []
        first: list[tuple[str, str]] = []
        for index, entry in enumerate(entries):
            wanted = stem_of(parts[index].name) if index in parts else stem_of(inside[index].name)
            if wanted == "getitem":
                wanted = stem_of(inside[index].name)
            text = self.value(entry)
            mine = isinstance(entry, fx.Node) and text.isidentifier() and entry not in operands
            others = [n for n in self.scope.holders.get(text, ()) if n is not entry] if mine else []
            frame.active = node
            dying = mine and not frame.needs(entry) and not any(self.scope._is_needed(n) for n in others)
            frame.active = None
            if dying and text not in slots and stem_of(text) == wanted and list(entries).count(entry) == 1:
                slots.append(text)
                continue
            slots.append(self.scope.choose(wanted, also=slots))
            first.append((slots[-1], text))
        for name, text in first:
            self.lines.add(f"{name} = {unbracketed(text)}", self.at)
        return slots

    def _try(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        name, body, handler, kinds, operands = arguments(node)
        place = self.at
        names = self.result_names(module, node, (body, handler))
        taken = [each for each in names if each is not None]
        inside = region_of(module, handler).graph.find_nodes(op="placeholder")
        count = len(inside) - 1 - len(operands)
        kept = self.scope.choose("kept", also=taken)
        self.functions[name] = kept if any(each.users for each in inside[1 : 1 + count]) else ""
        error = self.scope.choose("error", also=[*taken, kept])
        types = [exception_type(self.spelling, value_of(kind), place) for kind in kinds]
        caught = f"({', '.join(types)})" if len(types) > 1 else types[0]
        self.scope.locked |= {kept, error}
        self.lines.add("try:", place)
        nothing = ["    " * (self.lines.depth + 1) + "pass"]
        self.lines.lines += self._arm(module, body, operands, names, node, context) or nothing
        held = [f"{kept}[{i}]" for i in range(count)]
        used = any(n.op == "placeholder" and n.users for n in inside[:1])
        written = self._arm(module, handler, operands, names, node, context, [error, *held])
        self.lines.add(f"except {caught} as {error}:" if used else f"except {caught}:")
        self.lines.lines += written or nothing
        self.scope.locked -= {kept, error}
        self.give_results(node, names)

    def _recursion(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        name, body, entries, operands = arguments(node)
        child = region_of(module, body)
        function = self.functions[name] = self.scope.choose(str(name))
        self.scope.reserved.add(function)
        inside = child.graph.find_nodes(op="placeholder")[: len(entries)]
        taken: list[str] = []
        for placeholder in inside:
            taken.append(self._parameter(stem_of(placeholder.name), taken, operands))
        place, texts = self.at, [self.value(each) for each in operands]
        self.lines.space()
        self.lines.add(f"def {function}({', '.join(taken)}):", place)
        self._function_body(child, node, [*taken, *texts], taken, context)
        self.lines.add("")
        self._unpack(node, f"{function}({', '.join(self.value(entry) for entry in entries)})")

    def _parameter(self, wanted: str, taken: list[str], operands: Any) -> str:
        used = {self.value(each) for each in operands}
        name, count = wanted, 1
        while name in taken or name in used or name in self.scope.reserved:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def _function_body(
        self, child: fx.GraphModule, node: fx.Node, texts: list[str], own: list[str], context: Context | None
    ) -> None:
        self.lines.depth += 1
        with self.function_scope(node, own):
            self._bind(child, texts)
            outputs = self.write(child, context)
            if outputs is not None:
                self.lines.add(f"return ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})")
        self.lines.depth -= 1

    def _checkpoint(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        body, inputs, operands, options = arguments(node)
        function = self._kept_function("checkpointed", region_of(module, body), len(inputs), operands, node, context)
        given = [function, *map(self.value, inputs), *(f"{key}={self.value(value)}" for key, value in options.items())]
        self.spelling.imports.add("import torch.utils.checkpoint")
        self._unpack(node, f"torch.utils.checkpoint.checkpoint({', '.join(given)})")

    def _rerouted(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        body, results, saved, inputs, options, operands = arguments(node)
        count, inside = len(results) + len(options["own"]), None if context is None else in_backward(context)
        function = self._kept_function("backward", region_of(module, body), count, operands, node, inside)
        given = [function, *map(self.value, (tuple(results), tuple(saved), tuple(inputs), dict(options)))]
        self._unpack(node, f"{self.spelling.function(reroute)}({', '.join(given)})")

    def _kept_function(
        self, stem: str, child: fx.GraphModule, count: int, operands: Any, node: fx.Node, context: Context | None
    ) -> str:
        """Write a region as a function that keeps its operands; ``count`` of its inputs come from its caller."""
        function = self.scope.choose(stem)
        self.scope.reserved.add(function)
        taken: list[str] = []
        for placeholder in child.graph.find_nodes(op="placeholder"):
            taken.append(self._parameter(stem_of(placeholder.name), taken, ()))
        kept = [f"{name}={self.value(o)}" for name, o in zip(taken[count:], operands, strict=True)]
        header = [*taken[:count], *(["*", *kept] if kept else [])]
        self.lines.space()
        self.lines.add(f"def {function}({', '.join(header)}):", self.at)
        self._function_body(child, node, taken, taken, context)
        self.lines.add("")
        return function
