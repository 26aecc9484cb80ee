from __future__ import annotations

import contextlib
import re
import sys
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.core.reasons import REASONS
from tests.front_ends import bytecode  # noqa: F401  # a fixture
from tests.unit.report import models

CODE = re.compile(r"\((SG\d+)\)")


def explained(function: Any, *args: Any) -> Any:
    return sg.to_static(function, backend="eager").explain(*args)


@pytest.fixture(scope="module")
def halving() -> Any:
    return explained(models.halve, torch.ones(3, 4), torch.tensor(1.0))


def marks(explanation: Any, name: str) -> dict[str, str]:
    """The marks of a function, by the text of its lines."""
    (function,) = (f for f in explanation.functions if f.name == name)
    return {line.text.strip(): line.mark for line in function.lines}


def test_every_line_has_its_mark(halving: Any) -> None:
    assert marks(halving, "halve") == {
        'def halve(x: Tensor, limit: Tensor, scale: int = 2, mode: str = "mean") -> tuple[Tensor, int]:': "",
        '"""Halve until it is small."""': "",
        "steps = 0": "evaluated",
        'if mode == "mean":': "specialised",
        "x = x - x.mean()": "staged",
        "else:": "",
        "x = x - x.sum()": "",  # never ran
        "for i in range(3):": "evaluated",
        "x = x + i": "staged",
        "while x.norm() > limit:": "staged",
        "x = x / scale": "staged",
        "if x.sum() > 0:": "staged",
        "x = x.relu()": "staged",
        "steps += 1": "staged",
        "x = x * 0.5": "staged",
        "rows = x.shape[0]": "specialised",
        "y = x.reshape(": "staged",
        "rows,": "staged",
        "-1,": "staged",
        ")": "",
        "return y + 1, steps": "staged",
    }


def test_what_the_marks_say(halving: Any) -> None:
    (function,) = halving.functions
    said = {line.text.strip(): {mark.kind: mark.why for mark in line.marks} for line in function.lines}
    assert said["for i in range(3):"] == {"evaluated": "'for' unrolled: 3 iterations (SG604)"}
    assert said['if mode == "mean":'] == {
        "specialised": "mode is 'mean' in this program; another value makes another program (SG601)",
        "evaluated": "'if' the condition was true (SG606)",
    }
    assert said["while x.norm() > limit:"] == {"staged": "'while' is a region of the program, 2 operations"}
    assert said["rows = x.shape[0]"]["specialised"].startswith("the shape [3, 4] is fixed in this program")
    assert said["x = x + i"] == {"staged": "3 operations"}


def test_a_line_knows_its_operations(halving: Any) -> None:
    (function,) = halving.functions
    of = {line.text.strip(): line.operations for line in function.lines}
    assert len(of["x = x + i"]) == 3
    assert {each.id for box in halving.boxes for each in box.operations} >= set(of["x = x / scale"])


def test_a_split_is_marked() -> None:
    assert marks(explained(models.unlike, torch.ones(3)), "unlike")["return y + 1"] == "split"


def test_a_module_is_explained_with_what_it_calls() -> None:
    net = sg.to_static(models.Net(), backend="eager")
    explanation = net.forward.explain(torch.ones(2, 4))
    assert [function.name for function in explanation.functions] == ["Net.forward", "Block.forward"]
    assert marks(explanation, "Net.forward")["x = layer(x)"] == "staged"
    block = marks(explanation, "Block.forward")
    assert block["if self.training:"] == "specialised"
    assert block["return x + self.rate * h"] == "staged"
    rate = next(each for each in explanation.specialised if each.what == "self.rate")
    assert (rate.values, rate.count) == (("0.5",), 3)


def test_a_bound_method_is_explained() -> None:
    explanation = explained(models.Block(4).forward, torch.ones(2, 4))
    assert explanation.name == "forward"
    assert marks(explanation, "Block.forward")["h = self.linear(x)"] == "staged"


