"""Attributes that an object from before the call gets or loses on some paths only: the call leaves what eager does."""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode


class Plain:
    pass


class WithDefault:
    best = None


class Slotted:
    __slots__ = ("best", "other")


@dataclasses.dataclass
class Record:
    size: int = 1


@dataclasses.dataclass
class Fields:
    best: Any = None


class Strict:
    """Says no to what it does not know, as the capture has seen by then."""

    allowed = ("best", "other")

    def __setattr__(self, name, value):
        if name not in self.allowed:
            raise AttributeError(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)


class Module(torch.nn.Module):
    pass


class ModuleWithDefault(torch.nn.Module):
    best = None


KINDS: list[Any] = [
    *(Plain, WithDefault, Slotted, Record, Strict, Module, ModuleWithDefault, types.SimpleNamespace),
    argparse.Namespace,
]


def sets(o, x):
    if x.sum() > 0:
        o.best = x * 2
    return x + 1


def reads(o, x):
    if x.sum() > 0:
        o.best = x * 2
    print("before")
    return o.best


def catches(o, x):
    if x.sum() > 0:
        o.best = x * 2
    try:
        return o.best + 1
    except (AttributeError, TypeError):
        return x


def asks(o, x):
    if x.sum() > 0:
        o.best = x * 2
    if hasattr(o, "best") and o.best is not None:
        return o.best, hasattr(o, "other")
    return x - 1, hasattr(o, "other")


def asks_first(o, x):
    if getattr(o, "best", None) is None and x.sum() > 0:
        o.best = x * 3
    return x if getattr(o, "best", None) is None else o.best


def in_a_loop(o, x):
    for i in range(int(x.abs().sum())):
        o.best = x * i
    return x, getattr(o, "best", None)


def in_some_iterations(o, x):
    for i in range(3):
        if x[0] > i:
            o.best = x * i
    return x


def deletes(o, x):
    o.best = x
    if x.sum() > 0:
        del o.best
    return getattr(o, "best", x * 3)


def deletes_again(o, x):
    if x.sum() > 0:
        o.best = x
    del o.best
    return x


def deletes_in_a_loop(o, x):
    o.best = x
    for i in range(int(x.abs().sum())):
        if i % 2 == 0:
            del o.best
        else:
            o.best = x * i
    return x


def of_two_names(o, x):
    if x.sum() > 0:
        if x[0] > 1:
            o.best = x
        else:
            o.other = x
    return getattr(o, "best", x), getattr(o, "other", -x)


def a_list(o, x):
    if x.sum() > 0:
        o.best = [x, x + 1]
    best = getattr(o, "best", None)
    return x if best is None else best[1]


def a_text(o, x):
    if x.sum() > 0:
        o.best = "done"
    return getattr(o, "best", None) == "done"


def raises_behind(o, x):
    if x.sum() > 0:
        o.best = x
    if x[0] > 1:
        raise ValueError("large")
    return x


def fails_behind(o, x):
    if x.sum() > 0:
        o.best = x
    return x[int(x[1] * 3)]


def leaves_early(o, x):
    if x.sum() > 0:
        o.best = x
        return x
    if x[0] < 0:
        return x - 1
    o.best = x * 5
    return x * 7


FUNCTIONS = [
    *(sets, reads, catches, asks, asks_first, in_a_loop, in_some_iterations, deletes, deletes_again),
    *(deletes_in_a_loop, of_two_names, a_list, a_text, raises_behind, fails_behind, leaves_early),
]
ONES, LESS, NONE, MORE = map(torch.tensor, ([0.25, 1.0], [-1.0, -1.0], [0.0, 0.0], [2.0, -1.0]))
ORDERS = [(MORE, LESS, NONE), (LESS, ONES, NONE), (NONE, MORE, LESS)]


def _state(o: Any) -> Any:
    if isinstance(o, torch.nn.Module):
        own: Any = {**{n: v for n, v in vars(o).items() if not n.startswith("_")}, **dict(o.named_buffers())}
    else:
        own = vars(o) if hasattr(o, "__dict__") else {n: getattr(o, n) for n in o.__slots__ if hasattr(o, n)}
    return repr(sorted(own.items())), repr(getattr(o, "best", "absent"))


def _outcome(function: Callable[..., Any], o: Any, x: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    try:
        result = repr(function(o, x.clone()))
    except (AttributeError, ValueError, IndexError) as error:
        result = f"{type(error)}: {error}"
    return result, _state(o), capsys.readouterr().out


def _run(
    function: Callable[..., Any], kind: Any, way: str, capsys: pytest.CaptureFixture[str], orders: Any = ORDERS
) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        for order in orders:
            found = sg.to_static(function, full_graph=way != "segments", backend="eager")
            mine, other = kind(), kind()
            for x in order:
                assert _outcome(found, mine, x, capsys) == _outcome(function, other, x, capsys)


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_plain_object(function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, Plain, way, capsys, ORDERS[:2] if way == "bytecode" else ORDERS[2:])


@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "function",
    [catches, in_a_loop, deletes_again],
    ids=lambda function: function.__name__,
)
def test_every_kind_of_object(function: Callable[..., Any], kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, kind, "source", capsys, ORDERS[2:])


