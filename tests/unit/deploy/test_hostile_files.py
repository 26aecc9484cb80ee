"""Files that are damaged, or were made to run code where they are loaded: one clear error, and nothing runs."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
WEIGHTS, CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"
Records = dict[str, bytes]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.table = torch.arange(3.0)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        while x.sum() > x.shape[0]:
            x = x / 2
        return {"y": self.linear(x) + self.table}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """What a good file holds."""
    path = tmp_path_factory.mktemp("good") / "model.pt2"
    sg.save(Model(), path, args=(X,), input_spec=[sg.InputSpec([None, 3])])
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def written(path: Path, records: Records, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in records.items():
            archive.writestr(f"archive/{name}", data)
    return path


def refused(path: Path) -> str:
    with pytest.raises(sg.LoadError) as raised:
        sg.load(path)
    assert isinstance(raised.value, ValueError)
    text = str(raised.value)
    assert text.startswith(f"{path.name!r} cannot be loaded: ")
    assert raised.value.reason.code == "SG404"
    assert "reason SG404" in text
    return text


def test_the_file_as_it_is_can_be_loaded(records: Records, tmp_path: Path) -> None:
    assert sg.load(written(tmp_path / "same.pt2", records))(X)["y"].shape == (2, 3)


# ---- damaged
@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06" + bytes(18), bytes(range(256)) * 20])
def test_what_is_no_archive(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "none.pt2"
    path.write_bytes(data)
    assert "it is damaged, or no .pt2 archive" in refused(path)


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_one_bit_that_changed(suffix: str, tmp_path: Path) -> None:
    """Anywhere in the file: it is an error, or makes no difference."""
    path, changed = tmp_path / f"model.{suffix}", tmp_path / f"changed.{suffix}"
    sg.save(Model(), path, args=(X,))
    data, want = path.read_bytes(), sg.load(path)(X)["y"]
    generator = random.Random(20240229)
    refusals = 0
    for place in generator.sample(range(len(data)), 200):
        other = bytearray(data)
        other[place] ^= 1 << generator.randrange(8)
        changed.write_bytes(other)
        try:
            loaded = sg.load(changed)
        except sg.LoadError:
            refusals += 1
        else:
            assert torch.equal(loaded(X)["y"], want), place
    assert refusals > (199 if suffix == "onnx" else 100)


def test_an_onnx_file_that_another_tool_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    sg.save(Model(), path, args=(X,))
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {**{each.key: each.value for each in model.metadata_props}, "more": "text"})
    onnx.save(model, path)
    assert "it is damaged, or was changed since it was saved" in refused(path)
    del model.metadata_props[[each.key for each in model.metadata_props].index("stillgraph.sha256")]
    onnx.save(model, path)
    assert "it is damaged, or was changed since it was saved" in refused(path)
    session = onnxruntime.InferenceSession(str(path))  # whom it does not concern
    (made,) = session.run(None, {session.get_inputs()[0].name: X.numpy()})
    assert made.shape == (2, 3)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off(part: float, records: Records, tmp_path: Path) -> None:
    path = written(tmp_path / "cut.pt2", records)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    refused(path)


@pytest.mark.parametrize("name", ["models/model.json", WEIGHTS, CONSTANTS, "extra/stillgraph.json"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe"])
def test_a_text_that_says_nothing(name: str, data: bytes, records: Records, tmp_path: Path) -> None:
    refused(written(tmp_path / "text.pt2", {**records, name: data}))


@pytest.mark.parametrize("name", ["models/model.json", "data/weights/weight_0", "archive_format", "archive_version"])
def test_a_record_that_is_not_there(name: str, records: Records, tmp_path: Path) -> None:
    refused(written(tmp_path / "lacks.pt2", {k: v for k, v in records.items() if k != name}))


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (99, "a newer stillgraph saved it (format 99; this one reads up to 4)"),
        (1, "an older stillgraph saved it (format 1; this one reads 2 and later)"),
        ("3", "it does not say which version"),
    ],
)
def test_another_version(version: Any, text: str, records: Records, tmp_path: Path) -> None:
    structure = json.loads(records["extra/stillgraph.json"])
    other = json.dumps({**structure, "version": version}).encode()
    assert text in refused(written(tmp_path / "other.pt2", {**records, "extra/stillgraph.json": other}))


def test_the_version_before_is_read(records: Records, tmp_path: Path) -> None:
    structure = json.loads(records["extra/stillgraph.json"])
    entries = [{key: value for key, value in each.items() if key != "checks"} for each in structure["entries"]]
    before = json.dumps({**structure, "version": 2, "entries": entries}).encode()
    path = written(tmp_path / "before.pt2", {**records, "extra/stillgraph.json": before})
    assert sg.load(path).checks == ()


# ---- larger than it looks
def test_what_is_compressed(records: Records, tmp_path: Path) -> None:
    bomb = {**records, "extra/zeros": bytes(50_000_000)}
    path = written(tmp_path / "bomb.pt2", bomb, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    assert "larger than the file" in refused(path)


def test_a_tensor_without_data(records: Records, tmp_path: Path) -> None:
    def enlarge(model: Any) -> None:
        for payload in model["config"].values():
            payload["tensor_meta"]["sizes"] = [{"as_int": 10**15}]

    name = "data/weights/model_weights_config.json"
    empty = {**changed(records, name, enlarge), "data/weights/weight_0": b"", "data/weights/weight_1": b""}
    assert "has no data" in refused(written(tmp_path / "huge.pt2", empty))


def test_sizes_that_take_for_ever(records: Records, tmp_path: Path) -> None:
    for text in ["Pow(Integer(9), Pow(Integer(9), Integer(9)))", "9**9**9**9", "Symbol('u99999999999')"]:
        assert "is no size" in refused(written(tmp_path / "slow.pt2", with_text(records, "expr_str", text)))


# ---- code
class Marker:
    """Pickled, it makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "w"))


