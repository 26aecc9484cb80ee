"""What is done with a tensor that is a Python number on some path (see `TensorType.may_be_number`).

The node that is recorded does to either what eager does. What the capture knows of its result must hold for either.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from stillgraph.core.diagnostics import Refusal, refuse
from stillgraph.core.files import is_our_module
from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import TensorType
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.maybe_none import AUGMENTING, as_python
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.fakes import node_naming
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.torch_rules.given import leaves_given

_HINT = "Begin with a tensor, such as torch.zeros(()) of the dtype you want, so that every path leaves a tensor."


def may_be_number(value: Any) -> bool:
    """Whether a value is a tensor on one path and a number on another."""
    return isinstance(value, torch.Tensor) and info(value).may_be_number


def augmenting(func: Any) -> Callable[..., Any] | None:
    """The operator, such as `operator.iadd`, that arrives as a method of torch's when it is applied to a tensor."""
    return AUGMENTING.get(func)


def by_operator(func: Any) -> Any:
    """What does to a number too what a method of torch's does, by which an operator of Python's arrives.

    Raises:
        CaptureError: it is asked what no number answers.
    """
    do = as_python(func)
    if do is None or func in _BY_OPERATOR or not _is_asked_by_user():
        return _BY_OPERATOR.get(func, func)
    name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__
    message = f"a value that is a number on one path and a tensor on the other is asked for its {name.strip('_')}"
    raise refuse("SG202", message, location=here(), hint=_HINT)


def _is_asked_by_user() -> bool:
    """Whether a tensor is not asked by code of ours that knows what it asks, or does what the user's code says."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__torch_function__":
        frame = frame.f_back
    if frame is None:
        return False
    name = str(frame.f_globals.get("__name__"))
    return not is_our_module(name) or name.startswith(_FOR_THE_USER)


_FOR_THE_USER = (
    "stillgraph.bytecode.",
    "stillgraph.operators.objects.attributes",
    *(f"stillgraph.operators.calls.{name}" for name in ("calls", "callees", "builtin_methods", "python_functions")),
)
_BY_OPERATOR = {torch.Tensor.neg: operator.neg, torch.Tensor.abs: operator.abs, torch.Tensor.positive: operator.pos}


def check_result(recorder: Recorder, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], result: Any) -> None:
    """Mark the result of a recorded torch call where it may be a number too.

    Raises:
        CaptureError: what the call gives for the number has another dtype or shape than for the tensor (SG202).
    """
    uncertain = list({id(v): v for v in leaves_given(args, kwargs) if may_be_number(v)}.values())
    if not uncertain or not isinstance(result, torch.Tensor):
        return
    op, target, given = node_naming.as_node(func, args, kwargs)
    do = target if op == "call_function" else lambda receiver, *rest, **named: getattr(receiver, target)(*rest, **named)
    for swapped in _with_numbers(uncertain, (given, kwargs)):
        other = _tried(recorder, do, *swapped)
        if isinstance(other, torch.Tensor):
            _compare(uncertain[0], other, result)
        elif isinstance(other, (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)):
            mark(result, may_be_number=True)


def call_method(recorder: Recorder, method: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Record a call of a bound method that says what an operator says: numbers have the operator alone."""
    given = (method.__self__, *args)
    recorder.before_risk()
    result = recorder.run(getattr(torch.Tensor, method.__name__), given, kwargs)
    return recorder.bind(result, recorder.emit("call_method", method.__name__, given, kwargs))


def change_in_place(recorder: Recorder, function: Callable[..., Any], left: torch.Tensor, right: Any) -> Any:
    """Record ``left += right`` and its kin: a tensor changes in place, a number is replaced.

    Args:
        recorder: of the capture.
        function: such as `operator.iadd`.
        left: a tensor that may be a number.
        right: the operand.

    Raises:
        CaptureError: the two have another dtype or shape (SG202).
    """
    uncertain = [each for each in (left, right) if may_be_number(each)]
    tried = [_tried(recorder, function, given) for given, _ in _with_numbers(uncertain, ((left, right), {}))]
    changed = _tried(recorder, function, (left, right))
    numbers = [each for each in tried if each is not None]
    if changed is None or len(numbers) < len(tried):
        recorder.before_risk()
    if changed is None and not numbers:
        return recorder.run(function, (left, right), {})  # to raise what it raises
    tensors = [each for each in numbers if isinstance(each, torch.Tensor)]
    results = [*tensors, *([changed] if changed is not None else [])]
    like = results[0]
    for other in results[1:]:
        _compare(left, other, like)
    kinds = [recorder.type_of(each) for each in results]
    needs = {kind.requires_grad for kind in kinds if isinstance(kind, TensorType)}
    differs = info(left).grad_differs or len(needs) > 1
    shape = tuple(recorder.to_fake(like).shape)
    type_ = TensorType(like.dtype, like.device, shape, any(needs), differs, may_be_number=len(tensors) < len(numbers))
    node = recorder.emit("call_function", function, (left, right), {})
    return recorder.bind(recorder.instantiate(type_), node)


def _with_numbers(uncertain: list[Any], given: Any) -> Iterator[Any]:
    """What is given, with each of the uncertain tensors, and all of them, as a number of each kind it may be."""
    groups = [[each] for each in uncertain] + ([uncertain] if len(uncertain) > 1 else [])
    for group, sample in itertools.product(groups, (True, 1, 1.0)):
        if all(_may_be(sample, tensor.dtype) for tensor in group):
            swapped = given
            for tensor in group:
                swapped = exchanged(swapped, tensor, sample)
            yield swapped


def _may_be(number: float, dtype: torch.dtype) -> bool:
    """Whether a number of this kind is joined with tensors of a dtype, see `types.as_tensor_type`."""
    if isinstance(number, bool) or dtype == torch.bool:
        return isinstance(number, bool) and dtype == torch.bool
    return isinstance(number, int) or dtype.is_floating_point or dtype.is_complex


def _tried(recorder: Recorder, function: Callable[..., Any], args: Any, kwargs: Any = None) -> Any:
    try:
        return recorder.run(function, args, kwargs or {})
    except (Exception, Refusal):  # of any kind: the run raises it where the value is one
        return None


def _compare(value: torch.Tensor, other: torch.Tensor, result: torch.Tensor) -> None:
    if _shown(other) != _shown(result):
        message = (
            f"a value that is a number on one path and a tensor of {_shown(value)} on the other decides what the "
            f"result is: {_shown(other)} or {_shown(result)}"
        )
        raise refuse("SG202", message, location=here(), hint=_HINT)


def _shown(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"
