"""What a call returns and leaves behind, rebuilt from the outputs of a program's graph by one generated function."""

from __future__ import annotations

import array
import copy
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from types import MethodType
from typing import Any

import torch
import torch.utils._pytree as pytree

from stillgraph.core.lookup import fill_instance, slots
from stillgraph.program.effects import Effect
from stillgraph.program.exceptions import copied
from stillgraph.program.operations import bound
from stillgraph.program.outputs import (
    ABSENT,
    BOUND,
    Absent,
    Choice,
    Constant,
    Container,
    Instance,
    Keys,
    Maybe,
    OneOf,
    Output,
    Repeated,
    Same,
    Shared,
    Template,
    certain_outputs,
    has_table,
)
from stillgraph.runtime.native.effects import replace_contents, write_effect
from stillgraph.runtime.native.function_writer import FunctionWriter
from stillgraph.runtime.native.template_nodes import Node, Nodes

Finish = Callable[[Sequence[Any], tuple[Any, ...], dict[str, Any]], Any]
Prepare = Callable[[tuple[Any, ...], dict[str, Any]], Callable[[Sequence[Any]], Any]]


def compile_template(template: Template) -> Finish:
    """Compile a template.

    Args:
        template: how the value is made.

    Returns:
        ``finish(outputs, args, kwargs)``, which builds the value from the graph's outputs and the call's arguments.
    """
    return compile_result(template, ())


def compile_result(result: Template, effects: Sequence[Effect]) -> Finish:
    """Compile a program's result and its effects together, so that an object in both is one object.

    Containers and instances are numbered in depth-first pre-order through the result and then through the values of the
    effects in turn; `Shared` refers to these numbers, also from within the node itself (a list that contains itself).

    Args:
        result: what the call returns.
        effects: what it does to objects that outlive it, in order.

    Returns:
        ``finish(outputs, args, kwargs)``, which builds every value, then carries out the effects, then returns the
        result. Sources are read before the first effect. Its text is ``finish.__source__``.

    Raises:
        ValueError: a template shares a node that does not exist, or a tuple contains itself with no list, dict or
            object in between.
    """
    return _written(result, effects).function("finish(outputs, args, kwargs)")


def compile_prepared(result: Template, effects: Sequence[Effect]) -> Prepare:
    """As `compile_result`, in two steps: ``prepare(args, kwargs)`` reads the sources, and gives ``finish(outputs)``."""
    return _written(result, effects).prepared("prepare(args, kwargs)", "finish(outputs)")


def _written(result: Template, effects: Sequence[Effect]) -> FunctionWriter:
    writer = FunctionWriter()
    nodes = Nodes([result, *(effect.value for effect in effects if hasattr(effect, "value"))])
    builder = _Builder(nodes, writer)
    roots = iter(nodes.roots)

    def built(template: Template) -> str:
        """The expression of the next root: they were flattened in this order."""
        expression = builder.expression(next(roots))
        if not effects or not _copies_lists(template):
            return expression
        name = f"built_{len(writer.lines)}"
        writer.lines.append(f"{name} = {expression}")  # now: an effect may make the caller's list longer
        return name

    returned = built(result)
    statements = [write_effect(effect, writer, built) for effect in effects]
    builder.fill_allocated()
    writer.lines += [*statements, f"return {returned}"]
    return writer


def _copies_lists(template: Template) -> bool:
    """Whether a value is made of the elements of lists, some of which may be the caller's own."""
    match template:
        case Repeated():
            return True
        case Container(children=children):
            return any(map(_copies_lists, children))
        case Instance(attributes=attributes):
            return any(_copies_lists(value) for _, value in attributes)
        case Choice(left=left, right=right):
            return _copies_lists(left) or _copies_lists(right)
        case Maybe(child=child):
            return _copies_lists(child)
    return False


def _all_bound(value: Any, *outputs: Any) -> Any:
    """A value that has outputs in it which may be unset; where one is, that raises."""
    for each in outputs:
        bound(each)
    return value


def _copied(value: Any) -> Any:
    """A constant, made anew. An exception gets a traceback where it is raised, which is not to be seen in the next."""
    if not isinstance(value, BaseException):
        return copy.copy(value)
    fresh = copied(value)
    fresh.__cause__, fresh.__context__ = value.__cause__, value.__context__
    fresh.__suppress_context__ = value.__suppress_context__
    return fresh


def _is_memory(value: Any) -> bool:
    """Whether a constant is an array that each call makes anew: what is done to one is not to be seen in the next."""
    return isinstance(value, (bytearray, array.array)) or hasattr(type(value), "__array_interface__")


