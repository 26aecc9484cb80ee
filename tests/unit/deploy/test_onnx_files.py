"""What an ``.onnx`` file says by its names: arguments, results, sizes, variables, and state from call to call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stillgraph as sg

BATCH = sg.Dim("batch", min=2, max=8)
X, WEIGHT = torch.ones(4, 3), torch.ones(4)


class Meter(nn.Module):
    """State of both kinds: a buffer and a number; and an argument that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.calls = 0
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, weight: Tensor, log: Tensor) -> dict[str, Any]:
        self.calls += 1
        self.seen += x.sum(0) if x.sum() > 0 else -x.sum(0)
        total = self.layer(x) * weight[:, None]
        best = total.max()
        while total.sum() < 100:
            total = total + total.abs() + 1
            best = torch.maximum(best, total.max())
        log += best
        return {"scaled": total, "best": best, "calls": self.calls}


def target() -> Meter:
    torch.manual_seed(0)
    return Meter()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "meter.onnx"
    spec = [sg.InputSpec([BATCH, 3]), sg.InputSpec([BATCH]), sg.InputSpec([None])]
    sg.save(target(), path, args=(X, WEIGHT, torch.zeros(2)), input_spec=spec)
    return path


def nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g)


def sizes(value: Any) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


# ---- names
def test_sizes_have_the_names_of_the_specification(path: Path) -> None:
    graph = onnx.load(path).graph
    assert {value.name: sizes(value) for value in graph.input} == {
        "x": ["batch", 3],
        "weight": ["batch"],
        "log": ["log_dim_0"],
        "seen": [3],
        "calls": [],
    }
    assert {value.name: sizes(value) for value in graph.output} == {
        "scaled": ["batch", 3],
        "best": [],
        "calls_2": [],
        "seen_out": [3],
        "calls_out": [],
        "log_out": ["log_dim_0"],
    }


def test_ranges_are_told(path: Path) -> None:
    texts = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(texts["stillgraph.dims"]) == {"batch": [2, 8]}
    assert json.loads(texts["stillgraph.state"]) == {"seen": "seen_out", "calls": "calls_out"}
    assert json.loads(texts["stillgraph.written"]) == {"log": "log_out"}


def test_variables_keep_their_names(path: Path) -> None:
    graph = onnx.load(path).graph
    (loop,) = [node for node in nodes(graph) if node.op_type == "Loop"]
    assert loop.output[:2] == ["scaled", "best"]
    (body,) = [attribute.g for attribute in loop.attribute if attribute.name == "body"]
    assert [value.name for value in body.input] == ["iteration", "go_on", "total", "best_2"]
    assert [value.name for value in body.output] == ["go_on_next", "total_next", "best_next"]
    assert {"layer.bias", "seen", "calls"} <= {each.name for each in graph.initializer}


def test_every_name_is_there_once(path: Path) -> None:
    model = onnx.load(path)
    onnx.checker.check_model(path, full_check=True)
    made = [name for node in nodes(model.graph) for name in node.output if name]
    assert len(made) == len(set(made))
    names = [node.name for node in nodes(model.graph)]
    assert len(names) == len(set(names))


def test_no_file_of_the_user_s_is_named(path: Path) -> None:
    assert str(Path(__file__).parent).encode() not in path.read_bytes()


# ---- state
def calls() -> list[tuple[Tensor, Tensor]]:
    rows_and_values = ((4, 1.0), (2, -3.0), (8, 2.0))
    return [(torch.full((rows, 3), value), torch.arange(float(rows))) for rows, value in rows_and_values]


