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
from stillgraph.deploy.aoti import aoti, inductor
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
def test_a_package_is_called_like_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, module = tmp_path / "größe und länge.aoti.pt2", Settling()
    ended, run_apart = list[int](), inductor.run_apart
    monkeypatch.setattr(inductor, "run_apart", lambda *given: ended.append(run_apart(*given)) or ended[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.save(module, path, args=(X,), input_spec=[sg.InputSpec([None, 3])])
        loaded = sg.load(path, native=True)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert ended == [0]  # it was tried in a process of its own, and ran there
    strided = (X.T.contiguous().T, torch.arange(24.0).reshape(4, 6)[:, ::2], torch.ones(1, 3).expand(4, 3))
    for x in (X, -X, torch.ones(5, 3) * 9, X[:1], *strided):
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


@pytest.mark.slow
def test_a_loop_may_be_entered_with_a_tensor_of_one_number(tmp_path: Path) -> None:
    def doubled(x: Tensor) -> Tensor:
        bound = torch.tensor(1.0)
        while bound < x.sum():
            bound = bound * torch.tensor(2)
        return bound

    sg.save(doubled, path := tmp_path / "doubled.aoti.pt2", args=(X,))
    loaded = sg.load(path, native=True)
    for x in (X, X * 90, -X):
        torch.testing.assert_close(loaded(x), doubled(x))


class Counting(nn.Module):
    """State of one element: a number, a buffer with dimensions and one without."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(1, 1))
        self.register_buffer("scale", torch.tensor(1.5), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, int]:
        self.calls += 1
        self.seen += x.sum()
        if x.sum() > 0:
            self.scale *= 2
        return x * self.calls + self.seen, self.scale + 0, self.calls

    def last(self, x: Tensor) -> Tensor:
        self.seen += 1
        return x + self.seen


@pytest.mark.slow
def test_state_of_one_element(tmp_path: Path) -> None:
    module, path = Counting(), tmp_path / "counting.aoti.pt2"
    sg.save(module, path, args=(X,))
    loaded = sg.load(path, native=True)
    for x in (X, -X, X * 3, X):
        torch.testing.assert_close(loaded(x), module(x))
    assert alone(f"""
        run = torch._inductor.aoti_load_package({str(path)!r})
        print([run(torch.tensor({X.tolist()}))[2].item() for _ in range(3)])
    """) == "[1, 2, 3]\n"


@pytest.mark.slow
def test_several_entries_write_state_of_one_element(tmp_path: Path) -> None:
    module, path = Counting(), tmp_path / "counting.aoti.pt2"
    entries = {"forward": module.forward, "last": module.last}
    sg.save(entries, path, args=dict.fromkeys(entries, (X,)))
    loaded = sg.load(path, native=True)
    for name in ("last", "forward", "last", "forward"):
        torch.testing.assert_close(loaded[name](X), entries[name](X))


@pytest.mark.slow
def test_writes_to_a_slice_of_unknown_bounds(tmp_path: Path) -> None:
    def filled(x: Tensor, n: Tensor) -> Tensor:
        t, u = torch.zeros(2, x.shape[0]), torch.zeros(x.shape[0], 2)
        while n > -3:
            t[..., n:] = t[..., n:] * 2 + 1
            t[1, :n] = x[:n] + n
            u[:n] = x[0]
            n = n - 1
        return t[:, : int(x[0])] + u[: int(x[0])].T

    x = torch.tensor([3.0, 1.0, 2.0, 5.0])
    path, spec = tmp_path / "filled.aoti.pt2", [sg.InputSpec([None]), None]
    sg.save(filled, path, args=(x, torch.tensor(2)), input_spec=spec)
    loaded = sg.load(path, native=True)
    for given, n in ((x, 4), (x + 1, -1), (torch.arange(9.0), 7), (torch.arange(1.0, 4.0), 5)):
        torch.testing.assert_close(loaded(given, torch.tensor(n)), filled(given, torch.tensor(n)))


# ---- refused
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
    assert "while x.sum() < 100:" in text
    assert "^^^" in text
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


class Cached(nn.Module):
    """A state that two entries write and one reads, and one of few elements."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(3, 4))
        self.register_buffer("small", torch.zeros(4))

    def fill(self, x: Tensor) -> Tensor:
        self.cache += x if x.sum() > 0 else -x
        return self.linear(x)

    def shift(self, by: Tensor) -> Tensor:
        while by > 0:
            self.cache += 1
            by = by - 1
        return by

    def read(self, scale: Tensor) -> Tensor:
        return self.linear(self.cache * scale)

    def write_small(self, x: Tensor) -> Tensor:
        self.small += x
        return x

    def read_small(self, x: Tensor) -> Tensor:
        return x + self.small


@pytest.mark.slow
def test_several_entries_share_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, module, rows = tmp_path / "cached.aoti.pt2", Cached(), torch.arange(12.0).reshape(3, 4)
    calls = {"fill": rows, "shift": torch.tensor(2), "read": torch.tensor(0.5)}
    entries = {name: getattr(module, name) for name in calls}
    sg.save(entries, path, args={name: (x,) for name, x in calls.items()})
    loaded = sg.load(path, native=True)
    assert list(loaded) == list(calls)
    fresh = sg.load(path, native=True)
    for name in ("read", "fill", "read", "shift", "fill", "read"):
        with torch.no_grad():
            torch.testing.assert_close(loaded[name](calls[name]), entries[name](calls[name]))
    with torch.no_grad():
        want = module.linear(torch.zeros(3, 4))
    torch.testing.assert_close(fresh.read(torch.tensor(1.0)), want)
    assert alone(f"""
        from torch._inductor.package import load_package
        print(load_package({str(path)!r}, "shift")(torch.tensor(3))[0])
    """) == "tensor(0)\n"
    monkeypatch.setattr(aoti, "_VERSION", 1)
    with pytest.raises(sg.LoadError, match=r"a newer stillgraph saved it \(format 3; this one reads up to 1\)"):
        sg.load(path, native=True)


def test_small_state_of_several_entries(tmp_path: Path) -> None:
    module = Cached()
    entries = {"write": module.write_small, "read": module.read_small}
    with pytest.raises(sg.ExportError, match="'read' reads 'small', which 'write' writes") as raised:
        sg.save(entries, tmp_path / "no.aoti.pt2", args={name: (torch.ones(4),) for name in entries})
    assert "def read_small" in str(raised.value)
    assert "or save as .pt2" in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_compiled_code_is_not_loaded_unless_it_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "any.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("any/data/aotinductor/model/model.so", b"\x7fELF")
    with pytest.raises(sg.LoadError, match="holds compiled code"):
        sg.load(path)
    with pytest.raises(sg.LoadError, match="it is damaged"):
        sg.load(path, native=True)


# ---- memory
ROWS = torch.arange(6.0).reshape(2, 3)
COLUMNS = torch.arange(6.0).reshape(3, 2).T


@pytest.mark.parametrize(
    ("tensor", "order", "copied"),
    [
        (ROWS, [0, 1], False),
        (COLUMNS, [0, 1], True),
        (COLUMNS, [1, 0], False),
        (ROWS, [1, 0], True),
        (torch.arange(12.0).reshape(2, 6)[:, ::2], [0, 1], True),
        (torch.ones(1, 3).expand(2, 3), [0, 1], True),
        (torch.ones(4)[1:], [0], False),
        (torch.tensor(1.0), [], False),
        (torch.ones(0, 3), [0, 1], False),
        (torch.tensor([1 + 2j]).conj().imag, [0], True),
        (torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1), [1, 0, 2], True),
    ],
)
def test_tensors_lie_as_the_code_expects(tensor: Tensor, order: list[int], copied: bool) -> None:
    laid = inductor.laid_out(tensor, order)
    assert torch.equal(laid, tensor)
    assert (laid.data_ptr() != tensor.data_ptr()) is copied
    assert inductor.order_of(laid) == order
    assert laid.permute(order).is_contiguous()


def test_what_the_code_writes_is_written_to_the_caller_s() -> None:
    def run(*tensors: Tensor) -> list[Tensor]:
        assert all(tensor.is_contiguous() for tensor in tensors)
        tensors[0].mul_(2)
        return [tensors[0].sum()]

    model = inductor.Model(run)
    model.expect([[0, 1], [0, 1]], [0])
    written, read = COLUMNS.clone(), torch.ones(1, 3).expand(2, 3)
    assert not written.is_contiguous()
    model(written, read)
    assert torch.equal(written, COLUMNS * 2)


def test_a_package_that_crashes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried in a process of its own: native code that reads past its memory ends the process."""
    monkeypatch.setattr(inductor, "_RUN", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert inductor.crashes(tmp_path / "f.pt2", "model", [X])
    monkeypatch.setattr(inductor, "_RUN", "raise ValueError")
    assert not inductor.crashes(tmp_path / "f.pt2", "model", [X])
    monkeypatch.setattr(inductor, "_RUN", "import time; time.sleep(99)")
    monkeypatch.setattr(inductor, "_STARTING", 0.0)
    assert not inductor.crashes(tmp_path / "f.pt2", "model", [X], seconds=0.1)


class Decoder(nn.Module):
    """A greedy decoder over a cell, whose list of tokens grows until all rows have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(20, 16), nn.LSTMCell(16, 16), nn.Linear(16, 20)

    def forward(self, h: Tensor) -> Tensor:
        c, token = torch.zeros_like(h), torch.full((h.shape[0],), 1)
        done = torch.zeros(h.shape[0], dtype=torch.bool)
        tokens = []
        while not done.all() and len(tokens) < 15:
            h, c = self.cell(self.embedding(token), (h, c))
            token = self.out(h).argmax(-1)
            done = done | (token == 2)
            tokens.append(token)
        return torch.stack(tokens, dim=1)


@pytest.mark.slow
def test_a_decoder_that_torch_compiles_to_a_crash_is_refused_or_right(tmp_path: Path) -> None:
    """Torch 2.13 compiles it to a crash; a torch that does not has to give eager's tokens."""
    torch.manual_seed(0)
    decoder, path, args = Decoder().eval(), tmp_path / "f.aoti.pt2", (torch.randn(3, 16),)
    spec = [sg.InputSpec([sg.Dim("batch"), 16])]
    refusal = None
    try:
        sg.save(decoder, path, args=args, input_spec=spec, max_iterations=15)
    except sg.ExportError as error:
        refusal = error
    if refusal is None:
        torch.testing.assert_close(sg.load(path, native=True)(*args), decoder(*args))
    else:
        assert refusal.reason.code == "SG402"
        assert "crashes on the example" in str(refusal)
        assert not path.exists()
