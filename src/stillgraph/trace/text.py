"""Text with values in it that only the run knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import made, text
from stillgraph.program.types import ObjectType
from stillgraph.trace.containers import holds_staged
from stillgraph.trace.filling import require_fits
from stillgraph.trace.frames import here
from stillgraph.trace.numbers import Staged, StagedNumber

if TYPE_CHECKING:
    from stillgraph.trace.recorder import Recorder


class StagedText(Staged):
    """A text that the program makes: it can be printed, logged, handed out, and be the message of an exception.

    It is made where the user's code makes it: what is in it may be another later.

    Args:
        recorder: of the capture.
        template: what is filled in.
        values: what it is filled with.
        fill: makes the text of them: `operations.text` or `operations.percent`.
        names: values that the template calls by name.

    Raises:
        ValueError, TypeError: the template takes no values of these types.
        CaptureError: only the run knows whether it does, or a value is in a container of a kind that shows itself.
    """

    __slots__ = ("_recorder",)

    def __init__(
        self,
        recorder: Recorder,
        template: str,
        values: tuple[Any, ...],
        fill: Callable[..., str] = text,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self._recorder = recorder
        names = names or {}
        if not require_fits(template, values, fill, names, StagedText):
            recorder.before_raise(None)
        args = tuple(_shown(recorder, value) for value in values)
        kwargs = {name: _shown(recorder, value) for name, value in names.items()}
        node = recorder.emit("call_function", fill, (template, *args), kwargs)
        node.meta["val"] = ObjectType(str)
        recorder.region.define(self, node)

    def _refuse(self, *args: Any) -> NoReturn:
        message = "a text with a value in it that only the run knows is needed before the run"
        raise refuse("SG302", message, location=here(), hint=_HINT)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("__", "stillgraph_")):
            raise AttributeError(name)
        self._refuse()

    def __copy__(self) -> StagedText:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StagedText:
        return self

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (str, StagedText)):
            return NotImplemented
        return StagedText(self._recorder, "{}{}", (self, other))

    def __radd__(self, other: Any) -> Any:
        return StagedText(self._recorder, "{}{}", (other, self)) if isinstance(other, str) else NotImplemented

    __str__ = __repr__ = __len__ = __fspath__ = __rtruediv__ = __eq__ = __contains__ = __format__ = _refuse
    __hash__ = __reduce_ex__ = _refuse


_HINT = (
    "Use the value in place of its text: compare the number, index a list with it, or look it up in a dict with "
    "numbers as keys. Such a text can only be printed, logged, written, raised, returned and stored."
)


def escaped(text: str) -> str:
    """A text as it stands in a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _shown(recorder: Recorder, value: Any) -> Any:
    """A value of which a text is made, as an argument of a node: it shows itself to the run as to eager PyTorch.

    Raises:
        CaptureError: it is a container that would show itself: a set of tensors, an `OrderedDict`.
    """
    if isinstance(value, torch.Size) and any(isinstance(size, StagedNumber) for size in value):
        return recorder.emit("call_function", torch.Size, (tuple(value),), {})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = tuple(_shown(recorder, each) for each in value)
        return recorder.emit("call_function", made, (type(value), items), {})
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_shown(recorder, each) for each in value)
    if isinstance(value, dict) and type(value) is dict and not holds_staged([*value]):
        return {key: _shown(recorder, each) for key, each in value.items()}
    if not isinstance(value, (torch.Tensor, Staged, torch.Size)) and holds_staged(value):
        message = f"a {type(value).__name__} with values in it that only the run knows is turned into text"
        raise refuse("SG302", message, location=here(), hint="Make texts of the values that it holds.")
    return value