def test_a_refused_call_is_explained() -> None:
    explanation = explained(models.reads_a_file, torch.ones(3))
    assert explanation.program is None
    assert explanation.refused.code == "SG305"
    assert explanation.refused.place.line == models.reads_a_file.__code__.co_firstlineno + 4
    assert "open" in explanation.refused.message
    found = marks(explanation, "reads_a_file")
    assert found['with open("weights.txt") as file:'] == "refused"
    assert found["for _ in range(2):"] == "evaluated"
    assert (found["y = x + 1"], found["y = y * 2"]) == ("staged", "staged")
    assert found["return y + float(file.read())"] == ""  # the capture did not get there
    assert str(explanation).startswith("reads_a_file: refused\n")


def refused_within(x: Any, scale: float) -> Any:
    y = x * scale
    if y > 1:
        return y
    return hash(y.item())


def calls_refused(x: Any, flag: Any) -> Any:
    width = 2
    if flag:
        x = x + width
    else:
        return x
    y = refused_within(x.sum(), 2.0)
    return y


def tells_lines(x: Any) -> Any:
    width = 2
    if x.sum() > 0:
        x = x + width
    return x


@pytest.mark.usefixtures("bytecode")
def test_what_bytecode_follows_is_marked() -> None:
    assert marks(explained(tells_lines, torch.ones(3)), "tells_lines") == {
        "def tells_lines(x: Any) -> Any:": "",
        "width = 2": "evaluated",
        "if x.sum() > 0:": "staged",
        "x = x + width": "staged",
        "return x": "evaluated",
    }


def test_a_refused_call_is_marked_as_far_as_the_capture_got() -> None:
    explanation = explained(calls_refused, torch.ones(3), torch.tensor(True))
    assert explanation.refused.code == "SG301"
    assert marks(explanation, "calls_refused") == {
        "def calls_refused(x: Any, flag: Any) -> Any:": "",
        "width = 2": "evaluated",
        "if flag:": "staged",
        "x = x + width": "staged",
        "else:": "",
        "return x": "staged",
        "y = refused_within(x.sum(), 2.0)": "refused",
        "return y": "",
    }
    assert marks(explanation, "refused_within") == {
        "def refused_within(x: Any, scale: float) -> Any:": "",
        "y = x * scale": "staged",
        "if y > 1:": "staged",
        "return y": "staged",
        "return hash(y.item())": "refused",
    }
    (caller, _) = explanation.functions
    said = {mark.kind: mark.why for line in caller.lines if line.mark == "refused" for mark in line.marks}
    last = refused_within.__code__.co_firstlineno + 4
    assert said == {
        "refused": f"calls what ended the capture at test_lines.py:{last} (SG301)",
        "staged": "operations, as far as the capture got; "
        "operations of functions called here, as far as the capture got",
    }


def test_a_refusal_of_what_is_returned_is_marked_at_its_line() -> None:
    def shown(x: Any) -> Any:
        return iter([x.sum()])

    explanation = explained(shown, torch.ones(3))
    assert explanation.refused.code == "SG306"
    assert [line.mark for line in explanation.functions[0].lines] == ["", "refused"]


