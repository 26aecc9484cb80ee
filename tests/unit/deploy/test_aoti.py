"""AOTInductor packages. Compiling one takes half a minute, so the tests that do are few and slow."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.deploy.alone import alone

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Settling(nn.Module):
    """A branch, a loop, and a buffer that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: Tensor, scale: float = 2.0) -> dict[str, Any]:
        self.total += x.sum(0)
        steps = 0
        while x.abs().sum() > 10:
            x = x / scale
            steps += 1
        y = self.linear(x) if x.sum() > 0 else x - 1
        return {"y": y + self.total, "steps": steps}


@pytest.mark.slow
def test_a_package_is_called_like_the_original(tmp_path: Path) -> None:
    path, module = tmp_path / "größe und länge.aoti.pt2", Settling()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.save(module, path, args=(X,), input_spec=[sg.InputSpec([None, 3])])
        loaded = sg.load(path, native=True)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    for x in (X, -X, torch.ones(5, 3) * 9, X[:1]):
        with torch.no_grad():
            want = module(x)
        got = loaded(x)
        torch.testing.assert_close(got, want)
        assert type(got["steps"]) is int
    with pytest.raises(ValueError, match=r"was saved for x of float32\[\?, 3\], not float32\[2, 2\]"):
        loaded(torch.ones(2, 2))
    with pytest.raises(sg.LoadError, match="holds compiled code") as raised:
        sg.load(path)
    assert "native=True" in str(raised.value)
    fresh = Settling()
    fresh.load_state_dict({**module.state_dict(), "total": torch.zeros(3)})
    with torch.no_grad():
        want = fresh(X)["y"].sum().item()
    assert alone(f"""
        run = torch._inductor.aoti_load_package({str(path)!r})
        print(round(run(torch.tensor({X.tolist()}))[0].sum().item(), 3))
    """) == f"{round(want, 3)}\n"


# ---- refused
def test_state_that_is_a_number(tmp_path: Path) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    with pytest.raises(sg.ExportError, match="writes to 'calls', and AOTInductor keeps no state of a single number"):
        sg.save(Counting(), tmp_path / "counting.aoti.pt2", args=(X,))
    assert not list(tmp_path.iterdir())


def test_a_loop_that_grows_a_tensor(tmp_path: Path) -> None:
    def grown(x: Tensor) -> Tensor:
        while x.sum() < 100:
            x = torch.cat([x, x[-1:] + 1])
        return x

    with pytest.raises(sg.ExportError, match="SG402") as raised:
        sg.save(grown, tmp_path / "grown.pt2", args=(X,), format="aoti")
    text = str(raised.value)
    assert "a loop carries a tensor whose shape changes" in text
    assert "save as .pt2 or .onnx" in text
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import cpp_builder
    from torch._inductor.exc import InvalidCxxCompiler

    def none() -> str:
        raise InvalidCxxCompiler

    def never(x: Tensor) -> Tensor:
        raise AssertionError("it is captured")

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    with pytest.raises(RuntimeError, match=r"needs a C\+\+ compiler") as raised:
        sg.save(never, tmp_path / "never.aoti.pt2", args=(X,))
    assert "\n" not in str(raised.value)


def test_one_entry_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="as aoti, save each by itself"):
        sg.save({"a": nn.Linear(3, 3)}, tmp_path / "no.aoti.pt2", args={"a": (X,)})


def test_compiled_code_is_not_loaded_unless_it_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "any.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("any/data/aotinductor/model/model.so", b"\x7fELF")
    with pytest.raises(sg.LoadError, match="holds compiled code"):
        sg.load(path)
    with pytest.raises(sg.LoadError, match="it is damaged"):
        sg.load(path, native=True)
