"""Regions of a program as Python: what one region, one operation, one construct has in common in both styles."""

from __future__ import annotations

import abc
import contextlib
import enum
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.deploy.python.conditions import conditions
from stillgraph.deploy.python.lines import Lines
from stillgraph.deploy.python.modes import modes_text
from stillgraph.deploy.python.scopes import Frame, Scope
from stillgraph.deploy.python.spelling import Spelling
from stillgraph.deploy.python.stand_ins import computes_itself
from stillgraph.deploy.python.statements import ENDS, SHOWING, STATEMENTS, WRITTEN, exception_type, shown
from stillgraph.deploy.python.variables import UserLines, own_name, result_name, stem_of
from stillgraph.passes.regions.regions import WHILE
from stillgraph.passes.regions.values import value_of
from stillgraph.program.acts import Logging, Warning_
from stillgraph.program.blocks import CONSTRUCTS, region_of
from stillgraph.program.context import Context
from stillgraph.program.exceptions import raise_, raise_made
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import act, try_
from stillgraph.runtime.native.expressions import INFIX, PREFIX, Expressions


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
        self.inlined |= conditions(module)
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
            message = "a file of torch alone cannot hold a tensor that is a constant of the program"
            raise refuse("SG402", message, location=self.at or self.spelling.location)
        is_exception = isinstance(found, type) and issubclass(found, BaseException)
        is_given = any(user.target is act and arguments(user)[0] is not node for user in node.users)  # a category, say
        if is_exception and not is_given and not all(map(_spells_what_it_takes, node.users)):
            self.scope.names[node] = exception_type(self.spelling, found, self.at)
            return
        is_step = all(user.target is act and arguments(user)[0] is node for user in node.users)
        if isinstance(found, enum.Enum) and all(user.target in SHOWING or _is_told(user) for user in node.users):
            self.scope.names[node] = shown(self.spelling, found, self.at)
            return
        # Exceptions are written where they are raised, steps where they are taken.
        if is_given or not (is_exception or is_step or isinstance(found, BaseException)):
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
        elif node.target in CONSTRUCTS:
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
        if isinstance(value, enum.Enum) and computes_itself(value):
            message = f"'{type(value).__qualname__}' has operators of its own, which Python source cannot call"
            raise refuse("SG402", message, location=self.at)
        return self.spelling.constant(value, self.at)

    def text(self, value: Any) -> str:
        text = self.spelling.literal(value, self.at)
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
    @abc.abstractmethod
    def construct(self, module: fx.GraphModule, node: fx.Node, context: Context | None) -> None:
        """Write a branch, a loop, a ``try``, a recursion or a checkpoint."""

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

    def parts_of(self, node: fx.Node) -> dict[int, fx.Node]:
        """The results of a construct that are used."""
        parts = {arguments(n)[1]: n for n in node.users if n.target is operator.getitem}
        return {index: part for index, part in parts.items() if part.users}

    def give_results(self, node: fx.Node, names: list[str | None]) -> None:
        """Let the parts of a construct's result be known by their variables."""
        for index, part in self.parts_of(node).items():
            name = names[index]
            assert name is not None
            self.scope.assign(part, name)
        self.scope.frames[-1].written.add(node)

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


def _is_told(node: fx.Node) -> bool:
    """Whether an operation logs or warns."""
    return node.target is act and isinstance(value_of(arguments(node)[0]), (Logging, Warning_))


def _spells_what_it_takes(node: fx.Node) -> bool:
    """Whether an operation spells the exceptions that it is given by itself."""
    return node.target in (raise_, raise_made, try_)


def _is_default(parameter: inspect.Parameter | None, value: Any) -> bool:
    if parameter is None or isinstance(value, fx.Node):
        return False
    default = parameter.default
    if value is None or is_exactly(value, (bool, int, float, str)):
        return type(default) is type(value) and default == value
    return default is value
