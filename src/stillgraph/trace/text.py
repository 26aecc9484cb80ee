"""Text with values in it that only the run knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import format_
from stillgraph.trace.frames import here

if TYPE_CHECKING:
    from stillgraph.trace.recorder import Recorder


class StagedText:
    """An f-string to be filled in at run time: it can be printed, and be the message of an exception."""

    def __init__(self, template: str, values: tuple[Any, ...]) -> None:
        self.template = template
        self.values = values

    def materialise(self, recorder: Recorder) -> Any:
        """The node that makes the text."""
        return recorder.emit("call_function", format_, (self.template, *self.values), {})

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG302", "the text of an f-string with staged values is used", location=here())

    __str__ = __len__ = __add__ = __radd__ = __eq__ = __contains__ = __format__ = _refuse
    __hash__ = _refuse
