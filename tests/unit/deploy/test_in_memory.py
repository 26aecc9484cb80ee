"""A program as `torch.export`, ONNX and `torch.nn` have it, without a file."""
from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg


class Counting(nn.Module):
    """It has weights, buffers and a number that it counts up."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("calls", torch.zeros(()))
        self.steps = 0

    def forward(self, x: Tensor) -> dict[str, Any]:
        self.steps += 1
        self.calls += 1
        rounds = 0
        while x.abs().sum() < 20:
            x = self.layer(x).abs() + x + self.scale
            rounds += 1
        return {"y": x, "of": (rounds, x.shape[0], self.calls.clone())}


def example(size: int) -> Tensor:
    return torch.linspace(-1, 1, size * 3).view(size, 3)


@pytest.fixture
def model() -> Counting:
    torch.manual_seed(0)
    return Counting()


def program_of(model: nn.Module) -> sg.Program:
    return sg.export(model, (example(2),), input_spec=[sg.InputSpec([None, 3])])


def same(found: Any, expected: dict[str, Any]) -> None:
    torch.testing.assert_close(found["y"], expected["y"])
    assert found["of"][:2] == expected["of"][:2]
    assert torch.equal(found["of"][2], expected["of"][2])


def test_a_module_of_its_own(model: Counting) -> None:
    before, original = copy.deepcopy(model.state_dict()), copy.deepcopy(model)
    alone = program_of(model).module((model, example(2)))
    assert {**before, "steps": 0}.keys() == alone.state_dict().keys()
    for size in (2, 1, 5):
        same(alone(example(size)), original(example(size)))
    assert model.steps == 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())  # it has copies


def test_a_module_reads_its_state_in_each_call(model: Counting) -> None:
    alone = program_of(model).module((model, example(2)))
    alone.load_state_dict({name: torch.full_like(value, 0.5) for name, value in alone.state_dict().items()})
    with torch.no_grad():
        for value in [*model.parameters(), *model.buffers()]:
            value.fill_(0.5)
    same(alone(example(4)), model(example(4)))
    assert sorted(name for name, _ in alone.named_parameters()) == sorted(name for name, _ in model.named_parameters())


def test_a_module_refuses_what_the_program_was_not_made_for(model: Counting) -> None:
    alone = program_of(model).module((model, example(2)))
    with pytest.raises(ValueError, match="Counting was saved for"):
        alone(torch.ones(2, 4))


def test_an_exported_program(model: Counting) -> None:
    exported = program_of(model).to_exported_program((model, example(2)))
    assert isinstance(exported, torch.export.ExportedProgram)
    assert sorted(exported.state_dict) == sorted([*model.state_dict(), "steps"])
    given = exported.module()(example(4))
    expected = copy.deepcopy(model)(example(4))
    torch.testing.assert_close(given[0], expected["y"])
    assert [value.item() for value in given[1:]] == [*expected["of"][:2], expected["of"][2].item()]
    targets = {str(node.target) for node in exported.graph.nodes}
    assert "while_loop" in targets
    assert (model.calls, model.steps) == (0, 0)  # it has copies


def test_an_onnx_model(model: Counting, tmp_path: Any) -> None:
    onnx = pytest.importorskip("onnx")
    made = program_of(model).to_onnx((model, example(2)), opset=18)
    assert [each.name for each in made.graph.input] == ["x", "calls", "steps"]
    assert [each.version for each in made.opset_import if not each.domain] == [18]
    onnx.save(made, tmp_path / "model.onnx")
    same(sg.load(tmp_path / "model.onnx")(example(4)), copy.deepcopy(model)(example(4)))


def choice(x: Tensor, y: Tensor) -> Tensor:
    return x @ y if x.sum() > 0 else x - y


def test_of_a_function() -> None:
    given = torch.ones(2, 2), torch.eye(2)
    program = sg.export(choice, given)
    alone, exported = program.module(given), program.to_exported_program(given).module()
    for call in (given, (-given[0], given[1])):
        assert torch.equal(alone(*call), choice(*call))
        assert torch.equal(exported(*call)[0], choice(*call))


@pytest.mark.parametrize("form", ["to_exported_program", "to_onnx", "module"])
def test_an_example_lacks_an_argument(form: str) -> None:
    program = sg.export(choice, (torch.ones(2, 2), torch.eye(2)))
    with pytest.raises(ValueError, match=r"the program takes y; give an example: args=\(y,\)"):
        getattr(program, form)((torch.ones(2, 2),))


def test_what_a_format_has_no_form_for() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.view_as_complex(x)

    program = sg.export(function, (torch.ones(3, 2),))
    with pytest.raises(sg.ExportError, match="ONNX has no complex numbers"):
        program.to_onnx((torch.ones(3, 2),))


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_a_file_of_a_modules_program_is_called_without_the_module(model: Counting, tmp_path: Any, suffix: str) -> None:
    program = program_of(model)
    sg.save(program, tmp_path / f"file{suffix}", args=(model, example(2)))
    same(sg.load(tmp_path / f"file{suffix}")(example(4)), copy.deepcopy(model)(example(4)))
