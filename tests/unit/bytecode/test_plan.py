"""What is told of a function without a full graph: its plan as Python, its subgraphs, and where and why they end.

`STILLGRAPH_UPDATE_GOLDEN=1` writes the texts as they are now.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.constants import MOST_ENTRIES

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"


def told(x: Tensor) -> Tensor:
    y = (x * 2).sum()
    print(y.item())
    z = x + y
    return z * 3


def helper(x: Tensor) -> Tensor:
    y = x.relu()
    print(f"mean {y.mean().item():.1f}")
    return y + 1


def inside(x: Tensor) -> Tensor:
    return helper(x * 2) * 3


def looped(x: Tensor, names: list[str]) -> Tensor:
    for name in names:
        print(name, x.sum().item())
        x = x * 2
    return x


def linked(x: Tensor, file: io.StringIO) -> Tensor:
    while x.sum() > 1:
        x = x / 2
        file.write(f"{x.sum().item():.2f}")
    return x


def chosen(x: Tensor, cache: dict[str, Any]) -> Tensor:
    key = f"{x.sum().item():.0f}"
    if key not in cache:
        cache[key] = x * 2
    return cache[key] + 1


SINK = io.StringIO()


def keywords(x: Tensor) -> Tensor:
    print("sum", x.sum().item(), sep=" ", file=SINK, flush=True)
    return x + 1


def written(x: Tensor) -> int:
    return SINK.write(f"{x.sum().item():.0f}")


def returned(x: Tensor) -> int:
    return written(x * 2)


def ended(x: Tensor) -> Tensor:
    y = x * 2
    print("done", file=SINK)
    return y


def raised(x: Tensor) -> Tensor:
    print("none", end="", file=SINK)
    raise ValueError("nothing to be returned")


def chosen_by(x: Tensor, names: list[str]) -> Tensor:
    name = names[int(x.sum())]
    return x + len(name)


def of_lines(x: Tensor, path: str) -> Tensor:
    with open(path) as file:
        found = [len(line) for line in file]
    return x + len(found)


def of_two_ways(x: Tensor, seen: dict[str, int]) -> Tensor:
    y = x * 2
    if f"{y.sum().item():.0f}".split(".")[0] in seen:
        return y
    print("new", file=SINK)
    return y + 1


EXAMPLES: dict[Callable[..., Any], tuple[Any, ...]] = {
    told: (torch.ones(3),),
    inside: (torch.ones(2),),
    looped: (torch.ones(2), ["a", "b", "c"]),
    linked: (torch.ones(2) * 4, io.StringIO()),
    keywords: (torch.ones(2),),
    returned: (torch.ones(2),),
    ended: (torch.ones(2),),
    raised: (torch.ones(2),),
}


def _outcome(function: Any, args: tuple[Any, ...]) -> str:
    try:
        return repr(function(*args))
    except ValueError as error:
        return repr(error)


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda function: function.__name__)
def test_the_plan_as_python(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for _ in range(2):
        assert _outcome(static, EXAMPLES[function]) == _outcome(function, EXAMPLES[function])
    text = re.sub(r" +$", "", static.code, flags=re.MULTILINE) + "\n"
    path = GOLDEN / f"{function.__name__}.txt"
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_a_print_in_the_midst_is_one_step_between_two_regions() -> None:
    static = sg.to_static(told, full_graph=False, strict=True, backend="eager")
    static(torch.ones(3))
    lines = [line for line in static.code.splitlines() if not line.strip().startswith("#")]
    assert [line.partition("#")[0].strip() for line in lines] == [
        "def told(x: 'Tensor'):",
        "x, y, item = region_0(x)",
        "print(item)",
        "return region_1(x, y)",
    ]


def test_breaks_have_their_place_and_reason() -> None:
    static = sg.to_static(inside, full_graph=False, strict=True, backend="eager")
    static(torch.ones(2))
    explanation = static.explain()
    (step,) = explanation.breaks
    line = helper.__code__.co_firstlineno + 2
    assert (step.place.line, step.place.function) == (line, "helper")
    assert [caller.line for caller in step.callers] == [inside.__code__.co_firstlineno + 1]
    assert (step.text, step.result) == ("print(text_1)", None)
    assert step.reason == "print does something outside the program"
    assert len(explanation.subgraphs) == len(static.programs)
    assert f"break at {step.place}" in str(explanation)


def test_what_comes_last_in_the_code_may_be_pythons(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\n")
    static = sg.to_static(of_lines, full_graph=False, strict=True, backend="eager")
    torch.testing.assert_close(static(torch.ones(2), str(path)), torch.ones(2) + 2)
    assert ("result = iter(" if sys.version_info < (3, 12) else "line = next(") in static.code
    assert "only Python can work with an open file" in str(static.explain())


def test_a_place_that_one_of_two_ways_leads_to_is_written_out() -> None:
    static = sg.to_static(of_two_ways, full_graph=False, strict=True, backend="eager")
    found: tuple[dict[str, int], ...] = ({}, {"4": 1}, {}, {"4": 2})
    for seen in found:
        torch.testing.assert_close(static(torch.ones(2), seen), of_two_ways(torch.ones(2), seen))
    text = static.code
    assert set(re.findall(r"at_\d", text)) == set(re.findall(r"(?<=def )at_\d", text)) != set()


def test_texts_have_no_addresses_and_say_a_guard_once() -> None:
    def function(x: Tensor, given: dict[str, int]) -> Tensor:
        def double(y: Tensor) -> Tensor:
            print(y.sum().item(), file=SINK)
            return y * 2

        return double(x) if given["z"] == 1 else x

    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for given in ({"z": 1}, {"z": 2}):
        torch.testing.assert_close(static(torch.ones(2), given), function(torch.ones(2), given))
    told = str(static.explain())
    assert "0x" not in told
    first = static.explain().subgraphs[0]
    assert "given['z'] == 1" in first.guards
    assert len(set(first.guards)) == len(first.guards)


def test_a_reason_has_its_name_in_the_catalogue() -> None:
    def made(x: Tensor) -> Any:
        found = iter(range(3))
        print(next(found), file=SINK)
        return x + sum(found)

    static = sg.to_static(chosen_by, full_graph=False, strict=True, backend="eager")
    names = ["a", "b", "ccc", *map(str, range(MOST_ENTRIES))]  # more than a program has in a table
    for x in (torch.ones(2), torch.zeros(2)):
        torch.testing.assert_close(static(x, names), chosen_by(x, names))
    (step,) = static.explain().breaks
    assert (step.code, step.why) == ("SG203", f"{step.reason} (SG203, values cannot be joined)")
    assert step.why in str(static.explain())
    iterating = sg.to_static(made, full_graph=False, strict=True, backend="eager")
    torch.testing.assert_close(iterating(torch.ones(2)), made(torch.ones(2)))
    assert [(each.why, each.code) for each in iterating.explain().breaks] == [
        ("it makes an iterator that no program can hand on", None)
    ]


def test_a_program_that_is_cut_in_two_says_why() -> None:
    def function(x: Tensor) -> list[Any]:
        y = x * 2
        return [{y: y + 1}]

    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for _ in range(2):
        (made,) = static(torch.ones(2))
        ((key, value),) = made.items()
        assert (key.tolist(), value.tolist()) == ([2.0, 2.0], [3.0, 3.0])
    (why,) = {each.why for each in static.explain().breaks}
    assert why.startswith("a program that goes on from here is refused: a dict is returned")
    assert "(SG306, " in why


def test_internal_classes_have_the_names_of_users() -> None:
    def function(x: Tensor) -> Any:
        found = (each * 2 for each in (x, x))
        print("between", file=SINK)
        return sum(found)

    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(static(torch.ones(2)), function(torch.ones(2)))
    assert [each.reason for each in static.explain().breaks] == ["it makes an iterator that no program can hand on"]


def test_subgraphs_have_statements_and_guards() -> None:
    static = sg.to_static(told, full_graph=False, strict=True, backend="eager")
    static(torch.ones(3))
    first, second = static.explain().subgraphs
    assert (first.inputs, first.outputs) == (("x",), ("x", "y", "item"))
    assert (second.inputs, second.outputs, second.step) == (("x", "y"), (), None)
    assert [each.split("=")[0].strip() for each in first.statements[:3]] == ["mul", "sum_1", "item"]
    assert "x is float32[3] on cpu" in first.guards


def test_with_arguments_a_call_is_explained_as_a_whole() -> None:
    static = sg.to_static(told, full_graph=False, strict=True, backend="eager")
    explanation = static.explain(torch.ones(3))
    assert explanation.program is not None
    assert static.programs == ()


def test_what_needs_no_break_is_one_subgraph() -> None:
    def plain(x: Tensor) -> Tensor:
        while x.sum() < 10:
            x = x * 2 if x[0] > 0 else x - 1
            if x[1] > 100:
                break
        return x

    static = sg.to_static(plain, full_graph=False, strict=True, backend="eager")
    for x in (torch.ones(2), torch.ones(2) * 60, torch.tensor([1.0, 99.0])):
        torch.testing.assert_close(static(x), plain(x))
    assert len(static.programs) == 1
    assert static.explain().breaks == ()


class Doubling:
    def double(self, x: Tensor) -> Tensor:
        return x * 2


def test_symbolic_trace_keeps_what_was_captured() -> None:
    module = torch.nn.Linear(2, 2)
    static = sg.symbolic_trace(told, strict=True)
    for _ in range(3):
        assert sg.symbolic_trace(module, strict=True) is module
        module(torch.ones(2))
    assert module.forward.cache_info().programs == 1
    assert sg.symbolic_trace(told, strict=True) is static
    assert sg.symbolic_trace(static, strict=True) is static
    assert sg.symbolic_trace(static) is not static
    bound = sg.symbolic_trace(Doubling().double, strict=True)
    assert sg.symbolic_trace(bound, strict=True) is bound
    torch.testing.assert_close(bound(torch.ones(2)), torch.full((2,), 2.0))
    other = sg.to_static(told, full_graph=False, strict=True, backend="eager", unroll_limit=2)
    assert sg.symbolic_trace(other, strict=True) is not other
    assert sg.symbolic_trace(told) is not sg.symbolic_trace(told, strict=True)


def test_strict_is_for_calls_that_may_break() -> None:
    with pytest.raises(ValueError, match="full_graph=False"):
        sg.to_static(told, strict=True)