def test_what_the_function_raises_is_no_refusal() -> None:
    def function(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        explained(function, torch.ones(3))


def test_lines_are_not_watched_while_a_debugger_traces() -> None:
    sys.settrace(lambda *args: None)
    try:
        explanation = explained(models.halve, torch.ones(3, 4), torch.tensor(1.0))
        assert sys.gettrace() is not None
    finally:
        sys.settrace(None)
    found = marks(explanation, "halve")
    assert found["steps = 0"] == ""
    assert found["x = x / scale"] == "staged"
    assert found["for i in range(3):"] == "evaluated"


def test_visits_are_shown_on_lines_and_boxes(halving: Any) -> None:
    from stillgraph.report.explain import explain

    visits = [1, 5, 4, 4, 0]
    explanation = explain(halving.program, visits=visits)
    assert [box.visits for box in explanation.boxes] == visits
    (function,) = explanation.functions
    taken = {line.text.strip(): line.visits for line in function.lines}
    by_role = {(box.construct, box.role): box.visits for box in explanation.boxes}
    assert taken["x = x.relu()"] == by_role["if", "then"]
    assert taken["x = x * 0.5"] == by_role["if", "else"]
    assert taken["steps = 0"] is None
    assert taken["while x.norm() > limit:"] == 1  # the loop as a whole


def test_what_an_earlier_round_of_a_loop_decided_is_not_told() -> None:
    def counted(x: Any) -> Any:
        n = 0
        while x.sum() > 1:
            x = x / 2
            n += 1
            if n > 50:
                break
        return x, n

    explanation = explained(counted, torch.ones(3))
    assert explanation.decisions == ()
    assert marks(explanation, explanation.functions[0].name)["if n > 50:"] == "staged"


def test_what_steers_the_program_is_staged() -> None:
    def steered(x: Any) -> Any:
        with torch.no_grad():
            scale = x.mean()
        while x.sum() > 1:
            x = x / 2
            if x.max() < 0.3:
                break
            if x.min() > 9:
                continue
            x = x + scale
        if x.sum() > 3:
            return x
        with contextlib.suppress(KeyError):
            x = x + 1
        return x - 1

    explanation = explained(steered, torch.ones(3))
    lines = {line.text.strip(): line for line in explanation.functions[0].lines}
    assert lines["with torch.no_grad():"].mark == "staged"
    assert "grad mode is off" in lines["with torch.no_grad():"].marks[0].why
    assert [lines[text].mark for text in ("break", "continue", "return x")] == ["staged"] * 3
    assert lines["with contextlib.suppress(KeyError):"].mark == "evaluated"


def test_unlike_results_are_marked_at_their_lines() -> None:
    def unlike(x: Any) -> Any:
        if x.sum() > 0:
            return x
        return [x, x]

    explanation = explained(unlike, torch.ones(3))
    found = marks(explanation, explanation.functions[0].name)
    assert found["return x"] == found["return [x, x]"] == "split"
    first = unlike.__code__.co_firstlineno
    here = f"test_lines.py:{first + 2} test_lines.py:{first + 3}"
    assert explanation.splits == (f"the result is another one on each path at {here} (SG603)",)


def test_a_refusal_has_its_sides() -> None:
    def unlike(x: Any) -> Any:
        y = x
        while y.sum() > 1:
            y = y[None]
        return y

    refused = explained(unlike, torch.ones(3)).refused
    assert refused is not None
    assert refused.sides
    assert all(side.place.line for side in refused.sides if side.place is not None)


def test_behind_a_decorator_of_torch_stands_the_users_function() -> None:
    @torch.no_grad()
    def decorated(x: Any, k: int) -> Any:
        return x * k

    explanation = explained(decorated, torch.ones(3), 4)
    assert str(explanation.place).startswith("test_lines.py:")
    assert [special.what for special in explanation.specialised] == ["k"]


def test_the_summary_counts_what_is_shown() -> None:
    explanation = explained(models.Block(4).forward, torch.ones(2, 4))
    shown = [o for box in explanation.boxes for o in box.operations if not o.construct]
    assert explanation.nodes == len(shown)
    assert "inputs: 1 argument, 2 parameters" in str(explanation)


CONFIG = {"deep": True, "wide": [1, 2]}


def test_conditions_on_metadata_modes_and_entries_are_specialised() -> None:
    def asking(x: Any) -> Any:
        if CONFIG["deep"]:
            x = x + 1
        if x.dtype == torch.float32:
            x = x * 2
        if x.dim() == 1:
            x = x + 2
        if torch.is_grad_enabled():
            x = x + 5
        return x

    explanation = explained(asking, torch.ones(2))
    found = marks(explanation, explanation.functions[0].name)
    conditions = [mark for text, mark in found.items() if text.startswith("if ")]
    assert conditions == ["specialised"] * 4
    assert [special.spelled for special in explanation.specialised] == [
        "CONFIG['deep'] = True",
        "x.dtype = torch.float32",
        "x.dim() = 1",
        "torch.is_grad_enabled",
    ]


def test_metadata_is_marked_wherever_it_is_read() -> None:
    def asking(x: Any, mask: Any) -> Any:
        width, rows = x.size(-1), len(x)
        kind = x.dtype
        flat = x.reshape(x.dim() - 1, -1)
        y = flat + 1 if isinstance(mask, torch.Tensor) else flat
        inner = isinstance(kind, torch.dtype)
        y = y.new_ones(2) * width if y.requires_grad else y.to(kind)
        return y, rows, inner

    explanation = explained(asking, torch.ones(2, 3), torch.ones(2))
    (function,) = explanation.functions
    kinds = {line.text.strip(): [mark.kind for mark in line.marks] for line in function.lines[1:]}
    assert kinds == {
        "width, rows = x.size(-1), len(x)": ["specialised", "evaluated"],
        "kind = x.dtype": ["specialised", "evaluated"],
        "flat = x.reshape(x.dim() - 1, -1)": ["staged", "specialised", "evaluated"],
        "y = flat + 1 if isinstance(mask, torch.Tensor) else flat": ["staged", "specialised", "evaluated"],
        "inner = isinstance(kind, torch.dtype)": ["evaluated"],  # no guard came of it
        "y = y.new_ones(2) * width if y.requires_grad else y.to(kind)": ["staged", "specialised", "evaluated"],
        "return y, rows, inner": ["evaluated"],
    }
    assert [special.spelled for special in explanation.specialised] == [
        "x.dtype = torch.float32",
        "x.dim() = 2",
        "y.requires_grad = False",
        "isinstance(mask, torch.Tensor)",
        "x.size(-1) = [2, 3]",
        "len(x) = [2, 3]",
    ]
    said = {mark.kind: mark.why for mark in function.lines[2].marks}
    assert said == {
        "specialised": "x.dtype is fixed in this program; where it differs, another is made (SG601)",
        "evaluated": "x.dtype is answered by Python during capture, and is torch.float32 (SG606)",
    }


def test_sizes_that_are_open_are_part_of_the_program() -> None:
    def rows(x: Any) -> Any:
        n = x.shape[0]
        k = x.dim()
        return x.sum() * n * k

    spec = [sg.InputSpec([None, 3])]
    explanation = sg.to_static(rows, backend="eager", input_spec=spec).explain(torch.ones(2, 3))
    kinds = {line.text.strip(): [mark.kind for mark in line.marks] for line in explanation.functions[0].lines}
    assert (kinds["n = x.shape[0]"], kinds["k = x.dim()"]) == (["staged"], ["specialised", "evaluated"])


def test_metadata_of_what_no_input_leads_to_is_no_specialisation() -> None:
    def alone() -> Any:
        x = torch.ones(2)
        return x if x.dtype == torch.float32 else None

    explanation = explained(alone)
    assert explanation.specialised == ()
    assert [mark.kind for mark in explanation.functions[0].lines[2].marks] == ["evaluated"]


def test_metadata_before_a_refusal_is_evaluated() -> None:
    def refused(x: Any) -> Any:
        k = x.dim()
        return hash(x.sum().item()) + k

    assert [mark.kind for mark in explained(refused, torch.ones(2)).functions[0].lines[1].marks] == ["evaluated"]


@sg.not_to_static
def left_alone(x: Any) -> Any:
    total = x
    for _ in range(2):
        total = total + x
    return total


def test_a_call_that_is_left_to_python_says_so() -> None:
    def calling(x: Any) -> Any:
        return left_alone(x) * 2

    explanation = explained(calling, torch.ones(2))
    said = {line.text.strip(): line.marks for function in explanation.functions for line in function.lines}
    assert [(mark.kind, mark.why) for mark in said["return left_alone(x) * 2"]] == [
        ("staged", "1 operation, 2 operations of functions called here"),
        ("evaluated", "left_alone runs as it is (SG605)"),
    ]
    as_it_is = "ran as it is, and left nothing in the program: the function is not rewritten (SG605)"
    assert [mark.why for mark in said["for _ in range(2):"]] == [as_it_is]
    assert "\n  left to Python: left_alone (SG605)\n" in str(explanation)


def test_reasons_that_lines_have_are_in_the_catalogue(halving: Any) -> None:
    told = {code for f in halving.functions for line in f.lines for m in line.marks for code in CODE.findall(m.why)}
    assert told == {"SG601", "SG604", "SG606"}
    assert told <= REASONS.keys()


def test_a_for_that_is_staged_is_not_told_as_unrolled() -> None:
    def over(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x + 1
        for _ in range(100):
            x = x * 2
        for row in (each for each in (x, x)):
            x = x + row
        return x

    explanation = explained(over, torch.ones(2), torch.tensor(3))
    assert explanation.decisions == ()
    assert [construct.kind for construct in explanation.staged] == ["while", "while"]
