"""In which of its tables a module has what the paths of a call leave under one name, and in which the run puts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.front_ends import bytecode

_ = bytecode
UP, DOWN = torch.tensor([1.0, 1.0, 3.0]), torch.tensor([-1.0, -3.0, -1.0])


class Module(nn.Module):
    def __init__(self, body: Callable[..., Tensor], begin: Callable[..., None]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3) * 2)
        self.p = nn.Parameter(torch.ones(3) * 5)
        self.q = nn.Sequential()
        self.body = body
        begin(self)

    def forward(self, x):
        return self.body(self, x)


def replaced(self, x):
    del self.gate
    self.gate = None
    return x * len(self._parameters)


def registers_none(self, x):
    if x.sum() > 0:
        self.register_parameter("gate", None)
    return x * 2


def is_parameter(self, x):
    if x.sum() > 0:
        self.gate = self.p
    return x * 2


def is_module(self, x):
    if x.sum() > 0:
        self.gate = self.q
    return x * 2


def is_either(self, x):
    if x.sum() > 0:
        self.gate = self.p
    else:
        self.gate = None
    return x * 2


def replaced_on_a_path(self, x):
    if x.sum() > 0:
        del self.gate
        self.gate = x * 2
    return x * 2


def in_a_loop(self, x):
    while x.sum() > 0:
        self.gate = self.p
        x = x - 1
    return x * 2


def counted(self, x):
    if x.sum() > 0:
        self.gate = self.p
    return x * len(self._parameters)


def listed(self, x):
    if x.sum() > 0:
        self.gate = self.p
    return x * len(list(self.parameters()))


def listed_modules(self, x):
    if x.sum() > 0:
        self.gate = self.q
    return x * len(list(self.children()))


def counted_behind_a_loop(self, x):
    while x.sum() > 0:
        self.gate = self.p
        x = x - 1
    return x * len(self._parameters)


def none(self):
    self.gate = None


def entered_none(self):
    self.register_parameter("gate", None)


def parameter(self):
    self.gate = nn.Parameter(torch.ones(3) * 7)


def buffer(self):
    self.register_buffer("gate", torch.ones(3))


def module(self):
    self.gate = nn.Linear(1, 1)


def nothing(self):
    pass


BODIES = [
    *(replaced, registers_none, is_parameter, is_module, is_either, replaced_on_a_path, in_a_loop, counted, listed),
    *(listed_modules, counted_behind_a_loop),
]
BEGINS = [none, entered_none, parameter, buffer, module, nothing]
FAST = {
    *((is_parameter, none), (is_either, module), (replaced, entered_none), (in_a_loop, none)),
    *((counted, none), (listed, parameter), (counted_behind_a_loop, none), (is_parameter, entered_none)),
}
CASES = [
    pytest.param(
        body, begin, marks=() if (body, begin) in FAST else pytest.mark.slow, id=f"{body.__name__}-{begin.__name__}"
    )
    for body in BODIES
    for begin in BEGINS
    if not (body is replaced and begin is nothing)  # raises
]
REFUSED: dict[Any, dict[Any, str]] = {
    is_parameter: {buffer: "SG203"},
    is_module: {entered_none: "SG209", parameter: "SG209", buffer: "SG203"},
    is_either: {buffer: "SG203"},
    replaced_on_a_path: {
        entered_none: "SG203", parameter: "SG203", buffer: "SG203", module: "SG203",
        nothing: "SG209",
    },
    in_a_loop: {buffer: "SG203"},
    counted: {
        none: "SG305", entered_none: "SG305", parameter: "SG305", module: "SG305",
        buffer: "SG203", nothing: "SG305",
    },
    listed: {
        none: "SG305", entered_none: "SG305", parameter: "SG305", module: "SG305",
        buffer: "SG203", nothing: "SG305",
    },
    listed_modules: {
        none: "SG305", entered_none: "SG209", parameter: "SG209", buffer: "SG203",
        module: "SG203", nothing: "SG305",
    },
    counted_behind_a_loop: {
        none: "SG305", entered_none: "SG305", parameter: "SG305", module: "SG305",
        buffer: "SG203", nothing: "SG305",
    },
}
"""By the body and what is there at the beginning: the code of the reason. All others are captured."""


def _held(module: nn.Module) -> Any:
    """What is under which name in each of a module's tables, by its place among what the test has made."""

    def shown(value: Any) -> Any:
        return value.tolist() if isinstance(value, Tensor) else type(value).__name__

    tables = ("_parameters", "_buffers", "_modules")
    own = {"gate": shown(vars(module)["gate"])} if "gate" in vars(module) else {}
    return own, [{name: shown(value) for name, value in vars(module)[table].items()} for table in tables]


