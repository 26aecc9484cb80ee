"""Coverage: what was gone through how often, over programs, calls and static functions."""

from __future__ import annotations

import gc
import json
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import stillgraph as sg
from stillgraph.report.coverage import coverage
from stillgraph.runtime.calls.whole import compile_whole
from stillgraph.runtime.native.native import lower


def halve(x: Tensor, limit: Tensor) -> Tensor:
    while x.norm() > limit:
        x = x / 2
    if x.sum() > 0:
        x = x + 1
    else:
        x = x - 1
    return x


FIRST = halve.__code__.co_firstlineno


def lines(of: Any) -> list[str]:
    return [line.strip().partition(":")[2] for line in str(of).splitlines()[1:]]


def test_arms_and_loops_are_counted() -> None:
    static = sg.to_static(halve, backend="eager")
    assert lines(static.coverage()) == []
    static(torch.ones(4), torch.tensor(9.0))
    assert lines(static.coverage()) == [
        f"{FIRST + 1} while: reached 1×, never entered",
        f"{FIRST + 3} if: then 1×, else never",
    ]
    assert [c.missed for c in static.coverage().missed] == [("body",), ("else",)]
    static(torch.full((4,), 4.0), torch.tensor(1.0))
    static(-torch.ones(4), torch.tensor(9.0))
    coverage = static.coverage()
    assert str(coverage).splitlines()[0] == "halve: 3 of 3 arms taken, in 1 program"
    assert lines(coverage) == [
        f"{FIRST + 1} while: reached 3×, body 3×",
        f"{FIRST + 3} if: then 2×, else 1×",
    ]
    assert coverage.missed == ()


def test_reset_counts_from_zero() -> None:
    static = sg.to_static(halve, backend="eager")
    static(torch.ones(4), torch.tensor(9.0))
    assert static.coverage(reset=True).counts == (1, 3)
    assert static.coverage().counts == (0, 3)
    assert lines(static.coverage())[0] == f"{FIRST + 1} while: never reached"


def test_programs_and_inlined_calls_of_one_line_are_one_construct() -> None:
    def twice(x: Tensor, limit: Tensor) -> Tensor:
        return halve(halve(x, limit), limit)

    static = sg.to_static(twice, backend="eager")
    for size in (2, 3):
        static(torch.ones(size), torch.tensor(9.0))
    coverage = static.coverage()
    assert coverage.programs == 2
    assert [(c.kind, c.places) for c in coverage.constructs] == [("while", 4), ("if", 4)]
    assert lines(coverage)[1] == f"{FIRST + 3} if: then 4×, else never"


def test_a_region_that_a_backend_compiles_is_counted_too() -> None:
    static = sg.to_static(halve, backend=lambda module, inputs: module.forward)
    static(torch.ones(4), torch.tensor(9.0))
    assert static.coverage().counts == (1, 3)


