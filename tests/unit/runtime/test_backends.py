from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch._dynamo.source import ConstantSource
from torch._inductor.compile_fx import compile_fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import stillgraph as sg
from stillgraph.runtime.native import backends, variants
from stillgraph.runtime.native.backends import resolve_backend
from tests.unit.runtime.programs import graph_of

needs_compiler = pytest.mark.skipif(not backends._has_cpp_compiler(), reason="no C++ compiler")


def noise(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(3) + torch.randn_like(x) + torch.randint(0, 5, (3,))


def dropped_out(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.dropout(x * 2, 0.5).exp()


def dropped_out_in_a_checkpoint(x: torch.Tensor) -> torch.Tensor:
    return torch.utils.checkpoint.checkpoint(dropped_out, x.sin(), use_reentrant=False)


def of_random_depth(x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        if torch.rand(()) < 0.5:
            x = nn.functional.dropout(x.sin() * 2, 0.5) + 1
    return x


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("function", [noise, dropped_out, dropped_out_in_a_checkpoint, of_random_depth])
def test_inductor_draws_what_eager_draws(function: Any) -> None:
    def drawn(target: Any) -> list[torch.Tensor]:
        torch.manual_seed(3)
        found = []
        for _ in range(3):
            x = torch.arange(3.0).requires_grad_()
            result = target(x)
            result.sum().backward()
            found += [result.detach(), x.grad]
        return [*found, torch.get_rng_state().float()]

    static = sg.to_static(function, backend="inductor")
    static(torch.ones(3))
    torch.testing.assert_close(drawn(static), drawn(function))


@needs_compiler
@pytest.mark.slow
def test_inductors_own_generator() -> None:
    static = sg.to_static(dropped_out, backend=compile_fx)
    assert static(torch.ones(3)).shape == (3,)


class Recording:
    """A backend that keeps what it was given."""

    def __init__(self, wrong: bool = False) -> None:
        self.graphs: list[fx.GraphModule] = []
        self.examples: list[list[Any]] = []
        self.ran = 0

    def __call__(self, graph_module: fx.GraphModule, examples: list[Any]) -> Any:
        self.graphs.append(graph_module)
        self.examples.append(list(examples))

        def run(*inputs: Any) -> Any:
            self.ran += 1
            return graph_module(*inputs)

        return run


def opened(graph: fx.GraphModule, *tensors: torch.Tensor) -> fx.GraphModule:
    """A graph of which the capture knows no first size of a tensor, and no whole number behind the tensors."""
    mode = FakeTensorMode(shape_env=ShapeEnv(specialize_zero_one=False, duck_shape=False))
    symbols = mode.shape_env
    assert symbols is not None
    placeholders = graph.graph.find_nodes(op="placeholder")
    for node, tensor in zip(placeholders, tensors):
        sizes = [DimDynamic.DYNAMIC, *[DimDynamic.STATIC] * (tensor.dim() - 1)]
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        node.meta["val"] = mode.from_tensor(tensor, symbolic_context=context)
    for node in placeholders[len(tensors) :]:
        node.meta["val"] = symbols.create_unbacked_symint()
    return graph


# ---- which backend
def test_eager_runs_the_graph_itself_and_imports_no_compiler() -> None:
    graph = graph_of(lambda x: (x + 1,), 1)
    assert resolve_backend("eager")(graph, []) == graph.forward
    script = (
        "import sys; from stillgraph.runtime.calls.static_function import resolve_backend;"
        "resolve_backend('eager'); resolve_backend('inductor');"
        "print([m for m in sys.modules if m.startswith(('torch._dynamo', 'torch._inductor'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_are_those_of_torch_compile() -> None:
    with pytest.raises(ValueError, match=r"no backend is named 'indcutor'; did you mean 'inductor'"):
        resolve_backend("indcutor")
    with pytest.raises(ValueError, match=r"no backend is named 'zzz'; there are 'eager', .*'inductor'"):
        resolve_backend("zzz")
    with pytest.raises(TypeError, match="not int"):
        resolve_backend(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["eager", Recording(), "aot_eager"], ids=["eager", "recording", "aot_eager"])
def test_a_graph_that_returns_no_tuple(backend: Any) -> None:
    graph = graph_of(lambda x: x + 1, 1)
    (found,) = resolve_backend(backend)(graph, [torch.ones(2)])(torch.ones(2))
    assert torch.equal(found, torch.full((2,), 2.0))


def test_a_backend_that_returns_no_tuple() -> None:
    region = resolve_backend(lambda graph, examples: lambda x: x + 1)(graph_of(lambda x: (x + 1,), 1), [torch.ones(2)])
    assert torch.equal(region(torch.ones(2))[0], torch.full((2,), 2.0))


# ---- compiling
def test_compilation_waits_for_the_first_call_and_happens_once() -> None:
    backend = Recording()
    region = resolve_backend(backend)(graph_of(lambda x: (x + 1,), 1), [torch.ones(2)])
    assert backend.graphs == []
    threads = [threading.Thread(target=lambda: region(torch.ones(2))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(backend.graphs), backend.ran) == (1, 4)


def test_a_compiler_gets_fake_tensors_and_a_graph_of_its_own() -> None:
    backend = Recording()
    graph = graph_of(lambda x: (x + 1,), 1)
    graph.region = graph_of(lambda x: (x + 2,), 1)
    region = resolve_backend(backend)(graph, [torch.ones(2, requires_grad=True)])
    region(torch.ones(2, requires_grad=True))
    (example,) = backend.examples[0]
    assert isinstance(example, FakeTensor)
    assert example.requires_grad
    given = backend.graphs[0]
    assert given.graph is not graph.graph
    assert given.region.graph is not graph.region.graph
    assert given.code == graph.code


def test_a_failing_compiler_fails_the_call() -> None:
    def fail(graph: Any, examples: Any) -> Any:
        raise LookupError("cannot compile")

    region = resolve_backend(fail)(graph_of(lambda x: (x,), 1), [torch.ones(2)])
    with pytest.raises(LookupError, match="cannot compile"):
        region(torch.ones(2))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=needs_compiler)])
def test_gradients_of_parameters(backend: str) -> None:
    def layer(x: Any, w: Any, b: Any) -> Any:
        return (nn.functional.linear(x, w, b).relu().sum(),)

    graph = graph_of(layer, 3)
    w, b, x = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(3)), torch.randn(5, 4)
    region = resolve_backend(backend)(graph, [x, w, b])
    for _ in range(2):
        found = torch.autograd.grad(region(x, w, b)[0], [w, b])
        torch.testing.assert_close(found, torch.autograd.grad(layer(x, w, b)[0], [w, b]))
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            (found_sum,) = resolve_backend(backend)(graph, [x, w, b])(x, w, b)
            assert not found_sum.requires_grad
            torch.testing.assert_close(found_sum, layer(x, w, b)[0])


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=needs_compiler)])
def test_open_sizes_and_numbers(backend: str) -> None:
    def work(x: Any, n: Any) -> Any:
        return x.view(n, -1) * n, x.size(0) * n

    graph = opened(graph_of(work, 2), torch.ones(3, 2))
    region = resolve_backend(backend)(graph, [torch.ones(3, 2), 2])
    for size, number in [(3, 2), (7, 7), (1, 2), (4, 1), (8, 8), (1, 1)]:
        x = torch.randn(size, 2)
        found, expected = region(x, number), graph(x, number)
        torch.testing.assert_close(found[0], expected[0])
        assert found[1] == expected[1]


