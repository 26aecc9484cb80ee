"""Descriptions of values in messages: of tensors, numbers, containers, and what only the run knows."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch

from stillgraph.core.files import is_our_module
from stillgraph.program.types import show_shape
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.lists import has_spread
from stillgraph.trace.values.numbers import Staged, StagedNumber
from stillgraph.trace.values.several import Several


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}"


def describe(value: Any, fully: bool = False) -> str:
    """A value as messages name it; ``fully`` with what is in a tuple or dict."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            dtype = str(value.dtype).removeprefix("torch.")
            return f"{_article(dtype)} tensor of shape {show_shape(tuple(value.shape))}"
    if isinstance(value, StagedNumber):
        return f"{_article(type(value).__name__.removeprefix('Staged').lower())} that only the run knows"
    if isinstance(value, Several):
        return value.stillgraph_described(describe)
    if isinstance(value, (list, tuple, dict, set)):
        return _describe_container(value, fully)
    if value is MISSING:
        return "nothing"
    if value is None or (isinstance(value, (int, float, str)) and not isinstance(value, Staged)):
        return repr(value)
    if isinstance(value, FunctionType):
        return "a lambda" if value.__name__ == "<lambda>" else f"the function '{value.__name__}'"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if is_our_module(type(value).__module__):
        return _OURS.get(type(value).__name__, "a value that only the run knows")
    return _article(type(value).__name__)


_OURS = {
    "_Dead": "nothing, for it raises",
    "Exit": "a result",
    "StagedComplex": "a complex number that only the run knows",
    "StagedText": "a string that only the run knows",
    "StagedArray": "an ndarray that only the run knows",
}
TWO_TEXTS = "Python needs one text here, for a key, say: look the value up by a number, or return from each path."
_MOST_SHOWN = 4


def _describe_container(value: Any, fully: bool) -> str:
    kind = _article(type(value).__name__)
    if isinstance(value, (list, tuple)) and has_spread(value):
        return f"{kind} of unknown length"
    if not fully:
        return f"{kind} of {len(value)}"
    if isinstance(value, dict) and 0 < len(value) <= _MOST_SHOWN and all(isinstance(key, str) for key in value):
        return f"{kind} with {'the key' if len(value) == 1 else 'the keys'} {', '.join(map(repr, value))}"
    inner = [describe(item) for item in value] if isinstance(value, tuple) and 0 < len(value) <= _MOST_SHOWN else []
    nested = any(isinstance(item, (list, tuple, dict, set)) for item in value)
    return f"{kind} of {len(value)}" + (f" ({', '.join(inner)})" if inner and not nested else "")