def test_onnxruntime_alone_carries_the_state(path: Path) -> None:
    session = onnxruntime.InferenceSession(path)
    feeds = json.loads(session.get_modelmeta().custom_metadata_map["stillgraph.state"])
    names = [each.name for each in session.get_outputs()]
    assert [each.name for each in session.get_inputs()] == ["x", "weight", "log"]
    state: dict[str, Any] = {}
    eager = target()
    for x, weight in calls():
        given = {"x": x.numpy(), "weight": weight.numpy(), "log": np.zeros(2, np.float32)}
        made = dict(zip(names, session.run(None, {**given, **state})))
        state = {name: made[output] for name, output in feeds.items()}
        log = torch.zeros(2)
        want = eager(x, weight, log)
        torch.testing.assert_close(torch.from_numpy(made["scaled"]), want["scaled"].detach())
        torch.testing.assert_close(torch.from_numpy(made["log_out"]), log.detach())
        assert int(made["calls_2"]) == want["calls"]
    torch.testing.assert_close(torch.from_numpy(state["seen"]), eager.seen)


def test_a_loaded_program_carries_the_state(path: Path) -> None:
    loaded, eager = sg.load(path), target()
    for x, weight in calls():
        log, want_log = torch.zeros(2), torch.zeros(2)
        got, want = loaded(x, weight, log), eager(x, weight, want_log)
        for name in ("scaled", "best"):
            torch.testing.assert_close(got[name], want[name].detach())
        assert got["calls"] == want["calls"]
        assert type(got["calls"]) is int
        torch.testing.assert_close(log, want_log.detach())
    assert int(loaded.module.state["calls"]) == 3
    assert int(sg.load(path)(*calls()[0], torch.zeros(2))["calls"]) == 1


def test_a_loaded_program_checks_sizes(path: Path) -> None:
    with pytest.raises(ValueError, match=r"saved for x of float32\[batch: 2..8, 3\], not float32\[9, 3\]"):
        sg.load(path)(torch.ones(9, 3), torch.ones(9), torch.zeros(2))


def test_an_operation_that_fails(path: Path) -> None:
    loaded = sg.load(path)
    with pytest.raises(RuntimeError, match="onnxruntime: "):
        loaded.module(torch.ones(2, 3), torch.ones(5), torch.zeros(2))


# ---- loading
def test_what_is_no_file_of_ours(path: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.onnx").write_bytes(path.read_bytes()[:300])
    with pytest.raises(sg.LoadError, match=r"'cut.onnx' cannot be loaded: it is damaged"):
        sg.load(tmp_path / "cut.onnx")
    model = onnx.load(path)
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "foreign.onnx")
    with pytest.raises(sg.LoadError, match="it was not saved by stillgraph") as raised:
        sg.load(tmp_path / "foreign.onnx")
    assert "onnxruntime.InferenceSession" in str(raised.value)


# ---- the version of operators
def test_versions_that_there_are_not(tmp_path: Path) -> None:
    for name, opset, text in (("a.onnx", 17, "from 18 on, not 17"), ("a.pt2", 20, "opset is a choice for .onnx")):
        with pytest.raises(ValueError, match=text):
            sg.save(target(), tmp_path / name, args=(X, WEIGHT, torch.zeros(2)), opset=opset)


@pytest.mark.slow
@pytest.mark.parametrize("opset", [18, 21, 23])
def test_another_version_of_operators(opset: int, tmp_path: Path) -> None:
    args = (X, WEIGHT, torch.zeros(2))
    sg.save(target(), tmp_path / "meter.onnx", args=args, opset=opset)
    assert {each.domain: each.version for each in onnx.load(tmp_path / "meter.onnx").opset_import} == {"": opset}
    torch.testing.assert_close(sg.load(tmp_path / "meter.onnx")(*args)["scaled"], target()(*args)["scaled"].detach())


