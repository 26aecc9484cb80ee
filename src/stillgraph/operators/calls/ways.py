"""Ways a call may go before it is known what is called: by what the arguments are, rather than by the callee."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.calls.meanings import has_meaning, meaning_of
from stillgraph.operators.calls.some_keywords import has_some, on_each_path, settled
from stillgraph.operators.dispatch import call
from stillgraph.operators.objects.stores import is_method_of_container
from stillgraph.operators.outside import acts
from stillgraph.operators.outside.debugging import stop_for
from stillgraph.operators.outside.steps import NOT_AN_ACT
from stillgraph.operators.outside.unseen import with_each
from stillgraph.operators.torch.asked_indices import with_indices
from stillgraph.operators.torch.plain_arguments import takes_key, wants_plain_arguments
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.both_sides import several_in
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, UnjoinedMethod
from stillgraph.trace.control_flow.maybe_none import is_read_first
from stillgraph.trace.control_flow.maybe_number import call_method, may_be_number
from stillgraph.trace.control_flow.narrowing import exchanged, leaves
from stillgraph.trace.values.arrays.functions import is_numpy
from stillgraph.trace.values.arrays.staged_array import call_numpy, is_staged
from stillgraph.trace.values.entries import MaybeKey, Table
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.text import TextMethod

Args = tuple[Any, ...]
Keywords = dict[str, Any]

ANOTHER = object()
"""What a way gives that is not this call's: the call goes another one."""


@dataclass(frozen=True)
class Settled:
    """What a way gives that only changes the keywords: the call goes on with these."""

    kwargs: Keywords


_SEVERAL = (StagedSpread, MaybeKey, Table)
"""What stands for elements of which only the run knows how many there are."""


def _of_each_callee(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if isinstance(function, UnjoinedMethod):
        return function.value.either(lambda value: call(getattr(value, function.name), *args, **kwargs))
    if isinstance(function, TextMethod):
        return function(*args, **kwargs)
    if isinstance(function, Unjoined):
        return function.either(lambda chosen: call(chosen, *args, **kwargs))
    return ANOTHER


def _with_some_keywords(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if not kwargs or not has_some(kwargs):
        return ANOTHER
    on_all_paths = None if has_meaning(function) else settled(capture, function, args, kwargs)
    return on_each_path(capture, function, args, kwargs) if on_all_paths is None else Settled(on_all_paths)


def _with_an_unknown_number(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if any(type(value) is kind for value in (*args, *kwargs.values()) for kind in _SEVERAL):
        message = "only the run knows how many arguments a call has: a list of unknown length stands behind its '*'"
        raise refuse("SG210", message, location=here())
    return ANOTHER


def _with_stale_state(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if capture.stale and not capture.settling.clears(function):
        for each in (getattr(function, "__self__", None), *args, *kwargs.values()):
            capture.settling.require_current(each)
    return ANOTHER


def _of_what_may_be_another(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    """A method of a tensor that may be None, or a number."""
    if not is_read_first(function):
        return ANOTHER
    receiver, name = function.__self__, function.__name__
    if capture.has_optionals and capture.may_be_none(receiver):
        return capture.with_or_without(receiver, lambda value: call(getattr(value, name), *args, **kwargs))
    return call_method(capture, function, args, kwargs) if may_be_number(receiver) else ANOTHER


def _in_a_debugger(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if isinstance(function, (FunctionType, MethodType)) and function.__name__ == "set_trace":
        stop = stop_for(capture, function, sys._getframe(2))
        return ANOTHER if stop is None else stop(*args, **kwargs)
    return ANOTHER


def _unbound(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    """``dict.update(d, …)`` is ``d.update(…)``."""
    if is_method_of_container(function) and args and isinstance(args[0], function.__objclass__):
        return ANOTHER if meaning_of(function) else call(function.__get__(args[0]), *args[1:], **kwargs)
    return ANOTHER


def _with_one_of_several(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    """What wants plain arguments is called with each that an argument may be."""
    if acts.act_of(function) is None and not wants_plain_arguments(function, meaning_of(function)):
        return ANOTHER
    unjoined = next((a for a in (*args, *kwargs.values()) if isinstance(a, Unjoined)), None)
    if unjoined is not None:
        return unjoined.either(lambda value: _call_with(function, args, kwargs, unjoined, value))
    in_key = several_in(args[:1]) if takes_key(function) else None
    if in_key is not None:
        return in_key.either(lambda each: call(function, exchanged(args[0], in_key, each), *args[1:], **kwargs))
    return ANOTHER


def _call_with(function: Any, args: Args, kwargs: Keywords, old: Any, new: Any) -> Any:
    """A call with one argument exchanged."""
    swapped = {name: new if value is old else value for name, value in kwargs.items()}
    return call(function, *(new if value is old else value for value in args), **swapped)


def _with_indices(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    found = with_indices(function, args, kwargs)
    return ANOTHER if found is None else call(function, *found[0], **found[1])


def _with_each_unseen(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if not capture.has_several or meaning_of(function) is not None:
        return ANOTHER
    for_each = with_each(capture, function, args, kwargs)
    return ANOTHER if for_each is None else for_each[0]


def _as_an_act(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    given = acts.carry_out(capture, function, args, kwargs)
    return ANOTHER if given is NOT_AN_ACT else given


def _of_numpy(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if not is_numpy(function) or meaning_of(function) is not None:
        return ANOTHER
    if not any(map(is_staged, torch.utils._pytree.tree_leaves((args, kwargs)))):
        return ANOTHER
    uncertain = next(filter(capture.may_be_none, leaves((args, kwargs))), None) if capture.has_optionals else None
    if uncertain is None:
        return call_numpy(function, args, kwargs)

    def given(value: Any) -> Any:
        swapped, named = exchanged((args, kwargs), uncertain, value)
        return call(function, *swapped, **named)

    return capture.with_or_without(uncertain, given)


WAYS: tuple[Callable[[Session, Any, Args, Keywords], Any], ...] = (
    _of_each_callee,  # before all that asks what the callee is
    _with_some_keywords,
    _with_an_unknown_number,
    _with_stale_state,
    _of_what_may_be_another,
    _in_a_debugger,
    _unbound,
    _with_one_of_several,
    _with_indices,
    _with_each_unseen,
    _as_an_act,
    _of_numpy,
)
"""In the order in which they are tried. Each gives what the call gives, or `ANOTHER`, or other keywords."""
