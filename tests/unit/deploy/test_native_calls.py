"""A `.pt2` that is loaded runs its branches and loops as Python's: what it gives, and whose state it reads."""

from __future__ import annotations

import copy
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn

import stillgraph as sg
from stillgraph.deploy.pt2 import pt2
from stillgraph.deploy.pt2.native import native_call
from tests.unit.runtime.test_backends import needs_compiler


def halved(x: Tensor, limit: float = 1.0) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x * 0.5 if x.sum() > 3 else x - 0.25
        steps += 1
    return x, steps


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        while x.abs().sum() > 1:
            x = self.layer(x).tanh() * 0.25
        return x


def loaded(function: Any, path: Path, *args: Any, **options: Any) -> Any:
    backend = options.pop("backend", "eager")
    sg.save(function, path / "file.pt2", args=args, **options)
    return sg.load(path / "file.pt2", backend=backend)


@pytest.fixture
def without_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's operators for branches and loops fail, once a file is there."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("an operator of torch's was called")

    def forbid(function: Any, path: Path, *args: Any) -> Any:
        file = loaded(function, path, *args)
        for operator in (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop):
            monkeypatch.setattr(type(operator), "__call__", fail)
        return file

    return forbid  # type: ignore[return-value]  # the fixture's value is a function


def test_branches_and_loops_are_pythons(without_operators: Any, tmp_path: Path) -> None:
    file = without_operators(halved, tmp_path, torch.ones(4) * 9)
    for x in (torch.ones(4) * 9, torch.ones(4) * 0.1, torch.full((4,), 0.6)):
        value, steps = halved(x)
        found, count = file(x)
        assert torch.equal(found, value)
        assert (count, type(count)) == (steps, int)
    with pytest.raises(AssertionError, match="of torch's"):
        file.module(torch.ones(4))


def test_a_loop_without_an_iteration_gives_a_copy_as_torchs_operator_does(tmp_path: Path) -> None:
    file, x = loaded(halved, tmp_path, torch.ones(4) * 9), torch.ones(4) * 0.1
    (found, _), (by_torch, _) = file(x), file.module(x)
    assert found is not x
    found += 1
    assert torch.equal(x, torch.ones(4) * 0.1)
    assert by_torch.data_ptr() != x.data_ptr()


def test_state_is_the_modules_in_each_call(tmp_path: Path) -> None:
    model, x = Counting(), torch.full((2, 4), 3.0)
    file = loaded(model, tmp_path, x)
    model.calls.zero_()
    for step in range(4):
        if step == 1:
            file.module.load_state_dict({**model.state_dict(), "calls": torch.tensor(7)})
            model.calls.fill_(7)
        if step == 2:  # another object in its place
            file.module.layer.weight = nn.Parameter(torch.eye(4))
            model.layer.weight = nn.Parameter(torch.eye(4))
        if step == 3:
            file.module.calls = torch.tensor(-5)
            model.calls.fill_(-5)
        torch.testing.assert_close(file(x), model(x))
        assert torch.equal(file.module.calls, model.calls)


def test_a_copy_is_of_the_copied_module(tmp_path: Path) -> None:
    model, x = Counting(), torch.full((2, 4), 3.0)
    file = loaded(model, tmp_path, x)
    before = file(x)
    fresh = copy.deepcopy(file)
    for parameter in fresh.module.parameters():
        parameter.data.zero_()
    assert torch.equal(fresh(x), torch.zeros(2, 4))
    torch.testing.assert_close(file(x), before)


def test_hooks_on_the_module_are_called(tmp_path: Path) -> None:
    file, seen = loaded(halved, tmp_path, torch.ones(4) * 9), []
    handle = file.module.register_forward_hook(lambda module, given, results: seen.append(len(given)))
    assert file(torch.ones(4) * 9)[1] == halved(torch.ones(4) * 9)[1]
    handle.remove()
    file(torch.ones(4) * 9)
    assert seen == [1]


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        y = (x * self.weight).exp()
        if y.sum() > 1e9:
            y = y * 2
        return y.sin() + self.weight


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=needs_compiler)])
def test_a_parameter_of_another_kind(backend: str, tmp_path: Path) -> None:
    file, x = loaded(Weighted(), tmp_path, torch.ones(3, 4), backend=backend), torch.randn(3, 4)
    gone = weakref.ref(file.module.weight)
    for weight in (torch.randn(4), torch.randn(4).double(), torch.randn(8)[::2], torch.randn(1)):
        file(x)
        file.module.weight = nn.Parameter(weight)
        (expected,) = file.module(x)
        torch.testing.assert_close(file(x), expected)
    gc.collect()
    assert gone() is None