# ---- programs
@pytest.mark.slow
def test_nested_control_flow_with_a_tensor_that_grows(tmp_path: Path) -> None:
    def nested(x: Tensor, limit: Tensor) -> tuple[Tensor, int, bool]:
        tokens, rounds, stopped = x[:1], 0, False
        if limit > 0:
            while tokens.shape[0] < limit and not stopped:
                last = tokens[-1]
                if last > 4:
                    tokens = torch.cat([tokens, last[None] - 3])
                    if last > 6:
                        stopped = True
                else:
                    while last < 5:
                        last = last + x.sum()
                    tokens = torch.cat([tokens, last[None], tokens[:1]])
                rounds += 1
        else:
            tokens = -tokens
        return tokens, rounds, stopped

    path = tmp_path / "nested.onnx"
    spec = [sg.InputSpec([sg.Dim("length")]), None]
    sg.save(nested, path, args=(torch.ones(3), torch.tensor(6)), input_spec=spec)
    kinds = [node.op_type for node in nodes(onnx.load(path).graph)]
    assert kinds.count("Loop") == 2
    assert kinds.count("If") >= 3
    loaded = sg.load(path)
    for size, value, limit in ((3, 1.0, 6), (2, 7.0, 4), (5, 1.0, 0), (1, 1.0, 20), (2, 1.0, 1)):
        x = torch.full((size,), value)
        got, want = loaded(x, torch.tensor(limit)), nested(x, torch.tensor(limit))
        torch.testing.assert_close(got[0], want[0])
        assert got[1:] == want[1:]


class Bare(nn.Module):
    """It counts no batches, so its running statistics alone are written."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(3))
        self.register_buffer("running_var", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, self.running_mean, self.running_var, training=True)


@pytest.mark.parametrize("kind", [lambda: nn.BatchNorm1d(3), Bare], ids=["module", "bare"])
def test_batch_normalisation_in_training(tmp_path: Path, kind: Any) -> None:
    layer, eager = kind(), kind()
    sg.save(layer, tmp_path / "norm.onnx", args=(torch.randn(4, 3),))
    loaded = sg.load(tmp_path / "norm.onnx")
    for _ in range(3):
        x = torch.randn(4, 3)
        torch.testing.assert_close(loaded(x), eager(x).detach())
    torch.testing.assert_close(loaded.module.state["running_var"], eager.running_var)


@pytest.mark.slow
def test_reductions_of_nothing(tmp_path: Path) -> None:
    def reduced(x: Tensor) -> tuple[Tensor, ...]:
        return (x > 0).any(), (x > 0).all(), x.mean(), x.sum(), x.cumprod(0), x.masked_select(x > 0)

    spec = [sg.InputSpec([None])]
    sg.save(reduced, tmp_path / "reduced.onnx", args=(torch.ones(2),), input_spec=spec)
    sg.save(lambda x: x.amax(), tmp_path / "largest.onnx", args=(torch.ones(2),), input_spec=spec)
    loaded = sg.load(tmp_path / "reduced.onnx")
    for x in (torch.zeros(0), torch.tensor([-1.0, 2.0, 3.0])):
        torch.testing.assert_close(loaded(x), reduced(x), equal_nan=True)
    largest = sg.load(tmp_path / "largest.onnx")
    assert float(largest(torch.tensor([1.0, 4.0]))) == 4
    with pytest.raises(RuntimeError, match="onnxruntime"):
        largest(torch.zeros(0))


def test_a_seed_is_refused(tmp_path: Path) -> None:
    def seeded(x: Tensor) -> Tensor:
        torch.manual_seed(3)
        return x + torch.rand(3)

    with pytest.raises(sg.ExportError, match="the program seeds the random generator"):
        sg.save(seeded, tmp_path / "seeded.onnx", args=(torch.ones(3),))


@pytest.mark.slow
def test_an_exception_where_nothing_is_returned(tmp_path: Path) -> None:
    def checked(x: Tensor) -> int:
        if x.sum() > 3:
            raise ValueError("too large")
        return 7

    sg.save(checked, tmp_path / "checked.onnx", args=(torch.ones(2),))
    loaded = sg.load(tmp_path / "checked.onnx")
    assert loaded(torch.ones(2)) == 7
    with pytest.raises(RuntimeError, match="onnxruntime"):
        loaded(torch.ones(2) * 9)
