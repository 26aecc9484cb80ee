"""Changes of what the code finds by names that it computes, lists or looks up in namespaces."""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from torch import Tensor, nn

from tests.unit.soundness.following import Box, deleting, follows, setting, storing, total

NAME = "stillgraph_test_names"
K1: Any = 2.0
K2: Any = 3.0


def made_module(monkeypatch: pytest.MonkeyPatch, **members: Any) -> Any:
    """A module that can be imported until the end of the test."""
    module: Any = types.ModuleType(NAME)
    module.__dict__.update(members)
    monkeypatch.setitem(sys.modules, NAME, module)
    return module


def read_by_get(module: Any, name: str) -> Any:
    """An attribute by ``getattr``, in a function of its own."""
    return getattr(module, name)


OF_MODULES: list[tuple[str, Callable[[Any], Any]]] = [
    ("getattr", lambda m: getattr(m, "k" + str(1))),
    ("getattr-default", lambda m: getattr(m, "k" + str(1), 0.0)),
    ("hasattr", lambda m: m.k1 if hasattr(m, "k" + str(3)) else m.k2),
    ("map", lambda m: sum(map(lambda n: getattr(m, n), [f"k{i}" for i in (1, 2)]))),  # noqa: C417
    ("generator", lambda m: sum(getattr(m, f"k{i}") for i in (1, 2))),
    ("helper", lambda m: read_by_get(m, "k" + str(1))),
    ("vars", lambda m: vars(m)["k" + str(1)]),
    ("dict", lambda m: m.__dict__["k" + str(1)]),
    ("vars-get", lambda m: vars(m).get("k" + str(1), 0.0)),
    ("vars-items", lambda m: sum(v for k, v in vars(m).items() if k.startswith("k"))),
    ("vars-names", lambda m: len([k for k in vars(m) if k.startswith("k")]) + m.k1),
    ("dir", lambda m: len([k for k in dir(m) if k.startswith("k")]) + m.k1),
    ("sys-modules", lambda m: sys.modules[NAME].k1),
    ("sys-modules-get", lambda m: sys.modules.get(NAME).k1),
    ("import-module", lambda m: importlib.import_module(NAME).k1),
    ("attrgetter", lambda m: operator.attrgetter("k1")(m)),
]


