"""Truth: what a condition is before the run."""

from __future__ import annotations

import operator
from typing import Any

import torch

from stillgraph.core.lookup import has_special
from stillgraph.operators.conditions.one_element import require_one_element
from stillgraph.operators.dispatch import asked
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import Session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.narrowing import is_optional
from stillgraph.trace.fakes.symbolic import known_true
from stillgraph.trace.torch_rules.special import number_kind
from stillgraph.trace.values import entries
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.numbers import StagedBool, StagedNumber
from stillgraph.trace.values.text import StagedText


def truth(session: Session, value: Any) -> Any:
    """``bool(value)``: a Python bool where it is known, otherwise a tensor with one element or a staged number.

    Raises:
        RuntimeError: as eager PyTorch, for a tensor that has not exactly one element.
    """
    if type(value) is bool:
        return value
    if isinstance(value, StagedArray):
        require_one_element(session, value, bool)
    value = tensor_of(value)
    session.settling.require_current(value)
    known = session.known_truth(value)
    if known is not None:
        return known
    if is_optional(value) and session.may_be_none(value):
        return session.is_true(value, lambda v: truth_number(session, v))
    if isinstance(value, torch.Tensor):
        return _tensor_truth(session, value)
    if isinstance(value, StagedBool):
        decided = session.decided(value)
        return value if decided is None else decided
    if isinstance(value, (StagedNumber, StagedComplex)):
        return operator.ne(value, 0)
    if isinstance(value, StagedText):
        return operator.ne(value, "")
    if isinstance(value, Unjoined):
        return value.either(lambda v: truth_number(session, v))
    if lists.is_spread(value):
        return operator.ne(lists.length(session, value), 0)
    if entries.container_of(value) is not None:
        return operator.ne(lists.entry_count(session, value), 0)
    if value is None or isinstance(value, (bool, int, float, str, tuple, list, dict)):
        return bool(value)
    return _object_truth(session, value)


def tensor_of(value: Any) -> Any:
    """The tensor behind an array of numpy's; anything else as it is."""
    return value.tensor if isinstance(value, StagedArray) else value


def _tensor_truth(session: Session, value: torch.Tensor) -> Any:
    fake = session.to_fake(value)
    with torch._C.DisableTorchFunction():
        numel = fake.numel()
        number_kind(fake.dtype)
        if numel != 1 if isinstance(numel, int) else known_true(numel != 1):
            what = "no values" if isinstance(numel, int) and numel == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return value


def _object_truth(session: Session, value: Any) -> Any:
    if has_special(value, "__bool__"):
        return asked(value, "__bool__")
    return truth(session, asked(value, "__len__")) if has_special(value, "__len__") else True


def truth_number(session: Session, value: Any) -> Any:
    """As `truth`, but a tensor is turned into a staged ``bool``."""
    known = truth(session, value)
    if not isinstance(known, torch.Tensor):
        return known
    return session.fresh_result(bool, session.emit("call_function", bool, (known,), {}))
