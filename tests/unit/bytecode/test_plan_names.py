"""What a plan tells in words: the user's names, what tells arms apart, and what to do about a break."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.bytecode.between.texts import _TEXTS
from stillgraph.bytecode.code.instruction_set import OPERATIONS
from stillgraph.bytecode.machine.table import MOVES, REFUSED
from stillgraph.bytecode.segments.leaving import why_differing
from stillgraph.bytecode.segments.whys import KINDS
from stillgraph.core.location import Location
from tests.importing import loaded

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "partial.md"


def _static(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for _ in range(2):
        for args in calls:
            assert str(static(*args)) == str(function(*args))
    return static


class Settings:
    def __init__(self, factor: float) -> None:
        self.factor = factor


def closed_over() -> Callable[..., Any]:
    scale, items, settings = 3.0, [1, 2], Settings(2.0)

    def inner(x: Tensor) -> Tensor:
        print("a")
        y = x * scale * settings.factor
        print("b")
        return y + len(items) * scale

    return inner


def test_variables_of_a_closure_have_their_names() -> None:
    static = _static(closed_over(), (torch.ones(3),))
    for text in (static.code, str(static.explain())):
        assert not re.search(r"__closure__|cell_contents|stillgraph_held|args\[", text)
    assert "scale == 3.0" in static.code.split("'a'")[1]


def handed(x: Tensor, settings: Settings) -> Tensor:
    print("a")
    return x * settings.factor


def test_arms_show_what_tells_them_apart() -> None:
    x = torch.ones(3)
    static = _static(handed, (x, Settings(2.0)), (x, Settings(3.0)))
    arms = re.findall(r"(?:if|elif) guards_\d+.*\n\s+# (.*)", static.code)
    assert len(arms) > 1
    assert len(set(arms)) == len(arms)
    assert "settings.factor == 2.0" in static.code


def texts(x: Tensor) -> tuple[Tensor, list[str]]:
    total = x.sum()
    return x + 1, f"{total.item():.1f}".split(".")


def test_a_method_is_shown_with_what_it_is_of() -> None:
    static = _static(texts, (torch.ones(3),))
    assert ".item()" in static.code
    assert "value_" not in static.code


SOURCELESS = """
def sourceless(x, path):
    print(x.sum().item())
    with open(path, "w") as file:
        file.write(str(x.mean().item()))
        file.write("b")
    return x + 1
