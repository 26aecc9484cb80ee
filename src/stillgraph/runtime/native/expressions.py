"""Operations of a program as Python expressions: what the native driver and Python source have in common."""

from __future__ import annotations

import abc
import itertools
import operator
from typing import Any

import torch
from torch import fx

from stillgraph.core.lookup import is_exactly
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import build_list, recurse
from stillgraph.program.operations import text as made_text
from stillgraph.program.printer import INFIX as PRINTED

INFIX = {**PRINTED, operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>"}
PREFIX = {operator.neg: "-", operator.invert: "~", operator.not_: "not ", operator.pos: "+"}


class Expressions(abc.ABC):
    """Writes the expression of one operation; who derives from it says what things are called."""

    # ---- names
    @abc.abstractmethod
    def named(self, node: fx.Node) -> str:
        """The variable that holds a node's value."""

    @abc.abstractmethod
    def function(self, target: Any) -> str:
        """How a function is called by name."""

    @abc.abstractmethod
    def recursive(self, name: Any) -> str:
        """The function that the recursion of that name became."""

    @abc.abstractmethod
    def constant(self, value: Any) -> str:
        """An expression for an object that is not written as a literal."""

    def text(self, value: Any) -> str:
        """A number, a text, ``None`` or an ellipsis as a literal."""
        if type(value) is float and (value != value or value in (float("inf"), float("-inf"))):
            return f"float('{value}')"
        text = "..." if value is ... else repr(value)
        return f"({text})" if text.startswith("-") else text

    # ---- operations
    def expression(self, node: fx.Node) -> str:
        """What computes a node."""
        args = [self.value(a) for a in arguments(node)]
        keywords = [f"{k}={self.value(v)}" for k, v in self.keywords(node).items()]
        target = node.target
        if node.op == "call_method":
            return f"{primary(args[0])}.{target}({', '.join(args[1:] + keywords)})"
        if target in INFIX and len(args) == 2 and not keywords:
            return f"{args[0]} {INFIX[target]} {args[1]}"
        if target in PREFIX and len(args) == 1:
            return f"{PREFIX[target]}{args[0]}"
        if target is build_list:
            return self._list_display(*arguments(node))
        if target is made_text:
            template, left = _with_constants(*arguments(node))
            return f"{template!r}.format({', '.join([*map(self.value, left), *keywords])})"
        if target is recurse:
            return f"{self.recursive(arguments(node)[0])}({', '.join(args[1:])})"
        if target is operator.getitem:
            return f"{primary(args[0])}[{self._index(arguments(node)[1])}]"
        if target is operator.setitem:
            return f"{args[0]}[{self._index(arguments(node)[1])}] = {args[2]}"
        if target is getattr and len(arguments(node)) == 2 and isinstance(arguments(node)[1], str):
            return f"{primary(args[0])}.{arguments(node)[1]}"
        return f"{self.function(target)}({', '.join(args + keywords)})"

    def keywords(self, node: fx.Node) -> dict[str, Any]:
        """The keyword arguments to be written."""
        return dict(node.kwargs)

    def _list_display(self, items: Any, spread: Any) -> str:
        cells = (f"*{self.value(v)}" if index in spread else self.value(v) for index, v in enumerate(items))
        return f"[{', '.join(cells)}]"

    def _index(self, index: Any) -> str:
        if isinstance(index, tuple) and index:
            return ", ".join(self._index(i) for i in index) + ("," if len(index) == 1 else "")
        if isinstance(index, slice):
            bounds = ["" if b is None else self.value(b) for b in (index.start, index.stop)]
            return ":".join(bounds) + ("" if index.step is None else f":{self.value(index.step)}")
        return self.value(index)

    def value(self, value: Any) -> str:
        """An argument of a node as Python."""
        if isinstance(value, fx.Node):
            return self.named(value)
        if isinstance(value, torch.Size):
            return f"{self.function(torch.Size)}({list(value)})"
        if isinstance(value, tuple):
            return self.tuple_text(value)
        if isinstance(value, list):
            return f"[{', '.join(self.value(v) for v in value)}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if value is None or value is ... or is_exactly(value, (bool, int, float, str, bytes, complex)):
            return self.text(value)
        return self.constant(value)

    def tuple_text(self, values: Any) -> str:
        """A tuple of arguments."""
        return f"({''.join(self.value(v) + ', ' for v in values)})"


def _with_constants(template: str, *values: Any) -> tuple[str, list[Any]]:
    """A template of a text with the texts in it that are known, and the values that are left."""
    pieces = template.split("{}")
    if len(pieces) != len(values) + 1 or any("{" in piece or "}" in piece for piece in pieces):
        return template, list(values)
    known = [value.replace("{", "{{").replace("}", "}}") if type(value) is str else "{}" for value in values]
    filled = "".join(itertools.chain.from_iterable(zip(pieces, [*known, ""])))
    return filled, [value for value in values if type(value) is not str]


def primary(text: str) -> str:
    """An expression that a dot or a bracket may follow."""
    return text if text.replace("_", "a").replace(".", "a").isalnum() or text[0] in "([" else f"({text})"
