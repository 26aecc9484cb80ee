"""A save traces each region once and exports once, however deep regions lie in one another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._export.serde import serialize
from torch.export import ExportedProgram
from torch.fx import GraphModule, _symbolic_trace
from torch.onnx._internal.exporter import _registration
from torch.onnx._internal.exporter._registration import ONNXRegistry

import stillgraph as sg
from stillgraph.core.progress import Phase, listening
from stillgraph.deploy.pt2 import torch_archive

REGIONS = 12  # of three loops and three branches


def nested(x: Tensor) -> Tensor:
    while x.sum() < 100:
        if x.max() > 3:
            while x.sum() < 50:
                x = x * 2 if x.min() > 2 else x + 1
            x = x + 5
        else:
            x = x + 1
        while x.max() < 4:
            x = x + 1 if x.min() > 2 else x + 2
    return x


def with_state(x: Tensor, seen: Tensor) -> Tensor:
    y = x * 2
    seen += y
    return y if seen.sum() > 0 else -y


def written_inside(x: Tensor) -> Tensor:
    while x.sum() < 100:
        y = x.clone()
        y[0] += 1
        x = y if x.max() > 3 else y + 1
    return x


def filled(x: Tensor) -> Tensor:
    n = int(x.argmax()) + 2
    while x.sum() < 100:
        x = x + torch.tensor(n) if x.max() > 3 else x + torch.tensor(1.5) * torch.ones(3, dtype=torch.int64)
        n = n + 1
    return x


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        theirs = getattr(owner, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return theirs(*args, **kwargs)

        monkeypatch.setattr(owner, name, counting)

    count(torch.export, "export")
    count(ExportedProgram, "run_decompositions")
    return counted


def _traced(function: Any, path: Path, args: tuple[Tensor, ...]) -> dict[str, int]:
    """How many regions are run in each phase of a save."""
    steps: dict[str, int] = {}

    def listen(phase: Phase | None) -> None:
        if phase is not None:
            steps[phase.what] = max(steps.get(phase.what, 0), phase.done)

    with listening(listen):
        sg.save(function, path, args=args)
    return steps


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_each_region_is_traced_once(tmp_path: Path, counts: Counter[str], suffix: str) -> None:
    path = tmp_path / f"nested{suffix}"
    steps = _traced(nested, path, (torch.ones(3),))
    assert steps["tracing for the file"] == REGIONS
    assert steps.get("writing with ONNX's operators", 0) == 0
    assert counts == {"export": 1}
    loaded = sg.load(path)
    for x in (torch.ones(3), torch.zeros(3), torch.tensor([5.0, 1.0, 2.0])):
        assert torch.equal(loaded(x), nested(x))


def test_what_is_written_takes_no_second_export(tmp_path: Path, counts: Counter[str]) -> None:
    path = tmp_path / "state.pt2"
    _traced(with_state, path, (torch.ones(3), torch.zeros(3)))
    assert counts == {"export": 1}
    given, expected = torch.full((3,), -9.0), torch.full((3,), -9.0)
    assert torch.equal(sg.load(path)(torch.ones(3), given), with_state(torch.ones(3), expected))
    assert torch.equal(given, expected)


def test_onnx_traces_a_program_that_writes_in_place_once_more(tmp_path: Path, counts: Counter[str]) -> None:
    path = tmp_path / "inside.onnx"
    steps = _traced(written_inside, path, (torch.ones(3),))
    assert counts == {"export": 1, "run_decompositions": 1}
    assert steps["tracing for the file"] == 4
    assert steps["writing with ONNX's operators"] == 4
    loaded = sg.load(path)
    for x in (torch.ones(3), torch.tensor([5.0, 1.0, 2.0])):
        assert torch.equal(loaded(x), written_inside(x))


def test_a_new_tensor_that_is_filled_is_not_written_in_place(tmp_path: Path, counts: Counter[str]) -> None:
    path = tmp_path / "filled.onnx"
    sg.save(filled, path, args=(torch.ones(3),))
    assert counts == {"export": 1}
    loaded = sg.load(path)
    for x in (torch.ones(3), torch.tensor([5.0, 1.0, 2.0])):
        assert torch.equal(loaded(x), filled(x))


def added_to_fewer_bits(x: Tensor) -> Tensor:
    y = torch.zeros(3, dtype=torch.int32).add_(x.long())
    while y.sum() < 10:
        y = torch.zeros(3, dtype=torch.int32).add_(y.long() + 1)
    return y


def test_what_is_written_to_keeps_its_dtype_in_an_onnx_file(tmp_path: Path) -> None:
    sg.save(added_to_fewer_bits, path := tmp_path / "added.onnx", args=(torch.ones(3),))
    for x in (torch.ones(3), torch.tensor([5.0, 9.0, 2.0])):
        found, expected = sg.load(path)(x), added_to_fewer_bits(x)
        assert torch.equal(found, expected)
        assert found.dtype == expected.dtype


def test_the_methods_of_modules_are_exchanged_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    exchanged: list[str] = []
    patch = _symbolic_trace._PatchedFnSetAttr.patch

    def counting(self: Any) -> None:
        exchanged.append(self.fn_name)
        patch(self)

    monkeypatch.setattr(_symbolic_trace._PatchedFnSetAttr, "patch", counting)
    sg.save(nested, tmp_path / "nested.pt2", args=(torch.arange(3),))
    assert Counter(exchanged) == {"__call__": 1, "__getattr__": 1}


def test_the_code_of_a_region_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sg.save(nested, path := tmp_path / "nested.pt2", args=(torch.arange(3),))
    made: list[Any] = []
    recompile = GraphModule.recompile
    monkeypatch.setattr(GraphModule, "recompile", lambda self: made.append(self) or recompile(self))
    torch_archive.read(path.open("rb"))
    assert max(Counter(map(id, made)).values()) <= 2  # when it is made, and when it is given its place


def test_torchs_translations_are_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sg.save(nested, tmp_path / "first.onnx", args=(torch.arange(3),))
    monkeypatch.setattr(ONNXRegistry, "from_torchlib", None)
    sg.save(nested, path := tmp_path / "second.onnx", args=(torch.arange(3),))
    assert torch.equal(sg.load(path)(torch.arange(3) * 2), nested(torch.arange(3) * 2))


@pytest.mark.parametrize("name", ["one.pt2", "one.onnx"])
def test_torch_is_as_it_was(name: str, tmp_path: Path) -> None:
    exchanged = [
        *((serialize, each) for each in ("canonicalize", "typing")),
        *((GraphModule, each) for each in ("_recompile_submodules", "recompile")),
        (_symbolic_trace._Patcher, "patch_method"),
        (_registration, "ONNXRegistry"),
        (torch.fx.config, "do_not_emit_stack_traces"),
    ]
    before = [getattr(owner, each) for owner, each in exchanged]
    sg.save(nested, tmp_path / name, args=(torch.arange(3),))
    assert [getattr(owner, each) for owner, each in exchanged] == before
