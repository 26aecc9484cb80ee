"""How the written function is called: the original's parameters, and where a value of the call is found in them."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.deploy.python.spelling import Spelling, is_literal
from stillgraph.program.guards import (
    Argument,
    Attribute,
    ConstantGuard,
    ContentsGuard,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    SizeGuard,
    Slot,
    Source,
    TensorGuard,
)
from stillgraph.program.program import Program


@dataclass(frozen=True)
class Call:
    """The parameters of the written function.

    Attributes:
        header: what stands between its parentheses, without ``self``.
        names: of all parameters.
        texts: by a place in the call, as `Argument.key` has it: the expression that reads it.
        fixed: expressions that must have these values: parameters that the example call left at their defaults.
        receiver: 1 where place 0 is the receiver's.
    """

    header: str
    names: tuple[str, ...]
    texts: dict[int | str, str]
    fixed: tuple[tuple[str, Any], ...]
    receiver: int


def call_of(
    program: Program, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], receiver: int, spelling: Spelling
) -> Call:
    """The parameters of the original, or where Python does not tell them, one for each argument of the example."""
    try:
        parameters = list(inspect.signature(function).parameters.values()) if function is not None else None
        if parameters is not None:
            return _from_signature(parameters, args, kwargs, receiver, spelling)
    except (TypeError, ValueError):
        pass
    names = {item.source.key: item.name for item in program.inputs if isinstance(item.source, Argument)}
    texts: dict[int | str, str] = {i: names.get(i, f"arg{i}") for i in range(receiver, len(args))}
    texts.update({key: key for key in kwargs})
    return Call(", ".join(texts.values()), tuple(texts.values()), texts, (), receiver)


def _from_signature(
    parameters: list[inspect.Parameter],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    receiver: int,
    spelling: Spelling,
) -> Call:
    texts: dict[int | str, str] = {}
    fixed: list[tuple[str, Any]] = []
    header: list[str] = []
    position, starred = receiver, False
    last_positional = max((i for i, p in enumerate(parameters) if p.kind is p.POSITIONAL_ONLY), default=-1)
    for index, parameter in enumerate(parameters):
        name = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = range(position, len(args))
            texts.update({place: f"{name}[{place - position}]" for place in rest})
            fixed.append((f"len({name})", len(rest)))
            header.append(f"*{name}")
            position, starred = len(args), True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            known = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
            rest_keys = [key for key in kwargs if key not in known]
            texts.update({key: f"{name}[{spelling.literal(key)}]" for key in rest_keys})
            fixed.append((f"list({name})", rest_keys))
            header.append(f"**{name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            header.append("*")
            starred = True
        given = True
        if parameter.kind is not parameter.KEYWORD_ONLY and position < len(args):
            texts[position] = name
            position += 1
        elif name in kwargs and parameter.kind is not parameter.POSITIONAL_ONLY:
            texts[name] = name
        else:
            given = False
        header.append(_declared(parameter, given, fixed, spelling))
        if index == last_positional:
            header.append("/")
    return Call(", ".join(header), tuple(p.name for p in parameters), texts, tuple(fixed), receiver)


def _declared(parameter: inspect.Parameter, given: bool, fixed: list[tuple[str, Any]], spelling: Spelling) -> str:
    default = parameter.default
    if default is parameter.empty:
        return parameter.name
    default = default if is_literal(default) else None
    if not given:
        fixed.append((parameter.name, default))
    return f"{parameter.name}={spelling.literal(default)}"


def is_given(source: Source, receiver: int) -> bool:
    """Whether a source lies in the arguments that the written function takes."""
    while isinstance(source, (Item, Attribute, Slot)):
        source = source.base
    return isinstance(source, Argument) and not (receiver and source.key == 0)


def checks_of(program: Program, call: Call, text: Any, spelling: Spelling) -> list[str]:
    """Statements that refuse arguments which the program was not made for."""
    lines: list[str] = []
    for guard in program.guards:
        source = getattr(guard, "source", None)
        if source is None or not is_given(source, call.receiver) or not _is_plain(source):
            continue
        place = text(source)
        match guard:
            case TensorGuard(dtype=dtype, shape=shape):
                known = spelling.literal(tuple(shape))
                lines.append(f"{spelling.helper('_expect')}({spelling.literal(place)}, {place}, {dtype}, {known})")
            case ConstantGuard(value=value) | ContentsGuard(value=value):
                lines += _same_object(place, value, spelling)
            case IdentityGuard(expected=expected):
                lines += _same_object(place, expected, spelling)
            case LengthGuard(length=length):
                lines.append(_same(f"len({place})", length, spelling))
            case KeysGuard(keys=keys) if is_literal(list(keys)):
                lines.append(_same(f"list({place})", list(keys), spelling))
    for guard in program.guards:
        if isinstance(guard, SizeGuard) and all(is_given(source, call.receiver) for _, source, _ in guard.sizes):
            lines += _size_check(guard, text)
    lines += [_same(place, value, spelling) for place, value in call.fixed]
    return list(dict.fromkeys(lines))


def _same_object(place: str, value: Any, spelling: Spelling) -> list[str]:
    """A check of what is plain data; of other things by what they are called: a file cannot name all there is."""
    if is_literal(value):
        return [_same(place, value, spelling)]
    if isinstance(value, (torch.nn.Module, type(None))):
        return [_same(f"type({place}).__name__", type(value).__name__, spelling)]
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return [_same(f'getattr({place}, "__qualname__", None)', name, spelling)]
    return [] if "0x" in repr(value) else [_same(f"repr({place})", repr(value), spelling)]


def size_condition(guard: SizeGuard, text: Any) -> str | None:
    """A condition on sizes as Python, None where it is more than arithmetic."""
    condition = guard.expression
    for name, source, dim in guard.sizes:
        condition = re.sub(rf"\b{re.escape(name)}\b", f"{text(source)}.shape[{dim}]", condition)
    try:
        calls = any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(condition, mode="eval")))
    except SyntaxError:
        return None
    return None if calls else condition


def _size_check(guard: SizeGuard, text: Any) -> list[str]:
    condition = size_condition(guard, text)
    if condition is None:
        return []
    said = condition.replace('"', "'")
    return [f"if not ({condition}):", f'    raise ValueError("the program was made for {said}")']


def _is_plain(source: Source) -> bool:
    """Whether a source is read without looking behind the scenes: what is asked of classes is not checked."""
    while isinstance(source, (Item, Attribute, Slot)):
        if isinstance(source, Attribute) and source.name.startswith("__"):
            return False
        if isinstance(source, Slot) and source.table == "__dict__" and source.name.startswith("_"):
            return False
        source = source.base
    return isinstance(source, Argument)


def _same(place: str, value: Any, spelling: Spelling) -> str:
    name = place if place.isidentifier() else place.replace('"', "'")
    return f"{spelling.helper('_expect_value')}({spelling.literal(name)}, {place}, {spelling.literal(value)})"