class _Builder:
    """Writes the expressions of a table's nodes: used once, a node is written in its place; else it has a name.


    Where the table has a cycle, everything that can be made empty and filled later (``_EMPTY``, instances) is.
    """

    def __init__(self, nodes: Nodes, writer: FunctionWriter) -> None:
        self.nodes = nodes
        self.writer = writer
        self.done: set[int] = set()
        self.started: set[int] = set()
        self.to_fill: list[int] = []

    def expression(self, template: Template) -> str:
        match template:
            case Output(index=index):
                return f"outputs[{index}]"
            case Constant(value=value, made=made):
                constant = self.writer.constant(value)
                if not (made or _is_memory(value)):
                    return constant
                return self.writer.local((_is_memory, id(value)), f"{self.writer.constant(_copied)}({constant})")
            case Same(source=source):
                return self.writer.read(source)
            case Absent():
                return self.writer.constant(ABSENT)
            case Choice(flag=flag, left=left, right=right):
                return f"({self._chosen(left)} if {self.expression(flag)} else {self._chosen(right)})"
            case OneOf(index=index, entries=entries):
                return self._one_of(self.expression(index), entries)
            case Shared(index=index):
                return self._node(index)
            case Repeated():
                return self._repeated(template, "outputs", 0)
        raise TypeError(f"not a leaf: {template!r}")

    def _one_of(self, number: str, entries: tuple[tuple[int, Template], ...]) -> str:
        """The entry of a table at a number."""
        *others, (_, last) = entries
        chosen = (f"{self.expression(each)} if {number} == {at} else " for at, each in others)
        return f"({''.join(chosen)}{self.expression(last)})"

    def _chosen(self, template: Template) -> str:
        """One side of a choice: where it is taken, all that it has certainly in it must have a value."""
        text = self.expression(template)
        unset = sorted({o.index for o in certain_outputs([template], self.nodes.templates) if o.may_be_unset})
        if not unset:
            return text
        return f"{self.writer.constant(_all_bound)}({text}, {', '.join(f'outputs[{index}]' for index in unset)})"

    def _repeated(self, template: Repeated, values: str, depth: int) -> str:
        """The children that a list has for each row of some columns, spread."""
        columns = "".join(f"{_or_nothing(f'{values}[{column.index}]')}, " for column in template.columns)
        row = f"row_{depth}"
        return f"*[{self._in_row(template.element, row, depth + 1)} for {row} in zip({columns})]"

    def _in_row(self, template: Template, row: str, depth: int) -> str:
        match template:
            case Output(index=index):
                return f"{row}[{index}]"
            case OneOf(index=index, entries=entries):
                return self._one_of(f"{row}[{index.index}]", entries)
            case Repeated():
                return self._repeated(template, row, depth)
            case Container(children=children):
                return self._display(template, [self._in_row(child, row, depth) for child in children])
            case Instance(type=kind, attributes=attributes):
                state = _dict_display((n for n, _ in attributes), [self._in_row(t, row, depth) for _, t in attributes])
                return f"{self.writer.constant(made_of)}({self.writer.constant(kind)}, {state})"
        return self.expression(template)

    def _node(self, index: int) -> str:
        name = f"n{index}"
        if index in self.done:
            return name
        if index in self.started:
            raise ValueError(f"node #{index} contains itself and cannot be made")
        self.started.add(index)
        node = self._at(index)
        if self.nodes.cyclic and _can_be_filled(node.template):
            self._assign(index, self._empty(node.template))
            self.to_fill.append(index)
            return name
        if isinstance(node.template, Instance):
            attributes = self._attributes(node)
            self._assign(index, self._empty(node.template))
            self.writer.lines.append(self._filled(name, node.template.type, attributes))
            return name
        expression = self._container(node)
        if self.nodes.uses[index] == 1 and not self.nodes.cyclic:
            return expression
        self._assign(index, expression)
        return name

    def fill_allocated(self) -> None:
        while self.to_fill:
            index = self.to_fill.pop(0)
            node = self._at(index)
            if isinstance(node.template, Instance):
                filled = self._filled(f"n{index}", node.template.type, self._attributes(node))
                self.writer.lines.append(filled)
            else:
                replace = self.writer.constant(replace_contents)
                self.writer.lines.append(f"{replace}(n{index}, {self._container(node)})")

    def _at(self, index: int) -> Node:
        node = self.nodes.table[index]
        assert node is not None, "the table is complete once it is built"
        return node

    def _assign(self, index: int, expression: str) -> None:
        self.writer.lines.append(f"n{index} = {expression}")
        self.done.add(index)

    def _filled(self, name: str, kind: type, attributes: str) -> str:
        """The line that gives an instance its attributes."""
        if slots(kind):
            return f"{self.writer.constant(fill_instance)}({name}, {attributes})"
        return f"{name}.__dict__.update({attributes})"

    def _attributes(self, node: Node) -> str:
        assert isinstance(node.template, Instance)
        names = (name for name, _ in node.template.attributes)
        return _dict_display(names, [self.expression(child) for child in node.children])

    def _empty(self, template: Container | Instance) -> str:
        if isinstance(template, Instance):
            return f"{self.writer.constant(allocate)}({self.writer.constant(template.type)})"
        return _EMPTY[template.type](self.writer, template.context)

    def _container(self, node: Node) -> str:
        assert isinstance(node.template, Container)
        if any(isinstance(child, Maybe) and child.rank is not None for child in node.children):
            rows = ", ".join(self._child(node.template, i, c) for i, c in enumerate(node.children))
            return self._restored(node.template, f"{self.writer.constant(in_order)}([{rows}])")
        return self._display(node.template, [self._child(node.template, i, c) for i, c in enumerate(node.children)])

    def _child(self, template: Container, index: int, child: Template) -> str:
        if not isinstance(child, Maybe):
            return self.expression(child)
        held, flag = self.expression(child.child), self.expression(child.flag)
        if child.rank is not None:
            return f"({self.expression(child.rank)}, {self.writer.literal(template.context[index])}, {held}, {flag})"
        if issubclass(template.type, dict):
            return f"**({{{self.writer.literal(template.context[index])}: {held}}} if {flag} else {{}})"
        return f"*(({held},) if {flag} else ())"

    def _restored(self, template: Container, plain: str) -> str:
        """A container whose items are those of the dict ``plain``."""
        if not isinstance(template.context, Keys):
            return plain
        made, kind = self.writer.constant(template.context.restore), self.writer.constant(template.type)
        return f"{made}({kind}, {plain})"

    def _display(self, template: Container, children: list[str]) -> str:
        """A container with its children written out."""
        listed = ", ".join(children)
        kind, context = template.type, template.context
        keyed = isinstance(kind, type) and issubclass(kind, (dict, set, frozenset))  # pytree's `namedtuple` is no class
        if keyed and has_table(context):
            columns = ", ".join(map(_or_nothing, children))
            made = f"dict(zip({columns}))" if issubclass(kind, dict) else f"{kind.__name__}({columns})"
            return self._restored(template, made)
        if kind is tuple:
            return f"({listed}{',' if len(children) == 1 else ''})"
        if kind is list:
            return f"[{listed}]"
        if kind is dict:
            return _dict_display((self.writer.literal(key) for key in context), children, quoted=True)
        if isinstance(context, Keys):
            return self._restored(template, _dict_display(map(self.writer.literal, context), children, quoted=True))
        if kind in (set, frozenset):  # not pytree nodes: torch registers no order for them
            return f"{kind.__name__}(({listed}{',' if len(children) == 1 else ''}))"
        if kind is MethodType:
            return f"{self.writer.constant(kind)}({listed})"
        if kind in BOUND:
            return f"{listed}.{context}"
        if kind in (slice, complex):
            return f"{self.writer.constant(kind)}({listed})"
        if kind is torch.Size:
            return f"{self.writer.constant(kind)}(({listed}{',' if len(children) == 1 else ''}))"
        if pytree.is_namedtuple_class(kind) and kind not in pytree.SUPPORTED_NODES:
            return f"{self.writer.constant(kind)}({listed})"
        if kind not in pytree.SUPPORTED_NODES:
            raise ValueError(f"{kind.__qualname__} is not registered as a pytree node")
        unflatten = self.writer.constant(pytree.SUPPORTED_NODES[kind].unflatten_fn)
        return f"{unflatten}([{listed}], {self.writer.constant(context)})"


