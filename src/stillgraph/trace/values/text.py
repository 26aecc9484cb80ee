"""Text with values in it that only the run knows."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.operations import made, text
from stillgraph.program.types import TEXT
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.filling import require_fits
from stillgraph.trace.values.numbers import Staged, StagedNumber
from stillgraph.trace.values.operands import is_asked_itself, require_known, sample, unsupported
from stillgraph.trace.values.operator_tables import BINARY, COMPARISONS, REFLECTED_COMPARISONS, UNARY
from stillgraph.trace.values.several import Several

if TYPE_CHECKING:
    from torch import fx

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

    __slots__ = ("_recorder", "stillgraph_info")

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
        if not require_fits(recorder, template, values, fill, names, StagedText):
            recorder.before_raise(None)
        args = tuple(shown(recorder, value) for value in values)
        kwargs = {name: shown(recorder, value) for name, value in names.items()}
        self._is_given_by(recorder.emit("call_function", fill, (template, *args), kwargs))

    @classmethod
    def fresh(cls, recorder: Recorder) -> StagedText:
        """A text of which nothing is known; the caller defines its node."""
        made = object.__new__(cls)
        made._recorder = recorder
        return made

    @classmethod
    def of_table(cls, recorder: Recorder, texts: Mapping[int, Any], number: Any) -> StagedText:
        """The text of a table that a number says."""
        table = tuple(texts.get(at, "") for at in range(max(texts) + 1))
        made = cls.fresh(recorder)
        made._is_given_by(recorder.emit("call_function", operator.getitem, (table, number), {}))
        return made

    def _is_given_by(self, node: fx.Node) -> None:
        node.meta["val"] = TEXT
        self._recorder.region.define(self, node)

    @property
    def stillgraph_recorder(self) -> Recorder:
        """The recorder of the capture, under a name that no text has."""
        return self._recorder

    @property  # type: ignore[misc]  # it is read alone: by `isinstance` everywhere, and by Python's own code
    def __class__(self) -> type:
        return str

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or name.startswith("stillgraph_"):
            return object.__getattribute__(self, name)
        if not hasattr(str, name):
            if not name.startswith("_"):
                require_known((self,), f"is asked for its {name}")
            raise AttributeError(f"'str' object has no attribute '{name}'", name=name, obj=self)
        if name in METHODS:
            return TextMethod(self, name)
        is_known = name == "__doc__" and not self._recorder.may_be_none(self)
        return str.__doc__ if is_known else self._refuse()

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

    def __radd__(self, other: Any) -> Any:
        return self.stillgraph_computed(operator.add, other, self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, torch.Tensor):  # of whole numbers, it says how often
            self._refuse()
        return self._answered(operator.mul, "__rmul__", other)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (int, torch.Tensor)):
            return self * other
        return unsupported(operator.mul, other, self)

    def __getitem__(self, at: Any) -> Any:
        return self.stillgraph_computed(operator.getitem, self, at)

    def __contains__(self, part: Any) -> Any:
        return unsupported(operator.contains, self, part)

    def _answered(self, function: Callable[..., Any], reflected: str, other: Any) -> Any:
        """What an operator gives that may ask the other operand."""
        asked = is_asked_itself(other, reflected) and not isinstance(other, torch.Tensor)
        return NotImplemented if asked else self.stillgraph_computed(function, self, other)

    def stillgraph_computed(self, function: Callable[..., Any], *operands: Any) -> Any:
        """What an operation of Python's gives for this text, or that of a class `str` for a method, in the run.

        Raises:
            TypeError: Python raises it for values of these types.
            CaptureError: no program has the operation.
        """
        recorder = self._recorder
        for each in operands:
            if issubclass(type(each), Several):
                return recorder.either(each, functools.partial(_with, function, operands, each))
            if recorder.may_be_none(each):
                return recorder.with_or_without(each, functools.partial(_with, function, operands, each))
        kind = next((kind for kind, functions in _GIVING.items() if function in functions), None)
        if kind is None or not all(map(_is_operand, operands)) or not _takes(function, operands):
            return unsupported(function, *operands)
        if function in _FAILING:
            recorder.before_risk()
        op, target = ("call_method", function.__name__) if _is_method(function) else ("call_function", function)
        node = recorder.emit(op, target, operands, {})
        if kind is not str:
            return recorder.fresh_result(kind, node)
        made = StagedText.fresh(recorder)
        made._is_given_by(node)
        return made

    __str__ = __repr__ = __len__ = __iter__ = __fspath__ = __format__ = __hash__ = __mod__ = __reduce_ex__ = _refuse


_OWN = ("_recorder", "_is_given_by", "_refuse", "_answered", "__class__", "__copy__", "__deepcopy__")
"""What is read of it by code that knows what it is, or answered as by a text."""

_MADE = "capitalize casefold center expandtabs ljust lower lstrip removeprefix removesuffix replace rjust rstrip strip"
_TOLD = "endswith startswith isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable"
_GIVING: Mapping[type, tuple[Callable[..., Any], ...]] = {
    str: (
        *(operator.add, operator.iadd, operator.mul, operator.imul, operator.getitem),
        *(vars(str)[name] for name in f"{_MADE} swapcase title upper zfill".split()),
    ),
    bool: (
        *(*COMPARISONS.values(), operator.contains),
        *(vars(str)[name] for name in f"{_TOLD} isspace istitle isupper".split()),
    ),
    int: (len, *(vars(str)[name] for name in ("count", "find", "index", "rfind", "rindex"))),
}
"""What a program computes with texts, by the type of what that gives."""


def _is_method(function: Callable[..., Any]) -> bool:
    return vars(str).get(function.__name__) is function


METHODS = frozenset(each.__name__ for each in itertools.chain(*_GIVING.values()) if _is_method(each))
"""Names of methods of texts that a program has."""

_FAILING = (operator.getitem, operator.mul, operator.imul, str.index, str.rindex)


def _is_operand(value: Any) -> bool:
    if type(value) is slice:
        return all(map(_is_operand, (value.start, value.stop, value.step)))
    if type(value) is tuple:  # of what a text may begin with
        return all(map(_is_operand, value))
    return isinstance(value, (StagedText, StagedNumber)) or is_exactly(value, (str, int, bool, type(None)))


def _takes(function: Callable[..., Any], operands: tuple[Any, ...]) -> bool:
    """Whether Python's operation takes values of these types."""
    try:
        function(*map(_small, operands))
    except TypeError:
        return False
    except (LookupError, ValueError):  # which depend on the values
        pass
    return True


