"""Text with values in it that only the run knows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import made, text
from stillgraph.program.types import ObjectType
from stillgraph.trace.arrays import StagedArray
from stillgraph.trace.containers import holds_staged
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
        CaptureError: only the run knows whether it does, or a value is in a container of a kind that shows itself.
    """

    __slots__ = ("_fill", "_names", "_template", "_values", "_written")

    def __init__(
        self,
        template: str,
        values: tuple[Any, ...],
        fill: Callable[..., str] = text,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        _require_fits(template, values, fill, names or {})
        self._template = template
        self._fill = fill
        kept: dict[int, Any] = {}
        self._values: tuple[Any, ...] = tuple(_as_now(value, kept) for value in values)
        self._names = {name: _as_now(value, kept) for name, value in (names or {}).items()}
        tensors = (each.tensor if isinstance(each, StagedArray) else each for each in kept.values())
        self._written = [(each, count) for each in tensors if (count := writes_to(each)) is not None]

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

    __str__ = __repr__ = __len__ = __fspath__ = __rtruediv__ = __eq__ = __contains__ = __format__ = _refuse
    __hash__ = _refuse


_HINT = (
    "Use the value in place of its text: compare the number, index a list with it, or look it up in a dict with "
    "numbers as keys. Such a text can only be printed, logged, written, raised, returned and stored."
)


def _require_fits(template: str, values: tuple[Any, ...], fill: Callable[..., str], names: Mapping[str, Any]) -> None:
    """Fill a template with values of the same types: it raises where a specification does not fit, as eager PyTorch.

    Raises:
        ValueError, TypeError: it takes no values of these types.
        CaptureError: only the run knows whether it does.
    """
    uncertain: list[Any] = []
    sample = functools.partial(_sample, uncertain=uncertain, other=1)
    try:
        fill(template, *map(sample, values), **{name: sample(value) for name, value in names.items()})
        for other in _others(uncertain):
            sample = functools.partial(_sample, uncertain=[], other=other)
            fill(template, *map(sample, values), **{name: sample(value) for name, value in names.items()})
    except _Unknown:
        return
    except (ValueError, TypeError) as error:
        if not uncertain:
            raise
        message = f"whether a text takes a value, only the run knows: {error}"
        raise refuse("SG302", message, location=here()) from None


def _others(uncertain: list[Any]) -> tuple[Any, ...]:
    """What may stand in a template where only the run knows the type of the value."""
    may_be_none = any(getattr(value, "stillgraph_optional", False) for value in uncertain)
    return (1, 1.5, True, *((None,) if may_be_none else ())) if uncertain else ()


class _Unknown(Exception):
    """No sample is known of a value."""


def _sample(value: Any, uncertain: list[Any], other: Any) -> Any:
    """A value that a template takes just where it takes the one that only the run knows.

    Args:
        value: the value.
        uncertain: what only the run knows the type of is added to it.
        other: stands for such a value.
    """
    if type(value) is tuple:
        return tuple(_sample(each, uncertain, other) for each in value)
    if type(value) is dict:
        return {name: _sample(each, uncertain, other) for name, each in value.items()}
    if type(value) in (int, float, bool, complex, str):
        return value
    if isinstance(value, StagedText):
        return "text"
    if any(getattr(value, name, False) for name in _UNCERTAIN):
        uncertain.append(value)
        return other
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return Tensor() if value.dim() else _OF_KINDS[_kind(value.dtype)]
    if isinstance(value, StagedNumber):
        return _OF_KINDS[kind_of(value)]
    raise _Unknown


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
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        kept[id(value)] = named = type(value)(*(_as_now(each, kept) for each in value))
        return named
    if type(value) not in _CONTAINERS:
        _require_shown(value)
        kept[id(value)] = value
        return value
    if isinstance(value, (set, frozenset)) or (isinstance(value, dict) and holds_staged([*value])):
        _require_shown(value)
    if isinstance(value, list):
        items = kept[id(value)] = []
        items += [_as_now(each, kept) for each in value]
        return items
    if isinstance(value, dict):
        entries = kept[id(value)] = {}
        entries.update({_as_now(key, kept): _as_now(each, kept) for key, each in value.items()})
        return entries
    anew = kept[id(value)] = type(value)(_as_now(each, kept) for each in value)
    return anew


def _require_shown(value: Any) -> None:
    """Refuse what would show itself with values in it that only the run knows: a set of tensors, an `OrderedDict`."""
    if not isinstance(value, (torch.Tensor, Staged, torch.Size)) and holds_staged(value):
        message = f"a {type(value).__name__} with values in it that only the run knows is turned into text"
        raise refuse("SG302", message, location=here(), hint="Make texts of the values that it holds.")


def escaped(text: str) -> str:
    """A text as it stands in a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _filled(recorder: Recorder, value: Any) -> Any:
    """A value, texts in it being made first."""
    if isinstance(value, StagedText):
        return value.materialise(recorder)
    if isinstance(value, torch.Size) and any(isinstance(size, StagedNumber) for size in value):
        return recorder.emit("call_function", torch.Size, (tuple(value),), {})
    if isinstance(value, list) and type(value) is list:
        return [_filled(recorder, each) for each in value]
    if isinstance(value, dict) and type(value) is dict:
        return {key: _filled(recorder, each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = tuple(_filled(recorder, each) for each in value)
        return recorder.emit("call_function", made, (type(value), items), {})
    return tuple(_filled(recorder, each) for each in value) if type(value) is tuple else value
