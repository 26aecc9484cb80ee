"""Example arguments from the command line: ``float32[?,3]``, ``int64[4](0..10)``, ``=3``, ``scale=float32[]``."""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stillgraph import InputSpec

_OPEN_SIZE = 4  # what an example has for a size that the program leaves open

_TENSOR = re.compile(
    r"""(?P<dtype>\w+) \s* \[ (?P<dims>[^\]]*) \] \s*
        (?: \( \s* (?P<low>[-+.\w]+?) \s* \.\. \s* (?P<high>[-+.\w]+) \s* \) )?""",
    re.VERBOSE,
)
_KEYWORD = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """The arguments of an example call, and their specification where a size is left open."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input_spec: list[InputSpec | None] | None


@dataclass(frozen=True)
class _Argument:
    value: Any
    spec: InputSpec | None  # of a tensor
    is_open: bool = False


def parse_inputs(texts: Sequence[str]) -> Example:
    """Make the arguments that the texts describe.

    Args:
        texts: one per argument, in order; a text of the form ``name=…`` is a keyword argument.

    Returns:
        the call; its tensors hold the same random numbers each time.

    Raises:
        ValueError: a text says no argument.
    """
    generator = torch.Generator().manual_seed(0)
    positional: list[_Argument] = []
    keywords: dict[str, _Argument] = {}
    for text in texts:
        named = _KEYWORD.fullmatch(text.strip())
        if named is None:
            positional.append(_argument(text.strip(), generator))
        elif named["name"] in keywords:
            raise ValueError(f"{named['name']!r} is given twice")
        else:
            keywords[named["name"]] = _argument(named["rest"].strip(), generator)
    if any(a.is_open for a in keywords.values()):
        raise ValueError("an open size (?) needs a positional argument")
    return Example(
        args=tuple(a.value for a in positional),
        kwargs={name: a.value for name, a in keywords.items()},
        input_spec=[a.spec for a in positional] if any(a.is_open for a in positional) else None,
    )


def read_values(path: Path, described: Example) -> Example:
    """Take the arguments from a file.

    Args:
        path: a ``.pt`` that `torch.save` wrote, with a tuple or list of arguments, a dict of keyword arguments, or one
            tensor; no code in it is run. Or a ``.npz``: arrays without a name (``arr_0``) are in order, others named.
        described: what the command says of the arguments: which of their sizes are open.

    Raises:
        ValueError: the file is no such file, or it holds another number of arguments than are described.
    """
    try:
        given = _arrays(path) if path.suffix == ".npz" else torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # of any kind: the readers are not made for other files
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{str(path)!r} holds no arguments in the form of a .pt or .npz: {text}") from error
    args, kwargs = _call_of(given)
    if described.args and len(described.args) != len(args):
        counted = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
        raise ValueError(f"{str(path)!r} holds {counted} in order, and --input describes {len(described.args)}")
    return Example(args, kwargs, described.input_spec)


def _call_of(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(given, dict):
        return (), given
    return (tuple(given) if isinstance(given, (tuple, list)) else (given,)), {}


def _arrays(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    in_order = [arrays[name] for name in arrays if re.fullmatch(r"arr_\d+", name)]
    if in_order and len(in_order) < len(arrays):
        raise ValueError("some arrays have names and others have none")
    return in_order or arrays


def told(example: Example) -> str:
    """The call of an example, in a few words: small tensors with their numbers."""
    named = [f"{name}={_told(value)}" for name, value in example.kwargs.items()]
    return f"({', '.join([*map(_told, example.args), *named])})"


def _told(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    name = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value.numel() == 0:
        return name
    if value.numel() == 1:
        return f"{name} of {value.item():.4g}"
    if not value.dtype.is_floating_point:
        return name
    return f"{name} from {value.min().item():.4g} to {value.max().item():.4g}"


def _argument(text: str, generator: torch.Generator) -> _Argument:
    if text.startswith("="):
        return _Argument(_literal(text[1:].strip()), spec=None)
    if text[:1] in _BRACKETS and text[-1:] == _BRACKETS[text[0]]:
        return _Argument(_container(text, generator), spec=None)
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a tensor such as float32[2,3] nor a Python value such as =3")
    dtype = _dtype(match["dtype"])
    dims = [_dimension(part.strip(), text) for part in match["dims"].split(",") if match["dims"].strip()]
    shape = [_OPEN_SIZE if d is None else d for d in dims]
    bounds = (match["low"], match["high"]) if match["low"] is not None else None
    value = _random(shape, dtype, _bounds(bounds, dtype, text), generator)
    return _Argument(value, InputSpec(dims, str(dtype).removeprefix("torch.")), is_open=None in dims)


_BRACKETS = {"[": "]", "(": ")", "{": "}"}


def _container(text: str, generator: torch.Generator) -> Any:
    """A list, tuple or dict of arguments."""
    items = [part.strip() for part in _split(text[1:-1])]
    if text[0] == "{":
        pairs = [item.partition(":") for item in items]
        if not all(key.strip() and colon for key, colon, _ in pairs):
            raise ValueError(f"{text!r} wants a name before each value, such as {{mask: bool[4]}}")
        return {key.strip(): _item(value.strip(), generator) for key, _, value in pairs}
    values = [_item(item, generator) for item in items]
    return values if text[0] == "[" else tuple(values)


def _item(text: str, generator: torch.Generator) -> Any:
    argument = _argument(text, generator)
    if argument.is_open:
        raise ValueError(f"an open size (?) needs an argument of its own, not {text!r} in a list")
    return argument.value


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no brackets; none of an empty text, and none behind a last comma."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[({") - (character in "])}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts if parts[-1].strip() else parts[:-1]


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{text!r} is not a Python literal") from error


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is no dtype of torch; for example float32, int64, bool")
    return found


def _dimension(text: str, whole: str) -> int | None:
    if text == "?":
        return None
    if not text.isdecimal():
        raise ValueError(f"{text!r} in {whole!r} is neither a size nor ?")
    return int(text)


def _bounds(given: tuple[str, str] | None, dtype: torch.dtype, text: str) -> tuple[float, float] | None:
    if given is None:
        return None
    read = float if dtype.is_floating_point else int
    try:
        low, high = read(given[0]), read(given[1])
    except ValueError as error:
        raise ValueError(f"the range in {text!r} must be two numbers of its dtype, such as (0..10)") from error
    if dtype is torch.bool or dtype.is_complex or low >= high:
        raise ValueError(f"the range in {text!r} holds no value of its dtype")
    return low, high


def _random(
    shape: list[int], dtype: torch.dtype, bounds: tuple[float, float] | None, generator: torch.Generator
) -> torch.Tensor:
    if bounds is None and (dtype.is_floating_point or dtype.is_complex):
        drawn = torch.complex64 if dtype.is_complex else torch.float32
        return torch.randn(shape, dtype=drawn, generator=generator).to(dtype)
    low, high = bounds or (0, 2 if dtype is torch.bool else 10)
    if dtype.is_floating_point:
        return (low + (high - low) * torch.rand(shape, generator=generator)).to(dtype)
    return torch.randint(int(low), int(high), shape, generator=generator).to(dtype)