def _small(value: Any) -> Any:
    """A value of the type of an operand, of which no long text is made."""
    if type(value) is slice:
        return slice(*map(_small, (value.start, value.stop, value.step)))
    return 1 if type(value) is int else sample(value)


def _with(function: Callable[..., Any], operands: tuple[Any, ...], old: Any, new: Any) -> Any:
    return function(*(new if each is old else each for each in operands))


@dataclass(frozen=True, eq=False)
class TextMethod:
    """A method of a text that only the run knows."""

    text: StagedText
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = self.text._recorder
        if recorder.may_be_none(self.text):
            return recorder.with_or_without(self.text, lambda value: getattr(value, self.name)(*args, **kwargs))
        function = vars(str)[self.name]
        return self.text._refuse() if kwargs else self.text.stillgraph_computed(function, self.text, *args)


def _compared(function: Callable[..., Any], reflected: str) -> Callable[[StagedText, Any], Any]:
    def method(self: StagedText, other: Any) -> Any:
        recorder = self._recorder
        if recorder.may_be_none(self):
            return recorder.with_or_without(self, lambda value: function(value, other))
        if is_asked_itself(other, reflected) or not isinstance(other, str):
            return NotImplemented  # whose text says which side the text is on
        return self.stillgraph_computed(function, self, other)

    return method


def _give_operators() -> None:
    """Let what a text does not do, and what it does that no program has, be answered by what a text would do."""
    for name, function in {**BINARY, "matmul": operator.matmul}.items():
        forward = functools.partialmethod(_forward, function, f"__r{name}__")
        reflected = functools.partialmethod(_reflected, function)
        for method, answer in ((f"__{name}__", forward), (f"__r{name}__", reflected)):
            if method not in vars(StagedText):
                setattr(StagedText, method, answer)
    for name, reflection in REFLECTED_COMPARISONS.items():
        setattr(StagedText, name, _compared(COMPARISONS[name.strip("_")], reflection))
    for name, function in (("iadd", operator.iadd), ("imul", operator.imul)):
        setattr(StagedText, f"__{name}__", functools.partialmethod(_forward, function, f"__r{name[1:]}__"))
    for name, unary in UNARY.items():
        setattr(StagedText, f"__{name}__", functools.partialmethod(_alone, unary))


def _forward(text: StagedText, function: Callable[..., Any], reflected: str, other: Any, *more: Any) -> Any:
    return unsupported(function, text, other, *more) if more else text._answered(function, reflected, other)


def _reflected(text: StagedText, function: Callable[..., Any], other: Any) -> Any:
    return unsupported(function, other, text)


def _alone(text: StagedText, function: Callable[..., Any], *others: Any) -> Any:
    return unsupported(function, text, *others)


_give_operators()


_HINT = (
    "Use the value in place of its text: index a list with the number, or look it up in a dict with numbers as keys. "
    "Such a text can be printed, logged, written, raised, returned, stored and compared."
)


def escaped(text: str) -> str:
    """A text as it stands in a template."""
    return text.replace("{", "{{").replace("}", "}}")


def shown(recorder: Recorder, value: Any) -> Any:
    """A value of which a text is made, or an exception, as an argument of a node: eager PyTorch's own in the run.

    Raises:
        CaptureError: it is a container that would show itself: a set of tensors, an `OrderedDict`.
    """
    if isinstance(value, torch.Size) and any(isinstance(size, StagedNumber) for size in value):
        return recorder.emit("call_function", torch.Size, (tuple(value),), {})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = tuple(shown(recorder, each) for each in value)
        return recorder.emit("call_function", made, (type(value), items), {})
    if isinstance(value, (list, tuple)) and is_exactly(value, (list, tuple)):
        return type(value)(shown(recorder, each) for each in value)
    if isinstance(value, dict) and type(value) is dict and not holds_staged([*value]):
        return {key: shown(recorder, each) for key, each in value.items()}
    if not isinstance(value, (torch.Tensor, Staged, torch.Size)) and holds_staged(value):
        message = f"a {type(value).__name__} with values in it that only the run knows is turned into text"
        raise refuse("SG302", message, location=here(), hint="Make texts of the values that it holds.")
    return value
