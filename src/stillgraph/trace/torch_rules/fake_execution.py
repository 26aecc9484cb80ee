"""Running a torch call on fake tensors where torch's own code asks for more than fakes can tell."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves

from stillgraph.core.diagnostics import MisreadError, refuse
from stillgraph.core.files import is_ours, is_torch
from stillgraph.core.lookup import class_member
from stillgraph.program.attention import ON_FAKES
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.node_naming import name_of
from stillgraph.trace.fakes.older_torch import WITHOUT_ASKING
from stillgraph.trace.fakes.shape_environment import WANTS_INTEGERS
from stillgraph.trace.fakes.symbolic import (
    DATA_DEPENDENT,
    GuardOnDataDependentSymNode,
    Symbolic,
    UnsupportedFakeTensorException,
    is_nested,
    kernels_in_python,
)
from stillgraph.trace.torch_rules.trials import NoForm, by_trial
from stillgraph.trace.values.errors import refuse_given
from stillgraph.trace.values.numbers import Staged
from stillgraph.trace.values.operands import require_one_kind

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.torch_rules.given import leaves_given
from stillgraph.trace.values.numbers import StagedNumber

_PART = "A part of a fixed length is t[i + torch.arange(n)], or torch.narrow(t, 0, i, n)."
_FORMS = "What it gives has one form for some sizes and another for others. Ask for the size first, in an if."
_PARTS = "How many parts there are depends on the size. Give as many sizes to split, or take the parts with narrow."
_IN_PARTS = ("chunk", "split", "tensor_split", "unbind", "split_copy", "unbind_copy", "dsplit")
_HINTS = {
    torch.Tensor.__getitem__: _PART,
    **{getattr(space, name): _PARTS for space in (torch, torch.Tensor) for name in _IN_PARTS if hasattr(space, name)},
}
_WANT_INTEGERS = (
    *(WANTS_INTEGERS, "on tensor with symbolic sizes/strides"),
    "dispatch_on_subclass called with NO overloaded args",  # a function of torch's in C++, called with symbols alone
    "tried to directly modify sizes for customized tensor",
    "Please convert all Tensors to FakeTensors first",  # a tensor that torch makes on the way, of a plain size
)
_NAMES = ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
_DROPOUTS = {
    getattr(space, name + ending)
    for space in (torch, torch.nn.functional)
    for name in _NAMES
    for ending in ("", "_")
    if hasattr(space, name + ending)
}


def run_on_fakes(symbolic: Symbolic, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a torch function gives on fakes.

    Torch's code may ask for a size that only the run knows, or take the size of an example for the only one, though the
    result has one form whatever it is. Then the other ways to that form are tried, each knowing what was known before.
    """
    undo, failure = symbolic.before() if _is_open(args, kwargs) else None, None
    try:
        result = _run(symbolic, func, args, kwargs)
        if undo is None or not undo.settled():
            return result
        redo = undo.redoing()
    except (*DATA_DEPENDENT, RuntimeError, AssertionError) as error:
        if not isinstance(error, DATA_DEPENDENT) and not wants_plain_sizes(error):
            raise
        failure = error
    for way in (_not_asking, _in_python, by_trial) if failure else (by_trial,):  # which knows whether others will do
        if undo is not None:
            undo.all()
        with contextlib.suppress(NoForm, *DATA_DEPENDENT, RuntimeError, TypeError, ValueError):
            found = way(symbolic, func, args, kwargs)
            if undo is None or not undo.settled():
                return found
    if failure is None:
        redo()  # which settles a size: it can be no other
        return result
    if undo is not None:
        undo.all()
    raise failure


