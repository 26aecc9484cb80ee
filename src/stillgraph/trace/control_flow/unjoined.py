"""Two values without a join, and what messages say of them."""

from __future__ import annotations

import collections
import functools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import CaptureError, Refusal, Side, refusal, refuse
from stillgraph.core.files import is_our_module
from stillgraph.core.location import Location
from stillgraph.core.lookup import is_exactly
from stillgraph.program.constants import Known, is_constant, united
from stillgraph.program.types import JoinFailure, show_shape
from stillgraph.trace.code.frames import here, name_of
from stillgraph.trace.graph.recorder import Recorder, current
from stillgraph.trace.heap.assigned import Line, literal_before
from stillgraph.trace.heap.journal import MISSING, AttributePlace, ContentsPlace, Place
from stillgraph.trace.values.lists import StagedList, has_spread
from stillgraph.trace.values.numbers import BINARY, COMPARISONS, UNARY, Staged, StagedNumber
from stillgraph.trace.values.several import Several, known_in


@dataclass(frozen=True, eq=False, slots=True)
class Alternatives:
    """What an `Unjoined` value stands for: ``left`` where ``flag`` holds, else ``right``.

    ``flag`` is None where nobody can tell any more; ``place`` and ``failure`` say what has no join, and why.
    """

    decides: Any
    left: Any
    right: Any
    place: str
    failure: JoinFailure

    @property
    def flag(self) -> Any:
        """What decides: a condition, staged or not. That of an entry of a table is asked here, in the open region."""
        return self.decides() if isinstance(self.decides, functools.partial) else self.decides


@dataclass(frozen=True, eq=False, slots=True)
class _Table:
    """What a `Picked` value stands for: the entry of a table that ``number`` says."""

    number: StagedNumber
    entries: tuple[Known, ...]
    place: str
    failure: JoinFailure

    def alternatives(self) -> Alternatives:
        """The first entry that it may be where we are, or one of the others."""
        recorder = current()
        entries = self.entries if recorder is None else recorder.possible_entries(self.number, self.entries)
        first = entries[0].value
        if len(entries) == 1:
            return Alternatives(True, first, first, self.place, self.failure)
        decides = None if recorder is None else functools.partial(recorder.is_entry, self.number, entries[0])
        if len(entries) == 2:
            return Alternatives(decides, first, entries[1].value, self.place, self.failure)
        return Alternatives(decides, first, Picked(self.number, entries[1:], self.place), self.place, self.failure)


def alternatives(value: Unjoined) -> Alternatives:
    """What an `Unjoined` value stands for, past what it does with attributes."""
    found: Alternatives | _Table = value.__dict__[_ALTERNATIVES]
    return found if isinstance(found, Alternatives) else found.alternatives()


ON_STACK = "a value on the stack"
"""The name of a place that code has no name for."""

_ALTERNATIVES = "stillgraph alternatives"  # no name that anybody writes as an attribute


