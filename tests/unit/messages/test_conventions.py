"""Options of other libraries: those that are here work, and the others are answered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.api.conventions import SAVE, TO_STATIC

UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
PAGE = Path(__file__).parents[3] / "docs/howto/options.md"


def f(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x - 1


# ---- what is answered
@pytest.mark.parametrize("name", TO_STATIC)
def test_to_static_says_what_to_write(name: str) -> None:
    with pytest.raises(TypeError, match=rf"to_static has no option '{name}': {re.escape(TO_STATIC[name])}"):
        sg.to_static(f, **{name: True})
    with pytest.raises(TypeError, match="to_static has no option"):
        sg.to_static(**{name: True})


@pytest.mark.parametrize("name", SAVE)
def test_save_says_what_to_write(name: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {name: True}
    with pytest.raises(TypeError, match=rf"save has no option '{name}': {re.escape(SAVE[name])}"):
        sg.save(f, tmp_path / "f.pt2", **given)


def test_a_slip_is_told_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match="'dynamc': did you mean dynamic"):
        sg.to_static(f, dynamc=True)
    with pytest.raises(TypeError, match="'xyz': it has target, input_spec"):
        sg.to_static(f, xyz=True)


def test_the_page_answers_every_option() -> None:
    text = PAGE.read_text()
    assert [name for name in (*TO_STATIC, *SAVE) if f"`{name}" not in text] == []


# ---- mode and options
def test_a_backend_is_called_with_mode_and_options() -> None:
    heard = []

    def backend(module: Any, inputs: Any, **given: Any) -> Any:
        heard.append(given)
        return module.forward

    static = sg.to_static(f, backend=backend, mode="fast", options={"level": 3})
    assert torch.equal(static(UP), f(UP))
    assert torch.equal(static(DOWN), f(DOWN))
    assert heard
    assert all(given == {"mode": "fast", "options": {"level": 3}} for given in heard)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "reduce-overhead"}, "CUDA graph"),
        ({"options": {"triton.cudagraphs": True}}, "CUDA graph"),
        ({"mode": "quick"}, "Inductor has no mode 'quick'; it has default"),
        ({"options": {"no_such_thing": 1}}, "Unexpected optimization option no_such_thing"),
    ],
)
def test_what_inductor_does_not_have_is_told(given: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        sg.to_static(f, **given)


def test_the_backend_eager_has_no_options() -> None:
    with pytest.raises(TypeError, match="'eager' does not"):
        sg.to_static(f, backend="eager", mode="default")


@pytest.mark.slow
def test_inductor_is_tuned() -> None:
    static = sg.to_static(f, mode="default", options={"epilogue_fusion": False})
    for x in (UP, DOWN):
        torch.testing.assert_close(static(x), f(x))
    with torch.no_grad():
        torch.testing.assert_close(static(UP), f(UP))


# ---- what is asked in the code
def test_is_compiling_is_what_it_is_in_eager_pytorch() -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling() or torch.compiler.is_exporting():
            return x * 100
        return f(x)

    assert torch.equal(sg.to_static(asks, backend="eager")(UP), asks(UP))


# ---- names in ONNX files
class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": x + y if x.sum() > 0 else x - y, "product": x * y}


def session_of(path: Path) -> Any:
    return pytest.importorskip("onnxruntime").InferenceSession(path)


@pytest.mark.parametrize(
    ("inputs", "outputs", "told"),
    [
        ((), (), (["x", "y"], ["sum", "product"])),
        (("left", "right"), ("total", "times"), (["left", "right"], ["total", "times"])),
        (("left",), ("total",), (["left", "y"], ["total", "product"])),
        (("y", "x"), (), (["y", "x"], ["sum", "product"])),
    ],
)
def test_names_of_inputs_and_results(inputs: Any, outputs: Any, told: Any, tmp_path: Path) -> None:
    path = tmp_path / "two.onnx"
    sg.save(Two(), path, args=(UP, DOWN), input_names=inputs, output_names=outputs)
    session = session_of(path)
    assert [each.name for each in session.get_inputs()] == told[0]
    assert [each.name for each in session.get_outputs()] == told[1]
    for x in (UP, DOWN):
        expected = Two()(x, UP)
        loaded = sg.load(path)(x, UP)
        assert all(torch.equal(loaded[key], expected[key]) for key in expected)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"input_names": ["a", "b", "c"]}, "input_names has 3 names, and the program has 2: x, y"),
        ({"output_names": ["a", "a"]}, "'a' is there twice"),
        ({"input_names": ["y"]}, "'y' is the name of another one"),
        ({"output_names": ["x"]}, "'x' cannot be the name of an input and of an output"),
        ({"input_names": [3]}, "input_names is a list of names"),
    ],
)
def test_names_that_cannot_be(given: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        sg.save(Two(), tmp_path / "two.onnx", args=(UP, DOWN), **given)
    assert not list(tmp_path.iterdir())


def test_names_are_for_onnx(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"input_names is a choice for \.onnx, not for \.pt2"):
        sg.save(Two(), tmp_path / "two.pt2", args=(UP, DOWN), input_names=["a"])
