"""Each model is saved, run without its code on other inputs, and gives what eager gives; the guide's table says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

import stillgraph as sg

pytest.importorskip("transformers")

from tests.e2e.shipping.catalogue import MODELS
from tests.e2e.shipping.fresh import SUFFIX, flat, run_alone
from tests.e2e.shipping.model import Model

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "deploy.md"
HEADINGS = {"pt2": "`.pt2`", "onnx": "`.onnx`", "aoti": "AOTInductor", "py": "`.py`"}
_PAIRS = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name, model in MODELS.items()
    for kind in HEADINGS
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), _PAIRS)
@torch.no_grad()
def test_a_file_gives_elsewhere_what_eager_gives(name: str, kind: str, tmp_path: Path) -> None:
    model = MODELS[name]
    path = tmp_path / f"{name}{SUFFIX[kind]}"
    target = model.build()
    code = model.refused.get(kind)
    if code is not None:
        with pytest.raises((sg.CaptureError, sg.ExportError)) as raised:
            sg.save(target, path, args=model.example, input_spec=model.input_spec)
        assert raised.value.reason.code == code
        assert not path.exists()
        return
    sg.save(target, path, args=model.example, input_spec=model.input_spec)
    calls = model.calls(kind)
    written = getattr(target, "__name__", type(target).__name__)
    for place, (call, found) in enumerate(zip(calls, run_alone(path, kind, written, calls), strict=True)):
        expected = flat(model.build()(*(tensor.clone() for tensor in call)))
        assert len(found) == len(expected)
        for want, got in zip(expected, found):
            _assert_close(got, want, f"call {place}")


def _assert_close(got: Tensor, want: Tensor, where: str) -> None:
    """Tokens and counts are the same; another runtime's kernels may round otherwise."""
    rtol, atol = (1e-4, 1e-5) if want.dtype == torch.float32 else (None, None)
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol, msg=lambda text: f"{where}: {text}")


@pytest.mark.slow
@pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in MODELS.items()])
@torch.no_grad()
def test_the_other_inputs_are_of_other_sizes_and_take_other_paths(model: Model) -> None:
    target = model.build()
    results = [flat(target(*(tensor.clone() for tensor in call))) for call in (model.example, *model.others)]
    assert len(model.others) >= 3
    assert len({tuple(tuple(tensor.shape) for tensor in call) for call in (model.example, *model.others)}) >= 2
    different = {tuple((tuple(tensor.shape), repr(tensor.tolist())) for tensor in result) for result in results}
    assert len(different) >= 3


def _table() -> list[str]:
    """The lines of the guide's table, as what the tests expect says."""
    lines = [f"| model | {' | '.join(HEADINGS.values())} |", f"|{'---|' * (1 + len(HEADINGS))}"]
    for model in MODELS.values():
        lines.append(f"| {model.title} | {' | '.join(_cell(model, kind) for kind in HEADINGS)} |")
    return lines


def _cell(model: Model, kind: str) -> str:
    if kind in model.refused:
        return f"refused ({model.refused[kind]})"
    return "verified from size 2 on" if kind in model.from_two else "verified"


def test_the_guides_table_is_what_the_tests_show() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("## What has been shipped so\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\|.*$", section, re.MULTILINE) == _table(), "\n".join(_table())