class Unjoined(Several):
    """Two values without a join. It may be returned or stored: the program then picks one.

    Whatever else is done with it is done once for each of the two, in the arms of a branch on ``flag``
    (`Recorder.either`); what those leave is joined, or is unjoined again. Where Python wants one plain answer at once
    (``len``, ``iter``, a hash), it is refused.
    """

    def __init__(self, flag: Any, left: Any, right: Any, place: str, failure: JoinFailure) -> None:
        self.__dict__[_ALTERNATIVES] = Alternatives(flag, left, right, place, failure)

    def stillgraph_known(self) -> tuple[Known, ...] | None:
        """As `Several.stillgraph_known`."""
        if is_lost(self):
            return None
        first, second = known_in(alternatives(self).left), known_in(alternatives(self).right)
        return None if first is None or second is None else united(first, second)

    def either(self, use: Callable[[Any], Any]) -> Any:
        """``use`` of the one value or of the other."""
        recorder = current()
        if recorder is None or is_lost(self):
            self.refuse()
        return recorder.either(self, use)

    def asks(self, test: Callable[[Any], Any]) -> Any:
        """As `either`, for what only tells something of a constant, and does nothing."""
        return self.either(test)

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise the error that says why there is no join.

        Raises:
            CaptureError: always.
        """
        failure = alternatives(self).failure
        place = failure.place or alternatives(self).place
        raise refuse_join((_is_nameless(place) and name_of(self)) or place, failure)

    def __hash__(self) -> int:
        recorder = current()
        if recorder is not None and not may_be_tensors(self):
            recorder.tensor_demanded(self, "hash")
        return self.refuse()

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_ANY_CLASS and current() is not None:
            return self.either(lambda v: getattr(v, name))
        return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        recorder = current()
        if recorder is not None and recorder.executed.is_watching:
            self.refuse()  # code of the user's would see what it is not to
        return object.__repr__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        self.either(lambda v: setattr(v, name, value))

    def __delattr__(self, name: str) -> NoReturn:
        self.refuse()

    def __getattr__(self, name: str) -> Any:
        if name in _OF_CLASSES and all(isinstance(side, (type, FunctionType)) for side in sides_of(self)):
            return self.either(lambda v: getattr(v, name))
        if name.startswith("stillgraph_"):
            raise AttributeError(name)  # a mark of ours, which it does not have
        if name.startswith("__"):
            self.refuse()
        if all(callable(getattr(type(side), name, None)) for side in sides_of(self)):
            return UnjoinedMethod(self, name)
        methods: list[Any] = []

        def read(value: Any) -> Any:
            found = getattr(value, name)
            if is_leaf(value) and not isinstance(found, Unjoined) and getattr(found, "__self__", None) is value:
                methods.append(found)
            return found

        try:
            return self.either(read)
        except (CaptureError, Refusal) as error:
            refused = error.error if isinstance(error, Refusal) else error
            if not methods or refused.reason.code != "SG203":
                raise
        return self.refuse()  # what has no join is the method, for its tensor has none

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        for value in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(value, Unjoined):
                value.refuse()
        raise refuse("SG203", "a value without a join is used", location=here())


_OF_CLASSES = ("__name__", "__qualname__")
_OF_ANY_CLASS = ("__doc__", "__module__")
"""What is found in the class of any value, so that no ``__getattr__`` is asked."""


def sides_of(value: Unjoined) -> Iterator[Any]:
    """What an unjoined value may be: one of two, or of more where those are unjoined again."""
    for side in (alternatives(value).left, alternatives(value).right):
        if isinstance(side, Unjoined) and not is_lost(side):
            yield from sides_of(side)
        else:
            yield side


def may_be_tensors(value: Unjoined) -> bool:
    """Whether a path leaves a tensor, or a tuple with one: no key on any path, so there is nothing to look up."""
    if is_lost(value):
        return False
    leaves = torch.utils._pytree.tree_leaves([*sides_of(value)])
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)


class Picked(Unjoined):
    """An entry of a table of constants, of which the graph has the number: so loops carry it, and lists and files.

    Whatever is done with it is done with each entry that it may be, as with an `Unjoined`.
    """

    def __init__(self, number: StagedNumber, entries: tuple[Known, ...], place: str = "the value") -> None:
        shown = " or ".join(describe(entry.value) for entry in entries)
        self.__dict__[_ALTERNATIVES] = _Table(number, entries, place, JoinFailure("SG203", f"it is {shown}"))

    def stillgraph_known(self) -> tuple[Known, ...]:
        """As `Several.stillgraph_known`."""
        return _table(self).entries

    def stillgraph_number(self) -> StagedNumber:
        """As `Several.stillgraph_number`."""
        return _table(self).number

    def without(self, value: Any) -> Any:
        """The same where it is not this constant."""
        return self.of(tuple(entry for entry in _table(self).entries if entry != Known(value)))

    def of(self, entries: tuple[Known, ...]) -> Any:
        """The same where it is one of some of its entries; none of them: where nobody ever is."""
        if entries in ((), _table(self).entries):
            return self
        return Picked(_table(self).number, entries, _table(self).place) if len(entries) > 1 else entries[0].value

    def asks(self, test: Callable[[Any], Any]) -> Any:
        """As `Unjoined.asks`: of the table, where the answers are known."""
        recorder = current()
        if recorder is None:
            self.refuse()
        entries = recorder.possible_entries(_table(self).number, _table(self).entries)
        told = [test(entry.value) for entry in entries]
        if not all(type(each) is bool for each in told):
            return self.either(test)
        found = [entry for entry, holds in zip(entries, told) if holds]
        if len(found) in (0, len(entries)):
            return bool(found)
        is_entry = functools.partial(recorder.is_entry, _table(self).number)
        others = [entry for entry in entries if entry not in found]
        if len(others) == 1:
            return recorder.opposite(is_entry(others[0]))
        flag = functools.reduce(operator.or_, map(is_entry, found))
        for entry in others if len(found) > 1 else ():  # where it holds, it is none of these
            recorder.implies(flag, True, recorder.opposite(is_entry(entry)))
        return flag


def _table(value: Picked) -> _Table:
    found: _Table = value.__dict__[_ALTERNATIVES]
    return found


class Stale(Unjoined):
    """What other code may have changed, where only the run knows: nothing can be done with it."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(None, MISSING, MISSING, place, JoinFailure("SG305", stale_message(place, what)))

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise the error that says why.

        Raises:
            CaptureError: always.
        """
        raise refuse("SG305", alternatives(self).failure.message, location=here(), hint=STALE_HINT)


STALE_HINT = "Read it before, or after the call, outside the static function."


def stale_message(place: str, what: str) -> str:
    """What is said of a place that is read too late."""
    return f"{place} is used after {what}, which may have changed it"


def lost(place: str, failure: JoinFailure) -> Unjoined:
    """What stands for a value that cannot be handed out at all: whatever is done with it is refused."""
    return Unjoined(None, MISSING, MISSING, place, failure)


def is_lost(value: Any) -> bool:
    """Whether a value is what `lost` gives."""
    return isinstance(value, Unjoined) and not isinstance(value, Picked) and alternatives(value).decides is None


@dataclass(frozen=True, eq=False)
class UnjoinedMethod:
    """``value.name`` where that is a method of both."""

    value: Unjoined
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not all(map(is_leaf, sides_of(self.value))):
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
    *("str", "setitem", "delitem", "enter"),
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
    for name in ("eq", "ne"):
        setattr(Picked, f"__{name}__", functools.partialmethod(_compared, COMPARISONS[name]))


def _compared(value: Picked, function: Callable[[Any, Any], Any], other: Any) -> Any:
    ask = value.asks if is_constant(other) else value.either
    return ask(lambda each: function(each, other))


def _in_place(function: Callable[[Any, Any], Any], value: Any, other: Any) -> Any:
    if isinstance(value, (list, dict, set, collections.deque)):
        raise refuse("SG203", "a container is changed in place that another path does not have", location=here())
    return function(value, other)


_give_operators()


def refuse_join(place: str, failure: JoinFailure) -> BaseException:
    """The error for a place whose two values have no join."""
    if failure.place is not None and not _is_nameless(failure.place):
        place = failure.place
    message = f"{failure.message.removesuffix('.')} (in {quoted(place)})"
    return refuse(failure.code, message, location=here(), hint=_hint(place, failure), sides=failure.sides)


def named(place: Place) -> str:
    """A place by the variables of the function that is being run, where they lead to it."""
    if isinstance(place, (AttributePlace, ContentsPlace)):
        name = name_of(place.target)
        if name is not None:
            return f"{name}.{place.name}" if isinstance(place, AttributePlace) else name
    return str(place)


def is_result(place: str) -> bool:
    """Whether a place is what a block gives: of a function, of a conditional expression."""
    return place == "the result" or place.startswith("return")


def _is_nameless(place: str) -> bool:
    return is_result(place) or place.startswith(ON_STACK)


def quoted(place: str) -> str:
    """A place as messages name it."""
    if is_result(place):
        return f"the result{place.removeprefix('return').removeprefix('.value').removeprefix('the result')}"
    nameless = re.fullmatch(r"an? (\w+)", place)
    if nameless is not None:
        return f"the {nameless[1]}"
    argument = re.fullmatch(r"\['(\w+)'\](.*)", place)  # of a function that calls itself
    return f"'{place}'" if argument is None else f"'{argument[1]}{argument[2]}'"


_ON_PATHS = {
    "SG201": "Give {place} the same number of dimensions on both paths (unsqueeze, reshape, keepdim=True), or return "
    "from each path.",
    "SG202": "Convert {place} on one of the paths with .to(...), so that both have the same dtype and device.",
    "SG203": "Give {place} the same kind of value on both paths, or use a name of its own for each.",
    "SG204": "Set {place} before the branch or loop, if only to None.",
}
_IN_LOOPS = {
    "SG201": "Give {place} its final number of dimensions before the loop (with unsqueeze or reshape).",
    "SG202": "Give {place} its final dtype and device before the loop, with .to(...).",
    "SG205": "Give {place} a value of its final kind before the loop, or collect the values in a list with append.",
    "SG203": "Give {place} a value of the same kind before the loop as after an iteration; collect what grows in a "
    "list with append.",
}


_ONE_NAME = "Make a copy for one of the two names, or use one name for both."


def _hint(place: str, failure: JoinFailure) -> str | None:
    text = failure.hint or (_IN_LOOPS if failure.in_loop else _ON_PATHS).get(failure.code)
    return None if text is None else text.format(place=quoted(place))


def _hint_for(failure: JoinFailure, first: Any, second: Any) -> str | None:
    """What to write instead, as far as the two values tell it: nothing is to be lost by it."""
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        dtypes, ranks, shape = (first.dtype, second.dtype), (first.dim(), second.dim()), show_shape(tuple(first.shape))
    if failure.code == "SG201" and failure.in_loop and ranks[0] > ranks[1]:
        return _KEPT
    if failure.code != "SG202" or dtypes[0] == dtypes[1]:
        return None
    wide = torch.promote_types(*dtypes)
    if not failure.in_loop:
        narrow = [str(dtype) for dtype in dtypes if dtype != wide]
        return f"Convert {{place}} with .to({wide}) where it is {' or '.join(narrow)}, so that nothing is lost."
    if wide == dtypes[0]:
        changed = f"{{place}} begins as {wide}, and an iteration gives it {dtypes[1]}"
        return f"{changed}: convert what it is given with .to({wide}), before the loop or in it."
    made = f"torch.zeros({shape}, dtype={wide}) or " if "?" not in shape else ""
    both = "" if wide == dtypes[1] else " and in it"
    return f"Give {{place}} dtype {wide} before the loop{both} ({made}.to({wide})), so that nothing is lost."


_KEPT = (
    "Keep the dimension of {place} that an iteration gives up (keepdim=True, or an index i:i+1), or return from each "
    "path separately."
)


def refuse_loop(failure: JoinFailure) -> CaptureError:
    """The error for what a loop carries and one kind of value does not cover."""
    place = failure.place or ""
    message = failure.message.removesuffix(".")
    if place and quoted(place) not in message:
        message = f"{message} (in {quoted(place)})"
    hint = _hint(place, failure) if place else _ONE_NAME if failure.code == "SG203" else None
    return refusal(failure.code, message, location=here(), hint=hint, sides=failure.sides)


def explain(
    recorder: Recorder, failure: JoinFailure, place: str, *sides: tuple[str, Any, Line], in_loop: bool = False
) -> None:
    """Let a failure say what the two sides have and where they got it, unless it knows that of something in them."""
    if in_loop and failure.code == "SG203" and _grows(place, sides[-1][1], sides[-1][2](place)):
        failure.hint = _GROWING
    if failure.sides:
        return
    inner = next((alternatives(value).failure for _, value, _ in sides if isinstance(value, Unjoined)), None)
    if inner is not None and inner.sides:
        failure.code, failure.message, failure.sides = inner.code, inner.message, inner.sides
        failure.hint = inner.hint
        named_better = inner.place is None or (is_result(inner.place) and "()" not in place)  # of calls, there is more
        failure.place = place if named_better else inner.place
        return
    failure.place, failure.in_loop = place, in_loop
    failure.hint = failure.hint or _hint_for(failure, *(value for _, value, _ in sides))
    failure.sides = tuple(
        Side(f"{who} {describe(value, True)}", line(place) or recorder.made_at(value) or literal_before(place, value))
        for who, value, line in sides
    )


_GROWING = (
    "{place} is put into what it becomes, so each iteration gives another structure: start with an empty list in its "
    "place, and append to it what an iteration adds."
)


def _grows(place: str, after: Any, location: Location | None) -> bool:
    """Whether a loop puts what a variable holds into the tuple, list or dict that it holds next."""
    if not isinstance(after, (tuple, list, dict)) or location is None or not place.isidentifier():
        return False
    meant = (location.source_line() or "").encode()[location.column : location.end_column].decode(errors="ignore")
    return re.search(rf"[(\[{{,:]\s*{place}\s*[)\]}},]", meant) is not None


def is_leaf(value: Any) -> bool:
    """Whether a value is one that the program computes: a tensor, a number, an entry of a table, or a list's column.

    A number of a class derived from Python's is none: it is more than a number, such as a member of an `enum.IntEnum`.
    """
    if isinstance(value, (torch.Tensor, StagedList, StagedNumber)) or type(value) is Picked:
        return True
    return is_exactly(value, (bool, int, float))


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
    if isinstance(value, Unjoined):
        if is_lost(value):
            return "a value that is used too late"
        return f"{describe(alternatives(value).left)} or {describe(alternatives(value).right)}"
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
