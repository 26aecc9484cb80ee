"""Each pass on the smallest program it is about."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch._prims_common import is_contiguous_or_false
from torch.utils.checkpoint import checkpoint

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.exceptions.gating import gate_outputs
from stillgraph.passes.exceptions.printing import drop_printing, prints
from stillgraph.passes.exceptions.raising import lower_raising, raises
from stillgraph.passes.kernels.gradients import drop_gradients
from stillgraph.passes.kernels.layout import contiguous_branch_results
from stillgraph.passes.kernels.modes import settle_modes
from stillgraph.passes.lists.optionals import split_optionals
from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.passes.regions.operands import tidy_operands
from stillgraph.passes.regions.regions import Branch, Loop, all_regions, controls, outputs, results
from stillgraph.passes.regions.values import storage_of
from stillgraph.passes.state.aliases import separate_aliases
from stillgraph.passes.state.growing import growing_loop, hide_growth
from stillgraph.passes.state.mutation import lift_mutation
from stillgraph.program.operations import EFFECTFUL, checkpointed, closed_over, hooked_inputs, module_hooks
from stillgraph.program.verify import verify
from tests.unit.passes.captured import run

X, P = torch.tensor([1.0, 2.0]), torch.tensor(True)


def targets(program: sg.Program) -> list[object]:
    return [node.target for module in all_regions(program.graph) for node in module.graph.nodes]


# ---- gradients
def test_checkpoints_are_inlined_and_hooks_dropped() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, given, sent: None)

    def watched(x: Tensor) -> Tensor:
        y = layer(x)
        scale = y.detach().sum()
        handle = y.register_hook(lambda gradient: gradient * scale)

        def block(v: Tensor) -> Tensor:
            inner = checkpoint(lambda u: u * 2 if u.sum() > 0 else u - y, v, use_reentrant=False)
            return inner + v

        result = checkpoint(block, y, use_reentrant=True)
        if result.sum() > 5:
            handle.remove()
        return result

    program = sg.export(watched, (X,))
    about_gradients = {checkpointed, closed_over, hooked_inputs, module_hooks, "register_hook", "remove"}
    assert about_gradients <= set(targets(program))
    dropped = drop_gradients(program)
    verify(dropped)
    assert not about_gradients & set(targets(dropped))
    for x in (X, -X, X * 10):
        torch.testing.assert_close(run(dropped, (x,))[0], watched(x).detach())


@pytest.mark.parametrize(
    "differentiating",
    [
        lambda x: torch.autograd.grad((x * x).sum(), x)[0],
        lambda x: (x * x).sum().backward(),
        lambda x: torch.autograd.backward([(x * x).sum()]),
    ],
)
def test_a_program_that_differentiates_is_no_whole_graph(differentiating: object) -> None:
    program = sg.export(differentiating, (X.clone().requires_grad_(),))
    with pytest.raises(ExportError, match="the program differentiates"):
        pipeline.run(program)


# ---- printing and dead code
def printing(x: Tensor) -> Tensor:
    if x.sum() > 0:
        print("positive", x)
    return x


def test_printing_is_dropped() -> None:
    program = sg.export(printing, (X,))
    assert prints(program)
    assert not prints(drop_printing(program))


def test_what_nobody_uses_is_dropped() -> None:
    program = drop_dead_code(drop_printing(sg.export(printing, (X,))))
    assert [node.op for node in program.graph.graph.nodes] == ["placeholder", "output"]


def test_random_numbers_nobody_uses_are_drawn_all_the_same() -> None:
    def drawing(x: Tensor) -> Tensor:
        torch.rand(2)
        return x + torch.rand(2)

    assert targets(drop_dead_code(sg.export(drawing, (X,)))).count(torch.rand) == 2


# ---- exceptions
def raising(x: Tensor) -> Tensor:
    if x.sum() > 10:
        raise ValueError("too large")
    while x.sum() < 5:
        x = x * 2
        assert x.max() > 0, "not positive"
    return x


def test_an_exception_becomes_an_assertion_at_the_top() -> None:
    program = sg.export(raising, (X,))
    lowered = lower_raising(drop_printing(program))
    verify(lowered)
    assert raises(program)
    assert not set(targets(lowered)) & EFFECTFUL
    torch.testing.assert_close(run(lowered, (X,))[0], raising(X))
    with pytest.raises(RuntimeError, match="ValueError: too large"):
        run(lowered, (X * 9,))
    with pytest.raises(RuntimeError, match="AssertionError: not positive"):
        run(lowered, (-X,))


def test_the_first_of_two_exceptions_wins() -> None:
    def twice(x: Tensor) -> Tensor:
        if x.sum() > 0:
            if x.max() > 1:
                raise ValueError("first")
            if x.max() > 0:
                raise KeyError("second")
        return x

    lowered = lower_raising(sg.export(twice, (X,)))
    with pytest.raises(RuntimeError, match="first"):
        run(lowered, (X,))
    with pytest.raises(RuntimeError, match="second"):
        run(lowered, (X / 2,))


def test_gates_stand_for_assertions() -> None:
    lowered = pipeline.run(sg.export(raising, (X,)))
    gate_outputs(lowered.graph)
    verify(lowered)
    assert torch._assert_async not in targets(lowered)
    torch.testing.assert_close(run(lowered, (X,))[0], raising(X))
    with pytest.raises(IndexError):
        run(lowered, (X * 9,))


# ---- places that may be empty
def test_none_becomes_a_flag() -> None:
    def last(x: Tensor, p: Tensor) -> Tensor:
        found = None
        if p:
            found = x * 2
        return x if found is None else found

    program = split_optionals(sg.export(last, (X, P)))
    verify(program)
    assert all(value is not None for module in all_regions(program.graph) for value in outputs(module))
    torch.testing.assert_close(run(program, (X, P))[0], X * 2)
    torch.testing.assert_close(run(program, (X, ~P))[0], X)


def test_a_result_that_may_be_none_is_asserted_to_be_there() -> None:
    def maybe(x: Tensor, p: Tensor) -> Tensor | None:
        found = None
        if p:
            found = x * 2
        return found

    lowered = pipeline.run(sg.export(maybe, (X, P)))
    torch.testing.assert_close(run(lowered, (X, P))[0], X * 2)
    with pytest.raises(RuntimeError, match="None"):
        run(lowered, (X, ~P))


def test_a_value_that_is_used_is_asserted_to_be_there() -> None:
    def added(x: Tensor, p: Tensor) -> Tensor:
        found = None
        if p:
            found = x * 2
        return found + 1  # type: ignore[operator]  # what is shown

    def added_in_a_loop(x: Tensor, p: Tensor) -> Tensor:
        found = None
        while x.sum() < 100:
            x = x + 1
            if x.sum() > 50:
                x = x + found
            if p:
                found = x
        return x

    for function in (added, added_in_a_loop):
        lowered = pipeline.run(sg.export(function, (X, P)))
        torch.testing.assert_close(run(lowered, (X, P))[0], function(X, P))
        with pytest.raises(RuntimeError, match="used where it is None"):
            run(lowered, (X, ~P))


def test_a_value_that_was_looked_at_is_not_asserted_to_be_there() -> None:
    def looked(x: Tensor, p: Tensor) -> Tensor:
        found = None
        if p:
            found = x * 2
        if found is not None:
            x = x + found
        return x if found is None else found - x

    assert torch._assert_async not in targets(pipeline.run(sg.export(looked, (X, P))))


# ---- writes in place
def test_writes_in_place_become_results() -> None:
    def count(x: Tensor, p: Tensor) -> Tensor:
        total = torch.zeros(2)
        if p:
            total.add_(x)
        else:
            total[1] = 7
        for row in x:
            total *= row
        return total

    program = lift_mutation(sg.export(count, (X, P)))
    verify(program)
    for module in all_regions(program.graph):
        for control in controls(module):
            assert control.regions  # what they write in place is their own copy
    for p in (P, ~P):
        torch.testing.assert_close(run(program, (X, p))[0], count(X, p))


def test_two_views_of_one_memory_are_refused() -> None:
    def views(x: Tensor, p: Tensor) -> Tensor:
        base = x * 2
        part = base[:1]
        if p:
            part += 1
            base = base + part
        return base

    with pytest.raises(ExportError, match="another view of its memory"):
        lift_mutation(sg.export(views, (X, P)))


# ---- operands and results
def test_results_do_not_share_memory_with_operands() -> None:
    def same(x: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x, x
        if p:
            a, b = x.view(2), x[:1]
        return a, b

    program = separate_aliases(sg.export(same, (X, P)))
    for control in controls(program.graph):
        assert isinstance(control, Branch)
        for arm in control.arms:
            assert all(node.target == "clone" for node in outputs(arm))
    torch.testing.assert_close(run(program, (X, P)), [X, X[:1]])


def test_operands_share_no_memory_with_one_another() -> None:
    def routed(x: Tensor, p: Tensor) -> Tensor:
        rows, columns = x.outer(x).nonzero(as_tuple=True)
        total = torch.zeros(3)
        if p:
            total += x[rows].sum() * columns.sum()
        return total

    lowered = pipeline.run(sg.export(routed, (X, P)))
    (branch,) = controls(lowered.graph)
    storages = [storage_of(operand.meta["val"]) for operand in branch.operands]
    assert len(set(storages)) == len(storages)
    for p in (P, ~P):
        torch.testing.assert_close(run(lowered, (X, p)), [routed(X, p)])


def test_operands_are_handed_over_once() -> None:
    def counting(codes: Tensor, p: Tensor) -> Tensor:
        code = codes[0]
        if p:
            return codes * code * int(code)
        return codes

    lowered = pipeline.run(sg.export(counting, (torch.tensor([3, 4]), P)))
    for control in controls(lowered.graph):
        assert len(set(control.operands)) == len(control.operands)
    assert tidy_operands(lowered) is not lowered


def test_nothing_is_handed_out_that_nobody_uses() -> None:
    def optional(x: Tensor, p: Tensor) -> Tensor:
        if p:
            scale, shift, unused = x.sum(), None, x * 2
        else:
            scale, shift, unused = x.mean(), x + 1, x * 3
        again = unused if shift is None else None
        return x * scale if again is None else x * scale + 1

    lowered = pipeline.run(sg.export(optional, (X, P)))
    for control in controls(lowered.graph):
        assert all(control.node.meta["val"][index] is not None for index in results(control.node))
        assert len(results(control.node)) == len(control.node.meta["val"])
    for p in (P, ~P):
        torch.testing.assert_close(run(lowered, (X, p)), [optional(X, p)])


def test_results_of_unknown_size_are_contiguous() -> None:
    def joined(x: Tensor, p: Tensor) -> Tensor:
        if p:
            y = torch.cat([x, x], dim=1).t()
        else:
            y = x.t()
        return y * 2

    x = torch.ones(2, 3)
    program = contiguous_branch_results(sg.export(joined, (x, P)))
    verify(program)
    (control,) = controls(program.graph)
    assert isinstance(control, Branch)
    assert all(is_contiguous_or_false(node.meta["val"]) for arm in control.arms for node in outputs(arm))
    torch.testing.assert_close(run(program, (x, P))[0], torch.full((6, 2), 2.0))


# ---- growth
def growing(x: Tensor, p: Tensor) -> tuple[Tensor, int]:
    while x.sum() < 20:
        x = torch.cat([x, x[-1:] + 1])
    return x, x.shape[0]


def test_growth_is_hidden_from_shape_inference() -> None:
    program = sg.export(growing, (X, P))
    hidden = hide_growth(pipeline.run(program))
    verify(hidden)
    assert growing_loop(program) is not None
    assert growing_loop(hidden) is None
    (control,) = controls(hidden.graph)
    assert isinstance(control, Loop)
    want = growing(X, P)
    torch.testing.assert_close(run(hidden, (X, P)), [want[0], want[1]])


# ---- modes
def test_autocast_becomes_casts() -> None:
    def mixed(x: Tensor, p: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y.float() + x

    x = torch.randn(4, 4)
    program = settle_modes(sg.export(mixed, (x, P)))
    for node in program.graph.graph.nodes:
        node.meta.pop("context", None)  # the graph alone says it
    torch.testing.assert_close(run(program, (x, P))[0], mixed(x, P))
