"""How the written function is called: the original's parameters, and where a value of the call is found in them."""

from __future__ import annotations

import enum
import inspect
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.deploy.python.spelling import Spelling, is_literal
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Item, Slot, Source

_OF_TORCH = (torch.dtype, torch.layout, torch.memory_format, torch.device)


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
    default = default if is_literal(default) or _has_name(default) else None
    if not given:
        fixed.append((parameter.name, default))
    return f"{parameter.name}={spelling.literal(default)}"


def _has_name(value: Any) -> bool:
    """Whether a value is a constant that a file of torch alone can name, though it is no literal."""
    return isinstance(value, (enum.Enum, *_OF_TORCH))


def is_given(source: Source, receiver: int) -> bool:
    """Whether a source lies in the arguments that the written function takes."""
    while isinstance(source, (Item, Attribute, Slot)):
        source = source.base
    return isinstance(source, Argument) and not (receiver and source.key == 0)
