"""Several programs in one file: ``sg.save({"encode": …, "decode": …}, path)``."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.deploy.alone import alone

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Codec(nn.Module):
    """Writes what it saw when it encodes, and reads it when it decodes."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))
        self.calls = 0

    def encode(self, x: Tensor) -> dict[str, Any]:
        self.seen += x.sum(0)
        self.calls += 1
        while x.sum() > 10:
            x = x / 2
        return {"code": self.table(x), "calls": self.calls}

    def decode(self, code: Tensor, scale: float = 2.0) -> tuple[Tensor, int]:
        y = code @ self.table.weight if code.sum() > 0 else code
        return y * scale + self.seen, self.calls


def saved(path: Path, codec: Codec) -> Path:
    sg.save({"encode": codec.encode, "decode": codec.decode}, path, args={"encode": (X,), "decode": (X,)})
    return path


def test_entries_are_called_like_the_originals(tmp_path: Path) -> None:
    codec = Codec()
    loaded = sg.load(saved(tmp_path / "codec.pt2", codec))
    assert (list(loaded), len(loaded), "encode" in loaded) == (["encode", "decode"], 2, True)
    assert loaded["encode"] is loaded.encode
    assert repr(loaded) == "<loaded programs encode, decode>"
    assert "decode" in dir(loaded)
    with torch.no_grad():
        want, got = codec.encode(X), loaded.encode(x=X)
    torch.testing.assert_close(got, want)
    assert type(got["calls"]) is int


def test_entries_share_their_state(tmp_path: Path) -> None:
    codec = Codec()
    loaded = sg.load(saved(tmp_path / "codec.pt2", codec))
    for _ in range(3):
        with torch.no_grad():
            want = [codec.encode(X), codec.decode(X)]
        torch.testing.assert_close([loaded.encode(X), loaded.decode(X)], want)
    assert codec.calls == 3
    assert loaded.encode.module.table.weight is loaded.decode.module.table.weight
    assert loaded.encode.module.seen is loaded.decode.module.seen


def test_an_object_s_state_is_not_that_of_its_equal(tmp_path: Path) -> None:
    first, second = Codec(), Codec()
    second.load_state_dict(first.state_dict())
    sg.save({"a": first.encode, "b": second.decode}, tmp_path / "two.pt2", args={"a": (X,), "b": (X,)})
    loaded = sg.load(tmp_path / "two.pt2")
    loaded.a(X)
    assert loaded.b(X)[1] == 0
    assert not loaded.b.module.seen.any()


def test_equal_weights_are_written_once_and_stay_apart(tmp_path: Path) -> None:
    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("left", torch.zeros(1000))
            self.register_buffer("right", torch.zeros(1000))

        def add(self, x: Tensor) -> Tensor:
            self.left += x
            return self.left - self.right

        def take(self, x: Tensor) -> Tensor:
            self.right -= x
            return self.left - self.right

    twins = Twins()
    args = {"add": (X[0, 0],), "take": (X[0, 0],)}
    sg.save({"add": twins.add, "take": twins.take}, tmp_path / "twins.pt2", args=args)
    with zipfile.ZipFile(tmp_path / "twins.pt2") as archive:
        assert [i.file_size for i in archive.infolist() if "/weights/weight_" in i.filename] == [4000, 4000]
    loaded = sg.load(tmp_path / "twins.pt2")
    for call in ("add", "take", "take", "add"):
        torch.testing.assert_close(loaded[call](X[0, 0]), getattr(twins, call)(X[0, 0]))


def test_torch_alone_reads_several_entries(tmp_path: Path) -> None:
    codec = Codec()
    path = saved(tmp_path / "codec.pt2", codec)
    with torch.no_grad():
        want = codec.encode(X)["code"].sum().item()
    assert alone(f"""
        from torch.export.pt2_archive._package import load_pt2
        programs = load_pt2({str(path)!r}).exported_programs
        print(sorted(programs), list(programs["encode"].graph_signature.buffers_to_mutate.values()))
        print(round(programs["encode"].module()(torch.tensor({X.tolist()}))[0].sum().item(), 4))
    """).split("\n")[:2] == ["['decode', 'encode'] ['seen', 'calls']", str(round(want, 4))]


