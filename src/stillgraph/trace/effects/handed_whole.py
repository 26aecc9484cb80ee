"""What a ``torch.autograd.Function`` is handed, whose ``forward`` the run calls as it is.

Tensors, numbers and containers of them are operands, which each run makes. Any other object is kept, and is the same in
each call: it may not be one that each call would make anew, unless nobody can tell.
"""

from __future__ import annotations

import functools
from types import CellType, FunctionType, MethodType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.core.lookup import is_exactly
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.values.numbers import Staged


class HandedWhole:
    """Tells whether the program may keep what is handed. There is one for each capture."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._variables: list[tuple[CellType, Any, str, Location | None]] = []  # what they held, for whom, and where

    def require_kept(self, value: Any, receiver: str) -> None:
        """Require that a program may keep the objects in an argument.

        Raises:
            CaptureError: each call would make one of them anew.
        """
        if is_exactly(value, (tuple, list, dict)):
            for each in value.values() if type(value) is dict else value:
                self.require_kept(each, receiver)
        elif not isinstance(value, (torch.Tensor, Staged, slice, tuple)):
            self._require_same(value, receiver)

    def require_unchanged(self) -> None:
        """To be called in the end: variables around functions that were handed hold what they held.

        Raises:
            CaptureError: one was assigned since: ``forward`` has met the one value, and ``backward`` meets the other.
        """
        for cell, held, receiver, location in self._variables:
            if cell.cell_contents is not held:
                raise _refused(receiver, "function with a variable that is assigned again", location)

    def _require_same(self, value: Any, receiver: str) -> None:
        if isinstance(value, MethodType):
            self._require_same(value.__self__, receiver)
            self._require_same(value.__func__, receiver)
        elif not self._is_new(value) or isinstance(value, type):
            return
        elif is_exactly(value, (functools.partial,)):
            self._require_parts((value.func, *value.args, *value.keywords.values()), receiver)
        elif is_exactly(value, (FunctionType,)) and not vars(value):
            self._require_parts((*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()), receiver)
            for cell in filter(self._is_new, value.__closure__ or ()):
                self._require_variable(cell, receiver)
        else:
            raise _refused(receiver, f"{type(value).__name__} that the call makes", here())

    def _require_parts(self, parts: tuple[Any, ...], receiver: str) -> None:
        """The same of what is in such an object, where what only the run knows would stay that of the capture."""
        for each in parts:
            if isinstance(each, Staged) or is_fake(each):
                raise _refused(receiver, "function with a value that only the run knows", here())
            if is_exactly(each, (tuple, frozenset)):
                self._require_parts(tuple(each), receiver)
            else:
                self._require_same(each, receiver)

    def _require_variable(self, cell: CellType, receiver: str) -> None:
        try:
            held = cell.cell_contents
        except ValueError:
            raise _refused(receiver, "function with a variable that has no value yet", here()) from None
        self._require_parts((held,), receiver)
        self._variables.append((cell, held, receiver, here()))

    def _is_new(self, value: Any) -> bool:
        new = self._recorder.is_new(value)
        unknown = new is None and is_exactly(value, (dict,))  # the collector does not know one of constants
        return bool(new) or (unknown and not self._recorder.is_found(value))


def _refused(receiver: str, what: str, location: Location | None) -> BaseException:
    message = f"{receiver} is handed a {what}; it is called as a whole, and would get the same in each call"
    hint = "Hand it tensors and numbers as arguments of their own, or make the object before the call."
    return refuse("SG305", message, location=location, hint=hint)