def pickled(marker: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save((Marker(marker),), buffer)
    return buffer.getvalue()


def changed(records: Records, name: str, change: Callable[[Any], None]) -> Records:
    data = json.loads(records[name])
    change(data)
    return {**records, name: json.dumps(data).encode()}


def with_text(records: Records, key: str, text: str) -> Records:
    """The program with another text wherever it has one under a key."""

    def replace(data: Any) -> None:
        for name, value in data.items() if isinstance(data, dict) else enumerate(data):
            if name == key and isinstance(value, str):
                data[name] = text
            elif name == key and isinstance(value, list) and value and isinstance(value[0], str):
                data[name] = [text]
            elif isinstance(value, (dict, list)):
                replace(value)

    return changed(records, "models/model.json", replace)


def as_pickle(name: str) -> Callable[[Any], None]:
    def change(config: Any) -> None:
        for payload in config["config"].values():
            payload.update(use_pickle=True, path_name=name)

    return change


def as_constant(name: str) -> Callable[[Any], None]:
    def change(config: Any) -> None:
        config["config"]["table"] = {"path_name": name, "is_param": False, "use_pickle": True, "tensor_meta": None}

    return change


PICKLES: dict[str, Callable[[Records, bytes], Records]] = {
    "examples": lambda r, data: {**r, "data/sample_inputs/model.pt": data},
    "examples of old": lambda r, data: {**r, "data/sample_inputs/model.pt": pickle.dumps(pickle.loads)},
    "a weight": lambda r, data: {**changed(r, WEIGHTS, as_pickle("weight_0")), "data/weights/weight_0": data},
    "all weights": lambda r, data: {**r, "data/weights/model.pt": data},
    "a constant": lambda r, data: {**changed(r, CONSTANTS, as_constant("tensor_9")), "data/constants/tensor_9": data},
    "all constants": lambda r, data: {**r, "data/constants/model.pt": data},
    "an opaque object": lambda r, data: {
        **changed(r, CONSTANTS, as_constant("opaque_obj_0")),
        "data/constants/opaque_obj_0": data,
    },
    "an object of TorchScript": lambda r, data: {
        **changed(r, CONSTANTS, as_constant("custom_obj_0")),
        "data/constants/custom_obj_0": data,
    },
    "a weight elsewhere": lambda r, data: {**changed(r, WEIGHTS, as_pickle("../../extra/x")), "extra/x": data},
    "the form of old": lambda r, data: {"version": b"8.8", "serialized_state_dict.pt": data},
    "compiled code": lambda r, data: {**r, "data/aotinductor/model/model.so": b"\x7fELF"},
    "a name above": lambda r, data: {**r, "../above": data},
}


@pytest.mark.parametrize("place", PICKLES)
def test_a_pickle(place: str, records: Records, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    path = written(tmp_path / "hostile.pt2", PICKLES[place](records, pickled(marker)))
    refused(path)
    assert not marker.exists()


def code(marker: Path) -> str:
    return f"__import__('pathlib').Path({str(marker)!r}).touch()"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("expr_str", "{code}"),
        ("expr_str", "Symbol('s0', positive={code})"),
        ("expr_str", "Symbol({quoted})"),
        ("expr_str", "eval({quoted})"),
        ("expr_str", "(lambda: {code})()"),
        ("expr_str", "Symbol('s0').__class__"),
        ("target", "torch.os.system"),
        ("target", "torch.ops.load_library"),
        ("target", "torch.hub.load"),
        ("target", "torch.ops.aten.from_file.default"),
        ("target", "torch.ops.aten.__class__.mro"),
        ("target", "torch.ops.higher_order.triton_kernel_wrapper_mutation"),
        ("target", "_operator.attrgetter"),
        ("target", "_operator.call"),
        ("target", "#executorch:add"),
        ("target", "eval"),
        ("as_operator", "torch.os.system"),
        ("name", "x={code}"),
        ("as_name", "x={code}"),
        ("parameter_name", 'a"+{code}+"'),
        ("forward_arg_names", "x={code}"),
        ("in_spec", '[1, {{"type": "collections.defaultdict", "context": "{{}}", "children_spec": []}}]'),
        ("out_spec", '[1, {{"type": "builtins.dict", "context": "{{\\"__enum__\\": 1}}", "children_spec": []}}]'),
    ],
)
def test_code_in_a_text_of_the_program(key: str, text: str, records: Records, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    text = text.format(code=code(marker), quoted=repr(code(marker)))
    hostile = with_text(records, key, text)
    if key == "as_operator":  # the program has none
        hostile = changed(records, "models/model.json", lambda m: m["graph_module"]["graph"].update(as_operator=text))
    assert hostile != records
    refused(written(tmp_path / "hostile.pt2", hostile))
    assert not marker.exists()


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_json_has_not(value: float, tmp_path: Path) -> None:
    """torch writes them as texts."""

    def masked(x: Tensor) -> Tensor:
        return x.masked_fill(x > 2, value)

    path = tmp_path / "masked.pt2"
    sg.save(masked, path, args=(X,))
    torch.testing.assert_close(sg.load(path)(X), masked(X), equal_nan=True)


def test_a_number_that_is_none(records: Records, tmp_path: Path) -> None:
    hostile = changed(records, "models/model.json", lambda m: m["graph_module"]["graph"].update(as_float="x"))
    assert "'x' is no number" in refused(written(tmp_path / "hostile.pt2", hostile))


def test_guards_are_code(records: Records, tmp_path: Path) -> None:
    hostile = changed(records, "models/model.json", lambda model: model.update(guards_code=[code(tmp_path / "marker")]))
    assert "guards_code" in refused(written(tmp_path / "hostile.pt2", hostile))
    assert not (tmp_path / "marker").exists()


def test_torch_itself_would_run_it(records: Records, tmp_path: Path) -> None:
    """What these tests are about is so: should torch refuse some day, less of our own is needed."""
    marker = tmp_path / "marker"
    path = written(tmp_path / "hostile.pt2", PICKLES["examples"](records, pickled(marker)))
    with pytest.raises(Exception, match=r"."):
        torch.export.load(path).module()(1)
    assert marker.exists()


def test_a_class_that_is_not_loaded_is_not_imported(records: Records, tmp_path: Path) -> None:
    (tmp_path / "nobody.py").write_text("raise SystemExit")
    text = records["extra/stillgraph.json"].replace(b"builtins:dict", b"nobody:Dict")
    assert text != records["extra/stillgraph.json"]
    loaded = sg.load(written(tmp_path / "other.pt2", {**records, "extra/stillgraph.json": text}))
    assert list(loaded(X)) == ["y"]
