"""Results and effects as Python: containers written out, attributes assigned."""

from __future__ import annotations

import contextlib
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.signature import written_place
from stillgraph.deploy.python.lines import Lines
from stillgraph.deploy.python.places import Places
from stillgraph.deploy.python.scopes import Scope
from stillgraph.deploy.python.spelling import Spelling, is_at_hand
from stillgraph.program.effects import (
    DeleteAttribute,
    Effect,
    ExtendContents,
    SetAttribute,
    SetContents,
    SetItem,
    SetSlot,
)
from stillgraph.program.outputs import (
    BOUND,
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
    has_table,
)
from stillgraph.program.sources import Argument
from stillgraph.runtime.native.template_nodes import Nodes


@dataclass
class Results:
    """Writes what a call leaves behind and what it returns.

    Args:
        outputs: the expressions of the graph's outputs.
    """

    places: Places
    spelling: Spelling
    lines: Lines
    scope: Scope
    outputs: Sequence[str]
    location: Any
    _nodes: Nodes = field(init=False)
    _names: dict[int, str] = field(default_factory=dict)
    _read: dict[Any, str] = field(default_factory=dict)
    _has_effects: bool = False
    _is_first: bool = False  # whether what has two names is being written

    def write(self, result: Template | None, effects: Sequence[Effect]) -> str:
        """Write the effects; the expression of the result. Every value is made before the first effect."""
        values = [effect.value for effect in effects if hasattr(effect, "value")]
        self._nodes = Nodes([*([] if result is None else [result]), *values])
        if self._nodes.cyclic:
            raise self._refused("the result contains itself")
        self._has_effects = bool(effects)
        roots = iter(self._nodes.roots)
        returned = "" if result is None else self.expression(next(roots))
        made = [self.expression(next(roots)) if hasattr(effect, "value") else "" for effect in effects]
        if len(effects) > 1:
            made = [self._kept(text) for text in made]
        for effect, value in zip(effects, made):
            for line in self._effect(effect, value):
                self.lines.add(line)
        return returned

    def _kept(self, text: str) -> str:
        """A value that is read from an object is read before the effects."""
        if not text or "self." not in text:
            return text
        name = self.scope.choose("kept")
        self.scope.locked.add(name)
        self.lines.add(f"{name} = {text}")
        return name

    def _refused(self, message: str) -> BaseException:
        return refuse("SG402", f"Python source: {message}", location=self.location)

    # ---- values
    def expression(self, template: Template) -> str:
        """A value."""
        match template:
            case Output(index=index):
                return self.outputs[index]
            case Constant(value=value):
                passed = self.places.passed(value) if isinstance(value, enum.Enum) else None
                return passed or self.spelling.literal(value)
            case Same(source=source):
                return self._same(source)
            case OneOf(index=index, entries=entries):
                return self._one_of(self.outputs[index.index], entries)
            case Choice(flag=flag, left=left, right=right):
                return f"({self.expression(left)} if {self.expression(flag)} else {self.expression(right)})"
            case Shared(index=index):
                return self._node(index)
            case Repeated():
                return self._repeated(template, list(self.outputs), 0)
            case Container(children=children):
                return self.container(template, [self.expression(child) for child in children])
            case Instance():
                return self._instance(template, [self.expression(child) for _, child in template.attributes])
        raise self._refused(f"no form for {template}")

    def _one_of(self, number: str, entries: tuple[tuple[int, Template], ...]) -> str:
        table = ", ".join(f"{at}: {self.expression(each)}" for at, each in entries)
        return f"{{{table}}}[{number}]"

    def _same(self, source: Any) -> str:
        text = self.places.text(source)
        if not self._has_effects or isinstance(source, Argument):
            return text
        if source not in self._read:
            name = self._read[source] = self.scope.choose("found")
            self.scope.locked.add(name)
            self.lines.add(f"{name} = {text}")
        return self._read[source]

    def _node(self, index: int) -> str:
        if index in self._names:
            return self._names[index]
        node = self._nodes.table[index]
        assert node is not None
        with self._written_first(self._nodes.uses[index] > 1):
            children = [self._child(node.template, position, child) for position, child in enumerate(node.children)]
        template = node.template
        write: Any = self.container if isinstance(template, Container) else self._instance
        made: str = write(template, children)
        if self._nodes.uses[index] == 1:
            return made
        name = self._names[index] = self.scope.choose("shared")
        self.scope.locked.add(name)
        self.lines.add(f"{name} = {made}")
        return name

    @contextlib.contextmanager
    def _written_first(self, is_so: bool) -> Iterator[None]:
        """While what has two names is written: the paths that hand out something else have no columns for it."""
        before, self._is_first = self._is_first, self._is_first or is_so
        yield
        self._is_first = before

    def _child(self, template: Container | Instance, index: int, child: Template) -> str:
        if not isinstance(child, Maybe):
            return self.expression(child)
        if child.rank is not None:
            raise self._refused("a dict whose keys the run puts in order")
        assert isinstance(template, Container)
        held, flag = self.expression(child.child), self.expression(child.flag)
        if issubclass(template.type, dict):
            return f"**({{{self.spelling.literal(template.context[index])}: {held}}} if {flag} else {{}})"
        return f"*(({held},) if {flag} else ())"

    def _repeated(self, template: Repeated, values: list[str], depth: int) -> str:
        """The children that a list has for each row of some columns, spread."""
        columns = [values[column.index] for column in template.columns]
        if self._is_first and not depth:
            columns = [f"({column} or ())" for column in columns]
        rows = [f"each_{depth}_{i}" if depth else ("each" if i == 0 else f"each_{i}") for i in range(len(columns))]
        element = self._in_row(template.element, rows, depth + 1)
        if len(columns) == 1:
            return f"*{columns[0]}" if element == rows[0] else f"*[{element} for {rows[0]} in {columns[0]}]"
        return f"*[{element} for {', '.join(rows)} in zip({', '.join(columns)})]"

    def _in_row(self, template: Template, rows: list[str], depth: int) -> str:
        match template:
            case Output(index=index):
                return rows[index]
            case OneOf(index=index, entries=entries):
                return self._one_of(rows[index.index], entries)
            case Repeated():
                return self._repeated(template, rows, depth)
            case Container(children=children):
                return self.container(template, [self._in_row(child, rows, depth) for child in children])
            case Instance(attributes=attributes):
                return self._instance(template, [self._in_row(child, rows, depth) for _, child in attributes])
        return self.expression(template)

    # ---- containers
    def container(self, template: Container, children: list[str]) -> str:
        """A container with its children written out."""
        kind, context, listed = template.type, template.context, ", ".join(children)
        if isinstance(kind, type) and issubclass(kind, (dict, set, frozenset)) and has_table(context):
            return self._of_table(template, listed)
        one = f"({listed}{',' if len(children) == 1 else ''})"
        if kind is tuple:
            return one
        if kind is list:
            return f"[{listed}]"
        if kind is dict:
            return self._dict(context, children)
        if kind in (set, frozenset):
            return f"{kind.__name__}({one})"
        if kind is slice or kind is complex:
            return f"{kind.__name__}({listed})"
        if kind is torch.Size:
            return f"torch.Size({one})"
        if kind in (OrderedDict, Counter):
            return f"{self.spelling.imported('collections')}.{kind.__name__}({self._dict(context, children)})"
        if kind is defaultdict:
            return self._default_dict(context, children)
        if kind is deque:
            limit = "" if context is None else f", maxlen={context}"
            return f"{self.spelling.imported('collections')}.deque([{listed}]{limit})"
        if kind in BOUND and context is not None:
            return f"{listed}.{context}"
        if pytree.is_namedtuple_class(kind) and kind not in pytree.SUPPORTED_NODES:
            return f"{self.spelling.stand_in(kind)}({listed})"
        if is_at_hand(kind.__module__) and issubclass(kind, tuple):
            return f"{self.spelling.function(kind, self.location)}({one})"
        raise self._refused(f"no form for a '{kind.__qualname__}'; return a tuple, a dict or a dataclass")

    def _of_table(self, template: Container, listed: str) -> str:
        """A dict or set of which only the run knows the keys."""
        kind, context = template.type, template.context
        if not issubclass(kind, dict):
            return f"{kind.__name__}({listed})"
        made = f"dict(zip({listed}))"
        if kind is defaultdict:
            return f"{self.spelling.imported('collections')}.defaultdict({self._factory(context)}, {made})"
        if kind in (OrderedDict, Counter):
            return f"{self.spelling.imported('collections')}.{kind.__name__}({made})"
        return made

    def _dict(self, keys: Any, children: list[str]) -> str:
        pairs = (
            child if child.startswith("**") else f"{self.spelling.literal(key)}: {child}"
            for key, child in zip(keys, children, strict=True)
        )
        return f"{{{', '.join(pairs)}}}"

    def _default_dict(self, context: Any, children: list[str]) -> str:
        keys = context if isinstance(context, Keys) else context[1]
        made = self._dict(keys, children)
        return f"{self.spelling.imported('collections')}.defaultdict({self._factory(context)}, {made})"

    def _factory(self, context: Any) -> str:
        factory = context.default_factory if isinstance(context, Keys) else context[0]
        return "None" if factory is None else self.spelling.function(factory, self.location)

    def _instance(self, template: Instance, children: list[str]) -> str:
        names = [name for name, _ in template.attributes]
        plain = not issubclass(template.type, (BaseException, torch.nn.Module))
        if not plain or not all(name.isidentifier() for name in names):
            raise self._refused(f"no form for a '{template.type.__qualname__}'; return a tuple, a dict or a dataclass")
        given = ", ".join(f"{name}={child}" for name, child in zip(names, children, strict=True))
        self.spelling.fields.setdefault(template.type.__name__, tuple(names))
        return f"{self.spelling.stand_in(template.type)}({given})"

    # ---- effects
    def _effect(self, effect: Effect, value: str) -> list[str]:
        match effect:
            case SetSlot(target=target, table="_buffers", name=name):
                return [f"{self.places.text(target)}.register_buffer({self.spelling.literal(name)}, {value})"]
            case DeleteAttribute(target=target, name=name):
                owner = self.places.text(target)
                return [f"if hasattr({owner}, {self.spelling.literal(name)}):", f"    del {owner}.{name}"]
            case SetContents(target=target, value=Container(type=kind)) if issubclass(kind, list):
                return [f"{self.places.text(target)}[:] = {value}"]
            case SetContents(target=target):
                return [f"{self.spelling.helper('_replace')}({self.places.text(target)}, {value})"]
            case ExtendContents(target=target):
                return [f"{self.places.text(target)}.extend({value})"]
            case SetItem(target=target, key=key):
                return [f"{self.places.text(target)}[{self.spelling.literal(key)}] = {value}"]
        place = written_place(effect)
        if place is None:
            raise self._refused(f"no form for the effect '{effect}'")
        if isinstance(effect, SetAttribute) and not effect.name.isidentifier():
            return [f"setattr({self.places.text(effect.target)}, {self.spelling.literal(effect.name)}, {value})"]
        return [f"{self.places.text(place)} = {value}"]
