"""Classes of values that only the run knows: `isinstance`, `issubclass` and `type`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, get_args

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.elements.stand_ins import kind_of_stand_in
from stillgraph.operators.outside.abstract_classes import asks_itself, note_answer
from stillgraph.program.facts.info import info
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.code.frames import here, module_here
from stillgraph.trace.control_flow.caught_kinds import class_in_run, class_of
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.torch_rules.tensor_classes import class_of_tensor, is_instance
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.caught import Caught, CaughtPart
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.number_operands import NUMBERS
from stillgraph.trace.values.numbers import StagedNumber, kind_of, kinds_of
from stillgraph.trace.values.operands import sample
from stillgraph.trace.values.text import StagedText


def isinstance_(value: Any, kinds: Any, /) -> Any:
    """``isinstance``: a staged number is an instance of its Python type, not of ours."""
    capture = capturing()
    if isinstance(value, Unjoined):
        return value.asks(lambda v: isinstance_(v, kinds))
    if capture.may_be_none(value):
        return capture.with_or_without(value, lambda v: isinstance_(v, kinds))
    if _is_uncertain(value) or (isinstance(value, StagedNumber) and asks_itself(kinds)):
        answers = _possible_answers(capture, value, kinds)
        if len(answers) == 1 and not info(value).may_be_unbound:
            return answers.pop()
        found = capture.fresh_result(bool, capture.emit("call_function", isinstance, (value, kinds), {}))
        return answers.pop() if len(answers) == 1 else found  # of one that is unbound, the node raises what Python does
    if isinstance(value, StagedArray):
        return issubclass(_class_of_array(value), kinds)
    if isinstance(value, StagedNumber):
        return _is_number_of(kind_of(value), kinds)
    if isinstance(value, StagedComplex):
        return issubclass_(complex, kinds)
    if isinstance(value, StagedText):
        answer = isinstance(value if asks_itself(kinds) else "", kinds)
        note_answer(capture, str, kinds, answer)
        return answer
    kind = kind_of_stand_in(value)
    if kind is not None:
        return issubclass(kind, kinds)
    answer = is_instance(capture, value, kinds) if is_fake(value) else isinstance(value, kinds)
    note_answer(capture, torch.Tensor if is_fake(value) else type(value), kinds, answer)
    return answer


def issubclass_(kind: Any, kinds: Any, /) -> Any:
    """``issubclass``."""
    if isinstance(kind, CaughtPart) and kind.what == "type":
        return isinstance_(kind.error, kinds)
    answer = issubclass(kind, kinds)
    note_answer(capturing(), kind, kinds, answer)
    return answer


def _class_of_array(value: StagedArray) -> Any:
    numpy: Any = sys.modules["numpy"]
    return numpy.dtype(str(value.tensor.dtype).removeprefix("torch.")).type if value.scalar else numpy.ndarray


def _is_uncertain(value: Any) -> bool:
    """Whether only the run knows what kind of value it is: a tensor, a number or None, or which exception."""
    if isinstance(value, Caught):
        return True
    if not isinstance(value, (torch.Tensor, StagedNumber)):
        return False
    known = info(value)
    return known.may_be_unbound or known.may_be_number or known.kind_varies


def _possible_answers(capture: Any, value: Any, kinds: Any) -> set[bool]:
    """What ``isinstance`` may say of a number of several kinds, or of a tensor that may be one; none of exceptions.

    Nor of classes that answer by a method of their own, which is asked by the run.
    """
    if isinstance(value, Caught) or asks_itself(kinds):
        return set()
    if isinstance(value, StagedNumber):
        derived = set() if all(map(_has_no_number, _flat(kinds))) else {True}
        return {_is_number_of(kind, kinds) for kind in kinds_of(value)} | derived
    numbers = {_is_number_of(kind, kinds) for kind in NUMBERS} if info(value).may_be_number else set()
    return numbers | {is_instance(capture, value, kinds)}


def _flat(kinds: Any) -> Iterator[Any]:
    """The classes that ``isinstance`` is given, in tuples of tuples or as a union."""
    for kind in kinds if isinstance(kinds, tuple) else get_args(kinds) or (kinds,):
        yield from _flat(kind) if isinstance(kind, tuple) else (kind,)


def _has_no_number(kind: Any) -> bool:
    """Whether no class is derived from a number's and from this one: a member of an ``IntEnum`` is of its own class."""
    return kind in (*NUMBERS, str, list, tuple, dict, set, torch.Tensor)


def _is_number_of(kind: type, kinds: Any) -> bool:
    """What ``isinstance`` says of all numbers of a kind. It takes what `issubclass` does not: protocols with data."""
    answer = isinstance(kind(1), kinds)
    note_answer(capturing(), kind, kinds, answer)
    return answer


_ONE_KIND = "Let the value be of one kind on each path."


def type_(*args: Any) -> Any:
    """``type``."""
    if len(args) == 1 and capturing().may_be_none(args[0]):
        return capturing().with_or_without(args[0], type_)
    if len(args) == 1 and isinstance(args[0], Caught):
        known = class_of(capturing(), args[0])
        return class_in_run(capturing(), args[0]) if known is None else known
    if len(args) == 1 and _is_uncertain(args[0]):
        message = "the type of a value is asked for that only the run knows"
        raise refuse("SG301", message, location=here(), hint=_ONE_KIND)
    if len(args) == 1 and isinstance(args[0], StagedNumber):
        return kind_of(args[0])
    if len(args) == 1 and isinstance(args[0], (StagedText, StagedComplex)):
        return type(sample(args[0]))
    if len(args) == 1 and kind_of_stand_in(args[0]) is not None:
        return kind_of_stand_in(args[0])
    if len(args) == 1 and is_fake(args[0]):
        return class_of_tensor(capturing(), args[0])
    if len(args) == 1 and isinstance(args[0], StagedArray):
        return _class_of_array(args[0])
    if len(args) == 3 and type(args[2]) is dict and "__module__" not in args[2]:
        return type(*args[:2], {**args[2], "__module__": module_here()})
    return type(*args)
