"""What is done to a value that is one thing on one path and another on the other: it is done for each.

Such values are what may be None, what could not be joined, and a truth value where torch wants a plain one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import CaptureError, MisreadError, Refusal, refuse
from stillgraph.program.program import Split
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, alternatives, is_lost, may_be_tensors
from stillgraph.trace.control_flow.maybe_none import as_python
from stillgraph.trace.control_flow.maybe_number import (
    augmenting,
    by_operator,
    change_in_place,
    check_result,
    may_be_number,
)
from stillgraph.trace.control_flow.narrowing import Narrowing, exchanged, leaves
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.fakes.node_naming import is_autograd_function
from stillgraph.trace.fakes.symbolic import DATA_DEPENDENT
from stillgraph.trace.graph.current import current
from stillgraph.trace.heap.exits import Exit, Return
from stillgraph.trace.heap.places import MISSING, Place, variable_of
from stillgraph.trace.torch_rules.call_results import has_staged
from stillgraph.trace.torch_rules.given import leaves_given
from stillgraph.trace.torch_rules.number_results import refuse_mixed
from stillgraph.trace.values.numbers import StagedBool, is_mixed, kinds_of
from stillgraph.trace.values.operator_tables import COMPARISONS
from stillgraph.trace.values.several import in_graph

_DEEPEST_SPLIT = 4  # unjoined values of different branches that meet: each doubles what is recorded
_MOST_SPLITS = 512
_RAISED_BY_TORCH = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)
_ASK_FIRST = "Ask first which it is: if value is not None, if isinstance(value, torch.Tensor)."
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})


def several_in(value: Any) -> Unjoined | None:
    """The first value without a join that is in one, be it the bound of a slice."""
    return next((each for each in leaves(value) if isinstance(each, Unjoined)), None)


def several_in_key(key: Any) -> Unjoined | None:
    """As `several_in`, for a key that is put into a dict or set.

    Raises:
        CaptureError: a path leaves a tensor, which is no key on any path: what is told is why it has no join.
    """
    several = several_in(key)
    if several is not None and may_be_tensors(several):
        several.refuse()
    require_one_object(key)
    return several


def require_one_object(key: Any) -> None:
    """Refuse a key that is hashed by its identity, and is another object on each path.

    Raises:
        CaptureError: it is. (SG305)
    """
    recorder = current()
    if recorder is not None and any(map(recorder.identities.is_another, leaves(key))):
        message = "an object that is another one on each path is a key, or looked up"
        raise refuse("SG305", message, location=here(), hint=_BY_NUMBER)


_BY_NUMBER = "Give each object a number or name of its own, and use that as the key."


def _goes_on_in(value: Any, sides: tuple[Any, Any]) -> bool:
    """Whether a value is the one of two sides that is to be split further: such a chain doubles nothing."""
    return any(value is one and not isinstance(other, Unjoined) for one, other in (sides, sides[::-1]))


@dataclass(frozen=True, eq=False)
class _Answers:
    """What was asked of an unjoined value: the answer, and those of its two sides, plain if these are known."""

    answer: Any
    left: Any
    right: Any


class BothSides(Narrowing):
    """A recorder that does for both of its sides what a value's sides do not have in common.

    Attributes:
        splits: what was done twice for want of a join.
    """

    def __init__(self, lift: Callable[[torch.Tensor], fx.Node], demanded: Callable[[Any, str], Any]) -> None:
        super().__init__(lift, demanded)
        self.splits: list[Split] = []
        self._answers: dict[int, tuple[Unjoined, list[_Answers]]] = {}
        self._kept: dict[int, tuple[Unjoined, list[Unjoined]]] = {}
        self._splitting: list[tuple[Any, int, tuple[Any, Any]]] = []  # used in the arms around, how deep, its sides

    def record(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """As `Recorder.record`; a staged truth value that torch wants as a plain one becomes a branch."""
        uncertain = next(filter(self.may_be_none, leaves((args, kwargs))), None) if self.has_optionals else None
        if uncertain is not None and self._takes_none(func, args, kwargs, uncertain):
            return self._record_each(func, args, kwargs, uncertain)
        several = several_in((args, kwargs))
        if several is not None:
            return self.either(several, lambda value: self.record(func, *exchanged((args, kwargs), several, value)))
        given = leaves_given(args, kwargs)
        if any(map(is_mixed, given)):
            self._refuse_mixed(func, args, kwargs)
        chosen = next((v for v in given if id(v) in self._choices), None)
        if chosen is not None:
            try:
                return super().record(func, args, kwargs)
            except (TypeError, CaptureError, Refusal):
                return self._record_chosen(func, args, kwargs, chosen, self._choices[id(chosen)][1])
        flags = [v for v in given if isinstance(v, StagedBool)]
        if not flags:
            try:
                result = super().record(func, args, kwargs)
            except _RAISED_BY_TORCH as error:
                self._require_told(given, error)
                raise
            check_result(self, func, args, kwargs, result)
            known = uncertain is not None and result is not None and not has_staged(result)
            return self._record_each(func, args, kwargs, uncertain) if known else result  # no node to raise for None
        try:
            return super().record(func, args, kwargs)
        except TypeError:
            return self._record_both(func, args, kwargs, flags[0])
        except (CaptureError, Refusal) as error:
            if not isinstance(error.__cause__, DATA_DEPENDENT):
                raise
            return self._record_both(func, args, kwargs, flags[0])

    def _require_told(self, given: list[Any], error: Exception) -> None:
        """Refuse to raise for a tensor what torch does not raise, or says otherwise, where that is a number or None."""
        value = next((each for each in given if may_be_number(each) or self.may_be_none(each)), None)
        if value is not None:
            other = "a number" if may_be_number(value) else "None"
            message = f"torch does not take a value that is {other} on another path, and says so of a tensor ({error})"
            raise refuse("SG301", message, location=here(), hint=_ASK_FIRST)

    def _record_each(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], uncertain: Any) -> Any:
        return self.with_or_without(
            uncertain, lambda value: self.record(func, *exchanged((args, kwargs), uncertain, value))
        )

    def _takes_none(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], uncertain: Any) -> bool:
        """Whether torch takes None too for an argument that may be None, and does something else."""
        if is_autograd_function(func):
            return True
        try:
            result = self.run(func, *exchanged((args, kwargs), uncertain, None))
        except (Exception, Refusal):  # of any kind: whatever torch says to None it says again in the run
            return False
        return result is not NotImplemented  # what an operator's method says, and Python then raises

    def _refuse_mixed(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
        """A number of uncertain kind decides the dtype of a tensor: made of it, or of one of whole numbers."""
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        tensors = [value for value in given if isinstance(value, torch.Tensor)]
        if getattr(func, "__name__", "").strip("_") in _COMPARISONS:
            return  # which give truth values, and compare by the number of the run
        does = None
        if any(not self.to_fake(value).dtype.is_floating_point for value in tensors):
            does = "meets a tensor of whole numbers"
        elif not tensors and len(self._dtypes(func, args, kwargs, filter(is_mixed, given))) > 1:
            does = "decides the dtype of a tensor"
        if does is not None:
            raise refuse_mixed(does)

    def _dtypes(
        self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], numbers: Iterable[Any]
    ) -> set[torch.dtype]:
        """The dtypes of what a call gives for the kinds of number that it may be given."""
        dtypes: set[torch.dtype] = set()
        given = list({id(number): number for number in numbers}.values())
        for kind in set(itertools.chain(*map(kinds_of, given))):
            swapped = (args, kwargs)
            for number in given:
                swapped = exchanged(swapped, number, kind(1))
            try:
                made = self.run(func, *swapped)
            except (Exception, Refusal):  # the run raises it where the number is of that kind
                continue
            dtypes.update(v.dtype for v in torch.utils._pytree.tree_leaves(made) if isinstance(v, torch.Tensor))
        return dtypes

    def _record_both(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], flag: StagedBool) -> Any:
        def given(value: bool) -> Exit:
            swap = torch.utils._pytree.tree_map(lambda v: value if v is flag else v, (args, kwargs))
            return Return(self.record(func, *swap))

        exit = branch(self, flag, lambda: given(True), lambda: given(False), (), ())
        assert exit is not None
        return exit.value

    def _record_chosen(
        self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], number: Any, values: Sequence[int]
    ) -> Any:
        """A call for each of the whole numbers that one may be, of which torch wants a plain one, such as ``dim``."""
        first, *others = values

        def one() -> Any:
            return self.record(func, *exchanged((args, kwargs), number, first))

        if not others:
            return one()
        return self.on_each_path(
            number == first, one, lambda: self._record_chosen(func, args, kwargs, number, others)
        )

    def number_operation(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """As `Recorder.number_operation`; None is equal to no number, and not even in order with itself."""
        self._require_going_on()
        if self.has_optionals and function in COMPARISONS.values():
            uncertain = next(filter(self.may_be_none, args), None)
            if uncertain is not None:
                return self.with_or_without(uncertain, lambda value: function(*exchanged(args, uncertain, value)))
        return super().number_operation(function, args)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        do = as_python(func) if self.has_optionals and args and self.may_be_none(args[0]) else None
        if do is not None:
            with self:  # what it calls of torch is recorded
                return self.with_or_without(args[0], lambda value: do(value, *args[1:], **(kwargs or {})))
        given = args, kwargs or {}
        unjoined = several_in(given) if any(issubclass(kind, Unjoined) for kind in types) else None
        if unjoined is None:
            if args and may_be_number(args[0]):
                function = augmenting(func)
                if function is not None:
                    return change_in_place(self, function, args[0], args[1])
                func = by_operator(func)
            others = tuple(kind for kind in types if not issubclass(kind, Unjoined))  # it is one of its sides by now
            return self._of_plain_truth(func, others, args, kwargs)

        def one(value: Any) -> Any:
            return self.__torch_function__(func, types, *exchanged(given, unjoined, value))

        return self.either(unjoined, one)

    def _of_plain_truth(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """A torch function of values; where it takes a truth value of the run for a plain one alone, of each truth."""
        try:
            return super().__torch_function__(func, types, args, kwargs)
        except Refusal as refused:
            if not isinstance(refused.error, MisreadError):
                raise
            given = args, kwargs or {}
            flag = next((leaf for leaf in torch.utils._pytree.tree_leaves(given) if isinstance(leaf, StagedBool)), None)
            if flag is None:
                raise

        def of_truth(value: bool) -> Any:
            return self._of_plain_truth(func, types, *exchanged(given, flag, value))

        decided = self.decided(flag)
        if decided is not None:
            return of_truth(decided)
        return self.on_each_path(flag, lambda: of_truth(True), lambda: of_truth(False))

    def either(self, value: Unjoined, use: Callable[[Any], Any]) -> Any:
        """Do something for both sides of an unjoined value, in the arms of a branch; what they leave is joined."""
        told: list[tuple[Any, Any]] = []
        narrowed = value if is_lost(value) else self._narrowed(value)
        if not isinstance(narrowed, Unjoined):
            return self._side(value, narrowed, use)
        value = narrowed

        def used(side: Any) -> Exit:
            told.append((side, use(side)))
            return Return(told[-1][1])

        exit = self.either_block(value, used, (), ())
        if exit is None or exit.returned is not True:
            value.refuse()
        if isinstance(exit.value, StagedBool) and not isinstance(value, Picked):
            self._note_answers(value, exit.value, told)
        return exit.value

    def _note_answers(self, value: Unjoined, answer: StagedBool, told: list[tuple[Any, Any]]) -> None:
        """Remember what was asked of an unjoined value: where the answer is known, so is which of the two it is."""
        known = alternatives(value)
        sides = [next((given for side, given in told if side is each), None) for each in (known.left, known.right)]
        self._answers.setdefault(id(value), (value, []))[1].append(_Answers(answer, sides[0], sides[1]))

    def _narrowed(self, value: Unjoined, answer: Any = None, truth: bool | None = None) -> Any:
        """An unjoined value without what it cannot be where we are; ``answer`` is how one of its answers is decided."""
        for each in self._answers.get(id(value), (value, []))[1]:
            holds = truth if each.answer is answer else self.decided(each.answer)
            if holds is None:
                continue
            known = alternatives(value)
            left, right = (
                self._narrowed(side, given, holds) if isinstance(side, Unjoined) and not is_lost(side) else side
                for side, given in ((known.left, each.left), (known.right, each.right))
            )
            if each.left is (not holds):
                return self._further(right)
            if each.right is (not holds):
                return self._further(left)
            if left is not known.left or right is not known.right:
                made = functools.partial(Unjoined, known.decides, left, right, known.place, known.failure)
                return self._further(self._once(value, left, right, made))
        return value

    def _further(self, value: Any) -> Any:
        return self._narrowed(value) if isinstance(value, Unjoined) and not is_lost(value) else value

    def _once(self, value: Unjoined, left: Any, right: Any, make: Callable[[], Unjoined]) -> Unjoined:
        """One value for what the same conditions leave of another: what is asked of it is asked of all of these."""
        kept = self._kept.setdefault(id(value), (value, []))[1]
        for each in kept:
            known = alternatives(each)
            if known.left is left and known.right is right:
                return each
        kept.append(make())
        return kept[-1]

    def either_block(
        self, value: Unjoined, block: Callable[[Any], Exit | None], variables: Sequence[Place], dropped: Sequence[Place]
    ) -> Exit | None:
        """As `either`, for a block of the user's."""
        if is_lost(value):
            value.refuse()
        narrowed = self._narrowed(value)
        exit: Exit | None
        if not isinstance(narrowed, Unjoined):
            exit = self._side(value, narrowed, block)
            return exit
        value = narrowed
        if is_lost(value):
            value.refuse()
        known = alternatives(value)
        flag, left, right = known.flag, known.left, known.right
        decided = flag if isinstance(flag, bool) else self.decided(flag)
        if decided is not None:
            exit = self._side(value, left if decided else right, block)
            return exit
        depth = 1 + max((each[1] for each in self._splitting), default=0)
        # the other entries of one table, or the rest of a chain: each is one more branch, and doubles nothing
        number = value.stillgraph_number() if isinstance(value, Picked) else value
        depth = next((deep for of, deep, sides in self._splitting if of is number or _goes_on_in(value, sides)), depth)
        if depth > _DEEPEST_SPLIT or len(self.splits) >= _MOST_SPLITS:
            value.refuse()
        failure = known.failure
        self.splits.append(Split(failure.place or known.place, failure.message, here(), failure.sides))
        self._splitting.append((in_graph(value), depth, (left, right)))
        try:
            first, second = (functools.partial(self._side, value, side, block) for side in (left, right))
            return branch(self, flag, first, second, variables, dropped)
        finally:
            self._splitting.pop()

    @staticmethod
    def _side(value: Unjoined, side: Any, block: Callable[[Any], Any]) -> Any:
        if side is MISSING:
            name = variable_of(alternatives(value).place)
            raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
        return block(side)
