"""`pickle` in a capture: what is in a tensor, only the run knows, and a program pickles nothing."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.numbers import StagedNumber

_HINT = "Do this outside the static function."


def before_pickling(capture: Session, function: Any, args: tuple[Any, ...]) -> None:
    """To be called before a function of Python's, written in C.

    Raises:
        CaptureError: it pickles a tensor, or makes one of a pickle.
    """
    if not args or all(function is not each for each in (*_WRITING, pickle.loads)):
        return
    if function is pickle.loads:
        found = isinstance(args[0], (bytes, bytearray)) and b"torch" in args[0]
    else:
        with capture.executed.paused():
            found = _holds_tensors(args[0])
    if found:
        raise refuse("SG305", f"pickle.{function.__name__} is given a tensor", location=here(), hint=_HINT)


def _holds_tensors(value: Any) -> bool:
    try:
        _Looking(io.BytesIO()).dump(value)
    except _Found:
        return True
    except Exception:  # of any kind: it cannot be pickled, which the function itself is going to say
        return False
    return False


class _Found(Exception):
    pass


class _Looking(pickle.Pickler):
    def persistent_id(self, value: Any) -> None:
        if isinstance(value, (torch.Tensor, StagedNumber, StagedArray)):
            raise _Found


_WRITING = (pickle.dumps, pickle.dump)
