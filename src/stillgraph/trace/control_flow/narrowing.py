"""What is known of conditions where the program is being recorded, and so of values that are None on some path."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import is_namedtuple_instance

from stillgraph.program.constants import Known
from stillgraph.program.facts.info import info
from stillgraph.program.operations import is_unbound
from stillgraph.program.types import JoinFailure, ListType, TableType, Type
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.deductions import Deductions, version
from stillgraph.trace.control_flow.joined.leaves import DEAD
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, alternatives, entries_of, is_leaf, picked
from stillgraph.trace.control_flow.origins import UNTOLD, Origin, Origins
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import Return
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.lists import StagedList
from stillgraph.trace.values.numbers import StagedBool, StagedNumber, plain
from stillgraph.trace.values.several import in_graph
from stillgraph.trace.values.text import StagedText


def is_optional(value: Any) -> bool:
    """Whether a staged value stands for ``None`` on some path, be that the one being recorded or not."""
    return isinstance(value, (torch.Tensor, StagedNumber, StagedText)) and info(value).may_be_none


def may_be_unbound(value: Any) -> bool:
    """Whether a staged value stands, on some path, for that of a variable that has none."""
    if isinstance(value, Picked):
        return _UNBOUND in entries_of(value)
    if isinstance(value, StagedList):
        return value.type.may_be_unbound
    return is_leaf(value) and info(value).may_be_unbound


_UNBOUND = Known(MISSING)


_KINDS = {torch.Tensor: "tensor", StagedText: "text", StagedNumber: "number"}


@dataclass(frozen=True)
class _Question:
    """Something that is asked of a value: by which operation, and what the answer is for a side of a branch."""

    function: Callable[..., Any]
    more: tuple[Any, ...]
    of_side: Callable[[Any], bool | None]


def _side_is_none(side: Any) -> bool | None:
    if side is MISSING or side is DEAD or is_optional(side) or may_be_unbound(side):
        return None
    return side is None


def _side_is_unbound(side: Any) -> bool | None:
    return None if side is DEAD or may_be_unbound(side) else side is MISSING


_IS_NONE = _Question(operator.is_, (None,), _side_is_none)
_IS_UNBOUND = _Question(is_unbound, (), _side_is_unbound)


def leaves(value: Any, around: tuple[int, ...] = ()) -> Iterator[Any]:
    """What is in a value, plain containers taken apart; a container inside itself is looked into once.

    Args:
        value: what to take apart.
        around: the ids of the containers that the value is in.
    """
    if id(value) in around:
        return
    kind = type(value)
    if kind is list or kind is tuple or (issubclass(kind, tuple) and is_namedtuple_instance(value)):
        for each in value:
            yield from leaves(each, (*around, id(value)))
    elif kind is dict:
        for each in value.values():
            yield from leaves(each, (*around, id(value)))
    elif kind is slice:
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def exchanged(value: Any, old: Any, new: Any) -> Any:
    """The same with one leaf exchanged; a container in which it is not stays itself."""
    if value is old:
        return new
    if not any(leaf is old for leaf in leaves(value)):
        return value
    if type(value) is dict:
        return {key: exchanged(each, old, new) for key, each in value.items()}
    if type(value) is slice:
        return slice(*(exchanged(each, old, new) for each in (value.start, value.stop, value.step)))
    items = [exchanged(each, old, new) for each in value]
    return type(value)(*items) if is_namedtuple_instance(value) else type(value)(items)


class Narrowing(Recorder):
    """A recorder that knows in which arms it is, and what the conditions of these say of others."""

    def __init__(self, lift: Callable[[torch.Tensor], Any], demanded: Callable[[Any, str], Any]) -> None:
        super().__init__(lift, demanded)
        self.deductions = Deductions()
        self._origins = Origins(self.deductions)
        self._certain: dict[int, tuple[Any, bool, int | None]] = {}  # values whose truth is known, how, and versions
        self._choices: dict[int, tuple[Any, tuple[int, ...]]] = {}  # by a number: it, and which it may be
        self._entries: dict[Known, int] = {}
        self._picked: dict[int, tuple[Any, dict[Known, list[Any]]]] = {}  # by a number: it, and what says of each entry
        self._excluded: dict[int, tuple[Any, list[tuple[Known, Any, bool]]]] = {}  # the same: what rules entries out
        self._absences: dict[int, tuple[Any, Any]] = {}  # by a value that may be None: it, and whether it is
        self._unbound: dict[int, tuple[Any, Any]] = {}  # the same of what a variable holds that may have no value

    # ---- conditions
    @contextlib.contextmanager
    def assuming(self, predicate: Any, taken: bool) -> Iterator[None]:
        """As `Recorder.assuming`: a value that depends on the condition is the one of its two values."""
        with self.deductions.assuming(predicate, taken) as conditions, self.symbolic.learned_inside():
            for condition, value in conditions:
                self.symbolic.assume(plain(condition), value)
            yield

    def learn(self, predicate: Any, taken: bool) -> None:
        """As `Recorder.learn`."""
        for condition, value in self.deductions.learn(predicate, taken, self.region):
            self.symbolic.assume(plain(condition), value)

    def decided(self, flag: Any) -> bool | None:
        """As `Recorder.decided`."""
        return self.deductions.decided(flag, self.region)

    def implies(self, result: Any, when: bool, flag: Any) -> None:
        """As `Recorder.implies`."""
        self.deductions.implies(result, when, flag, when)

    def came_from(self, value: Any, condition: Any, written: int | None, sides: tuple[Any, Any]) -> None:
        """As `Recorder.came_from`."""
        self._origins.tell(Origin(value, condition, written, sides))

    def constant_here(self, value: Any) -> Any:
        """As `Recorder.constant_here`."""
        decided = self.decided(value) if isinstance(value, StagedBool) else None
        told = self._origins.constant(value, self.region) if decided is None else decided
        return value if told is UNTOLD else told

    def is_certainly(self, value: Any, truth: bool) -> None:
        """As `Recorder.is_certainly`."""
        self._certain[id(value)] = value, truth, version(value)

    def known_truth(self, value: Any) -> bool | None:
        """As `Recorder.known_truth`."""
        known = self._certain.get(id(value))
        return known[1] if known is not None and known[2] == version(value) else None

    def opposite(self, flag: Any) -> Any:
        """As `Recorder.opposite`, and remember that each is the other's."""
        known = self.deductions.opposite(flag, self.region)
        if known is not None:
            return known
        result = super().opposite(flag)
        self.deductions.are_opposites(result, flag)
        return result

    # ---- values that are one of a table of constants
    def choices_of(self, value: Any) -> tuple[int, ...] | None:
        """The few whole numbers of which a value is one, where nothing has been computed with them."""
        if type(value) is int:
            return (value,)
        return self._choices[id(value)][1] if id(value) in self._choices else None

    def is_one_of(self, value: Any, choices: tuple[int, ...]) -> None:
        """As `Recorder.is_one_of`."""
        self._choices[id(value)] = value, choices

    def entry_number(self, entry: Known) -> int:
        """As `Recorder.entry_number`."""
        return self._entries.setdefault(entry, len(self._entries))

    def entry_of(self, value: Any) -> Any:
        """As `Recorder.entry_of`."""
        if isinstance(value, Picked):
            return value.stillgraph_number()
        if not isinstance(value, Unjoined):
            return self.entry_number(Known(value))
        known = alternatives(value)
        flag = known.flag if isinstance(known.flag, bool) else self.decided(known.flag)
        sides = (functools.partial(self.entry_of, side) for side in (known.left, known.right))
        return self.on_each_path(known.flag if flag is None else flag, *sides)

    def is_entry(self, number: Any, entry: Known) -> Any:
        """As `Recorder.is_entry`: a plain truth value where that is known, otherwise a staged one."""
        possible = self.possible_entries(number, (entry,))
        asked = self._picked.setdefault(id(number), (number, {}))[1]
        if not possible:
            return False
        for flag in asked.setdefault(entry, []):
            if self.decided(flag):
                return True
            if self.region.holds(flag):
                return flag
        node = self.emit("call_function", operator.eq, (number, self.entry_number(entry)), {})
        flag = self.fresh_result(bool, node)
        asked[entry].append(flag)
        return flag

    def possible_entries(self, number: Any, entries: tuple[Known, ...]) -> tuple[Known, ...]:
        """As `Recorder.possible_entries`, as far as conditions of the arms around tell."""
        asked = self._picked.get(id(number), (number, {}))[1]
        told = [(entry, self.decided(flag)) for entry, flags in asked.items() for flag in flags]
        certain = next((entry for entry, holds in told if holds), None)
        if certain is not None:
            return (certain,) if certain in entries else ()
        excluded = {entry for entry, holds in told if holds is False}
        ruled_out = self._excluded.get(id(number), (number, []))[1]
        excluded |= {entry for entry, flag, when in ruled_out if self.decided(flag) is when}
        return tuple(entry for entry in entries if entry not in excluded)

    def tells_entry(self, value: Any, entry: Known, flag: Any, when: bool) -> None:
        """As `Recorder.tells_entry`."""
        number, flag = in_graph(value), flag if when else self.opposite(flag)
        self._picked.setdefault(id(number), (number, {}))[1].setdefault(entry, []).append(flag)

    def excludes_entry(self, value: Any, entry: Known, flag: Any, when: bool) -> None:
        """As `Recorder.excludes_entry`."""
        number = in_graph(value)
        self._excluded.setdefault(id(number), (number, []))[1].append((entry, flag, when))

    def type_of(self, value: Any) -> Type:
        """As `Recorder.type_of`."""
        return TableType(entries=entries_of(value)) if type(value) is Picked else super().type_of(value)

    # ---- values that are None on some path
    def instantiate(self, type_: Type) -> Any:
        """As `Recorder.instantiate`."""
        if isinstance(type_, TableType):
            held = [entry.value for entry in type_.entries]
            self.has_optionals = self.has_optionals or any(value is None for value in held)
            self.has_unset = self.has_unset or any(value is MISSING for value in held)
            return picked(self.fresh_number(int), type_.entries)
        if not isinstance(type_, ListType) and type_.may_be_none:
            self.has_optionals = True
            self.meets_several()
        return super().instantiate(type_)

    def absence(self, value: Any) -> Any:
        """``value is None``: a plain truth value where that is known, otherwise a staged one."""
        if not is_optional(value):
            return value is None
        return self._asked(_IS_NONE, self._absences, value)

    def unboundness(self, value: Any) -> Any:
        """Whether the variable with a value has none on the path taken: plain where that is known, otherwise staged."""
        if not may_be_unbound(value):
            return False
        if isinstance(value, Picked):
            return self.is_entry(value.stillgraph_number(), _UNBOUND)
        return self._asked(_IS_UNBOUND, self._unbound, value)

    def asked_unboundness(self, value: Any) -> Any:
        """As `Recorder.asked_unboundness`."""
        known = self._unbound.get(id(value))
        return None if known is None or not self.region.holds(known[1]) else known[1]

    def known_unboundness(self, value: Any) -> bool | None:
        """As `Recorder.known_unboundness`."""
        if isinstance(value, Picked):
            return None if self.possible_entries(value.stillgraph_number(), (_UNBOUND,)) else False
        return self._known(_IS_UNBOUND, self._unbound, value)

    def _known(self, question: _Question, asked: dict[int, tuple[Any, Any]], value: Any) -> bool | None:
        known = asked.get(id(value))
        decided = None if known is None else self.decided(known[1])
        return self._origins.answer(value, question.of_side, self.region) if decided is None else decided

    def _asked(self, question: _Question, asked: dict[int, tuple[Any, Any]], value: Any) -> Any:
        told = self._known(question, asked, value)
        if told is not None:
            return told
        known = asked.get(id(value))
        if known is None or not self.region.holds(known[1]):
            flag = self.fresh_result(bool, self.emit("call_function", question.function, (value, *question.more), {}))
            self._origins.connect(value, question.of_side, flag)
            known = asked[id(value)] = value, flag
        return known[1]

    def known_absence(self, value: Any) -> bool | None:
        """As `Recorder.known_absence`."""
        return self._known(_IS_NONE, self._absences, value) if is_optional(value) else None

    def may_be_none(self, value: Any) -> bool:
        """Whether a staged value may be ``None`` where we are."""
        return is_optional(value) and self.known_absence(value) is not False

    def with_or_without(self, value: Any, use: Callable[[Any], Any]) -> Any:
        """``use(None)`` where a value is ``None``, ``use(value)`` where it is not, as of an `Unjoined` value.

        What the former raises, because nobody expects ``None`` there, is raised in the run.
        """
        absent = self.absence(value)
        if isinstance(absent, bool):
            return use(None if absent else value)
        kind = next(name for of, name in _KINDS.items() if isinstance(value, of))
        failure = JoinFailure("SG203", f"None on one path, a {kind} on the other")

        def one(side: Any) -> Any:
            if side is not None:
                return use(side)
            try:
                return use(None)
            except (TypeError, AttributeError) as error:
                emit_raise(self, error)
                raise Diverged from None

        return self.either(Unjoined(absent, None, value, self.region.node_of(value).name, failure), one)

    def is_true(self, value: Any, truth: Callable[[Any], Any]) -> Any:
        """``bool(value)`` of a value that may be ``None``; ``truth`` is its truth where it is not."""
        absent = self.absence(value)
        if isinstance(absent, bool):
            return False if absent else truth(value)
        there = self.opposite(absent)
        exit = branch(self, there, lambda: Return(truth(value)), lambda: Return(False), (), ())
        assert exit is not None
        if isinstance(exit.value, StagedNumber):
            self.implies(exit.value, True, there)
        return exit.value

    def on_each_path(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What one gives where a staged condition holds, and the other where not."""
        if isinstance(condition, bool):
            return then() if condition else otherwise()
        exit = branch(self, condition, lambda: Return(then()), lambda: Return(otherwise()), (), ())
        assert exit is not None
        return exit.value