def _or_nothing(column: str) -> str:
    """The expression of a column, which is None on paths that hand out something else than what has two names here."""
    return f"({column} or ())"


def _dict_display(keys: Iterator[str], values: Sequence[str], *, quoted: bool = False) -> str:
    pairs = (
        value if value.startswith("**") else f"{key if quoted else repr(key)}: {value}"
        for key, value in zip(keys, values, strict=True)
    )
    return f"{{{', '.join(pairs)}}}"


_EMPTY: dict[Any, Callable[[FunctionWriter, Any], str]] = {
    list: lambda writer, context: "[]",
    dict: lambda writer, context: "{}",
    set: lambda writer, context: "set()",
    OrderedDict: lambda writer, context: f"{writer.constant(OrderedDict)}()",
    Counter: lambda writer, context: f"{writer.constant(Counter)}()",
    defaultdict: lambda writer, context: f"{writer.constant(defaultdict)}({writer.constant(context.default_factory)})",
    deque: lambda writer, context: f"{writer.constant(deque)}(maxlen={writer.literal(context)})",
}


def _can_be_filled(template: Container | Instance) -> bool:
    return isinstance(template, Instance) or template.type in _EMPTY


def in_order(rows: list[tuple[int, Any, Any, bool]]) -> dict[Any, Any]:
    """A dict of rows ``(rank, key, value, whether it is there)``, in the order of the ranks."""
    return {key: value for _, key, value, _ in sorted((row for row in rows if row[3]), key=lambda row: row[0])}


def made_of(kind: type, state: dict[str, Any]) -> Any:
    """An instance with these attributes."""
    instance = allocate(kind)
    fill_instance(instance, state)
    return instance


def allocate(kind: type) -> Any:
    """An instance whose ``__init__`` has not run."""
    try:
        return object.__new__(kind)
    except TypeError:  # a subclass of a builtin (an exception, say) has an allocator of its own
        return kind.__new__(kind)  # type: ignore[call-overload]  # of a builtin
