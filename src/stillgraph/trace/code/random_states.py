"""The states of random generators during a capture: it leaves them as they were, and finds out who has drawn unseen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

import numpy
import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.code.signals import Restart

_State = tuple[Callable[[Any], Any], Callable[[Any, Any], None]]


def _set_state_of_bits(generator: Any, state: Any) -> None:
    generator.bit_generator.state = state


_KINDS: dict[type, _State] = {
    random.Random: (lambda each: each.getstate(), lambda each, state: each.setstate(state)),
    numpy.random.RandomState: (lambda each: each.get_state(legacy=False), lambda each, state: each.set_state(state)),
    numpy.random.Generator: (lambda each: each.bit_generator.state, _set_state_of_bits),
    torch.Generator: (lambda each: each.get_state(), lambda each, state: each.set_state(state)),
}
"""How the state of a generator is read and written."""
_METHODS: tuple[Any, ...] = (random.random, numpy.random.rand)
_OF_MODULES = (*(method.__self__ for method in _METHODS), torch.default_generator)
_NAMES = {random.Random: "random", numpy.random.RandomState: "numpy.random", torch.Generator: "torch"}


class RandomStates:
    """The generators that a capture has met, and their states when it did.

    No generator is drawn from while a function is captured: each draw of code that is followed is an operation of the
    program. So a changed state tells of a draw by code that is not followed, whose outcome the program would keep.
    """

    def __init__(self, found: Iterable[Any]) -> None:
        self._met: dict[int, tuple[Any, Any]] = {}
        for each in (*_OF_MODULES, *found):
            self.meet(each)

    def meet(self, value: Any) -> None:
        """To be told of each object that the capture comes to, before anything is drawn from it."""
        kind = type(value)
        if kind in _KINDS and id(value) not in self._met and not _is_on_accelerator(value):
            self._met[id(value)] = value, _KINDS[kind][0](value)

    def meet_globals(self, code: CodeType, namespace: Mapping[str, Any]) -> None:
        """The same for what code names that is about to run, and that no path leads to."""
        for name in code.co_names:
            self.meet(namespace.get(name))

    def require_undrawn(self, follows_libraries: bool) -> None:
        """To be called when the code has run.

        Raises:
            Restart: something has drawn unseen; libraries are to be followed, which shows it.
            CaptureError: they are.
        """
        drawn = next((value for value, state in self._met.values() if not _same(_state(value), state)), None)
        if drawn is None:
            return
        if not follows_libraries:
            raise Restart("convert_libraries", None)
        what = _NAMES.get(type(drawn), type(drawn).__name__)
        hint = "Draw with torch.rand or random.random in a function of your own: the program draws anew in every call."
        raise refuse("SG305", f"code that is not rewritten draws from a random generator of {what}'s", hint=hint)

    def put_back(self) -> None:
        """Let each generator be as it was: what another thread has drawn meanwhile, it may draw again."""
        for value, state in self._met.values():
            if not _same(_state(value), state):
                _KINDS[type(value)][1](value, state)
        self._met.clear()


def _is_on_accelerator(value: Any) -> bool:
    return isinstance(value, torch.Generator) and value.device.type != "cpu"


def _state(generator: Any) -> Any:
    with torch._C.DisableTorchFunction():
        return _KINDS[type(generator)][0](generator)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, numpy.ndarray):
        return bool((left == right).all())
    if isinstance(left, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return torch.equal(left, right)
    return bool(left == right)