def test_a_dict_of_one_entry_is_what_torch_loads(tmp_path: Path) -> None:
    sg.save({"double": lambda x: x * 2}, tmp_path / "one.pt2", args={"double": (X,)})
    torch.testing.assert_close(sg.load(tmp_path / "one.pt2").double(X), X * 2)
    torch.testing.assert_close(torch.export.load(tmp_path / "one.pt2").module()(X)[0], X * 2)


def test_every_kind_of_target(tmp_path: Path) -> None:
    def halved(x: Tensor) -> Tensor:
        return x / 2

    linear = nn.Linear(3, 3)
    targets = {
        "module": linear,
        "function": halved,
        "static": sg.to_static(halved, backend="eager"),
        "program": sg.export(halved, (X,)),
        "traced": sg.trace(halved, (X,)),
    }
    spec = {"function": [sg.InputSpec([None, 3])]}
    sg.save(targets, tmp_path / "all.pt2", args=dict.fromkeys(targets, (X,)), input_spec=spec)
    loaded = sg.load(tmp_path / "all.pt2")
    torch.testing.assert_close(loaded.module(X), linear(X).detach())
    for name in ("static", "program", "traced"):
        torch.testing.assert_close(loaded[name](X), X / 2)
    torch.testing.assert_close(loaded.function(X.repeat(3, 1)), X.repeat(3, 1) / 2)


# ---- refused
@pytest.mark.parametrize("name", ["a b", "1", "_hidden", "class", "keys", "größe", 3, ""])
def test_names_that_cannot_be(name: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="entry"):
        sg.save({name: lambda x: x}, tmp_path / "no.pt2", args={name: (X,)})
    assert not list(tmp_path.iterdir())


def test_what_several_entries_need(tmp_path: Path) -> None:
    def same(x: Tensor) -> Tensor:
        return x

    for path, given, error, text in [
        ("no.onnx", {"args": {"a": (X,)}}, ValueError, "as onnx, save each by itself"),
        ("no.py", {"args": {"a": (X,)}}, ValueError, "as python, save each by itself"),
        ("no.pt2", {"args": (X,)}, TypeError, "args of several entries is a dict"),
        ("no.pt2", {"args": {"b": (X,)}}, ValueError, "args has 'b', which is no entry"),
    ]:
        with pytest.raises(error, match=text):
            sg.save({"a": same}, tmp_path / path, **given)
    with pytest.raises(ValueError, match="there is no entry"):
        sg.save({}, tmp_path / "no.pt2")
    assert not list(tmp_path.iterdir())


def test_an_entry_that_cannot_be_exported_is_named_by_its_line(tmp_path: Path) -> None:
    def mixed(x: Tensor) -> Any:
        return (x, x) if x.sum() > 0 else x

    with pytest.raises(sg.ExportError, match="SG401") as raised:
        sg.save({"a": lambda x: x, "b": mixed}, tmp_path / "no.pt2", args={"a": (X,), "b": (X,)})
    assert "mixed" in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_state_that_is_no_tensor_and_decides_what_the_program_is(tmp_path: Path) -> None:
    class Modal:
        def __init__(self) -> None:
            self.mode = "narrow"

        def widen(self, x: Tensor) -> Tensor:
            self.mode = "wide"
            return x

        def take(self, x: Tensor) -> Tensor:
            return x.repeat(2, 1) if self.mode == "wide" else x

    modal = Modal()
    with pytest.raises(sg.ExportError, match=r"'take' is captured for one value of .*mode, which 'widen' writes"):
        sg.save({"widen": modal.widen, "take": modal.take}, tmp_path / "m.pt2", args={"widen": (X,), "take": (X,)})
    assert not list(tmp_path.iterdir())


def test_there_is_no_such_entry(tmp_path: Path) -> None:
    loaded = sg.load(saved(tmp_path / "codec.pt2", Codec()))
    with pytest.raises(AttributeError, match="there is no entry 'train', there are encode, decode"):
        loaded.train(X)
    with pytest.raises(KeyError, match="there is no entry 'train'"):
        loaded["train"]