def test_sizes_and_numbers_that_are_open_need_one_compilation() -> None:
    backend = Recording()
    graph = opened(graph_of(lambda x, n: (x * n,), 2), torch.ones(3, 2))
    region = resolve_backend(backend)(graph, [torch.ones(3, 2), 2])
    for size, number in [(3, 2), (7, 7), (9, 0), (4, 1)]:
        assert torch.equal(region(torch.ones(size, 2), number)[0], torch.full((size, 2), float(number)))
    assert len(backend.graphs) == 1
    region(torch.ones(1, 2), 3)  # torch takes a size of 1 for a size of its own
    assert len(backend.graphs) == 2


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=needs_compiler)])
def test_open_sizes_of_any_layout(backend: str) -> None:
    graph = opened(graph_of(lambda x, y: ((x + 1).sin() @ y,), 2), torch.ones(3, 4), torch.ones(4, 3))
    whole = torch.randn(9, 12)
    inputs = [whole[:5, :4], whole[:7, :4], whole.t()[:6, :4], whole[::2, :4], whole[:3, 0:8:2]]
    inputs.append(torch.ones(2, 1).expand(2, 4))
    region = resolve_backend(backend)(graph, [inputs[0], torch.ones(4, 3)])
    for x in [*inputs, *(each.contiguous() for each in inputs), *inputs]:
        y = torch.randn(4, 3)
        torch.testing.assert_close(region(x, y)[0], (x + 1).sin() @ y)


def test_a_plain_number_is_never_taken_for_another() -> None:
    backend = Recording()
    graph = graph_of(lambda x, n: (x * n, n), 2)
    region = resolve_backend(backend)(graph, [torch.ones(2), 2])
    for number in (2, 2.0, 3, True, 1, -0.0, 0.0):
        found = region(torch.ones(2), number)
        assert torch.equal(found[0], torch.ones(2) * number)
        assert repr(found[1]) == repr(number)
    assert len(backend.graphs) == 7


def test_a_gradient_that_only_later_inputs_require() -> None:
    graph = graph_of(lambda x, y: (x * y,), 2)
    region = resolve_backend("aot_eager")(graph, [torch.ones(2), torch.ones(2)])
    x, y = torch.ones(2), torch.full((2,), 3.0, requires_grad=True)
    region(x, y.detach())
    region(x, y)[0].sum().backward()
    assert torch.equal(y.grad, x)
    grown = x.clone().requires_grad_()
    region(grown, y)[0].sum().backward()
    assert torch.equal(grown.grad, torch.full((2,), 3.0))


