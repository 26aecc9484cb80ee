"""`explain_miss`: which fact differs, in a sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

ROWS = torch.ones(1, 2)
LONG = list(range(10))
TABLE = {str(number): number for number in range(10)}
NAMES = {"a", "b"}


def helper(x: Tensor) -> Tensor:
    return x


def other_helper(x: Tensor) -> Tensor:
    return -x


def uses_helper(x: Tensor) -> Tensor:
    return helper(x)


class Scaled(nn.Module):
    rate = 3

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.factor = 1
        self.table = {"a": 1}

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "late"):
            return x
        return self.linear(x) * self.factor * self.table["a"] * self.rate


CHANGES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda m: setattr(m, "factor", 3), "self.factor should be 1, but is 3"),
    (lambda m: m.eval(), "self.training should be True, but is False"),
    (lambda m: m.table.update(a=2), "self.table['a'] should be 1, but is 2"),
    (lambda m: m.linear.register_forward_hook(print), "len(self.linear._forward_hooks) should be 0, but is 1"),
    (lambda m: setattr(m, "late", 1), "self.__dict__ should lack 'late', but has it"),
    (lambda m: m.linear.requires_grad_(False), "self.linear.weight should be Parameter float32[2, 2] on cpu with"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_says_what_has_changed(change: Callable[[Any], Any], sentence: str) -> None:
    module = sg.to_static(Scaled(), backend="eager")
    assert module.forward.explain_miss(ROWS) == "nothing has been captured yet"
    module(ROWS)
    assert module.forward.explain_miss(ROWS) is None
    change(module)
    assert str(module.forward.explain_miss(ROWS)).startswith(sentence)
    assert module.forward.cache_info().programs == 1


def last_of_long(x: Tensor) -> Tensor:
    return x * LONG[-1]


def whole_table(x: Tensor) -> Tensor:
    return x * sum(TABLE.values())


def is_a_name(x: Tensor) -> Tensor:
    return x * ("a" in NAMES)


def threads(x: Tensor) -> Tensor:
    return x * torch.get_num_threads()


def environment(x: Tensor) -> Tensor:
    return x if os.environ.get("STILLGRAPH_TEST_SECRET") else -x


def all_of_the_environment(x: Tensor) -> Tensor:
    return x * len(os.environ)


HERE = "tests.unit.soundness.test_explaining"
FILE = "test_explaining.py"
SURROUNDINGS: list[tuple[Callable[[Tensor], Tensor], Callable[[], Any], str]] = [
    (last_of_long, lambda: LONG.append(1), f"len({HERE}.LONG) should be 10, but is 11"),
    (last_of_long, lambda: LONG.__setitem__(3, 3.0), f"{HERE}.LONG[3] should be 3 (int), but is 3.0 (float)"),
    (whole_table, lambda: TABLE.update({"4": 44}), f"{HERE}.TABLE['4'] should be 4, but is 44"),
    (whole_table, lambda: TABLE.pop("4"), f"{HERE}.TABLE should have the key '4', but lacks it"),
    (whole_table, lambda: TABLE.update(x=1), f"{HERE}.TABLE should lack the key 'x', but has it"),
    (whole_table, lambda: TABLE.update(a=TABLE.pop("0")), f"{HERE}.TABLE should have the key '0', but lacks it"),
    (whole_table, lambda: TABLE.update({"0": TABLE.pop("0")}), f"the keys of {HERE}.TABLE should be in the order they"),
    (is_a_name, lambda: NAMES.remove("b"), f"{HERE}.NAMES should hold 'b', but does not"),
    (is_a_name, lambda: NAMES.add("c"), f"{HERE}.NAMES should not hold 'c', but does"),
    (threads, lambda: torch.set_num_threads(2), "get_num_threads() should be 1, but is 2"),
    (
        environment,
        lambda: os.environ.update(STILLGRAPH_TEST_SECRET="hush"),
        "os.environ['STILLGRAPH_TEST_SECRET'] should be what it was, but was changed",
    ),
    (
        all_of_the_environment,
        lambda: os.environ.update(STILLGRAPH_TEST_SECRET="hush"),
        "os.environ['STILLGRAPH_TEST_SECRET'] should be what it was, but was changed",
    ),
    (
        uses_helper,
        lambda: globals().update(helper=other_helper),
        f"{HERE}.helper should run the code of helper ({FILE}:{helper.__code__.co_firstlineno}), but runs that of "
        f"other_helper ({FILE}:{other_helper.__code__.co_firstlineno})",
    ),
]


@pytest.mark.parametrize(("function", "change", "sentence"), SURROUNDINGS)
def test_says_what_has_changed_around_it(
    function: Callable[[Tensor], Tensor], change: Callable[[], Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LONG", "TABLE", "NAMES"):
        monkeypatch.setitem(globals(), name, globals()[name].copy())
    monkeypatch.setitem(globals(), "helper", helper)
    monkeypatch.delenv("STILLGRAPH_TEST_SECRET", raising=False)
    torch.set_num_threads(1)
    static = sg.to_static(function, backend="eager")
    static(ROWS)
    assert static.explain_miss(ROWS) is None
    change()
    assert str(static.explain_miss(ROWS)).startswith(sentence)


def test_no_value_of_the_environment_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLGRAPH_TEST_SECRET", "hush")
    for function in (environment, all_of_the_environment):
        static = sg.to_static(function, backend="eager")
        static(ROWS)
        monkeypatch.setenv("STILLGRAPH_TEST_SECRET", "quiet")
        (program,) = static.programs
        shown = [str(static.explain_miss(ROWS)), str(program), *map(repr, program.guards), *map(str, program.guards)]
        assert not any("hush" in text or "quiet" in text for text in shown)
        monkeypatch.setenv("STILLGRAPH_TEST_SECRET", "hush")


def test_says_what_is_different_about_the_arguments() -> None:
    function = sg.to_static(lambda x, n: x * n, backend="eager")
    function(ROWS, 2)
    assert function.explain_miss(ROWS, 3) == "n should be 2, but is 3"
    assert str(function.explain_miss(ROWS.double(), 2)).startswith("x should be Tensor float32[1, 2]")
    assert function.explain_miss(ROWS, n=2) == (
        "its number of arguments, or their names, differ from those of the calls so far"
    )


def test_the_most_similar_program_counts() -> None:
    function = sg.to_static(lambda x, n, m: x * n + m, backend="eager")
    function(ROWS, 1, 1)
    function(ROWS, 2, 2)
    assert function.explain_miss(ROWS, 1, 5) == "m should be 1, but is 5"


def test_a_replaced_method(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sg.to_static(Scaled(), backend="eager")
    module(ROWS)
    monkeypatch.setattr(Scaled, "forward", lambda self, x: x)
    assert module.forward.explain_miss(ROWS) == "Scaled.__dict__['forward'] should be what it was, but was replaced"