def running(x: Tensor) -> Tensor:
    from torch._higher_order_ops.scan import scan

    return scan(lambda total, row: (total + row, (total * 2).clone()), torch.zeros(3), x)[1]


def test_a_scan_is_a_loop_of_the_file(tmp_path: Path) -> None:
    x = torch.randn(5, 3)
    torch.testing.assert_close(loaded(running, tmp_path, x, backend="aot_eager")(x), running(x))


def test_an_operator_with_regions_of_another_kind_is_not_written() -> None:
    class Running(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return running(x)

    exported = torch.export.export(Running(), (torch.randn(5, 3),))
    assert any("scan" in str(node.target) for node in exported.graph.nodes)
    assert native_call(exported.module(), "running", None) is None  # type: ignore[arg-type]  # it is a graph module


def test_what_is_not_written_is_torchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pt2, "native_call", lambda *given: None)
    file, x = loaded(halved, tmp_path, torch.ones(4) * 9), torch.full((4,), 5.0)
    assert file(x)[1] == halved(x)[1]
    with pytest.raises(sg.LoadError, match="no backend compiles halved: it has an operator that torch alone runs"):
        sg.load(tmp_path / "file.pt2", backend="aot_eager")


def test_assertions_that_are_returned(tmp_path: Path) -> None:
    def positive(x: Tensor) -> Tensor:
        assert x.sum() > 0, "negative"
        return x.sqrt() if x.max() < 2 else x

    file = loaded(positive, tmp_path, torch.ones(3), assertions="return")
    assert torch.equal(file(torch.ones(3)), torch.ones(3))
    with pytest.raises(AssertionError, match="negative"):
        file(-torch.ones(3))


def test_many_nested_branches(tmp_path: Path) -> None:
    source = "def nested(x):\n"
    for depth in range(12):
        source += f"{'    ' * (depth + 1)}if x.sum() > {depth}:\n{'    ' * (depth + 2)}x = x + {depth}\n"
    source += "    return x\n"
    (tmp_path / "nesting.py").write_text(source)
    namespace: dict[str, Any] = {}
    exec(compile(source, str(tmp_path / "nesting.py"), "exec"), namespace)
    file = loaded(namespace["nested"], tmp_path, torch.ones(2))
    for x in (torch.ones(2), -torch.ones(2), torch.ones(2) * 4.5):
        assert torch.equal(file(x), namespace["nested"](x))


# ---- backends
class Counted:
    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: fx.GraphModule, examples: list[Any]) -> Any:
        self.graphs += 1
        return graph.forward


def iterated(x: Tensor) -> Tensor:
    while x.norm() > 1:
        x = (x.sin() * 0.5).tanh() + x * 0.1
    return (x.exp() + 1).log()


@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=[needs_compiler, pytest.mark.slow])]
)
def test_what_is_between_is_compiled(backend: str, tmp_path: Path) -> None:
    file = loaded(iterated, tmp_path, torch.ones(5) * 9, input_spec=[sg.InputSpec([None])], backend=backend)
    for size in (5, 9, 1, 0, 64, 2):
        x = torch.randn(size) * 5
        torch.testing.assert_close(file(x), iterated(x))


def test_it_is_compiled_for_all_sizes_but_0_and_1(tmp_path: Path) -> None:
    backend, graphs = Counted(), []
    file = loaded(iterated, tmp_path, torch.ones(5) * 9, input_spec=[sg.InputSpec([None])], backend=backend)
    for size in (5, 9, 64, 1, 2, 3):
        file(torch.ones(size) * 5)
        graphs.append(backend.graphs)
    test_body_and_rest = 3
    assert graphs == [test_body_and_rest] * 3 + [test_body_and_rest * 2] * 3


def test_a_backend_is_looked_for_first(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no backend is named 'indcutor'; did you mean 'inductor'"):
        sg.load(tmp_path / "missing.pt2", backend="indcutor")


def test_what_onnxruntime_runs_has_no_backend(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    sg.save(halved, tmp_path / "file.onnx", args=(torch.ones(4) * 9,))
    with pytest.raises(ValueError, match=r"'file\.onnx' runs in onnxruntime: leave backend out"):
        sg.load(tmp_path / "file.onnx", backend="inductor")
