"""Regions of a program as Python's own statements: ``if``, ``while``, ``try``, functions that call themselves."""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.python.lines import Lines, brackets
from stillgraph.deploy.python.modes import modes_text
from stillgraph.deploy.python.scopes import Frame, Scope
from stillgraph.deploy.python.spelling import Spelling
from stillgraph.deploy.python.statements import ENDS, STATEMENTS, WRITTEN, exception_type
from stillgraph.deploy.python.variables import UserLines, own_name, result_name, stem_of
from stillgraph.passes.purity import is_pure
from stillgraph.passes.regions import COND, WHILE
from stillgraph.passes.values import value_of
from stillgraph.program.blocks import region_of
from stillgraph.program.context import Context
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import checkpointed, recursion, try_
from stillgraph.runtime.expressions import INFIX, PREFIX, Expressions

_CONSTRUCTS = (COND, WHILE, try_, recursion, checkpointed)
_MOST_IN_A_TEST = 4  # operations that are written inside an ``if`` or ``while``


class Regions(Expressions):
    """Writes regions.

    Args:
        scope, lines, spelling: of the function being written.
        user_lines: where names come from.
        leave: writes what the program has done to objects when it raises: an index of `Program.midway`, and values.
    """

    def __init__(
        self,
        scope: Scope,
        lines: Lines,
        spelling: Spelling,
        user_lines: UserLines,
        leave: Callable[[int, list[str]], None],
    ) -> None:
        self.scope, self.lines, self.spelling, self.user_lines, self.leave = scope, lines, spelling, user_lines, leave
        self.functions: dict[Any, str] = {}  # of recursions, and what tries keep: by their names
        self.hints: dict[fx.Node, str] = {}
        self.inlined: set[fx.Node] = set()
        self.at: Any = None  # the place of the operation being written

    # ---- a region
    def write(self, module: fx.GraphModule, ambient: Context | None) -> list[str] | None:
        """Write a region's operations; the expressions of its outputs, or None if it ends in a ``raise``."""
        self.hints = {**self._entries(module), **self.user_lines.hints(module), **self.hints}
        self.inlined |= _conditions(module)
        frame = Frame(module.graph)
        self.scope.frames.append(frame)
        now = ambient
        outputs: list[str] | None = []
        depth = self.lines.depth
        for node in module.graph.nodes:
            if node.op == "output":
                now = self._switch(now, ambient, ambient, node)
                outputs = [self.value(each) for each in arguments(node)[0]]
            elif node.op == "get_attr":
                value = value_of(node)
                if not isinstance(value, fx.GraphModule):
                    self._constant_node(module, node)
            elif node.op != "placeholder" and not (node.target is operator.getitem and node in self.scope.names):
                if not node.meta.get("bookkeeping"):
                    now = self._switch(now, node.meta.get("context", now), ambient, node)
                self._write(module, node, now)
                if node.target in ENDS:
                    outputs = None
                    break
            frame.written.add(node)
        self.lines.depth = depth
        self.scope.frames.pop()
        return outputs

    def _entries(self, module: fx.GraphModule) -> dict[fx.Node, str]:
        """What loops begin with has the name that they carry it under."""
        found: dict[fx.Node, str] = {}
        for node in module.graph.find_nodes(op="call_function", target=WHILE):
            inside = region_of(module, arguments(node)[1]).graph.find_nodes(op="placeholder")
            for entry, placeholder in zip(arguments(node)[2], inside):
                if isinstance(entry, fx.Node) and set(entry.users) == {node}:
                    found[entry] = stem_of(placeholder.name)
        return found

    def _constant_node(self, module: fx.GraphModule, node: fx.Node) -> None:
        found: Any = module
        for name in str(node.target).split("."):
            found = getattr(found, name)
        node.meta.setdefault("val", found)
        if isinstance(found, torch.Tensor):
            raise refuse("SG402", "a file of torch alone cannot hold a tensor that is a constant of the program")
        is_exception = isinstance(found, type) and issubclass(found, BaseException)
        if not is_exception and not isinstance(found, BaseException):  # those are written where they are raised
            self.scope.names[node] = self.constant(found)

    def _switch(self, now: Context | None, then: Context | None, ambient: Context | None, node: fx.Node) -> Any:
        if then is None or now is None or now == then:
            return then if now is None else now
        if now != ambient:
            self.lines.depth -= 1
        if then != ambient:
            assert ambient is not None
            self.lines.add(f"with {modes_text(ambient, then, node.meta.get('location'))}:")
            self.lines.depth += 1
        return then

    # ---- an operation
    def _write(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        self.at = node.meta.get("location")
        if node in self.inlined:
            self.scope.names[node] = self._bracketed(node)
        elif node.target in _CONSTRUCTS:
            self.construct(module, node, context)
        elif node.target in STATEMENTS:
            STATEMENTS[node.target](self, node)
        else:
            text = self.operation(node)
            if node.users:
                name = self._assigned(node)
                if name != text:
                    self.lines.add(f"{name} = {text}", self.at)
            else:
                self.lines.add(text, self.at)

    def operation(self, node: fx.Node) -> str:
        """The expression of an operation that is no statement."""
        return WRITTEN[node.target](self, node) if node.target in WRITTEN else self.expression(node)

    def _assigned(self, node: fx.Node) -> str:
        """The variable for a node's value; what is used here for the last time may make room for it."""
        frame = self.scope.frames[-1]
        frame.written.add(node)
        name = self.scope.choose(self.hints.get(node) or own_name(node))
        self.scope.assign(node, name)
        return name

    def _bracketed(self, node: fx.Node) -> str:
        text = self.operation(node)
        return f"({text})" if node.target in INFIX or node.target in PREFIX else text

    # ---- expressions
    def named(self, node: fx.Node) -> str:
        return self.scope.names[node]

    def recursive(self, name: Any) -> str:
        return self.functions[name]

    def function(self, target: Any) -> str:
        return self.spelling.function(target, self.at)

    def constant(self, value: Any) -> str:
        return self.spelling.constant(value, self.at)

    def text(self, value: Any) -> str:
        text = self.spelling.literal(value)
        return f"({text})" if text.startswith("-") else text

    def tuple_text(self, values: Any) -> str:
        items = [self.value(each) for each in values]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def keywords(self, node: fx.Node) -> dict[str, Any]:
        """Those that differ from the function's defaults."""
        target: Any = getattr(torch.Tensor, str(node.target), None) if node.op == "call_method" else node.target
        try:
            known = inspect.signature(target).parameters
        except (TypeError, ValueError):
            return dict(node.kwargs)
        return {name: value for name, value in node.kwargs.items() if not _is_default(known.get(name), value)}

    # ---- constructs
    def construct(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        """Write a branch, a loop, a ``try``, a recursion or a checkpoint."""
        write = {
            COND: self._branch,
            WHILE: self._loop,
            try_: self._try,
            recursion: self._recursion,
            checkpointed: self._checkpoint,
        }[node.target]
        write(module, node, context)

    def _branch(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        predicate, true, false, operands = arguments(node)
        test, place = unbracketed(self.value(predicate)), self.at
        names = self.result_names(module, node, (true, false))
        then = self._arm(module, true, operands, names, node, context)
        otherwise = self._arm(module, false, operands, names, node, context)
        if not then and otherwise:
            test, then, otherwise = f"not {_negatable(test)}", otherwise, []
        self.lines.add(f"if {test}:", place)
        self.lines.lines += then or ["    " * (self.lines.depth + 1) + "pass"]
        indent = "    " * self.lines.depth
        if otherwise and _is_one_if(otherwise, indent + "    "):
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

    @contextlib.contextmanager
    def _inside(self, node: fx.Node, kept: frozenset[fx.Node]) -> Iterator[None]:
        """While regions of a construct are written; what they assign is not there for the next one."""
        frame, held = self.scope.frames[-1], self.scope.saved()
        frame.active, frame.kept = node, frozenset(each for each in kept if isinstance(each, fx.Node))
        yield
        frame.active, frame.kept = None, frozenset()
        self.scope.holders = held

    def _bind(self, child: fx.GraphModule, texts: list[str]) -> None:
        """Let a region's placeholders be the variables of the block around it."""
        for placeholder, text in zip(child.graph.find_nodes(op="placeholder"), texts, strict=True):
            self.scope.hold(placeholder, text)

    def _want(self, child: fx.GraphModule, names: list[str | None]) -> None:
        """Let what a region hands out have the names that it is wanted under."""
        for name, output in zip(names, arguments(child.graph.output_node())[0]):
            if name is not None and isinstance(output, fx.Node) and output.op != "placeholder":
                self.hints[output] = name

    def parts_of(self, node: fx.Node) -> dict[int, fx.Node]:
        """The results of a construct that are used."""
        parts = {arguments(n)[1]: n for n in node.users if n.target is operator.getitem}
        return {index: part for index, part in parts.items() if part.users}

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

    def give_results(self, node: fx.Node, names: list[str | None]) -> None:
        """Let the parts of a construct's result be known by their variables."""
        for index, part in self.parts_of(node).items():
            name = names[index]
            assert name is not None
            self.scope.assign(part, name)
        self.scope.frames[-1].written.add(node)

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
                    self.lines.add(f"if not {_negatable(unbracketed(written[0]))}:")
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
        self.functions[name] = kept if any(each.users for each in inside[1 : 1 + count]) else None
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

    @contextlib.contextmanager
    def function_scope(self, node: fx.Node, parameters: list[str]) -> Iterator[None]:
        """While a function is written that sees the variables around it."""
        scope = self.scope
        outer, locked = scope.outer, scope.locked
        with self._inside(node, frozenset(node.all_input_nodes)):
            scope.outer = (outer | set(scope.holders) | locked) - set(parameters)
            scope.locked = set()
            for name in parameters:
                scope.holders.pop(name, None)
            yield
        scope.outer, scope.locked = outer, locked

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

    def _unpack(self, node: fx.Node, call: str) -> None:
        """Call a function that gives the results of a construct."""
        names = [name or "_" for name in self.result_names_of_call(node)]
        targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        self.lines.add(f"{targets} = {call}" if any(n != "_" for n in names) else call, self.at)
        self.give_results(node, [None if name == "_" else name for name in names])

    def result_names_of_call(self, node: fx.Node) -> list[str | None]:
        """Variables for what a call gives that stands for a construct."""
        names: list[str | None] = [None] * len(node.meta["val"])
        frame = self.scope.frames[-1]
        frame.active = node
        for index, part in sorted(self.parts_of(node).items()):
            wanted = self.name_of_part(node, index, part)
            names[index] = self.scope.choose(wanted, also=[name for name in names if name is not None])
        frame.active = None
        return names

    def name_of_part(self, node: fx.Node, index: int, part: fx.Node) -> str:
        """The best name for a part of what a call gives."""
        stem = result_name(part)
        return "result" if stem == "getitem" else stem

    def _checkpoint(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        body, inputs, operands, options = arguments(node)
        child = region_of(module, body)
        function = self.scope.choose("checkpointed")
        self.scope.reserved.add(function)
        inside = child.graph.find_nodes(op="placeholder")
        taken: list[str] = []
        for placeholder in inside:
            taken.append(self._parameter(stem_of(placeholder.name), taken, ()))
        kept = [f"{stem}={self.value(o)}" for stem, o in zip(taken[len(inputs) :], operands, strict=True)]
        header = [*taken[: len(inputs)], *(["*", *kept] if kept else [])]
        given = [function, *map(self.value, inputs), *(f"{key}={self.value(value)}" for key, value in options.items())]
        self.lines.space()
        self.lines.add(f"def {function}({', '.join(header)}):", self.at)
        self._function_body(child, node, taken, taken, context)
        self.lines.add("")
        self.spelling.imports.add("import torch.utils.checkpoint")
        self._unpack(node, f"torch.utils.checkpoint.checkpoint({', '.join(given)})")


def _conditions(module: fx.GraphModule) -> set[fx.Node]:
    """What is written inside the conditions of a region's branches."""
    found: set[fx.Node] = set()
    before: list[fx.Node] = []
    for node in module.graph.nodes:
        if node.target is COND and isinstance(arguments(node)[0], fx.Node):
            found |= condition(before, arguments(node)[0])
        if node.op != "get_attr":
            before.append(node)
    return found


def condition(before: list[fx.Node], test: fx.Node) -> set[fx.Node]:
    """The operations that can be written inside a condition: each is used there alone, and nothing is in between.

    Args:
        before: what stands before the question, in order.
        test: what is asked.
    """
    found: set[fx.Node] = set()
    wanted = [test]
    for node in reversed(before):
        if node not in wanted:
            break
        simple = node.op in ("call_function", "call_method") and node.target not in (*_CONSTRUCTS, *STATEMENTS)
        if not simple or len(node.users) != 1 or not is_pure(node) or _is_part(node):
            break
        if node.meta.get("context") != test.meta.get("context") or len(found) >= _MOST_IN_A_TEST:
            break
        found.add(node)
        wanted += node.all_input_nodes
    return found


def _is_part(node: fx.Node) -> bool:
    return node.target is operator.getitem and node.all_input_nodes[0].target in _CONSTRUCTS


def unbracketed(text: str) -> str:
    """An expression without the brackets around it."""
    found = brackets(text)
    around = text.startswith("(") and bool(found) and found[-1][0] == len(text) - 1
    inside = [(character, depth) for _, character, depth in found[1:-1]]
    if not around or any(depth == 0 or (depth == 1 and character == ",") for character, depth in inside):
        return text
    return text[1:-1] or text


def _negatable(text: str) -> str:
    simple = text.replace("_", "a").replace(".", "a").isalnum() or (text.endswith(")") and " " not in text)
    return text if simple else f"({text})"


def _is_one_if(lines: list[str], indent: str) -> bool:
    """Whether lines are one ``if`` statement."""
    heads = [line for line in lines if line.startswith(indent) and not line.startswith(indent + " ")]
    heads = [line.strip() for line in heads]
    return heads[0].startswith("if ") and all(head.startswith(("elif ", "else:")) for head in heads[1:])


def _is_default(parameter: inspect.Parameter | None, value: Any) -> bool:
    if parameter is None or isinstance(value, fx.Node):
        return False
    default = parameter.default
    if value is None or type(value) in (bool, int, float, str):
        return type(default) is type(value) and default == value
    return default is value
