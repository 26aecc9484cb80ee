"""Everything that draws from iterators is known: by an operator of ours, or as what Python does itself."""
from __future__ import annotations

import array
import builtins
import collections
import contextlib
import functools
import heapq
import itertools
import math
import operator
import random
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stillgraph.operators.consumers.consumers import CONSUMERS

_MODULES = (builtins, itertools, functools, operator, math, heapq, random, statistics)
_INSTANCES: dict[str, Callable[[], Any]] = {
    "list": lambda: [3, 4],
    "tuple": lambda: (3, 4),
    "dict": lambda: {3: 4},
    "set": lambda: {3, 4},
    "frozenset": lambda: frozenset({3, 4}),
    "str": lambda: "a",
    "bytes": lambda: b"a",
    "bytearray": lambda: bytearray(b"ab"),
    "array": lambda: array.array("i", [3, 4]),
    "deque": lambda: collections.deque([3, 4]),
    "Counter": lambda: collections.Counter([3]),
    "OrderedDict": lambda: collections.OrderedDict({3: 4}),
    "defaultdict": lambda: collections.defaultdict(list, {3: [4]}),
    "ModuleList": lambda: torch.nn.ModuleList([torch.nn.Identity()]),
    "Sequential": lambda: torch.nn.Sequential(torch.nn.Identity()),
    "ParameterList": lambda: torch.nn.ParameterList([torch.zeros(1)]),
    "ModuleDict": lambda: torch.nn.ModuleDict(),
    "ParameterDict": lambda: torch.nn.ParameterDict(),
}
_ITEMS: tuple[Callable[[], Any], ...] = (lambda: 1, lambda: "a", lambda: (1, 2), lambda: ("k", torch.nn.Identity()),
                                         torch.nn.Identity, lambda: torch.ones(1), lambda: b"a")
_BESIDE: tuple[Any, ...] = (abs, operator.add, 1, [], {}, "i", slice(0, 1), lambda *values: values[0])
_NOT_CALLED = {"input", "breakpoint", "exit", "quit", "help", "print", "open", "exec", "eval", "compile", "__import__",
               "copyright", "credits", "license", "seed", "setstate",
               "update_wrapper"}  # which writes to what it is given
_SPECIAL = {"__add__", "__iadd__", "__ior__", "__or__", "__contains__", "__setitem__", "__isub__", "__iand__"}


_NOT_FOUND = {"itertools.batched", "math.sumprod", "statistics.correlation", "statistics.covariance", "statistics.kde",
              "statistics.kde_random", "statistics.linear_regression"}  # not in every Python, or of two sequences


class _Probe:
    """An iterator that notes that it was drawn from."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.left, self.drawn = make, 2, False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.drawn = True
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.make()


def _is_consumer(get: Callable[[], Callable[..., Any]]) -> bool:
    """Whether a call of something with an iterator in some place draws from it, or when its result is drawn from."""
    for make in _ITEMS:
        for before, after in [((), ()), *(((each,), ()) for each in _BESIDE), *(((), (each,)) for each in _BESIDE)]:
            probe = _Probe(make)
            with contextlib.suppress(Exception):
                result = get()(*before, probe, *after)
                result = result[0] if type(result) is tuple else result
                if isinstance(result, Iterator) and result is not probe:
                    next(result)
            if probe.drawn:
                return True
    return False


def _of_modules() -> Iterator[tuple[str, Callable[[], Any]]]:
    for module in _MODULES:
        prefix = "" if module is builtins else f"{module.__name__}."
        for name, each in vars(module).items():
            own = getattr(each, "__module__", None) in (module.__name__, "_" + module.__name__, None, "collections")
            is_error = isinstance(each, type) and issubclass(each, BaseException)
            if callable(each) and not name.startswith("_") and name not in _NOT_CALLED and own and not is_error:
                yield prefix + name, functools.partial(getattr, module, name)


def _of_classes() -> Iterator[tuple[str, Callable[[], Any]]]:
    for kind, make in _INSTANCES.items():
        if not hasattr(builtins, kind):
            yield kind, lambda make=make: type(make())  # type: ignore[misc]  # mypy cannot tell the default's type
        for name in dir(type(make())):
            of_all_modules = isinstance(make(), torch.nn.Module) and hasattr(torch.nn.Module, name)
            if name == "__init__" or ((name in _SPECIAL or not name.startswith("_")) and not of_all_modules):
                yield f"{kind}.{name}", lambda make=make, name=name: getattr(make(), name)  # type: ignore[misc]  # as above


def test_everything_that_draws_is_in_the_table() -> None:
    random.seed(0)
    found = {name for name, get in (*_of_modules(), *_of_classes()) if _is_consumer(get)}
    assert sorted(found - set(CONSUMERS)) == []
    assert sorted(set(CONSUMERS) - found - _NOT_FOUND) == []
