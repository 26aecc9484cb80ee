"""Text with values in it that only the run knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import text
from stillgraph.program.types import ObjectType
from stillgraph.trace.frames import here
from stillgraph.trace.numbers import Staged, StagedNumber, kind_of
from stillgraph.trace.versions import writes_to

if TYPE_CHECKING:
    from stillgraph.trace.recorder import Recorder


class StagedText(Staged):
    """A text to be filled in at run time: it can be printed, logged, handed out, and be the message of an exception.

    Args:
        template: what is filled in.
        values: what it is filled with.
        fill: makes the text of them: `operations.text` or `operations.percent`.
        names: values that the template calls by name.

    Raises:
        ValueError, TypeError: the template takes no values of these types.
    """

    __slots__ = ("_fill", "_names", "_template", "_values", "_written")

    def __init__(
        self,
        template: str,
        values: tuple[Any, ...],
        fill: Callable[..., str] = text,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        samples, named = _samples(values), _samples(names or {})
        if samples is not None and named is not None:
            fill(template, *samples, **named)  # raises where a specification does not fit: eager PyTorch does so here
        self._template = template
        self._fill = fill
        kept: dict[int, Any] = {}
        self._values: tuple[Any, ...] = tuple(_as_now(value, kept) for value in values)
        self._names = {name: _as_now(value, kept) for name, value in (names or {}).items()}
        self._written = [(value, count) for value in kept.values() if (count := writes_to(value)) is not None]

    def is_current(self) -> bool:
        """Whether the tensors in it still hold what they held when it was made."""
        return all(writes_to(value) == count for value, count in self._written)

    def materialise(self, recorder: Recorder) -> Any:
        """The node that makes the text.

        Raises:
            CaptureError: a tensor in it has been written since: the run would show what it holds then.
        """
        if not self.is_current():
            message = "a tensor is written between the making of its text and the use of that"
            raise refuse("SG302", message, location=here(), hint="Make the text where it is used.")
        values = tuple(_filled(recorder, value) for value in self._values)
        names = {name: _filled(recorder, value) for name, value in self._names.items()}
        node = recorder.emit("call_function", self._fill, (self._template, *values), names)
        node.meta["val"] = ObjectType(str)
        return node

    def _refuse(self, *args: Any) -> NoReturn:
        message = "a text with a value in it that only the run knows is needed before the run"
        raise refuse("SG302", message, location=here(), hint=_HINT)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __add__(self, other: Any) -> Any:
        return StagedText("{}{}", (self, other)) if isinstance(other, (str, StagedText)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return StagedText("{}{}", (other, self)) if isinstance(other, str) else NotImplemented

    __str__ = __len__ = __fspath__ = __rtruediv__ = __eq__ = __contains__ = __format__ = _refuse
    __hash__ = _refuse


_HINT = (
    "Use the value in place of its text: compare the number, index a list with it, or look it up in a dict with "
    "numbers as keys. Such a text can only be printed, logged, written, raised, returned and stored."
)


def _samples(value: Any) -> Any:
    """A value that a template takes just where it takes the one that only the run knows; None where there is none."""
    if isinstance(value, (tuple, dict)) and type(value) in (tuple, dict):
        parts = [_samples(each) for each in (value.values() if isinstance(value, dict) else value)]
        if any(each is None for each in parts):
            return None
        return dict(zip(value, parts)) if isinstance(value, dict) else tuple(parts)
    if type(value) in (int, float, bool, complex, str):
        return value
    if isinstance(value, StagedText):
        return "text"
    if any(getattr(value, name, False) for name in _UNCERTAIN):
        return None
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return Tensor() if value.dim() else _OF_KINDS[_kind(value.dtype)]
    return _OF_KINDS[kind_of(value)] if isinstance(value, StagedNumber) else None


class Tensor:
    """As a tensor that has dimensions: it takes no specification, and says so by the name of its class."""


_OF_KINDS: Mapping[type, Any] = {int: 1, float: 1.5, bool: True, complex: 1j}
_UNCERTAIN = ("stillgraph_mixed", "stillgraph_may_be_number", "stillgraph_optional")  # of types that the run tells


def _kind(dtype: torch.dtype) -> type:
    return complex if dtype.is_complex else float if dtype.is_floating_point else bool if dtype is torch.bool else int


_CONTAINERS = (list, tuple, dict, set, frozenset)


def _as_now(value: Any, kept: dict[int, Any]) -> Any:
    """A value of which a text is made, of plain containers a copy: what is in them may be another later.

    Args:
        value: the value.
        kept: by id, what has been gone through; of a container that is in itself, the copy.
    """
    if id(value) in kept:
        return kept[id(value)]
    if type(value) not in _CONTAINERS:
        kept[id(value)] = value
        return value
    if isinstance(value, list):
        items = kept[id(value)] = []
        items += [_as_now(each, kept) for each in value]
        return items
    if isinstance(value, dict):
        entries = kept[id(value)] = {}
        entries.update({_as_now(key, kept): _as_now(each, kept) for key, each in value.items()})
        return entries
    made = type(value)(_as_now(each, kept) for each in value)
    kept[id(value)] = made
    return made


def escaped(text: str) -> str:
    """A text as it stands in a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _filled(recorder: Recorder, value: Any) -> Any:
    """A value, texts in it being made first."""
    if isinstance(value, StagedText):
        return value.materialise(recorder)
    if isinstance(value, torch.Size) and any(isinstance(size, StagedNumber) for size in value):
        return recorder.emit("call_function", torch.Size, (tuple(value),), {})
    return tuple(_filled(recorder, each) for each in value) if type(value) is tuple else value
