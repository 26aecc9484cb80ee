"""f-strings, ``assert`` and ``print``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.truth import truth
from stillgraph.program.operations import assert_ as run_assert
from stillgraph.program.operations import print_ as run_print
from stillgraph.trace.arms import text_node
from stillgraph.trace.arrays import StagedArray
from stillgraph.trace.caught import Caught
from stillgraph.trace.frames import here
from stillgraph.trace.numbers import StagedNumber
from stillgraph.trace.session import session
from stillgraph.trace.staging import branch
from stillgraph.trace.text import StagedText, shown


def text(template: str, *values: Any) -> Any:
    """An f-string."""
    if session() is not None and any(is_staged(value) for value in values):
        return StagedText(template, values)
    return template.format(*values)


def is_staged(value: Any) -> bool:
    """Whether a value, or anything in a plain container, is only known at run time."""
    if isinstance(value, (list, tuple, set)):
        return any(is_staged(v) for v in value)
    if isinstance(value, dict):
        return any(is_staged(v) for v in value.values())
    return isinstance(value, (torch.Tensor, StagedNumber, StagedArray, StagedText, Caught))


def assert_(test: Any, message: Callable[[], Any] | None = None) -> None:
    """``assert test, message()``."""
    capture = session()
    known = bool(test) if capture is None else truth(capture, test)
    if known is True:
        return
    if known is False:
        raise AssertionError(message()) if message is not None else AssertionError
    assert capture is not None
    capture.before_raise(AssertionError, certain=True)
    if capture.effects_so_far()[0]:
        branch(capture, known, lambda: None, functools.partial(assert_, False, message), (), ())
        return
    shown = None if message is None else text_node(capture, message())
    capture.emit("call_function", run_assert, (known, shown, message is not None), {})


def print_(*values: Any, **options: Any) -> None:
    """``print``: happens at run time, whatever is printed."""
    capture = session()
    if capture is None:
        print(*values, **options)
        return
    if options.get("file") not in (None, sys.stdout, sys.stderr):
        raise refuse("SG305", "print writes to a file of its own", location=here())
    capture.emit("call_function", run_print, (None, [shown(capture, v) for v in values], options), {})
