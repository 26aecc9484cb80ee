"""Odd changes. What a program does not follow is a strict expected failure, so that mending it is noticed here."""

from __future__ import annotations

import abc
import collections
import dataclasses
import gc
import importlib.util
import sys
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from tests.unit.soundness import usermodule
from tests.unit.soundness.following import Box, deleting, follows, setting, storing


def stale(reason: str) -> pytest.MarkDecorator:
    """A program is used although what changed counts."""
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)


# ---- classes and objects
def test_isinstance_of_an_abstract_class_whose_registry_changes() -> None:
    class Abstract(abc.ABC):  # noqa: B024 - only its registry counts
        pass

    class Plain:
        pass

    plain = Plain()
    follows(lambda x: x * 2 if isinstance(plain, Abstract) else x, lambda: Abstract.register(Plain))


def number_of_k(config: Any) -> int:
    return len([name for name in dir(config) if name.startswith("k")])


def sum_of_all(config: Any) -> int:
    return sum(vars(config).values())


@pytest.mark.parametrize("read", [sum_of_all, number_of_k])
@pytest.mark.parametrize("kind", [types.SimpleNamespace, Box])
def test_all_attributes_of_an_object(kind: Any, read: Callable[[Any], int]) -> None:
    for _ in range(2):
        config = kind(a=1, b=2)
        follows(lambda x: x * read(config), setting(config, k=1), setting(config, b=7))  # noqa: B023 - used at once


def test_the_defaults_of_a_dataclass() -> None:
    @dataclasses.dataclass
    class Options:
        rate: int = 1

    follows(lambda x: x * Options().rate, setting(Options.__init__, __defaults__=(9,)))


def test_the_defaults_of_a_named_tuple() -> None:
    class Pair(NamedTuple):
        rate: float = 2.0

    follows(lambda x: x * Pair().rate, setting(Pair.__new__, __defaults__=(5.0,)))


class Counting(type):
    rate: Any = 2

    @property
    def doubled(cls) -> Any:
        return cls.rate * 2


def counting_class() -> tuple[Any, Any]:
    """A class, and its metaclass, made anew."""

    class Fresh(Counting):
        rate = 2
        doubled = property(lambda cls: cls.rate * 2)

    class Options(metaclass=Fresh):
        pass

    return Options, Fresh


@pytest.mark.parametrize("values", [{"rate": 5}, {"doubled": property(lambda cls: 1)}], ids=["attribute", "property"])
def test_a_metaclass(values: dict[str, Any]) -> None:
    options, meta = counting_class()
    follows(lambda x: x * options.doubled, setting(meta, **values))


def test_a_class_that_hides_what_its_metaclass_has() -> None:
    options, _ = counting_class()
    follows(lambda x: x * options.rate, setting(options, rate=7))


def test_a_property_with_a_cache_of_its_own() -> None:
    class Lazy(Box):
        @property
        def squared(self) -> float:
            if self._squared is None:
                self._squared = self.rate**2
            return self._squared  # type: ignore[no-any-return]

    lazy = Lazy(rate=3, _squared=None)
    follows(lambda x: x * lazy.squared, setting(lazy, rate=4), setting(lazy, _squared=None), settled=2)


def test_the_factory_of_a_default_dictionary() -> None:
    table: collections.defaultdict[str, int] = collections.defaultdict(lambda: 3)

    def function(x: Tensor) -> Tensor:
        result = x * table["absent"]
        del table["absent"]
        return result

    follows(function, setting(table, default_factory=lambda: 5))


COLLECTIONS = 0


def count_collection(phase: str, info: dict[str, int]) -> None:
    global COLLECTIONS
    COLLECTIONS += 1


def test_what_the_garbage_collector_calls() -> None:
    thresholds = gc.get_threshold()
    gc.callbacks.append(count_collection)
    gc.set_threshold(10)
    try:
        follows(lambda x: x * 2, seen=False)
    finally:
        gc.set_threshold(*thresholds)


# ---- modules and settings
def test_whether_a_module_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "stillgraph_test_absent"
    follows(
        lambda x: x * 2 if name in sys.modules else x,
        partial(monkeypatch.setitem, sys.modules, name, types.ModuleType(name)),
    )


@stale("numpy's options of printing are not guarded")
def test_how_numpy_prints() -> None:
    follows(
        lambda x: x * len(np.array2string(np.array([1.123456789]))),
        partial(np.set_printoptions, precision=2),
    )


@stale("a name that a module's __getattr__ gave is not guarded against the module's getting it")
def test_a_module_that_gets_what_its_getattr_gave() -> None:
    try:
        follows(lambda x: x * usermodule.lazy, setting(usermodule, lazy=9))
    finally:
        deleting(usermodule, "lazy")()


LIBRARY = """
class Scaler:
    rate = 1

SCALER = Scaler()

def run(x):
    return x * SCALER.rate
"""


@pytest.mark.parametrize("name", ["torchtools_stillgraph_test", "stillgraph_test_extension"])
def test_what_a_library_with_a_name_like_torch_holds(tmp_path: Path, name: str) -> None:
    path = tmp_path / "site-packages" / f"{name}.py"
    path.parent.mkdir()
    path.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    library: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = library
    spec.loader.exec_module(library)
    follows(lambda x: library.run(x), setting(library.SCALER, rate=7))


# ---- tensors and modules
def test_the_gradient_of_a_tensor_from_outside() -> None:
    held = torch.ones(3, requires_grad=True)
    follows(lambda x: x if held.grad is None else x * held.grad, lambda: (held * 3).sum().backward())


def doubled_output(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return output * 2


def tripled_output(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return output * 3


class Chain(nn.Module):
    """A module with a child."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.lin = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.lin(x)  # type: ignore[no-any-return]


def test_a_hook_stored_over_another() -> None:
    chain = Chain()
    hooks = chain.lin._forward_hooks
    follows(
        chain,
        lambda: chain.lin.register_forward_hook(doubled_output),
        lambda: storing(hooks, next(iter(hooks)), tripled_output)(),
    )


def test_pruned_weights() -> None:
    chain = Chain()
    follows(chain, lambda: prune.l1_unstructured(chain.lin, "weight", 0.5))
