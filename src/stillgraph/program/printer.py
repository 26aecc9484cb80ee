"""`str(program)`: a program as one likes to read it."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.program.facts.rerouting import rerouted
from stillgraph.program.graphs import arguments
from stillgraph.program.guards import ConstantGuard, ModeGuard, SizeGuard, TensorGuard
from stillgraph.program.operations import act, build_list, checkpointed, outside, print_, recurse, recursion, try_
from stillgraph.program.outputs import (
    Choice,
    Container,
    Instance,
    Maybe,
    OfKind,
    OneOf,
    OrNone,
    Output,
    Repeated,
    Template,
)
from stillgraph.program.sources import Slot
from stillgraph.program.types import ListType, NumberType, ObjectType, TableType, TensorType

if TYPE_CHECKING:
    from stillgraph.program.program import Program

INFIX = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.and_: "&",
    operator.or_: "|",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.is_: "is",
}
_WIDTH = 72
_SAME = re.compile(r"(\w+) == \1")
_SYMBOL = re.compile(r"\bs\d+\b")
_COND, _WHILE = torch.ops.higher_order.cond, torch.ops.higher_order.while_loop
_MANY = (_COND, _WHILE, recursion, recurse, try_, checkpointed, rerouted)  # they give several values


def render(program: Program) -> str:
    """The whole program: signature, guards, regions with source lines, effects."""
    inputs = ", ".join(f"{i.name}: {type_text(i.value)}" for i in program.inputs if i.kind == "argument")
    (returned,) = arguments(program.graph.graph.output_node())
    result = _result(program.result, [_value(v) for v in returned])
    head = f"program {program.name}({inputs}) -> {result}"
    lines = [_with_place(head, f"{program.location.file.rsplit('/', 1)[-1]}:{program.location.line}")]
    lifted = [i for i in program.inputs if i.kind != "argument"]
    if lifted:
        lines.append("uses     " + ", ".join(f"{i.name}: {type_text(i.value)}" for i in lifted))
    guards = guard_texts(program)
    if guards:
        lines.append("guards   " + "; ".join(guards))
    lines += _region(program.graph, "  ")
    lines += [f"  effect {effect}" for effect in program.effects]
    words = size_words(program)
    return "\n".join(_worded(line, words) for line in lines) if words else "\n".join(lines)


def size_words(program: Program) -> dict[str, str]:
    """A word for each open size of an input: its name where it was declared with one, or the argument and its axis."""
    words: dict[str, str] = {}
    taken = {node.name for region in program.regions for node in region.graph.nodes}
    for given in program.inputs:
        declared = program.dims.get(given.source, ())
        for axis, size in enumerate(given.value.shape if isinstance(given.value, torch.Tensor) else ()):
            dim = declared[axis] if axis < len(declared) else None
            if _SYMBOL.fullmatch(str(size)) and (dim is not None or str(size) not in words):
                word = f"{given.name}_dim_{axis}" if dim is None else dim.name
                words[str(size)] = word if word not in taken else f"{word}_size"
    names = {given.source: given.name for given in program.inputs}
    for guard in program.guards:
        for symbol, source, axis in guard.sizes if isinstance(guard, SizeGuard) else ():
            if source in names and axis >= 0:  # of a size that equals another: the inputs have that one's symbol
                words.setdefault(symbol, f"{names[source]}_dim_{axis}")
    return {symbol: word for symbol, word in words.items() if symbol not in taken}


def in_words(text: str, words: Mapping[str, str]) -> str:
    """A text with the words of `size_words` for the symbols of sizes."""
    return _SYMBOL.sub(lambda found: words.get(found[0], found[0]), text) if words else text


def _worded(line: str, words: Mapping[str, str]) -> str:
    text, gap, place = line.rpartition("  ")
    if gap and re.fullmatch(r"\S.*:\d+", place):
        return _with_place(in_words(text.rstrip(), words), place)
    return in_words(line, words)


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, fx.Node) else argument


def _result(template: Template, values: list[Any]) -> str:
    """A result by the types of its leaves."""
    match template:
        case Output(index=index):
            return type_text(values[index])
        case Container(type=kind, children=children):
            inner = ", ".join(_result(child, values) for child in children)
            return f"({inner})" if kind is tuple else f"[{inner}]" if kind is list else f"{kind.__name__}({inner})"
        case Instance(type=kind, attributes=attributes):
            return f"{kind.__name__}({', '.join(f'{n}: {_result(t, values)}' for n, t in attributes)})"
        case Repeated(columns=columns, element=element):
            return f"*{_result(element, [_element(values[column.index]) for column in columns])}"
        case Maybe(child=child):
            return f"{_result(child, values)} or nothing"
        case OrNone(child=child):
            return f"{_result(child, values)} or None"
        case OneOf(entries=entries):
            return " or ".join(_result(each, values) for _, each in entries)
        case OfKind(value=value):
            return _result(value, values)
        case Choice(left=left, right=right):
            return f"{_result(left, values)} or {_result(right, values)}"
    return str(template)


def _element(value: Any) -> Any:
    return value.element if isinstance(value, ListType) else value


def guard_texts(program: Program) -> list[str]:
    """The guards that are about the call itself, and not about the code it runs."""
    names = {f"{i.source} ": f"{i.name} " for i in program.inputs if i.kind == "argument"}
    shown = []
    training = set()
    for guard in program.guards:
        if isinstance(guard, ConstantGuard) and isinstance(guard.source, Slot) and guard.source.name == "training":
            training.add(guard.value)
        elif isinstance(guard, (ModeGuard, SizeGuard)) or (
            isinstance(guard, (TensorGuard, ConstantGuard))
            and not isinstance(guard.source, Slot)
            and not getattr(guard.source, "name", "").startswith("__")  # what Python itself keeps there
        ):
            text = str(guard)
            for source, name in names.items():
                text = name + text.removeprefix(source) if text.startswith(source) else text
            shown.append(text)
    if training:
        shown.append("training is " + "/".join("on" if t else "off" for t in sorted(training)))
    words = size_words(program)
    told = (in_words(text, words) for text in shown)
    shown = [text for text in told if not _SAME.fullmatch(text)]  # that dimensions of one name have one size
    return list(dict.fromkeys(shown))  # what is guarded as an argument and as what was read is told once


def type_text(value: Any) -> str:
    """The type of a value: ``f32[3, 4]``, ``int``."""
    if isinstance(value, TableType):
        return str(value)
    if isinstance(value, ListType):
        return f"list[{type_text(value.element)}]"
    if isinstance(value, (NumberType, ObjectType)):
        return value.kind.__name__
    if isinstance(value, (torch.Tensor, TensorType)):
        short = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf", "complex": "c"}
        name = str(value.dtype).removeprefix("torch.")
        stem = name.rstrip("0123456789")
        dims = ", ".join("?" if d is None else str(d) for d in value.shape)
        return f"{short.get(stem, stem)}{name[len(stem) :]}[{dims}]"
    for kind, text in ((torch.SymInt, "int"), (torch.SymFloat, "float"), (torch.SymBool, "bool")):
        if isinstance(value, kind):
            return text
    return type(value).__name__


def _with_place(text: str, place: str) -> str:
    return f"{text}{' ' * max(2, _WIDTH - len(text))}{place}" if place else text


def _region(module: fx.GraphModule, indent: str) -> list[str]:
    lines: list[str] = []
    for node in module.graph.nodes:
        if node.op == "output":
            lines.append(f"{indent}return {', '.join(_argument(a) for a in arguments(node)[0])}")
        elif node.op in ("call_function", "call_method") and not is_part(node):
            lines += _node(module, node, indent)
    return lines


def is_part(node: fx.Node) -> bool:
    """Whether a node only names one output of a branch or loop."""
    source = arguments(node)[0] if node.target is operator.getitem else None
    return isinstance(source, fx.Node) and source.target in _MANY


def _node(module: fx.GraphModule, node: fx.Node, indent: str) -> list[str]:
    place = _place(node)
    if node.target is _COND:
        predicate, true, false, _ = arguments(node)
        head = f"{indent}{_outputs(node)}if {_argument(predicate)}"
        return [
            _with_place(head, place),
            *_child(module, true, indent + "  then ", indent + "       "),
            *_child(module, false, indent + "  else ", indent + "       "),
        ]
    if node.target is _WHILE:
        test, body, entries, _ = arguments(node)
        names = [p.name for p in _placeholders(module, body)]
        carried = ", ".join(f"{n} = {_argument(e)}" for n, e in zip(names, entries))
        head = f"{indent}{_outputs(node)}while ({carried})"
        return [
            _with_place(head, place),
            *_child(module, test, indent + "  test ", indent + "       "),
            *_child(module, body, indent + "  body ", indent + "       "),
        ]
    if node.target is try_:
        _, body, handler, kinds, _ = arguments(node)
        caught = ", ".join(_value(kind).__name__ for kind in kinds)
        return [
            _with_place(f"{indent}{_outputs(node)}try", place),
            *_child(module, body, indent + "  body ", indent + "       "),
            f"{indent}  except {caught}",
            *_child(module, handler, indent + "       ", indent + "       "),
        ]
    if node.target is recursion:
        name, body, entries, _ = arguments(node)
        names = [p.name for p in _placeholders(module, body)]
        given = ", ".join(f"{n} = {_argument(e)}" for n, e in zip(names, entries))
        head = f"{indent}{_outputs(node)}recursive {name}({given})"
        return [_with_place(head, place), *_child(module, body, indent + "  body ", indent + "       ")]
    if node.target is checkpointed:
        head = _with_place(f"{indent}{_outputs(node)}checkpoint", place)
        return [head, *_child(module, arguments(node)[0], indent + "  body ", indent + "       ")]
    if node.target is rerouted:
        results = ", ".join(map(_argument, arguments(node)[1]))
        head = _with_place(f"{indent}{_outputs(node)}{results}, with the backward pass", place)
        return [head, *_child(module, arguments(node)[0], indent + "  body ", indent + "       ")]
    if node.target is recurse:
        inner = ", ".join(_argument(a) for a in arguments(node)[1:])
        return [_with_place(f"{indent}{_outputs(node)}{arguments(node)[0]}({inner})", place)]
    if node.target is print_:
        return [_with_place(f"{indent}{expression(node)}", place)]
    return [_with_place(f"{indent}{node.name} = {expression(node)}", place)]


def _placeholders(module: fx.GraphModule, region: Any) -> list[fx.Node]:
    return [n for n in getattr(module, str(region.target)).graph.nodes if n.op == "placeholder"]


def _outputs(node: fx.Node) -> str:
    names = [u.name for u in node.users if u.users]
    return f"{', '.join(names)} = " if names else ""


def _child(module: fx.GraphModule, region: Any, first: str, indent: str) -> list[str]:
    lines = _region(getattr(module, str(region.target)), indent)
    return [first + lines[0][len(indent) :], *lines[1:]]


def _place(node: fx.Node) -> str:
    location = node.meta.get("location")
    return "" if location is None else f"{location.file.rsplit('/', 1)[-1]}:{location.line}"


def expression(node: fx.Node) -> str:
    """What an operation computes, as Python would write it."""
    args = [_argument(a) for a in arguments(node)]
    if node.target in INFIX and len(args) == 2:
        return f"{args[0]} {INFIX[node.target]} {args[1]}"
    if node.target is build_list:
        return _list_display(node)
    if node.target is outside:
        return f"{_value(arguments(node)[0])!r}: {', '.join(map(_argument, arguments(node)[1]))}"
    if node.target is act:
        step, given, named = arguments(node)
        shown = [*map(_argument, given), *(f"{k}={_argument(v)}" for k, v in named.items())]
        return f"{_value(step)!r}({', '.join(shown)})"
    if node.target is print_:
        template, values, named = arguments(node)
        shown = list(map(_argument, values))
        given = shown if template is None else [f"{template!r}.format({', '.join(shown)})"]
        return f"print({', '.join(given + [f'{k}={_argument(v)}' for k, v in named.items()])})"
    keywords = [f"{k}={_argument(v)}" for k, v in node.kwargs.items()]
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({', '.join(args[1:] + keywords)})"
    if node.target is operator.getitem:
        return f"{args[0]}[{args[1]}]"
    if node.target is getattr:
        return f"{args[0]}.{arguments(node)[1]}"
    return f"{getattr(node.target, '__name__', node.target)}({', '.join(args + keywords)})"


def _list_display(node: fx.Node) -> str:
    items: Any = arguments(node)[0]
    spread: Any = arguments(node)[1]
    return f"[{', '.join(f'*{_argument(v)}' if i in spread else _argument(v) for i, v in enumerate(items))}]"


def _argument(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        inner: Iterable[str] = (_argument(v) for v in value)
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)})"
    if isinstance(value, slice):
        return ":".join("" if b is None else _argument(b) for b in (value.start, value.stop))
    return str(value) if isinstance(value, fx.Node) else repr(value).removeprefix("torch.")
