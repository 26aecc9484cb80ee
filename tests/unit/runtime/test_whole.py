"""The whole-graph lowering at run time: one compiled graph gives what the native driver gives, or the driver runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx

import stillgraph as sg
from stillgraph.runtime.calls.whole import compile_whole
from stillgraph.runtime.native.backends import resolve_backend
from stillgraph.runtime.native.native import lower
from tests.unit.runtime.test_backends import needs_compiler


def halve(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def announce(x: Tensor) -> Tensor:
    if x.sum() > 0:
        print("positive")
    return x + 1


class Graphs:
    """A compiler that keeps what it was given and runs it as it is."""

    def __init__(self, fails: bool = False) -> None:
        self.modules: list[fx.GraphModule] = []
        self.fails = fails

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Any:
        self.modules.append(module)
        if self.fails:
            raise RuntimeError("no code for this")
        return module.forward


def test_a_loop_is_one_graph_and_numbers_come_back_as_numbers() -> None:
    x, limit = torch.full((4,), 10.0), torch.tensor(1.0)
    with torch.no_grad():
        program = sg.export(halve, (x, limit))
        compiler = Graphs()
        run = compile_whole(program, compiler, lower(program, None).run)
        for start in (x, 100 * x, x / 100):
            value, steps = run(start, limit)
            expected, count = halve(start, limit)
            torch.testing.assert_close(value, expected)
            assert (steps, type(steps)) == (count, int)
    assert len(compiler.modules) == 1
    targets = [node.target for node in compiler.modules[0].graph.nodes]
    assert torch.ops.higher_order.while_loop in targets


def decayed(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, int, int]:
    steps = 0
    first = x[:1]
    while x.norm() > 1:
        x = torch.tanh(x @ w) * 0.25 + x.mean(0) * 0.1
        steps += 1
        if steps > 3:
            x = torch.cat([x[1:], first]) * 0.5
    return x.sum(-1), x, steps, x.shape[0]


@pytest.mark.slow
@needs_compiler
def test_open_sizes_are_open_to_the_compiler() -> None:
    static = sg.to_static(decayed, backend="inductor", dynamic=True)
    w = torch.randn(4, 4)
    with torch.no_grad():
        for rows in (5, 9, 64, 2, 33, 1, 5):
            x = torch.randn(rows, 4) * 9
            torch.testing.assert_close(static(x, w), decayed(x, w))
        assert static.cache_info().programs == 2  # one row is a size of its own
        program = static.programs[0]
        native = lower(program, None).run
        run: Any = compile_whole(program, resolve_backend("inductor"), native)
        for rows in (5, 9, 64, 2):
            x = torch.randn(rows, 4) * 9
            torch.testing.assert_close(tuple(run(x, w)), tuple(native(x, w)))
        assert run._run is not native


def test_with_gradients_the_native_driver_runs() -> None:
    program = sg.export(halve, (torch.ones(4), torch.tensor(1.0)))
    native = lower(program, None).run
    assert compile_whole(program, Graphs(), native) is native


def test_a_program_that_prints_runs_natively() -> None:
    with torch.no_grad():
        program = sg.export(announce, (torch.ones(2),))
    native = lower(program, None).run
    assert compile_whole(program, Graphs(), native) is native


def test_a_compiler_that_fails_leaves_the_native_driver() -> None:
    x, limit = torch.full((4,), 10.0), torch.tensor(1.0)
    with torch.no_grad():
        program = sg.export(halve, (x, limit))
        compiler = Graphs(fails=True)
        run = compile_whole(program, compiler, lower(program, None).run)
        for _ in range(2):
            assert run(x, limit)[1] == halve(x, limit)[1]
    assert len(compiler.modules) == 1


def looked_up(table: Tensor, i: Tensor) -> Tensor:
    if table.sum() > 0:
        return torch.embedding(table.cos(), i)
    return -table[0]


class Failing(Graphs):
    """A compiler whose code runs once."""

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Any:
        calls = itertools.count()
        forward = super().__call__(module, inputs)

        def run(*given: Any) -> Any:
            if next(calls) > 0:
                raise RuntimeError("a fault of the compiled code's")
            return forward(*given)

        return run


def test_where_a_compiled_graph_raises_the_native_driver_runs() -> None:
    table, rows = torch.rand(4, 2), [torch.tensor(i) for i in (1, 2, 9)]
    with torch.no_grad():
        program = sg.export(looked_up, (table, rows[0]))
        natively: list[Any] = []

        def native(*inputs: Any) -> Any:
            natively.append(inputs)
            return lower(program, None).run(*inputs)

        run = compile_whole(program, Failing(), native)
        for row in rows[:2]:
            torch.testing.assert_close(run(table, row)[0], looked_up(table, row))
        assert len(natively) == 1
        with pytest.raises(IndexError, match="out of range") as caught:
            run(table, rows[2])
    files = [entry.frame.code.raw.co_filename for entry in caught.traceback]
    assert any(file.startswith("<stillgraph looked_up") for file in files)
    assert caught.value.__context__ is None


# ---- results that share memory with what was given, or with each other
def one_arm_gives_it_back(x: Tensor) -> Any:
    return x if x.sum() > 0 else -x


def one_arm_gives_a_view(x: Tensor) -> Any:
    if x.sum() > 0:
        return x[1:]
    return -x[1:]


def changed_on_one_path(x: Tensor) -> Any:
    if x.sum() > 0:
        x = x * 2
    return x[1:]


def until_small(x: Tensor) -> Any:
    while x.norm() > 1:
        x = x / 2
    return x


def a_view_until_small(x: Tensor) -> Any:
    y = x[1:]
    while y.norm() > 1:
        y = y / 2
    return y, x + 1


def known_times(x: Tensor) -> Any:
    for _ in range(100):
        x = torch.tanh(x)
    return x


def sometimes_changed_inside(x: Tensor) -> Any:
    n = 0
    while n < x.sum():
        if x[0] > 1.5:
            x = x / 2
        n += 5
    return x


def handed_on(x: Tensor) -> Any:
    y = x * 2
    while x.norm() > 1:
        x, y = x / 4, x
    return y


def two_names(x: Tensor) -> Any:
    y = x
    while x.norm() > 1:
        x = x / 2
        y = x
    return x, y


def made_of_one(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x + 1
        z = y[1:]
    else:
        y = x - 1
        z = x[1:] * 2
    return y, z


def computed(x: Tensor) -> Any:
    while x.norm() > 1:
        x = x / 2
    y = x if x.sum() > 0 else -x
    return y + 1, y * 2


SHARING: dict[str, tuple[Callable[[Tensor], Any], bool]] = {  # and whether it is compiled as one graph
    "an arm gives an argument back": (one_arm_gives_it_back, False),
    "an arm gives a view": (one_arm_gives_a_view, False),
    "an argument changed on one path": (changed_on_one_path, False),
    "a loop that may not iterate": (until_small, True),
    "a loop from a view": (a_view_until_small, True),
    "a loop that iterates": (known_times, True),
    "a loop that may leave what it was given": (sometimes_changed_inside, False),
    "a loop that hands on": (handed_on, False),
    "one tensor by two names": (two_names, False),
    "one result looks into another": (made_of_one, False),
    "results that are computed": (computed, True),
}


@pytest.mark.parametrize("name", SHARING)
def test_results_share_memory_as_in_eager_pytorch(name: str) -> None:
    function, whole = SHARING[name]
    start = torch.tensor([1.0, 2.0, 3.0])
    with torch.no_grad():
        program = sg.export(function, (start,))
        native, compiler = lower(program, None).run, Graphs()
        run = compile_whole(program, compiler, native)
        assert (run is not native) is whole
        for x in (start, -start, start / 100, start):
            expected = torch.utils._pytree.tree_leaves(function(x))
            actual = run(x)
            torch.testing.assert_close([*actual], expected)
            assert _shared([x, *actual]) == _shared([x, *expected])
            assert [a is x for a in actual] == [e is x for e in expected]


def _shared(tensors: list[Tensor]) -> list[bool]:
    pairs = itertools.combinations(tensors, 2)
    return [a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for a, b in pairs]


def test_what_draws_is_not_run_a_second_time() -> None:
    def noisy(x: Tensor) -> tuple[Tensor, Tensor]:
        noise = torch.rand(3)
        while x.norm() > 1:
            x = x / 2
        return x, noise

    with torch.no_grad():
        program = sg.export(noisy, (torch.ones(3),))
    native = lower(program, None).run
    assert compile_whole(program, Graphs(), native) is native


def test_a_number_of_two_types_is_the_native_drivers() -> None:
    def mixed(x: Tensor) -> Any:
        n = 1
        if x.sum() > 0:
            n = 2.5
        return x * 2, n

    with torch.no_grad():
        program = sg.export(mixed, (torch.ones(2),))

    def native(*inputs: Any) -> Any:
        return inputs

    assert compile_whole(program, lambda graph, inputs: graph, native) is native