def _is_open(args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a symbol is among the sizes and numbers that a function is given."""
    leaves = leaves_given(args, kwargs)
    sizes = (size for leaf in leaves if isinstance(leaf, torch.Tensor) for size in leaf.shape)
    return any(isinstance(each, torch.SymInt) for each in (*leaves, *sizes))


def _not_asking(symbolic: Symbolic, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A dropout asks first whether there is any element, and attention asks for its kernel's sake."""
    if func not in _WITHOUT_ASKING:
        raise NoForm
    return _run(symbolic, _WITHOUT_ASKING[func], args, kwargs)


def _in_python(symbolic: Symbolic, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Where torch's code in C++ asks, its code in Python may not."""
    with kernels_in_python():
        return func(*args, **kwargs)


def _dropped(func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    given = inspect.signature(func).bind(*args, **kwargs).arguments if isinstance(func, FunctionType) else kwargs
    tensor: torch.Tensor = args[0] if args else given["input"]
    return tensor if given.get("inplace") or func.__name__.endswith("_") else tensor.clone()


_WITHOUT_ASKING: dict[Any, Callable[..., Any]] = {
    **WITHOUT_ASKING,
    **ON_FAKES,
    **{dropout: functools.partial(_dropped, dropout) for dropout in _DROPOUTS},
}


def _run(symbolic: Symbolic, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    try:
        with symbolic.without_plain_sizes():
            return func(*args, **kwargs)
    except RuntimeError as error:
        if not wants_plain_sizes(error):
            raise
    with kernels_in_python():
        return func(*args, **kwargs)


def needs_a_value(func: Any, error: Exception) -> BaseException:
    """The refusal of a call that asks for what only the run knows, as torch says by one of `DATA_DEPENDENT`."""
    if isinstance(error, UnsupportedFakeTensorException):
        return no_such_tensors(func)
    of_size = isinstance(error, GuardOnDataDependentSymNode)  # what torch says then is about its own symbols
    why = "a size decides what it does" if of_size else str(error).strip().splitlines()[0]
    message = f"{name_of(func)} needs a value that only the run knows ({why})"
    hint = _HINTS.get(func, _FORMS) if of_size else None
    return refuse("SG304", message, location=here(), hint=hint)


_QUANTIZED = (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4)


def is_quantized(tensor: torch.Tensor) -> bool:
    """Whether a tensor is quantized: torch says that no fake one is. No mode of torch's is asked."""
    with torch._C.DisableTorchFunction():
        return tensor.is_quantized or tensor.dtype in _QUANTIZED


def has_no_fake(tensor: torch.Tensor) -> bool:
    """Whether a tensor is of a kind of which no program takes one: quantized, or nested."""
    with torch._C.DisableTorchFunction():  # once: this is asked of each tensor between two programs
        return tensor.is_quantized or tensor.dtype in _QUANTIZED or is_nested(tensor)


def no_such_tensors(func: Any) -> BaseException:
    """The refusal of a call that gives a tensor of a kind of which torch knows none without data: a quantized one."""
    hint = "Call it outside the static function, with what computes with its result up to dequantize()."
    return refuse("SG304", f"{name_of(func)} gives a quantized tensor", location=here(), hint=hint)


def require_not_quantized(func: Any, result: Any) -> None:
    """Refuse a call that gives a quantized tensor."""
    for each in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(each, torch.Tensor) and is_quantized(each):
            raise no_such_tensors(func)


def wants_plain_sizes(error: Exception) -> bool:
    """Whether torch says that it takes no symbols for sizes."""
    return any(text in str(error) for text in _WANT_INTEGERS)


def takes_no_such_size(func: Any) -> BaseException:
    """The refusal of a call that takes no symbols for sizes."""
    message = f"{name_of(func)} takes no number that only the run knows as a size"
    hint = "Make a tensor of that size with new_zeros or new_full, and join the two with torch.cat."
    return refuse("SG304", message, location=here(), hint=hint)


def has_no_form(func: Any) -> BaseException:
    """The refusal of a call whose result torch cannot tell without data: its values decide the sizes."""
    hint = "Call it outside the static function, or take one whose sizes the values do not decide."
    return refuse("SG304", f"{name_of(func)} gives sizes that only the run knows", location=here(), hint=hint)


_SYMBOL = re.compile(r"\bu\d+\b")
"""A size that only the run knows, in an error of torch's: eager PyTorch may raise none."""
_NAMED = re.compile(r"\b(?:Staged|Sym)(?:Int|Float|Bool)\b")


def takes_no_number(error: Exception, given: Any) -> bool:
    """Whether torch has failed because it got what stands for a number; eager PyTorch may fail as well, or not."""
    told = str(error)
    if _NAMED.search(told) is not None:
        return True
    staged = any(isinstance(leaf, StagedNumber) for leaf in tree_leaves(given))
    return staged and "INTERNAL ASSERT FAILED" in told


def misreads_number(func: Any) -> BaseException:
    """The refusal of a call that takes no stand-in for a number of this type."""
    message = f"{name_of(func)} takes no such number that only the run knows"
    return refuse("SG301", message, location=here(), kind=MisreadError)


def require_fit(recorder: Recorder, error: Exception, func: Any, args: Any, kwargs: Any) -> None:
    """Refuse a call that fails only because numbers or sizes in it are those of the run.

    Args:
        recorder: the capture.
        error: what torch raises.
        func: what is called.
        args: with what.
        kwargs: and by which names.
    """
    given = (args, kwargs)
    require_one_kind(tree_leaves(given), "is given to torch")
    if isinstance(error, (RuntimeError, AssertionError)) and wants_plain_sizes(error):
        recorder.needs_value(given)
        raise (takes_no_such_size if _is_open(args, kwargs) else has_no_form)(func) from error
    if isinstance(error, RuntimeError) and _SYMBOL.search(str(error)):
        recorder.needs_value(given)
        message = f"{name_of(func)} takes these sizes or not, as only the run knows ({str(error).splitlines()[0]})"
        raise refuse("SG304", message, location=here(), hint=_FORMS, kind=MisreadError) from error
    if takes_no_number(error, given):
        recorder.needs_value(given)
        raise misreads_number(func) from error
    if any(map(_is_asked_by_torch, tree_leaves(given))):
        raise refuse_given(f"by {name_of(func)}") from error


def _is_asked_by_torch(value: Any) -> bool:
    """Whether a value is an object of the user's of which torch's own code may ask what only the run knows."""
    if issubclass(type(value), (torch.Tensor, torch.SymInt, Staged)):
        return False
    method = class_member(type(value), "__index__")
    if not isinstance(method, FunctionType):
        return False
    return not (is_torch(method.__code__.co_filename) or is_ours(method.__code__.co_filename))
