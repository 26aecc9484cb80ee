"""Code that runs during the capture and again in the run: what it does to Python the first time is undone."""

from __future__ import annotations

import contextlib
import io
import logging
import random
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import torch

from stillgraph.core.files import is_our_module
from stillgraph.program.sources import Argument
from stillgraph.trace.control_flow.reachable_values import places_within
from stillgraph.trace.effects.modules import ModuleTables
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.places import MISSING, ContentsPlace, Place


@contextlib.contextmanager
def rehearsal(function: type, handed: Iterable[Any]) -> Iterator[None]:
    """Run the body, which calls methods of a class; afterwards Python is as it was, and nothing has been said.

    Args:
        function: the class.
        handed: what else the methods are given.
    """
    surroundings = _Surroundings(function, handed)
    drawn, numpys = random.getstate(), sys.modules.get("numpy")
    drawn_by_numpy = None if numpys is None else numpys.random.get_state()
    try:
        with _silence():
            yield
    finally:
        surroundings.put_back()
        random.setstate(drawn)
        if numpys is not None:
            numpys.random.set_state(drawn_by_numpy)


class _Surroundings:
    """What classes, variables, objects and containers held that code leads to."""

    def __init__(self, function: type, handed: Iterable[Any]) -> None:
        self._classes: dict[type, dict[str, Any]] = {}
        self._variables: dict[Hashable, tuple[Place, Any]] = {}
        found: dict[int, Any] = {}
        todo: list[Any] = [function, *handed]
        while todo:
            new = {kind for value in todo for kind in _classes_of(value)} - self._classes.keys()
            self._classes.update((kind, dict(vars(kind))) for kind in new)
            code = [getattr(member, "__func__", member) for kind in new for member in vars(kind).values()]
            reached = list(places_within([value for value in (*todo, *code) if not isinstance(value, type)]))
            found.update((id(value), value) for value in (*todo, *code))
            for place, held in reached:
                if isinstance(place, ContentsPlace):
                    found[id(place.target)] = place.target
                else:
                    self._variables[place.key] = place, held
                    found[id(held)] = held
            todo = [held for _, held in reached if set(_classes_of(held)) - self._classes.keys()]
        with torch._C.DisableTorchFunction():
            real = {id(tensor): tensor for tensor in _tensors_in(found.values()) if not is_fake(tensor)}
            self._tensors = [(tensor, tensor.detach(), tensor.grad) for tensor in real.values() if tensor.is_leaf]
        self._objects = ModuleTables([(value, Argument(0)) for value in found.values()])

    def put_back(self) -> None:
        """Write what was there before wherever something else is now."""
        self._objects.restore()
        with torch._C.DisableTorchFunction():
            for tensor, memory, gradient in self._tensors:
                if tensor.untyped_storage()._cdata != memory.untyped_storage()._cdata:
                    tensor.data = memory
                if tensor.grad is not gradient:
                    tensor.grad = gradient
        for place, held in self._variables.values():
            if place.get() is not held:
                place.set(held)
        for kind, before in self._classes.items():
            now = dict(vars(kind))
            for name in {**now, **before}:
                if now.get(name, MISSING) is before.get(name, MISSING):
                    continue
                if name in before:
                    setattr(kind, name, before[name])
                else:
                    delattr(kind, name)


def _tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Tensors, the parameters of modules, and what is in containers."""
    for value in values:
        if isinstance(value, torch.nn.Module):
            yield from value.parameters()
        elif isinstance(value, (dict, list, tuple)):
            parts = value.values() if isinstance(value, dict) else value
            yield from (part for part in parts if isinstance(part, torch.Tensor))
        elif isinstance(value, torch.Tensor):
            yield value


def _classes_of(value: Any) -> list[type]:
    """A class, or that of an object, and those it inherits from, but for Python's and torch's."""
    kind = value if isinstance(value, type) else type(value)
    own = not issubclass(kind, torch.Tensor)
    return [each for each in kind.__mro__ if own and not _is_known(each.__module__)]


def _is_known(module: str) -> bool:
    return module.partition(".")[0] in _KNOWN or is_our_module(module)


_KNOWN = frozenset({"torch", "builtins", "collections", "typing", "abc", "enum", "functools", "numpy"})


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What is printed, logged and warned of in the body is not to be seen."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        hidden = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
        with hidden[0], hidden[1], warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