def signed(x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x - 1


def test_a_whole_graph_does_not_count() -> None:
    with torch.no_grad():
        program = sg.export(signed, (torch.ones(4),))
        native = lower(program, None).run
        whole: Any = compile_whole(program, lambda module, inputs: module.forward, native)
        whole(torch.ones(4))
        assert whole.visits is None
        failing: Any = compile_whole(program, lambda module, inputs: 1 / 0, native)
        failing(torch.ones(4))
        assert failing.visits == [1, 1, 0]  # the native driver has taken over
    (construct,) = coverage("signed", [(program, None)]).constructs
    assert str(construct).partition(" ")[2] == "if: then not counted, else not counted"
    assert coverage("signed", [(program, None)]).counts == (0, 0)
    assert coverage("signed", [(program, None), (program, [1, 1, 0])]).counts == (1, 2)


def test_tries_recursions_and_checkpoints() -> None:
    def tried(x: Tensor) -> Tensor:
        try:
            if x.sum() < 0:
                raise ValueError
        except ValueError:
            x = -x
        return x

    def factorial(n: Tensor) -> Tensor:
        return n * factorial(n - 1) if n > 1 else torch.ones(())

    def again(x: Tensor) -> Tensor:
        return checkpoint(torch.sin, x, use_reentrant=False)  # type: ignore[no-any-return]

    static = sg.to_static(tried, backend="eager")
    static(torch.ones(2))
    static(-torch.ones(2))
    (construct,) = (c for c in static.coverage().constructs if c.kind == "try")
    assert {arm.role: arm.count for arm in construct.arms} == {"body": 2, "except": 1}

    recursive = sg.to_static(factorial, backend="eager")
    recursive(torch.tensor(4.0))
    counts = {c.kind: {arm.role: arm.count for arm in c.arms} for c in recursive.coverage().constructs}
    assert counts["recursion"]["body"] == 4

    checkpointed = sg.to_static(again, backend="eager")
    checkpointed(torch.ones(2, requires_grad=True)).sum().backward()
    assert [str(c).partition(" ")[2] for c in checkpointed.coverage().constructs] == ["checkpoint: body 1×"]


def lonely(x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x - 1


def in_segments(x: Tensor) -> Tensor:
    y = x + 1 if x.sum() > 0 else x - 1
    print("between")
    return y + 1 if y.sum() > 0 else y - 1


def test_of_segments() -> None:
    static = sg.to_static(in_segments, full_graph=False, strict=True, backend="eager")
    for x in (torch.ones(4), torch.ones(4), -torch.ones(4)):
        torch.testing.assert_close(static(x), in_segments(x))
    first = in_segments.__code__.co_firstlineno + 1

    def arms(coverage: Any) -> list[tuple[int, Any, int]]:
        found = coverage.to_dict()["constructs"]
        return [(c["line"] - first, c["arms"], c["places"]) for c in found if c["line"] in (first, first + 2)]

    wanted = {"then": 2, "else": 1}
    assert arms(static.coverage()) == arms(sg.coverage()) == [(0, wanted, 1), (2, wanted, 1)]
    static.coverage(reset=True)
    assert [each[1] for each in arms(sg.coverage())] == [{"then": 0, "else": 0}] * 2


def test_the_process() -> None:
    one, other = sg.to_static(lonely, backend="eager"), sg.to_static(lonely, backend="eager")
    for static in (one, other):
        static(torch.ones(4))

    def found() -> list[dict[str, Any]]:
        constructs = json.loads(json.dumps(sg.coverage().to_dict()))["constructs"]
        return [c for c in constructs if (c["file"], c["line"]) == (__file__, lonely.__code__.co_firstlineno + 1)]

    assert [(c["arms"], c["places"]) for c in found()] == [({"then": 2, "else": 0}, 2)]
    sg.coverage(reset=True)
    assert [(c["arms"], c["places"]) for c in found()] == [({"then": 0, "else": 0}, 2)]
    del one, other, static
    gc.collect()
    assert found() == []


def octant(x: Tensor) -> Tensor:
    if x[0] > 0 and x[1] > 0 and x[2] > 0:
        return x + 1
    return x - 1


def test_operands_of_one_line_are_apart() -> None:
    static = sg.to_static(octant, backend="eager")
    static(torch.tensor([1.0, 1.0, 1.0]))
    static(torch.tensor([-1.0, 1.0, 1.0]))
    line = octant.__code__.co_firstlineno + 1
    assert lines(static.coverage()) == [
        f"{line} if: then 1×, else 1×",
        f"{line} if (operand 1 of 'and'): then 1×, else 1×",
        f"{line} if (operand 2 of 'and'): then 1×, else never",
    ]
    assert [(c.written, c.missed) for c in static.coverage().missed] == [("and 2", ("else",))]
    assert static.coverage().to_dict()["constructs"][1]["written"] == "and 1"


def either(x: Tensor) -> Tensor:
    return (x + 1 if x[0] > 0 else x - 1) + (x * 2 if x[0] > 1 or x[1] > 1 else x * 3)


def test_expressions_of_one_line_are_apart() -> None:
    static = sg.to_static(either, backend="eager")
    static(torch.tensor([1.5, 0.0]))
    assert [(c.written, c.missed) for c in static.coverage().constructs] == [
        ("if expression", ("else",)),
        ("if expression", ("else",)),
        ("or 1", ("else",)),
    ]


def leaving(x: Tensor) -> Tensor:
    while x.sum() > 1:
        x = x / 2
        if x.max() < 0.3:
            break
        if x.min() > 9:
            continue
        x = x + 0.01
    else:
        x = x * 5
    if x.sum() > 3:
        if x.max() > 2:
            return x
        x = x * 2
    return x + 1


def test_what_follows_a_break_or_return_is_no_construct_of_the_users() -> None:
    static = sg.to_static(leaving, backend="eager")
    static(torch.ones(3))
    first = leaving.__code__.co_firstlineno
    expected = [("while", first + 1), ("if", first + 3), ("if", first + 5), ("if", first + 10), ("if", first + 11)]
    coverage = static.coverage()
    assert [(c.kind, c.location and c.location.line) for c in coverage.constructs] == expected
    assert coverage.counts == (5, 9)
    explanation = static.explain(torch.ones(3))
    assert [(c.kind, c.line) for c in explanation.staged] == expected
    marked = {line.text.strip(): line.marks for f in explanation.functions for line in f.lines}
    assert "'if'" not in marked["while x.sum() > 1:"][0].why
    invented = [o for box in explanation.boxes for o in box.operations if o.construct and not o.written]
    assert {o.construct for o in invented} == {"if"}


def test_what_is_not_counted_says_how_to_count_it() -> None:
    program = sg.export(signed, (torch.ones(4),))
    assert str(coverage("signed", [(program, None)])).endswith('use backend="eager" to count)')
    assert "backend=" not in str(coverage("signed", [(program, [1, 1, 0])]))