class Counter:
    count = 0
    state = "idle"


def counts(o, x):
    if x.sum() > 0:
        o.count += 1
        o.state = "busy"
    return x + o.count if o.state == "busy" else x - o.count


def counts_down(o, x):
    o.count += 2
    if x.sum() < 0:
        del o.count
    return x + o.count


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", [counts, counts_down], ids=lambda function: function.__name__)
def test_numbers_and_texts_of_the_class_answer(
    function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(function, Counter, way, capsys)


def registers(o, x):
    if not hasattr(o, "mask") and x.sum() > 0:
        o.register_buffer("mask", x * 2, persistent=False)
    return getattr(o, "mask", x)


def forgets(o, x):
    if not hasattr(o, "mask"):
        o.register_buffer("mask", x * 2)
    if x.sum() > 0:
        del o.mask
    return x


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", [registers, forgets], ids=lambda function: function.__name__)
def test_buffers(function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    def state_too(o: Any, x: Any) -> Any:
        return function(o, x), o._non_persistent_buffers_set, [*o._buffers]

    def eager(o: Any, x: Any) -> Any:
        return plain(o, x), o._non_persistent_buffers_set, [*o._buffers]

    plain = function
    function = sg.to_static(plain, full_graph=way != "segments", backend="eager")
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        for order in ORDERS:
            mine, other = Module(), Module()
            for x in order:
                assert _outcome(state_too, mine, x, capsys) == _outcome(eager, other, x, capsys)


def copies(o, x):
    if x.sum() > 0:
        o.best = x * 2
    return getattr(copy.copy(o), "best", x)


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("kind", [Plain, Module], ids=lambda kind: kind.__name__)
def test_a_copy_has_it_or_not(kind: Any, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run(copies, kind, way, capsys)


def test_one_program_serves_both_paths() -> None:
    o, found = WithDefault(), sg.to_static(sets, backend="eager")
    for x in (LESS, NONE, LESS):
        found(o, x)
    assert len(found.programs) == 1
    found(o, MORE)
    assert len(found.programs) == 1
    assert torch.equal(o.best, MORE * 2)


def test_gradients_flow_into_what_is_kept() -> None:
    found = sg.to_static(asks_first, backend="eager")
    for order in ORDERS:
        mine, other = Plain(), Plain()
        for x in order:
            taken = [x.clone().requires_grad_() for _ in range(2)]
            for function, o, each in zip((found, asks_first), (mine, other), taken):
                (function(o, each) * 2).sum().backward(retain_graph=True)
            assert repr(taken[0].grad) == repr(taken[1].grad)


def looks_at_all(o, x):
    if x.sum() > 0:
        o.best = x
    return sorted(vars(o))


def as_a_dictionary(o, x):
    if x.sum() > 0:
        del o.best
    return dataclasses.asdict(o)


class Answering:
    def __getattr__(self, name):
        return 3


class Computing:
    @property
    def best(self):
        return 1

    @best.setter
    def best(self, value):
        self.stored = value


def goes_through(o, x):
    if not hasattr(o, "mask") and x.sum() > 0:
        o.register_buffer("mask", x)
    return len(list(o.buffers()))


@pytest.mark.parametrize(
    ("function", "kind", "code"),
    [
        (looks_at_all, Plain, "SG204"),
        (as_a_dictionary, Fields, "SG204"),
        (sets, Answering, "SG204"),
        (goes_through, Module, "SG305"),
    ],
    ids=["vars", "field", "__getattr__", "buffers"],
)
def test_what_nobody_is_told_of_is_refused(function: Callable[..., Any], kind: Any, code: str) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(kind(), MORE)
    assert caught.value.reason.code == code


def test_a_property_writes_where_it_writes(capsys: pytest.CaptureFixture[str]) -> None:
    _run(sets, Computing, "source", capsys)


class Keeping(torch.nn.Module):
    best = None

    def forward(self, x):
        if x.sum() > 0:
            self.best = x * 2
        return x + 1


@pytest.mark.parametrize("suffix", [".pt2", ".py", ".onnx"])
def test_files_refuse_it(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=r"decides whether args\[0\]\.best is there"):
        sg.save(Keeping(), tmp_path / f"kept{suffix}", args=(MORE,))
