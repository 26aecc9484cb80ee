"""Raises: an exception that the user's code raises becomes an operation of the program."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, TracebackType
from typing import Any

import torch
from torch.utils._pytree import is_namedtuple_instance

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import folder_of_ours, is_ours, is_torch
from stillgraph.core.location import Location
from stillgraph.core.lookup import is_exactly
from stillgraph.program.exceptions import copied, raise_, raise_made, reraise
from stillgraph.trace.code.frames import here
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.values.caught import Caught, Raisable, raised_of, slot, take_named
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.errors import in_eagers_words
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.raised import Raised
from stillgraph.trace.values.text import StagedText, shown


def emit_reraise(recorder: Recorder, error: Any) -> None:
    """Record that an exception goes on that the program has caught.

    Raises:
        StageTry: a ``try`` around has to be staged first.
        CaptureError: what stands around it would have to see it.
    """
    recorder.before_raise(error.stands_for, certain=True, raised=raised_of(error))
    left = recorder.left_behind()
    keywords: dict[str, Any] = {} if left is None else {"left": left}
    where = recorder.locator.raised_at(error) if take_named(error) else None
    cause, suppress = slot(error, "__cause__"), slot(error, "__suppress_context__")
    Raisable().restore(error)  # the other arm raises it as well
    if cause is not None:
        keywords["cause"], keywords["outer"] = _cause(recorder, cause)
    elif suppress:
        keywords["suppress"] = True
    if where is not None:
        keywords["named"] = True
    node = recorder.emit("call_function", reraise, (error,), keywords)
    if where is not None:
        node.meta["location"] = where


def _cause(recorder: Recorder, cause: BaseException) -> tuple[BaseException, bool]:
    """What a caught exception is raised from, and whether that was there before the call.

    Raises:
        CaptureError: it holds what only the run knows.
    """
    if isinstance(cause, Caught) or recorder.was_there(cause):
        return cause, True
    if _holds_staged(cause):
        raise refuse("SG302", f"a {type(cause).__name__} that holds staged values is a cause", location=here())
    _forget_where(cause)
    return cause, False


def emit_raise(recorder: Recorder, error: BaseException) -> None:
    """Record that the program raises ``error`` here.

    Raises:
        StageTry: a ``try`` around has to be staged first.
        CaptureError: the exception cannot be made in the run, or what stands around it would have to see it.
    """
    in_eagers_words(error)
    where = recorder.locator.raised_at(error)
    context = _being_handled(recorder, error)
    keywords: dict[str, Any] = {} if context is None else {"context": context}
    if recorder.was_there(error):
        _emit_raise_itself(recorder, error, where, keywords)
        return
    known = None if _holds_staged(error) else copied(error)
    recorder.before_raise(type(error), certain=True, raised=(Raised(type(error), True, known, error),))
    left = recorder.left_behind()
    if left is not None:
        keywords["left"] = left
    cause = error.__cause__
    if isinstance(cause, Caught):
        keywords["cause"], error.__cause__ = cause, None
    elif cause is not None and _holds_staged(cause):
        raise refuse("SG302", f"a {type(cause).__name__} that holds staged values is a cause", location=here())
    if not _holds_staged(error):
        _forget_where(error)
        recorder.emit("call_function", raise_, (error,), keywords).meta["location"] = where
        return
    held = _held(error)
    # What is left behind may hold a list or dict as well: then the exception would hold another one.
    whole = (tuple, torch.Size) if left is not None else (tuple, torch.Size, list, dict)
    plain = [each for each in _parts(held, whole) if not isinstance(each, (StagedText, StagedNumber, torch.Tensor))]
    by_hand = bool(vars(error)) or isinstance(type(error).__init__, FunctionType)
    if holds_staged(plain) or isinstance(error, _WITH_FIELDS) or (by_hand and isinstance(error, SystemExit)):
        raise refuse("SG302", f"a {type(error).__name__} that holds staged values is raised", location=here())
    args, state = shown(recorder, error.args), shown(recorder, dict(vars(error))) if by_hand else None
    if error.__cause__ is not None:
        _forget_where(error.__cause__)
        keywords["cause"] = error.__cause__
    elif error.__suppress_context__ and "cause" not in keywords:
        keywords["suppress"] = True
    recorder.emit("call_function", raise_made, (type(error), args, state), keywords).meta["location"] = where


def _being_handled(recorder: Recorder, error: BaseException) -> BaseException | None:
    """What a ``raise`` of the user's finds being handled by code that stayed Python's: a copy, as the capture knows it.

    What the program handles itself, and what was being handled before the call, the run finds by itself. So is what
    holds staged values left out, which could only be made in the run.

    Args:
        recorder: the capture.
        error: what is raised, with its context if it has been raised already.
    """
    return _as_handled(recorder, sys.exc_info()[1] if error.__traceback__ is None else error.__context__)


def _as_handled(recorder: Recorder, context: BaseException | None) -> BaseException | None:
    ours = str(type(context).__module__).startswith("stillgraph.")  # see `signals`; also what stands for a caught one
    if context is None or ours or id(context) in recorder.handlers.handled_outside or _holds_staged(context):
        return None
    if any(context is each for each in recorder.handlers.handled_before):
        message = f"an exception is raised where Python is handling {type(context).__name__}, another in each call"
        raise refuse("SG208", message, location=here())
    handled = copied(context).with_traceback(None)
    handled.__cause__, handled.__suppress_context__ = context.__cause__, context.__suppress_context__
    handled.__context__ = _as_handled(recorder, context.__context__)
    return handled


def _emit_raise_itself(
    recorder: Recorder, error: BaseException, where: Location | None, keywords: dict[str, Any]
) -> None:
    """Record that the program raises an exception from before the call, which the capture leaves as it was."""
    before = recorder.handlers.raising.pop(id(error), Raisable())
    cause, suppress = error.__cause__, error.__suppress_context__
    before.restore(error)
    recorder.before_raise(type(error), certain=True, raised=(Raised(type(error), True),))
    left = recorder.left_behind()
    keywords["itself"] = True
    if left is not None:
        keywords["left"] = left
    if cause is not None and cause is not before.cause:
        if not isinstance(cause, Caught) and _holds_staged(cause):
            raise refuse("SG302", f"a {type(cause).__name__} that holds staged values is a cause", location=here())
        keywords["cause"] = cause
    elif suppress and cause is None:
        keywords["suppress"] = True
    recorder.emit("call_function", raise_, (error,), keywords).meta["location"] = where


_WITH_FIELDS = (OSError, UnicodeError, SyntaxError, ImportError, NameError, AttributeError)  # that no argument shows


def _holds_staged(error: BaseException) -> bool:
    """Whether an exception, or one that caused it, has something in it that only the run knows."""
    if error.__cause__ is not None and not isinstance(error.__cause__, Caught) and _holds_staged(error.__cause__):
        return True
    held = _held(error)
    return any(isinstance(each, (StagedText, StagedNumber, torch.Tensor)) for each in held) or holds_staged(held)


def _held(error: BaseException) -> tuple[Any, ...]:
    """What an exception has in it."""
    held = (*error.args, *vars(error).values())
    if not isinstance(error, SystemExit):
        return held
    several = len(error.args) > 1 and isinstance(error.code, tuple)  # then they are the status together
    return held if several else (*held, error.code)  # which is in no ``__dict__``


def _parts(held: Iterable[Any], whole: tuple[type, ...]) -> Iterator[Any]:
    """What is in some containers, those in them that are of these very classes, or named tuples, taken apart."""
    for each in held:
        if type(each) in whole or is_namedtuple_instance(each):
            yield from _parts(each.values() if type(each) is dict else each, whole)
        else:
            yield each


def _forget_where(error: BaseException | None) -> None:
    """Let an exception, and its cause, not hold the frames of the capture."""
    while error is not None:
        error.__traceback__ = error.__context__ = None
        error = slot(error, "__cause__")


_OF_NO_DIMENSION = ("iteration over a 0-d tensor", "len() of a 0-d tensor")  # what torch says, of the run's as well

_PYTHONS_OWN = (IndexError, KeyError, ZeroDivisionError, NameError)  # of values the capture knows

_PYTHONS_OWN_IN_C = (ValueError, OverflowError)
"""Of values the capture knows, where code in C raises it: a stand-in would meet a `TypeError` there, or be refused."""

_HERE = folder_of_ours("trace")  # what goes wrong here by itself is a fault of ours


def raised_by_rewritten(recorder: Recorder, error: BaseException) -> bool:
    """Whether an exception comes from a ``raise`` of rewritten code, be that the user's or torch's."""
    trace = _innermost(error)
    return trace is not None and recorder.is_rewritten(trace.tb_frame.f_code) and _is_raise(trace)


def raised_by_user(error: BaseException) -> bool:
    """Whether an exception comes from a ``raise`` or ``assert`` of the user's, or is one that eager would raise too."""
    trace = _innermost(error)
    if isinstance(error, SystemExit) or (isinstance(error, TypeError) and str(error) in _OF_NO_DIMENSION):
        return True
    if isinstance(error, _PYTHONS_OWN):
        return trace is None or not trace.tb_frame.f_code.co_filename.startswith(_HERE) or _is_raise(trace)
    if trace is None:
        return False
    if _is_of_plain_value(error, trace):
        return True
    code = trace.tb_frame.f_code
    if is_torch(code.co_filename):
        return False
    if isinstance(error, _PYTHONS_OWN_IN_C) and not code.co_filename.startswith(_HERE) and not _is_raise(trace):
        return True
    if is_ours(code.co_filename):
        return isinstance(error, AssertionError)
    return _is_raise(trace)


def _is_of_plain_value(error: BaseException, trace: TracebackType) -> bool:
    """Whether a plain value does not have an attribute for which the user's code asks, or an operator in its place."""
    if not isinstance(error, AttributeError) or not is_exactly(error.obj, _PLAIN):
        return False
    of_ours = is_ours(trace.tb_frame.f_code.co_filename)
    return not (of_ours and _instruction(trace) in ("LOAD_ATTR", "LOAD_METHOD"))  # which we ask for on our own


_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)


def _innermost(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _is_raise(trace: TracebackType) -> bool:
    return _instruction(trace) in ("RAISE_VARARGS", "RERAISE")


def _instruction(trace: TracebackType) -> str:
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]
