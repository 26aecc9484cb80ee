"""Two values without a join, and what messages say of them."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.types import JoinFailure, show_shape
from stillgraph.trace.frames import here
from stillgraph.trace.journal import MISSING
from stillgraph.trace.lists import StagedList, has_spread
from stillgraph.trace.numbers import BINARY, COMPARISONS, UNARY, StagedNumber, is_number
from stillgraph.trace.recorder import Recorder, current


class Unjoined:
    """Two values without a join. It may be returned or stored: the program then picks one.

    Whatever else is done with it is done once for each of the two, in the arms of a branch on ``flag``
    (`Recorder.either`); what those leave is joined, or is unjoined again. Where Python wants one plain answer at once
    (``len``, ``iter``, a hash), it is refused.
    """

    def __init__(self, flag: Any, left: Any, right: Any, place: str, failure: JoinFailure) -> None:
        self.__dict__.update(flag=flag, left=left, right=right, place=place, failure=failure)

    def either(self, use: Callable[[Any], Any]) -> Any:
        """``use`` of the one value or of the other."""
        recorder = current()
        if recorder is None or self.__dict__["flag"] is None:
            self.refuse()
        return recorder.either(self, use)

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise the error that says why there is no join.

        Raises:
            CaptureError: always.
        """
        raise refuse_join(self.__dict__["place"], self.__dict__["failure"])

    def __setattr__(self, name: str, value: Any) -> None:
        self.either(lambda v: setattr(v, name, value))

    def __delattr__(self, name: str) -> NoReturn:
        self.refuse()

    def __getattr__(self, name: str) -> Any:
        sides = (self.__dict__["left"], self.__dict__["right"])
        if name.startswith("__"):
            self.refuse()
        if all(callable(getattr(type(side), name, None)) for side in sides):
            return UnjoinedMethod(self, name)
        return self.either(lambda v: getattr(v, name))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        for value in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(value, Unjoined):
                value.refuse()
        raise refuse("SG203", "a value without a join is used", location=here())


class Stale(Unjoined):
    """What other code may have changed, where only the run knows: nothing can be done with it."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(None, MISSING, MISSING, place, JoinFailure("SG305", stale_message(place, what)))

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise the error that says why.

        Raises:
            CaptureError: always.
        """
        raise refuse("SG305", self.__dict__["failure"].message, location=here(), hint=STALE_HINT)


STALE_HINT = "Read it before, or after the call, outside the static function."


def stale_message(place: str, what: str) -> str:
    """What is said of a place that is read too late."""
    return f"{place} is used after {what}, which may have changed it"


def lost(place: str, failure: JoinFailure) -> Unjoined:
    """What stands for a value that cannot be handed out at all: whatever is done with it is refused."""
    return Unjoined(None, MISSING, MISSING, place, failure)


def is_lost(value: Any) -> bool:
    """Whether a value is what `lost` gives."""
    return isinstance(value, Unjoined) and value.__dict__["flag"] is None


@dataclass(frozen=True, eq=False)
class UnjoinedMethod:
    """``value.name`` where that is a method of both."""

    value: Unjoined
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not all(is_leaf(self.value.__dict__[side]) for side in ("left", "right")):
            self.value.refuse()
        return self.value.either(lambda v: getattr(v, self.name)(*args, **kwargs))


_BINARY = {**BINARY, "matmul": operator.matmul}
_INPLACE = {
    "iadd": operator.iadd,
    "isub": operator.isub,
    "imul": operator.imul,
    "itruediv": operator.itruediv,
    "ifloordiv": operator.ifloordiv,
    "imod": operator.imod,
    "ipow": operator.ipow,
    "imatmul": operator.imatmul,
    "iand": operator.iand,
    "ior": operator.ior,
    "ixor": operator.ixor,
}
_REFUSED = (
    *("bool", "int", "float", "index", "len", "iter", "call", "contains"),
    *("str", "setitem", "delitem", "enter", "hash"),
)


def _give_operators() -> None:
    for name, change in _INPLACE.items():
        setattr(Unjoined, f"__{name}__", lambda self, other, f=change: self.either(lambda v: _in_place(f, v, other)))
    for name, function in {**_BINARY, **COMPARISONS, "getitem": operator.getitem}.items():
        setattr(Unjoined, f"__{name}__", lambda self, other, f=function: self.either(lambda v: f(v, other)))
    for name, function in _BINARY.items():
        setattr(Unjoined, f"__r{name}__", lambda self, other, f=function: self.either(lambda v: f(other, v)))
    for name, operation in UNARY.items():
        setattr(Unjoined, f"__{name}__", lambda self, f=operation: self.either(f))
    for name in _REFUSED:
        setattr(Unjoined, f"__{name}__", Unjoined.refuse)


def _in_place(function: Callable[[Any, Any], Any], value: Any, other: Any) -> Any:
    if isinstance(value, (list, dict, set, collections.deque)):
        raise refuse("SG203", "a container is changed in place that another path does not have", location=here())
    return function(value, other)


_give_operators()


def refuse_join(place: str, failure: JoinFailure) -> BaseException:
    """The error for a place whose two values have no join."""
    message = "\n".join((f"{failure.message} (in '{place}')", *(f"    {side}" for side in failure.sides)))
    return refuse(failure.code, message, location=here())


def explain(recorder: Recorder, failure: JoinFailure, *sides: tuple[str, Any]) -> None:
    """Let a failure say what the two sides have and where they got it, unless it knows that of something in them."""
    if failure.sides:
        return
    texts = []
    for who, value in sides:
        location = recorder.made_at(value)
        source = None if location is None else location.source_line()
        where = "" if location is None else f"  (line {location.line}: {(source or '').strip()})"
        texts.append(f"{who} {describe(value)}{where}")
    failure.sides = tuple(texts)


def is_leaf(value: Any) -> bool:
    """Whether a value is one that the program computes: a tensor, a number, or a column of a list."""
    return isinstance(value, (torch.Tensor, StagedList)) or is_number(value)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def describe(value: Any) -> str:
    """A value as messages name it."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {show_shape(tuple(value.shape))}"
    if isinstance(value, StagedNumber):
        return f"a staged {type(value).__name__.removeprefix('Staged').lower()}"
    if isinstance(value, (list, tuple)) and has_spread(value):
        return f"a {type(value).__name__} of unknown length"
    if isinstance(value, (list, tuple, dict, set)):
        return f"{_article(type(value).__name__)} of {len(value)}"
    if value is MISSING:
        return "nothing"
    if value is None or isinstance(value, (int, float, str)):
        return repr(value)
    return _article(type(value).__name__)
