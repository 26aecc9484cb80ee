from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.deploy import archive
from stillgraph.deploy.archive import load, save_program
from stillgraph.deploy.description.signature import place_key
from stillgraph.deploy.exporting.verification import check_artefact
from stillgraph.deploy.pt2 import pt2

X = torch.tensor([1.0, 2.0])


def doubled(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


@pytest.fixture
def program() -> sg.Program:
    return sg.export(doubled, (X,))


def one_line(error: BaseException) -> str:
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize("name", ["program", "program.txt", "program.pt3"])
def test_an_unknown_suffix(program: sg.Program, name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not one of \.pt2, \.aoti\.pt2, \.onnx") as raised:
        save_program(program, tmp_path / name, (X,))
    assert repr(name) in one_line(raised.value)


def test_a_format_given_by_name(program: sg.Program, tmp_path: Path) -> None:
    save_program(program, tmp_path / "program.bin", (X,), format="pt2")
    assert (tmp_path / "program.bin").exists()
    with pytest.raises(ValueError, match="the format 'pkl'"):
        save_program(program, tmp_path / "program.pt2", (X,), format="pkl")


def test_a_folder_that_is_not_there(program: sg.Program, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder") as raised:
        save_program(program, tmp_path / "none" / "program.pt2", (X,))
    one_line(raised.value)


def test_a_folder_in_the_file_s_place(program: sg.Program, tmp_path: Path) -> None:
    (tmp_path / "program.pt2").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save_program(program, tmp_path / "program.pt2", (X,))


def test_a_folder_that_may_not_be_written(program: sg.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may be allowed everything
    with pytest.raises(PermissionError, match="no permission") as raised:
        save_program(program, tmp_path / "program.pt2", (X,))
    one_line(raised.value)


def test_onnx_without_its_packages(program: sg.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'stillgraph\[onnx\]'") as raised:
        save_program(program, tmp_path / "program.onnx", (X,))
    one_line(raised.value)


# ---- nothing half written
class Interrupted(BaseException):
    """Out of the reach of ``except Exception``."""


@pytest.mark.parametrize("error", [RuntimeError("disk full"), Interrupted()])
def test_a_save_that_fails_leaves_the_file_there_was(
    program: sg.Program, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.pt2"
    path.write_bytes(b"as it was")

    def half_written(program: sg.Program, path: Path, *rest: Any) -> None:
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(pt2, "write_pt2", half_written)
    with pytest.raises(type(error)):
        save_program(program, path, (X,))
    assert [p.name for p in tmp_path.iterdir()] == ["program.pt2"]
    assert path.read_bytes() == b"as it was"


def test_a_file_is_replaced_and_has_the_usual_permissions(program: sg.Program, tmp_path: Path) -> None:
    path = tmp_path / "program.pt2"
    path.write_bytes(b"as it was")
    save_program(program, path, (X,))
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    torch.testing.assert_close(load(path)(X), X * 2)


def test_the_example_is_left_as_it_was(tmp_path: Path) -> None:
    def overwriting(x: Tensor) -> Tensor:
        x += 1
        return x * 2

    x = X.clone()
    save_program(sg.export(overwriting, (x,)), tmp_path / "program.pt2", (x,))
    assert torch.equal(x, X)


# ---- verification
@pytest.mark.parametrize(
    ("outputs", "phrase"),
    [
        ([X * 2 + 0.1], "output 0 of the artefact differs"),
        ([X.double() * 2], "output 0"),
        ([(X * 2)[:1]], "output 0"),
        (RuntimeError("broken"), "the artefact RuntimeError"),
    ],
)
def test_an_artefact_that_differs(program: sg.Program, outputs: Any, phrase: str) -> None:
    def run() -> Sequence[Tensor]:
        if isinstance(outputs, Exception):
            raise outputs
        return outputs  # type: ignore[no-any-return]

    with pytest.raises(ExportError, match=phrase) as raised:
        check_artefact(program, run, (X,), {})
    assert "SG403" in str(raised.value)


def test_what_a_call_leaves_in_its_arguments_is_compared() -> None:
    def adding(x: Tensor) -> Tensor:
        x += 1
        return x * 2

    program = sg.export(adding, (X.clone(),))
    written = {"x": place_key(program.inputs[0].source)}
    check_artefact(program, lambda: [(X + 1) * 2, X + 1], (X,), {}, written=written)
    with pytest.raises(ExportError, match="what the artefact leaves in 'x' differs from the program's"):
        check_artefact(program, lambda: [(X + 1) * 2, X], (X,), {}, written=written)


def test_random_values_are_compared_where_the_generator_is_torch_s(tmp_path: Path) -> None:
    def noisy(x: Tensor) -> Tensor:
        return x + torch.rand(2) if x.sum() > 0 else x

    program = sg.export(noisy, (X,))
    before = torch.get_rng_state()
    save_program(program, tmp_path / "noisy.pt2", (X,))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(5)
    want = noisy(X)
    torch.manual_seed(5)
    torch.testing.assert_close(load(tmp_path / "noisy.pt2")(X), want)


# ---- loading
def test_what_cannot_be_loaded(program: sg.Program, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / "none.pt2")
    (tmp_path / "program.onnx").touch()
    with pytest.raises(sg.LoadError, match=r"'program.onnx' cannot be loaded: it is damaged"):
        load(tmp_path / "program.onnx")
    exported = torch.export.export(torch.nn.Linear(2, 2), (X,))
    torch.export.save(exported, tmp_path / "foreign.pt2")
    with pytest.raises(ValueError, match="not saved by stillgraph"):
        load(tmp_path / "foreign.pt2")
    (tmp_path / "broken.pt2").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"it is damaged, or no \.pt2 archive"):
        load(tmp_path / "broken.pt2")