@needs_compiler
def test_strides_that_change() -> None:
    graph = graph_of(lambda x: (x.sin() + 1,), 1)
    region = resolve_backend("inductor")(graph, [torch.ones(3, 4)])
    for x in (torch.randn(3, 4), torch.randn(4, 3).t(), torch.randn(6, 8)[::2, ::2]):
        torch.testing.assert_close(region(x)[0], x.sin() + 1)


def test_inputs_of_too_many_kinds_run_as_they_stand() -> None:
    backend = Recording()
    graph = graph_of(lambda x, n: (x + n,), 2)
    region = resolve_backend(backend)(graph, [torch.ones(2), 0])
    for number in range(20):
        assert torch.equal(region(torch.ones(2), number)[0], torch.full((2,), 1.0 + number))
    assert len(backend.graphs) == variants._MOST_VARIANTS


def test_one_tensor_passed_twice_runs_as_it_stands() -> None:
    backend = Recording()
    region = resolve_backend(backend)(graph_of(lambda x, y: (x + y,), 2), [torch.ones(2), torch.ones(2)])
    x = torch.ones(2)
    assert torch.equal(region(x, x)[0], torch.full((2,), 2.0))
    assert backend.graphs == []


def test_code_is_not_run_on_sizes_that_it_was_not_compiled_for() -> None:
    compiled: list[bool] = []

    def assuming(graph: fx.GraphModule, examples: list[Any]) -> Any:
        compiled.append(bool(examples[0].shape[0] > 4))  # a condition: of the example, not of every size
        more = 100 if compiled[-1] else 200
        return lambda x: (x + more,)

    graph = opened(graph_of(lambda x: (x + 1,), 1), torch.ones(5, 2))
    region = resolve_backend(assuming)(graph, [torch.ones(5, 2)])
    assert [region(torch.ones(size, 2))[0][0, 0].item() for size in (5, 9, 2, 3, 6)] == [101, 101, 201, 201, 101]
    assert compiled == [True, False]


def test_a_condition_that_cannot_be_checked_leaves_the_region_as_it_stands() -> None:
    def assuming(graph: fx.GraphModule, examples: list[Any]) -> Any:
        symbols = examples[0].fake_mode.shape_env
        hidden = symbols.create_symbol(3, ConstantSource("hidden"), DimDynamic.DYNAMIC)
        bool(examples[0].shape[0] + symbols.create_symintnode(hidden, hint=3) > 4)
        return lambda x: (x + 100,)

    graph = opened(graph_of(lambda x: (x + 1,), 1), torch.ones(5, 2))
    region = resolve_backend(assuming)(graph, [torch.ones(5, 2)])
    assert [region(torch.ones(size, 2))[0][0, 0].item() for size in (5, 9)] == [2, 2]


def test_without_a_compiler_inductor_is_eager_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.cpp_builder as builder

    def none_found() -> str:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(builder, "get_cpp_compiler", none_found)
    backends._has_cpp_compiler.cache_clear()
    try:
        graph = graph_of(lambda x: (x + 1,), 1)
        regions = [resolve_backend("inductor")(graph, [torch.ones(2)]) for _ in range(2)]
        with pytest.warns(RuntimeWarning, match="needs a C") as caught:
            results = [region(torch.ones(2))[0] for region in regions]
        assert len(caught) == 1
        assert all(torch.equal(result, torch.full((2,), 2.0)) for result in results)
    finally:
        backends._has_cpp_compiler.cache_clear()


def test_a_region_keeps_no_example_alive() -> None:
    import gc
    import weakref

    x = torch.ones(2)
    gone = weakref.ref(x)
    region = resolve_backend(Recording())(graph_of(lambda x: (x + 1,), 1), [x])
    region(x)
    del x
    gc.collect()
    assert gone() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        region(torch.ones(2))


def test_what_a_compiler_of_torchs_cannot_compile_runs_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(module: Any, inputs: Any) -> Any:
        raise NotImplementedError("no lowering for this\nand much more")

    monkeypatch.setattr(backends, "_named", lambda name: broken)

    def f(x: Tensor) -> Tensor:
        while x.sum() < 10:
            x = (x * 2 + 1).relu() - 0.5
        return x

    static = sg.to_static(f, backend="broken")
    assert static(torch.ones(2)).equal(f(torch.ones(2)))
    told = [each.getMessage() for each in caplog.records if getattr(each, "event", "") == "not compiled"]
    first = f.__code__.co_firstlineno
    lines = [text.split(" run in plain PyTorch")[0].rpartition(":")[2] for text in told]
    assert lines == [str(first + 1), str(first + 2)]
    assert all(text.endswith("fails to compile them: no lowering for this") for text in told)


@pytest.mark.parametrize("grad", [False, True])
def test_an_index_that_is_a_tensor(grad: bool) -> None:
    def f(table: Tensor, i: Tensor) -> Tensor:
        while table.norm() < 100:
            table = table * 2 + table[i] + table[i, None]
        return table

    with torch.set_grad_enabled(grad):
        static = sg.to_static(f, backend="aot_eager")
        assert static(torch.ones(4), torch.tensor(2)).equal(f(torch.ones(4), torch.tensor(2)))