def _called(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    try:
        return function(x).tolist()
    except (AttributeError, KeyError, TypeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("orders", [(DOWN, UP, DOWN), (UP, DOWN, UP)], ids=["down", "up"])
@pytest.mark.parametrize(("body", "begin"), CASES)
def test_the_tables_are_eagers(body, begin, orders, bytecode) -> None:
    found, eager = Module(body, begin), Module(body, begin)
    static = sg.to_static(found, backend="eager")
    code = REFUSED.get(body, {}).get(begin)
    if code is not None:
        with pytest.raises(sg.CaptureError) as refused:
            [_called(static, x) for x in orders]
        assert refused.value.reason.code == code
        return
    for x in orders:
        assert (_called(static, x), _held(found)) == (_called(eager, x), _held(eager))


_OF_PYTHON = [(in_a_loop, nothing), (counted_behind_a_loop, nothing)]
"""Python makes the attribute in the loop: no program is left, which `strict` refuses."""


@pytest.mark.parametrize("orders", [(DOWN, UP, DOWN), (UP, DOWN, UP)], ids=["down", "up"])
@pytest.mark.parametrize(("body", "begin"), [case for case in CASES if case.values not in _OF_PYTHON])
def test_so_are_they_in_segments(body, begin, orders) -> None:
    found, eager = Module(body, begin), Module(body, begin)
    static = sg.to_static(found, full_graph=False, strict=True, backend="eager")
    for x in orders:
        assert (_called(static, x), _held(found)) == (_called(eager, x), _held(eager))


@pytest.mark.parametrize(
    ("body", "begin", "code"),
    [(replaced_on_a_path, parameter, "SG203"), (listed, parameter, "SG305")],
)
def test_what_no_assignment_puts_there_is_refused(body, begin, code) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(Module(body, begin), backend="eager")(UP)
    assert caught.value.reason.code == code


def asked_for(self, x):
    if x.sum() > 0:
        self.gate = self.p
    return hasattr(self, "gate"), getattr(self, "gate", x) + 1


def asked_for_in_the_loop(self, x):
    while x.sum() > 0:
        if hasattr(self, "gate"):
            x = x - 2
        self.gate = self.p
        x = x - 1
    return x


def read_or_caught(self, x):
    if x.sum() > 0:
        self.gate = nn.Identity()
    try:
        return self.gate(x)
    except AttributeError as error:
        return x, str(error)


@pytest.mark.parametrize("body", [asked_for, asked_for_in_the_loop, read_or_caught], ids=lambda body: body.__name__)
def test_who_reads_an_entry_that_one_path_makes_is_told(body, bytecode) -> None:
    found, eager = Module(body, nothing), Module(body, nothing)
    static = sg.to_static(found, backend="eager")
    for x in (DOWN, UP, DOWN, UP * 3):
        assert str(static(x)) == str(eager(x))
        assert _held(found) == _held(eager)


def made_late(self, x):
    if x.sum() > 0:
        self.gate = nn.Linear(3, 3)
    return self.gate(x) if hasattr(self, "gate") else x


def test_a_layer_made_on_one_path_is_there_from_then_on(bytecode) -> None:
    found, eager = Module(made_late, nothing), Module(made_late, nothing)
    static = sg.to_static(found, backend="eager")
    for x in (DOWN, UP, DOWN, UP * 3, DOWN):
        torch.manual_seed(5)
        expected = eager(x)
        torch.manual_seed(5)
        assert str(static(x)) == str(expected)
        assert list(found.state_dict()) == list(eager.state_dict())
        for mine, its in zip(found.parameters(), eager.parameters(), strict=True):
            assert (type(mine), mine.is_leaf, mine.requires_grad) == (type(its), its.is_leaf, its.requires_grad)
            assert torch.equal(mine, its)
