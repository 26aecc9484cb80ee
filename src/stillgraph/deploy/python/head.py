"""The head of a written file: what it is, what it takes, what it assumes, which style it is in and why."""

from __future__ import annotations

import textwrap
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly
from stillgraph.deploy.python.calls import Call, is_given
from stillgraph.deploy.python.checks import size_condition
from stillgraph.deploy.python.lines import place_text
from stillgraph.deploy.python.places import Places
from stillgraph.deploy.python.style import Style
from stillgraph.passes.regions.values import is_number
from stillgraph.program.guards import ConstantGuard, FactGuard, ModeGuard, SizeGuard, TensorGuard
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Slot


def head_of(program: Program, style: Style, call: Call, places: Places, name: str, weights_name: str) -> str:
    version = torch.__version__.partition("+")[0]
    place = place_text(program.location) if program.location is not None else "a trace"
    lines = [f'"""{name}: {place} as one program. Written by stillgraph; needs torch alone (made with {version}).', ""]
    lines += ["Arguments", *_arguments(program, call, places)]
    paragraphs = [_style_text(style)]
    assumed = _assumptions(program, call, places)
    if assumed:
        paragraphs.append(f"It was made for this, besides the types of its arguments: {'; '.join(assumed)}.")
    if places.is_class:
        made = f"load() gives the module with the weights in {weights_name}." if places.weights else "load() gives it."
        paragraphs.append(f"{name} is a torch.nn.Module with the original's names of parameters and buffers. {made}")
    for paragraph in paragraphs:
        lines += ["", *textwrap.wrap(paragraph, 108)]
    text = "\n".join(lines).replace("\\", "/")
    return f'{text}\n"""'


def _style_text(style: Style) -> str:
    if style.torch:
        return (
            "Control flow: torch.cond and while_loop, so that the file can be compiled and exported again. "
            "It takes no gradients; where it hands an argument back, that is a copy."
        )
    return f"Control flow: Python's own; {style.why}."


def _arguments(program: Program, call: Call, places: Places) -> list[str]:
    found: list[str] = []
    for guard in program.guards:
        if isinstance(guard, TensorGuard) and is_given(guard.source, call.receiver):
            dims = ", ".join("any" if d is None else str(d) for d in guard.shape)
            device = "" if guard.device.type == "cpu" else f" on {guard.device}"
            dtype = str(guard.dtype).removeprefix("torch.")
            found.append(f"    {places.text(guard.source)}: {dtype}[{dims}]{device}")
        elif isinstance(guard, ConstantGuard) and isinstance(guard.source, Argument):
            found.append(f"    {places.text(guard.source)}: {guard.value!r}, nothing else")
    numbers = [i for i in program.inputs if is_number(i.value) and is_given(i.source, call.receiver)]
    found += [f"    {places.text(i.source)}: a number" for i in numbers]
    found += [f"    {place}: {value!r}, nothing else" for place, value in call.fixed if place in call.names]
    return list(dict.fromkeys(found)) or ["    none"]


def _assumptions(program: Program, call: Call, places: Places) -> list[str]:
    found: list[str] = []
    attributes: list[str] = []
    for guard in program.guards:
        match guard:
            case ModeGuard(context=context, default_dtype=dtype):
                found += [] if dtype == torch.float32 else [f"the default dtype is {dtype}"]
                found += [str(autocast) for autocast in context.autocast]
            case SizeGuard():
                condition = size_condition(guard, lambda source: _shown(source, call, places))
                found.append(condition or str(guard))
            case FactGuard(source=source) if is_given(source, call.receiver):
                found.append(f"{guard.name} of {_shown(source, call, places)} is {guard.value}")
            case ConstantGuard(source=Attribute() | Slot() as source, value=value):
                if source.name == "training":
                    found.append(f"training is {'on' if value else 'off'}")
                elif not is_given(source, call.receiver) and _is_told(source) and _is_short(value):
                    attributes.append(f"{_shown(source, call, places)} is {value!r}")
    more = len(attributes) - _MOST_ATTRIBUTES
    rest = [f"{more} further attributes are what they were"] if more > 0 else []
    return list(dict.fromkeys([*found, *attributes[:_MOST_ATTRIBUTES], *rest]))


_MOST_ATTRIBUTES = 12  # that the head of a file tells


def _is_told(source: Any) -> bool:
    while isinstance(source, (Attribute, Slot)):
        if source.name.startswith("_"):
            return False
        source = source.base
    return isinstance(source, Argument)


def _is_short(value: Any) -> bool:
    return value is None or (is_exactly(value, (bool, int, float, str)) and len(repr(value)) < 40)


def _shown(source: Any, call: Call, places: Places) -> str:
    text = str(source)
    for key, name in call.texts.items():
        text = text.replace(str(Argument(key)), name) if isinstance(key, int) else text
    return text.replace("args[0]", "self") if call.receiver else text