@pytest.mark.parametrize("read", [each[1] for each in OF_MODULES], ids=[each[0] for each in OF_MODULES])
def test_what_a_module_holds(read: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = made_module(monkeypatch, k1=2.0, k2=3.0)
    follows(lambda x: x * read(module), setting(module, k1=5.0), setting(module, k3=7.0), deleting(module, "k3"))


@pytest.mark.parametrize("read", [each[1] for each in OF_MODULES[:11]], ids=[each[0] for each in OF_MODULES[:11]])
def test_a_container_in_a_module(read: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = made_module(monkeypatch, k1=Box(rate=2.0), k2=Box(rate=3.0))
    module.k1.__class__ = module.k2.__class__ = type("Number", (Box,), {"__radd__": lambda s, o: s.rate + o})
    follows(lambda x: x * (0 + sum([read(module)])), setting(module.k1, rate=5.0), seen=False)


def function_of_globals(read: Callable[[Any], Any]) -> tuple[Callable[[Tensor], Tensor], dict[str, Any]]:
    """A function in a namespace of its own, in which ``read`` is too."""
    namespace: dict[str, Any] = {"__name__": "stillgraph_test_globals", "K1": 2.0, "K2": 3.0}
    exec("", namespace)
    own = types.FunctionType(read.__code__, namespace)
    return lambda x: x * own(0), namespace


OF_GLOBALS: list[tuple[str, Callable[[Any], Any]]] = [
    ("computed", lambda _: globals()["K" + str(1)]),
    ("constant", lambda _: globals()["K1"]),
    ("get", lambda _: globals().get("K" + str(1))),
    ("get-default", lambda _: globals().get("K" + str(3), K1)),
    ("in", lambda _: K1 if "K" + str(3) in globals() else K2),
    ("names", lambda _: len([k for k in globals() if k.startswith("K")]) + K1),
    ("length", lambda _: len(globals()) + K1),
    ("sorted", lambda _: sum(globals()[k] for k in sorted(globals()) if k.startswith("K"))),
    ("items", lambda _: sum(v for k, v in globals().items() if k.startswith("K"))),
    ("values", lambda _: sum(v for v in globals().values() if isinstance(v, float))),
    ("copy", lambda _: dict(globals())["K1"] + len([k for k in dict(globals()) if k.startswith("K")])),
]


@pytest.mark.parametrize("read", [each[1] for each in OF_GLOBALS], ids=[each[0] for each in OF_GLOBALS])
def test_globals(read: Callable[[Any], Any]) -> None:
    function, namespace = function_of_globals(read)
    follows(function, storing(namespace, "K1", 5.0), storing(namespace, "K3", 7.0), partial(namespace.pop, "K3"))


def test_a_module_by_its_own_name() -> None:
    this = sys.modules[__name__]
    try:
        follows(lambda x: x * sys.modules[__name__].K1, setting(this, K1=5.0))  # type: ignore[attr-defined]
    finally:
        setting(this, K1=2.0)()


def test_another_module_under_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made_module(monkeypatch, k1=2.0)
    other: Any = types.ModuleType(NAME)
    other.k1 = 7.0
    for read in (lambda: sys.modules[NAME].k1, lambda: importlib.import_module(NAME).k1):
        made_module(monkeypatch, k1=2.0)
        follows(lambda x: x * read(), storing(sys.modules, NAME, other), setting(other, k1=9.0))  # noqa: B023
        other.k1 = 7.0


# ---- classes
OF_CLASSES: list[tuple[str, Callable[[Any], Any]]] = [
    ("getattr", lambda c: getattr(c, "k" + str(1))),
    ("generator", lambda c: sum(getattr(c, f"k{i}") for i in (1, 2))),
    ("vars", lambda c: vars(type(c))["k" + str(1)]),
    ("items", lambda c: sum(v for k, v in vars(type(c)).items() if k.startswith("k"))),
    ("dir", lambda c: len([k for k in dir(c) if k.startswith("k")]) + c.k1),
    ("dir-class", lambda c: len([k for k in dir(type(c)) if k.startswith("k")]) + c.k1),
    ("members", lambda c: sum(v for k, v in inspect.getmembers(c) if k.startswith("k"))),
    ("members-class", lambda c: sum(v for k, v in inspect.getmembers(type(c)) if k.startswith("k"))),
    ("static", lambda c: inspect.getattr_static(c, "k" + str(1))),
    ("attrgetter", operator.attrgetter("k1")),
]


@pytest.mark.parametrize("read", [each[1] for each in OF_CLASSES], ids=[each[0] for each in OF_CLASSES])
@pytest.mark.parametrize("of_object", [False, True], ids=["class", "object"])
def test_what_a_class_holds(read: Callable[[Any], Any], of_object: bool) -> None:
    class Options:
        k1: Any = 2.0
        k2: Any = 3.0

    options = Options()
    others = (setting(options, k1=8.0), setting(options, k4=9.0)) if of_object else ()
    changes = (setting(Options, k1=5.0), setting(Options, k3=7.0), *others)
    follows(lambda x: x * read(options), *changes)


def test_methods_found_by_listing_them() -> None:
    class Options:
        def a_1(self) -> float:
            return 2.0

    options = Options()
    follows(
        lambda x: x * sum(method() for name, method in inspect.getmembers(options) if name.startswith("a_")),
        setting(Options, a_2=lambda self: 5.0),
        setting(options, a_3=lambda: 9.0),
        setting(Options, a_1=lambda self: 0.5),
    )


def test_a_path_of_attributes() -> None:
    outer = Box(inner=Box(rate=2.0))
    get = operator.attrgetter("inner.rate")
    follows(lambda x: x * get(outer), setting(outer.inner, rate=5.0), setting(outer, inner=Box(rate=7.0)))


def test_a_list_in_a_class_that_is_listed() -> None:
    class Options:
        k1 = [1.0]  # noqa: RUF012 - shared

    follows(
        lambda x: x * sum(total(v) for k, v in vars(Options).items() if k.startswith("k")),
        partial(Options.k1.append, 2.0),
    )


# ---- modules of torch
class Counting(nn.Module):
    """Counts what it holds."""

    def __init__(self, count: Callable[[Any], int]) -> None:
        super().__init__()
        self.count = [count]
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.count[0](self)


COUNTS: list[tuple[str, Callable[[Any], int]]] = [
    ("modules", lambda m: len(m._modules)),
    ("parameters", lambda m: len(m._parameters)),
    ("buffers", lambda m: len(list(m._buffers))),
    ("vars", lambda m: len([k for k in vars(m) if k.startswith("k")])),
    ("dict", lambda m: len([k for k in m.__dict__ if k.startswith("k")])),
    ("dir", lambda m: len([k for k in dir(m) if k.startswith("k")])),
    ("inner", lambda m: len(m.linear._parameters)),
]


@pytest.mark.parametrize("count", [each[1] for each in COUNTS], ids=[each[0] for each in COUNTS])
def test_what_a_module_of_torch_holds(count: Callable[[Any], int]) -> None:
    module = Counting(count)
    follows(
        module,
        setting(module, k1=1),
        setting(module, k2=nn.Linear(1, 1)),
        lambda: module.register_parameter("k3", nn.Parameter(module.linear.weight * 1)),
        lambda: module.register_buffer("k4", module.linear.weight.detach() * 1),
        lambda: module.linear.register_parameter("k5", None),
        settled=2,  # the original is called without what makes the module static, which then comes last
    )
