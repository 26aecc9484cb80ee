"""Text with values in it that only the run knows."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.operations import made, text
from stillgraph.program.types import ObjectType
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.filling import require_fits
from stillgraph.trace.values.numbers import Staged, StagedNumber
from stillgraph.trace.values.operands import is_asked_itself, unsupported
from stillgraph.trace.values.operator_tables import BINARY, COMPARISONS, UNARY

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


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

    @classmethod
    def of_table(cls, recorder: Recorder, texts: Mapping[int, str], number: Any) -> StagedText:
        """The text of a table that a number says."""
        made = object.__new__(cls)
        made._recorder = recorder
        table = tuple(texts.get(at, "") for at in range(max(texts) + 1))
        node = recorder.emit("call_function", operator.getitem, (table, number), {})
        node.meta["val"] = ObjectType(str)
        recorder.region.define(made, node)
        return made

    @property  # type: ignore[misc]  # it is read alone: by `isinstance` everywhere, and by Python's own code
    def __class__(self) -> type:
        return str

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or name.startswith("stillgraph_"):
            return object.__getattribute__(self, name)
        if not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute '{name}'", name=name, obj=self)
        return str.__doc__ if name == "__doc__" else self._refuse()

    def _refuse(self, *args: Any) -> NoReturn:
        message = "a text with a value in it that only the run knows is needed before the run"
        raise refuse("SG302", message, location=here(), hint=_HINT)

    def stillgraph_sample(self) -> str:
        """A text in its place, where only its type matters (`operands.SAMPLE`)."""
        return "text"

    def __copy__(self) -> StagedText:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StagedText:
        return self

    def __add__(self, other: Any) -> Any:
        if isinstance(other, str):
            return StagedText(self._recorder, "{}{}", (self, other))
        return _answered(operator.add, "__radd__", self, other)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, str):
            return StagedText(self._recorder, "{}{}", (other, self))
        return unsupported(operator.add, other, self)

    def __mul__(self, other: Any) -> Any:
        if is_exactly(other, (int, bool)) and other <= _MOST_REPEATED:
            return StagedText(self._recorder, "{0}" * other, (self,)) if other > 0 else ""
        if isinstance(other, torch.Tensor):  # of whole numbers, it says how often
            self._refuse()
        return _answered(operator.mul, "__rmul__", self, other)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (int, torch.Tensor)):
            return self * other
        return unsupported(operator.mul, other, self)

    def __eq__(self, other: object) -> Any:
        return self._refuse() if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self._refuse() if isinstance(other, str) else NotImplemented

    __str__ = __repr__ = __len__ = __iter__ = __fspath__ = __format__ = __hash__ = __mod__ = __reduce_ex__ = _refuse


_OWN = ("_recorder", "_refuse", "__class__", "__copy__", "__deepcopy__")
"""What is read of it by code that knows what it is, or answered as by a text."""

_MOST_REPEATED = 1000


def _answered(function: Callable[..., Any], reflected: str, text: StagedText, other: Any) -> Any:
    asked = is_asked_itself(other, reflected) and not isinstance(other, torch.Tensor)
    return NotImplemented if asked else unsupported(function, text, other)


def _compared(function: Callable[..., Any], reflected: str) -> Callable[[StagedText, Any], Any]:
    def method(self: StagedText, other: Any) -> Any:
        if is_asked_itself(other, reflected):
            return NotImplemented
        try:
            return unsupported(function, self, other)
        except TypeError:  # whose text says which side the text is on
            return NotImplemented

    return method


def _give_operators() -> None:
    """Let what a text does not do, and what it does that no program has, be answered by what a text would do."""
    for name, function in {**BINARY, "matmul": operator.matmul}.items():
        forward = functools.partialmethod(_forward, function, f"__r{name}__")
        reflected = functools.partialmethod(_reflected, function)
        for method, answer in ((f"__{name}__", forward), (f"__r{name}__", reflected)):
            if method not in vars(StagedText):
                setattr(StagedText, method, answer)
    for name, reflection in (("lt", "gt"), ("gt", "lt"), ("le", "ge"), ("ge", "le")):
        setattr(StagedText, f"__{name}__", _compared(COMPARISONS[name], f"__{reflection}__"))
    for function in (operator.getitem, operator.contains):
        setattr(StagedText, f"__{function.__name__}__", functools.partialmethod(_alone, function))
    for name, unary in UNARY.items():
        setattr(StagedText, f"__{name}__", functools.partialmethod(_alone, unary))


def _forward(text: StagedText, function: Callable[..., Any], reflected: str, other: Any, *more: Any) -> Any:
    return unsupported(function, text, other, *more) if more else _answered(function, reflected, text, other)


def _reflected(text: StagedText, function: Callable[..., Any], other: Any) -> Any:
    return unsupported(function, other, text)


def _alone(text: StagedText, function: Callable[..., Any], *others: Any) -> Any:
    return unsupported(function, text, *others)


_give_operators()


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
    if isinstance(value, (list, tuple)) and is_exactly(value, (list, tuple)):
        return type(value)(_shown(recorder, each) for each in value)
    if isinstance(value, dict) and type(value) is dict and not holds_staged([*value]):
        return {key: _shown(recorder, each) for key, each in value.items()}
    if not isinstance(value, (torch.Tensor, Staged, torch.Size)) and holds_staged(value):
        message = f"a {type(value).__name__} with values in it that only the run knows is turned into text"
        raise refuse("SG302", message, location=here(), hint="Make texts of the values that it holds.")
    return value
