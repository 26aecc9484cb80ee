"""Text with values in it that only the run knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import format_
from stillgraph.trace.frames import here
from stillgraph.trace.numbers import StagedNumber

if TYPE_CHECKING:
    from stillgraph.trace.recorder import Recorder


class StagedText:
    """An f-string to be filled in at run time: it can be printed, and be the message of an exception."""

    def __init__(self, template: str, values: tuple[Any, ...]) -> None:
        self.template = template
        self.values = values

    def materialise(self, recorder: Recorder) -> Any:
        """The node that makes the text."""
        return recorder.emit("call_function", format_, (self.template, *(shown(recorder, v) for v in self.values)), {})

    def __add__(self, other: Any) -> Any:
        return concatenated((self, other)) if isinstance(other, (str, StagedText)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return concatenated((other, self)) if isinstance(other, str) else NotImplemented

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG302", "the text of an f-string with staged values is used", location=here())

    __str__ = __len__ = __eq__ = __contains__ = __format__ = _refuse
    __hash__ = _refuse


def shown(recorder: Recorder, value: Any) -> Any:
    """A value as the argument of a node that makes text of it."""
    if isinstance(value, torch.Size) and any(isinstance(size, StagedNumber) for size in value):
        return recorder.emit("call_function", torch.Size, (tuple(value),), {})
    return value.materialise(recorder) if isinstance(value, StagedText) else value


def concatenated(parts: Iterable[Any], between: str = "") -> StagedText:
    """Strings one behind another, some of which only the run knows."""
    templates: list[str] = []
    values: list[Any] = []
    for part in parts:
        if isinstance(part, StagedText):
            templates.append(part.template)
            values.extend(part.values)
        else:
            templates.append(_escaped(part))
    return StagedText(_escaped(between).join(templates), tuple(values))


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