"""


def test_without_source_no_instruction_is_named(tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    exec(SOURCELESS, space)
    static = _static(space["sourceless"], (torch.ones(3), str(tmp_path / "file")))
    assert not re.search("|".join(name.lower() for name in OPERATIONS if "_" in name), static.code)


def test_each_instruction_has_a_text() -> None:
    assert not OPERATIONS.keys() - _TEXTS.keys() - MOVES - REFUSED.keys() - {"CALL_KW"}


def prints(x: Tensor) -> Tensor:
    print(x.sum().item())
    return x + 1


def cuts(x: Tensor) -> tuple[Tensor, str]:
    return x + 1, f"{x.sum().item():.1f}"


@pytest.mark.parametrize("function", [prints, cuts])
def test_a_break_says_what_to_do(function: Callable[..., Any]) -> None:
    explanation = _static(function, (torch.ones(3),)).explain()
    for step in explanation.breaks:
        assert step.advice
        assert f"hint: {step.advice}" in str(explanation)
    assert [each["advice"] for each in explanation.to_dict()["breaks"]] == [e.advice for e in explanation.breaks]


def test_the_guide_has_all_kinds_of_reasons_and_what_to_do() -> None:
    guide = " ".join(GUIDE.read_text().split())
    missing = [each.advice for each in KINDS.values() if each.advice is not None and each.advice not in guide]
    assert not missing


class Texts:
    def replaced(self, found: re.Match[str]) -> str:
        print("found")
        return found[0].upper()


TEXTS = Texts()


def replaces(x: Tensor, text: str) -> Tensor:
    y = x + 1
    return y * len(re.sub("a", TEXTS.replaced, text))


def test_a_method_that_is_handed_on_is_named() -> None:
    static = _static(replaces, (torch.ones(3), "banana"))
    assert "TEXTS.replaced, " in static.code


class Sometimes:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def take(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            self.found = x.sum()
        return x * 2


def takes(x: Tensor, owner: Sometimes) -> Tensor:
    return owner.take(x + 1)


def test_a_refusal_tells_its_line() -> None:
    explanation = _static(takes, (torch.ones(2), Sometimes()), (-torch.ones(2) * 3, Sometimes())).explain()
    causes = [step.cause for step in explanation.breaks if step.code == "SG204"]
    first = Sometimes.take.__code__.co_firstlineno
    assert [each.line - first for each in causes if each is not None] == [1]
    (step,) = [step for step in explanation.breaks if step.code == "SG204"]
    elsewhere = replace(step, place=Location(__file__, 3, 0, None, "takes"))
    assert f"  at {step.cause}\n" in str(replace(explanation, entries=(), whole=elsewhere))
    assert [each["cause"]["line"] for each in explanation.to_dict()["breaks"] if each["cause"]] == [first + 1]


# ---- what differs from call to call
def _told(function: Callable[..., Any], make: Callable[[int], tuple[Any, ...]]) -> dict[str, str | None]:
    """The reasons of the breaks and what to do, after calls that each differ; all give what they give in eager."""
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for number in range(14):
        assert str(static(*make(number))) == str(function(*make(number)))
    return {each.reason: each.advice for each in static.explain().breaks}


def by_a_slice(x: Tensor, part: slice) -> Tensor:
    print("a")
    return x[part] * 2


def by_length(x: Tensor, items: Any) -> Tensor:
    print("a")
    return x * len(list(items))


def caught(x: Tensor, limit: int) -> Tensor:
    try:
        if x.sum().item() > limit:
            raise ValueError(f"above {limit}")
    except ValueError as error:
        print(str(error).split())
    return x * 2


def test_what_a_container_holds_differs() -> None:
    ones = torch.ones(99)
    assert "what a slice holds differs from call to call" in _told(by_a_slice, lambda n: (ones, slice(n)))
    for kind in (set, tuple, collections.Counter):
        told = _told(by_length, lambda n, kind=kind: (ones, kind([str(n)])))
        name = kind.__name__
        assert f"what a {name} holds differs from call to call" in told
        assert not any("few different ones" in str(each) for each in told.values())


def test_an_exception_is_not_to_be_made_outside() -> None:
    told = _told(caught, lambda n: (torch.ones(3), n % 5))
    assert "`if`" in str(told["it makes a ValueError to be raised, which no program can hand on"])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (3, "an int that it needs differs from call to call"),
        ("a", "a text that it needs differs from call to call"),
        ({"a": 1}, "what a dict holds differs from call to call"),
        ([].append, "what a list holds differs from call to call"),
        (GUIDE.exists, "it needs a method that is another one in each call"),
    ],
)
def test_what_differs_is_told_by_kind(value: Any, reason: str) -> None:
    assert why_differing(value).text == reason
    assert "joins" in why_differing(value, joined=True).text


# ---- the user's own text, and names that hold from one program to the next
def counted(counter: Any, tokens: Any, x: Tensor) -> Any:
    counter.update(tokens)
    print(tokens)
    return x * len(counter)


def test_a_step_is_told_as_the_user_wrote_it() -> None:
    static = sg.to_static(counted, full_graph=False, strict=True, backend="eager")
    counter: Any = collections.Counter()
    for number in range(14):
        static(counter, [f"a{number}", "b"], torch.ones(2))
    assert {"counter.update", "print(tokens)"} <= {each.text for each in static.explain().breaks}
    assert "value_0.update" not in static.code
    assert "  (behind " in str(static.explain())  # one step behind many programs is told once
    breaks = static.explain().breaks
    assert len({(str(each.place), each.place.column, each.why) for each in breaks if each.place}) == len(breaks)


def most_common(counter: Any, x: Tensor) -> Any:
    counter["a"] += 1
    return x * 2, counter.most_common(1)[0][0]


def test_a_step_in_another_file_is_told_with_that(tmp_path: Path) -> None:
    path = tmp_path / "saying.py"
    path.write_text("def say(value):\n    print(value)\n    return value\n")
    say = loaded(path).say

    def f(x: Tensor) -> Any:
        return x * say(x.sum().item())

    static = sg.to_static(f, full_graph=False, strict=True, backend="eager")
    static(torch.ones(2))
    assert "line 2 of saying.py, by Python" in static.code


def test_variables_of_the_code_are_set_before_they_are_used() -> None:
    static = sg.to_static(most_common, full_graph=False, strict=True, backend="eager")
    counter: Any = collections.Counter()
    for number in range(20):
        static(counter, torch.ones(2))
        counter[f"z{number}"] += 1
    assert "result = counter.most_common(1)" in static.code
    first = static.code.split("\n\n")[0]
    assert "value_0 = region_" in first  # which the next program takes
    assert "mul" not in first
