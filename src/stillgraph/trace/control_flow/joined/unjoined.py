"""Two values without a join: whatever is done with them is done for each."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.constants import Known, is_constant, united
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here, name_of
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.join_errors import is_nameless, refuse_join
from stillgraph.trace.graph.current import current
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.lists import StagedList
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.operator_tables import BINARY, COMPARISONS, UNARY
from stillgraph.trace.values.several import Several, known_in
from stillgraph.trace.values.text import StagedText


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

    def alternatives(self, of: Callable[[tuple[Known, ...]], Any]) -> Alternatives:
        """The first entry that it may be where we are, or one of the others, which ``of`` stands for."""
        recorder = current()
        entries = self.entries if recorder is None else recorder.possible_entries(self.number, self.entries)
        first = entries[0].value
        if len(entries) == 1:
            return Alternatives(True, first, first, self.place, self.failure)
        decides = None if recorder is None else functools.partial(recorder.is_entry, self.number, entries[0])
        if len(entries) == 2:
            return Alternatives(decides, first, entries[1].value, self.place, self.failure)
        return Alternatives(decides, first, of(entries[1:]), self.place, self.failure)


def alternatives(value: Unjoined) -> Alternatives:
    """What an `Unjoined` value stands for, past what it does with attributes."""
    found: Alternatives | _Table = value.__dict__[_ALTERNATIVES]
    return found if isinstance(found, Alternatives) else found.alternatives(value.of)


_ALTERNATIVES = "stillgraph alternatives"  # no name that anybody writes as an attribute


class Unjoined(Several):
    """Two values without a join. It may be returned or stored: the program then picks one.

    Whatever else is done with it is done once for each of the two, in the arms of a branch on ``flag``
    (`Recorder.either`); what those leave is joined, or is unjoined again. Where Python wants one plain answer at once
    (``len``, ``iter``, a hash), it is refused.
    """

    def __init__(self, flag: Any, left: Any, right: Any, place: str, failure: JoinFailure) -> None:
        self._stands_for(Alternatives(flag, left, right, place, failure))

    def _stands_for(self, several: Alternatives | _Table) -> None:
        self.__dict__[_ALTERNATIVES] = several
        recorder = current()
        if recorder is not None:
            recorder.meets_several()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """What an object has that finds this in its class: functions become its methods there."""
        if is_lost(self) or current() is None or not any(hasattr(type(side), "__get__") for side in sides_of(self)):
            return self
        return self.either(lambda side: side.__get__(instance, owner) if hasattr(type(side), "__get__") else side)

    def stillgraph_known(self) -> tuple[Known, ...] | None:
        """As `Several.stillgraph_known`."""
        if is_lost(self):
            return None
        first, second = known_in(alternatives(self).left), known_in(alternatives(self).right)
        return None if first is None or second is None else united(first, second)

    def stillgraph_refuse(self) -> NoReturn:
        """As `Several.stillgraph_refuse`."""
        self.refuse()

    def stillgraph_described(self, describe: Callable[[Any], str]) -> str:
        """As `Several.stillgraph_described`."""
        if is_lost(self):
            return "a value that is used too late"
        return f"{describe(alternatives(self).left)} or {describe(alternatives(self).right)}"

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
        raise refuse_join((is_nameless(place) and name_of(self)) or place, failure)

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
        without = [side for side in sides_of(self) if not callable(getattr(type(side), name, None))]
        if all(is_exactly(side, _PLAIN) and not hasattr(side, name) for side in without):
            if without:
                self.either(lambda v: getattr(v, name) and None)  # which raises for those
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


_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
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
        self._stands_for(_Table(number, entries, place, JoinFailure("SG203", f"it is {shown}")))

    def stillgraph_known(self) -> tuple[Known, ...] | None:
        """As `Several.stillgraph_known`."""
        return _table(self).entries

    def stillgraph_number(self) -> StagedNumber:
        """As `Several.stillgraph_number`."""
        return _table(self).number

    def without(self, value: Any) -> Any:
        """The same where it is not this constant."""
        return self.of(tuple(entry for entry in entries_of(self) if entry != Known(value)))

    def of(self, entries: tuple[Known, ...]) -> Any:
        """The same where it is one of some of its entries; none of them: where nobody ever is."""
        if entries in ((), entries_of(self)):
            return self
        return picked(_table(self).number, entries, _table(self).place) if len(entries) > 1 else entries[0].value

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


class PickedObject(Picked):
    """As `Picked`, where some entries are objects from before a loop: that very one which the number says.

    Nothing else may take its table for one of constants: objects can be changed, and have parts.
    """

    def stillgraph_known(self) -> None:
        """As `Several.stillgraph_known`."""

    def __hash__(self) -> int:
        return self.refuse()


def picked(number: StagedNumber, entries: tuple[Known, ...], place: str = "the value") -> Picked:
    """What stands for the entry of a table that a number says."""
    constant = all(entry.value is MISSING or is_constant(entry.value) for entry in entries)
    return (Picked if constant else PickedObject)(number, entries, place)


def entries_of(value: Picked) -> tuple[Known, ...]:
    """What it may be."""
    return _table(value).entries


def _table(value: Picked) -> _Table:
    found: _Table = value.__dict__[_ALTERNATIVES]
    return found


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


def is_leaf(value: Any) -> bool:
    """Whether a value is one that the program computes: a tensor, number, text, entry of a table, or column of a list.

    A number of a class derived from Python's is none: it is more than a number, such as a member of an `enum.IntEnum`.
    """
    if isinstance(value, (torch.Tensor, StagedList, StagedNumber, StagedText)) or type(value) is Picked:
        return True
    return is_exactly(value, (bool, int, float))


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
        setattr(PickedObject, f"__{name}__", getattr(Unjoined, f"__{name}__"))


def _compared(value: Picked, function: Callable[[Any, Any], Any], other: Any) -> Any:
    ask = value.asks if is_constant(other) else value.either
    return ask(lambda each: function(each, other))


def _in_place(function: Callable[[Any, Any], Any], value: Any, other: Any) -> Any:
    if isinstance(value, (list, dict, set, collections.deque)):
        raise refuse("SG203", "a container is changed in place that another path does not have", location=here())
    return function(value, other)


_give_operators()

METHODS = frozenset(
    name for kind in (Unjoined, Picked) for name in vars(kind) if not name.startswith(("_", "stillgraph_"))
)
"""What Python would find in the class of such a value, where the code asks the objects for it."""
