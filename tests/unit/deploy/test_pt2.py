from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.deploy.archive import load
from stillgraph.deploy.exporting.exported_program import to_exported_program
from tests.sampling import few
from tests.unit.deploy.alone import alone
from tests.unit.deploy.saving import save
from tests.unit.passes.captured import SAMPLES, Stateful

X, LIMIT = torch.tensor([1.0, 2.0, 3.0]), torch.tensor(4.0)
Pair = namedtuple("Pair", "left right")


@dataclass
class Point:
    x: Any
    y: Any


@pytest.mark.parametrize("name", few(SAMPLES, 2, slow=("numbers",)))
def test_a_loaded_program_gives_what_the_original_gives(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    save(sample.fresh(), tmp_path / "program.pt2", sample.calls[0])
    loaded, original = load(tmp_path / "program.pt2"), sample.fresh()
    with torch.no_grad():
        for call in sample.calls:
            want, got = original(*call), loaded(*call)
            assert type(got) is type(want)
            torch.testing.assert_close(got, want)


def test_numbers_come_back_as_python_numbers(tmp_path: Path) -> None:
    save(SAMPLES["numbers"].make(), tmp_path / "numbers.pt2", (X, LIMIT))
    _, n, ratio, whole = load(tmp_path / "numbers.pt2")(X, LIMIT)
    assert [type(n), type(ratio), type(whole)] == [int, float, bool]


# ---- what is in the file
def test_weights_keep_their_names_and_state_is_kept(tmp_path: Path) -> None:
    module = Stateful()
    save(module, tmp_path / "module.pt2", (X, LIMIT))
    assert module.calls == 0
    loaded = load(tmp_path / "module.pt2")
    assert set(loaded.module.state_dict()) == {*module.state_dict(), "calls"}
    for _ in range(3):
        loaded(X, LIMIT)
        module(X, LIMIT)
    for name, value in module.state_dict().items():
        torch.testing.assert_close(loaded.module.state_dict()[name], value)


def test_torch_alone_reads_the_file(tmp_path: Path) -> None:
    save(SAMPLES["branch_in_loop"].make(), tmp_path / "loop.pt2", (X, LIMIT))
    program = torch.export.load(tmp_path / "loop.pt2")
    outputs = program.module()(X, LIMIT)
    assert all(isinstance(output, Tensor) for output in outputs)
    targets = {node.target for node in program.graph.nodes}
    assert torch.ops.higher_order.while_loop in targets
    names = [spec.arg.name for spec in program.graph_signature.input_specs]
    assert names == ["x", "limit"]


def test_sizes_stay_open(tmp_path: Path) -> None:
    def halved(x: Tensor) -> Tensor:
        while x.sum() > x.shape[0]:
            x = x / 2
        return x

    save(halved, tmp_path / "open.pt2", (torch.ones(4, 3),), input_spec=[sg.InputSpec([None, 3])])
    loaded = load(tmp_path / "open.pt2")
    for rows in (2, 4, 7):
        x = torch.full((rows, 3), 5.0)
        torch.testing.assert_close(loaded(x), halved(x))


@pytest.mark.slow
def test_growing_loops_need_torch_alone(tmp_path: Path) -> None:
    def grown(x: Tensor) -> Tensor:
        while x.sum() < 20:
            x = torch.cat([x, x[-1:] + 1])
        return x

    save(grown, tmp_path / "grown.pt2", (X,))
    loaded = load(tmp_path / "grown.pt2")
    assert not loaded.notes
    for x in (X, X / 3, X * 9):
        torch.testing.assert_close(loaded(x), grown(x))
    assert alone(f"""
        module = torch.export.load({str(tmp_path / "grown.pt2")!r}).module()
        print(module(torch.ones(3, 4))[0].shape[0])
    """) == f"{grown(torch.ones(3, 4)).shape[0]}\n"


# ---- arguments and results
def results(x: Tensor, kind: str = "dict") -> Any:
    y = x + 1 if x.sum() > 0 else x - 1
    made: dict[str, Any] = {
        "dict": {"a": y, 3: [y, (1, "text", None)]},
        "pair": Pair(y, 2.5),
        "point": Point(y, True),
        "ordered": OrderedDict(first=y),
        "counter": Counter("aab"),
        "none": None,
        "number": 7,
        "twice": [y, y],
        "nan": (math.inf, y.sum().item()),
        "size": (y.shape, x.size()),
        "largest": y.max(0),
        "deque": deque([y, 1], maxlen=2),
        "default": defaultdict(None, {"a": y, 3: x + 1}),
    }
    return made[kind]


KINDS = ["dict", "pair", "point", "ordered", "counter", "none", "number", "twice", "nan"]


@pytest.mark.parametrize("kind", [*KINDS, "size", "largest", "deque", "default"])
def test_the_structure_of_results(kind: str, tmp_path: Path) -> None:
    save(results, tmp_path / "results.pt2", (X, kind))
    loaded = load(tmp_path / "results.pt2")
    for x in (X, -X):
        want, got = results(x, kind), loaded(x, kind)
        assert type(got) is type(want)
        assert repr(got) == repr(want)


def test_structured_arguments(tmp_path: Path) -> None:
    def combined(pair: tuple[Tensor, Tensor], *, options: dict[str, Tensor]) -> Tensor:
        left, right = pair
        return left if options["p"] else right * options["scale"]

    args, options = ((X, X),), {"scale": LIMIT, "p": torch.tensor(False)}
    program = sg.export(combined, args, {"options": options})
    exported = to_exported_program(program, args, {"options": options})
    assert [taken.name for taken in exported.signature.taken] == ["pair_0", "pair_1", "options_scale", "options_p"]


def test_tensors_that_the_program_does_not_use_stay_arguments(tmp_path: Path) -> None:
    def ignoring(x: Tensor, unused: Tensor) -> Tensor:
        return x * 2

    save(ignoring, tmp_path / "unused.pt2", (X, LIMIT))
    torch.testing.assert_close(load(tmp_path / "unused.pt2")(X, LIMIT), X * 2)


def test_arguments_by_keyword_and_by_position(tmp_path: Path) -> None:
    save(SAMPLES["branch"].make(), tmp_path / "branch.pt2", (X, LIMIT))
    loaded = load(tmp_path / "branch.pt2")
    torch.testing.assert_close(loaded(X, limit=LIMIT), loaded(X, LIMIT))
    torch.testing.assert_close(loaded(x=X, limit=LIMIT), loaded(X, LIMIT))


def test_a_call_the_program_was_not_made_for(tmp_path: Path) -> None:
    save(results, tmp_path / "results.pt2", (X, "pair"))
    loaded = load(tmp_path / "results.pt2")
    with pytest.raises(ValueError, match=r"saved for kind = 'pair', not 'dict'"):
        loaded(X, "dict")
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        loaded()
    save(results, tmp_path / "results.pt2", (X,))
    with pytest.raises(TypeError, match="without the argument kind"):
        load(tmp_path / "results.pt2")(X, "pair")


# ---- exceptions and refusals
def test_an_exception_of_the_program_makes_the_artefact_fail(tmp_path: Path) -> None:
    def checked(x: Tensor) -> Tensor:
        if x.sum() > 10:
            raise ValueError("too large")
        return x * 2

    save(checked, tmp_path / "checked.pt2", (X,))
    loaded = load(tmp_path / "checked.pt2")
    torch.testing.assert_close(loaded(X), X * 2)
    with pytest.raises(ValueError, match=r"^too large$"):
        loaded(X * 9)


def weighted(x: Tensor, *rest: Tensor, mask: Tensor | None = None, negative: bool = False, **named: Tensor) -> Tensor:
    for other in rest:
        x = x + other
    for other in named.values():
        x = x * other
    x = x if mask is None else x * mask
    return -x if negative else x


@pytest.mark.parametrize(
    ("saved", "called", "error"),
    [
        (((X,), {}), ((X,), {}), None),
        (((X,), {}), ((), {"x": X}), None),
        (((X,), {}), ((X,), {"mask": None, "negative": False}), None),
        (((X,), {}), ((X,), {"mask": X}), "TypeError: .* without the argument mask"),
        (((X,), {}), ((X,), {"negative": True}), "TypeError: .* without the argument negative"),
        (((X,), {}), ((X, X), {}), "TypeError: .* without the argument number 2"),
        (((X,), {}), ((X,), {"other": X}), "TypeError: .* without the argument other"),
        (((X,), {}), ((), {}), "TypeError: .* missing a required argument: 'x'"),
        (((X,), {"negative": True}), ((X,), {"negative": True}), None),
        (((X,), {"negative": True}), ((X,), {}), "ValueError: .* saved for negative = True, not False"),
        (((X,), {"mask": X}), ((X,), {}), "ValueError: .* saved for mask of float32.*, not a NoneType"),
        (((X, X), {"other": X}), ((X, 2 * X), {"other": X}), None),
        (((X, X), {"other": X}), ((X,), {"other": X}), "TypeError: .* argument number 2 is missing"),
        (((X, X), {"other": X}), ((X, X), {}), "TypeError: .* argument other is missing"),
        (((X,), {}), ((X.double(),), {}), r"ValueError: .* saved for x of float32\[3\], not float64\[3\]"),
        (((X,), {}), ((X[:2],), {}), r"ValueError: .* saved for x of float32\[3\], not float32\[2\]"),
    ],
)
def test_a_loaded_program_takes_what_the_original_takes_and_what_it_was_saved_for(
    saved: Any, called: Any, error: str | None, tmp_path: Path
) -> None:
    sg.save(weighted, tmp_path / "weighted.pt2", args=saved[0], kwargs=saved[1])
    loaded = sg.load(tmp_path / "weighted.pt2")
    args, kwargs = called
    if error is None:
        torch.testing.assert_close(loaded(*args, **kwargs), weighted(*args, **kwargs))
        return
    kind, _, text = error.partition(": ")
    with pytest.raises({"TypeError": TypeError, "ValueError": ValueError}[kind], match=text):
        loaded(*args, **kwargs)


def test_a_loaded_program_says_that_it_does_not_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def talking(x: Tensor) -> Tensor:
        print("sum", x.sum().item())
        return x * 2

    sg.save(talking, tmp_path / "talking.pt2", args=(X,))
    loaded = sg.load(tmp_path / "talking.pt2")
    capsys.readouterr()
    torch.testing.assert_close(loaded(X), X * 2)
    assert capsys.readouterr().out == ""
    assert loaded.notes == ("a loaded program does not print",)  # type: ignore[attr-defined]


def test_nothing_is_captured_for_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    def never(x: Tensor) -> Tensor:
        raise AssertionError("captured")

    with pytest.raises(ValueError, match="suffix"):
        sg.save(never, tmp_path / "never.txt", args=(X,))
    with pytest.raises(FileNotFoundError, match="no folder"):
        sg.save(never, tmp_path / "nowhere" / "never.pt2", args=(X,))


def lengths(x: Tensor) -> Any:
    if x.sum() > 0:
        return x, x
    return x


def keys(x: Tensor) -> Any:
    found = {"x": x}
    if x.sum() > 0:
        found["more"] = x * 2
    return [found]


def dtypes(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x
    return x.long()


def ranks(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x
    return x.unsqueeze(0)


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        (lengths, "outputs differ in structure"),
        (keys, "on some paths only"),
        (dtypes, "outputs differ in dtype"),
        (ranks, "Shape Join Failed"),
    ],
)
@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_results_of_different_structure_are_refused(function: Any, phrase: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"program{suffix}"
    with pytest.raises(ExportError, match=phrase):
        save(function, path, (X,))
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_returns_none(tmp_path: Path) -> None:
    def positive(x: Tensor) -> Any:
        if x.sum() > 0:
            return x, x * 2
        return None

    save(positive, tmp_path / "positive.pt2", (X,))
    loaded = load(tmp_path / "positive.pt2")
    torch.testing.assert_close(loaded(X), (X, X * 2))
    assert loaded(-X) is None


# ---- what a loaded file may do
def test_the_structure_is_plain_json(tmp_path: Path) -> None:
    save(results, tmp_path / "point.pt2", (X, "point"))
    extra = {"stillgraph.json": ""}
    torch.export.load(tmp_path / "point.pt2", extra_files=extra)
    structure = json.loads(extra["stillgraph.json"])
    assert structure["version"] == 4
    (structure,) = structure["entries"]
    assert structure["result"]["instance"].endswith(":Point")


def test_numbers_that_are_none_are_read_back(tmp_path: Path) -> None:
    def bounds(x: Tensor) -> tuple[Tensor, Tensor]:
        best = torch.full((3,), float("-inf"))
        while x.sum() < 20:
            best = torch.maximum(best, x.masked_fill(x > 5, float("inf")))
            x = x + 1
        return best, torch.full_like(x, float("nan"))

    save(bounds, tmp_path / "bounds.pt2", (X,))
    for x in (X, X - 2, X + 20):
        torch.testing.assert_close(load(tmp_path / "bounds.pt2")(x), bounds(x), equal_nan=True)


def test_weights_take_no_gradient(tmp_path: Path) -> None:
    save(nn.Linear(3, 3), tmp_path / "linear.pt2", (X,))
    loaded = load(tmp_path / "linear.pt2")
    assert not any(parameter.requires_grad for parameter in loaded.module.parameters())
    assert not loaded(X).requires_grad


# ---- what is written
class Accumulating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.total = self.total + x
        return self.total


def test_a_result_is_not_the_buffer_it_is_written_to(tmp_path: Path) -> None:
    sg.save(Accumulating(), tmp_path / "sum.pt2", args=(X,))
    loaded = sg.load(tmp_path / "sum.pt2")
    first = loaded(X)
    loaded(X)
    assert torch.equal(first, X)


class Deep(nn.Module):
    """State that is written in regions four deep, by assignment and in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        n = x.sum()
        while n > 3:
            if n > 4:
                while n > 5:
                    if x.max() > 1:
                        self.total += x
                    n = n - 1
            n = n - 1
        x.mul_(2)
        return self.total * n


def test_the_signature_names_what_deep_regions_write(tmp_path: Path) -> None:
    sg.save(Deep(), tmp_path / "deep.pt2", args=(X * 2,))
    exported = torch.export.load(tmp_path / "deep.pt2")
    signature = exported.graph_signature
    assert sorted(signature.buffers_to_mutate.values()) == ["calls", "total"]
    assert list(signature.user_inputs_to_mutate.values()) == ["x"]
    loaded, original = sg.load(tmp_path / "deep.pt2"), Deep()
    for value in (2.0, 3.0, 0.5):
        mine, theirs = X * value, X * value
        torch.testing.assert_close(loaded(mine), original(theirs))
        assert torch.equal(mine, theirs)
    assert torch.equal(loaded.module.total, original.total)
    assert loaded.module.calls.item() == 3


def test_a_size_that_is_a_part_of_a_number(tmp_path: Path) -> None:
    def part(x: Tensor, scale: Tensor) -> Tensor:
        return x.new_zeros(int(scale.item() * 0.5), int(x.shape[0] * scale.item()))

    sg.save(part, tmp_path / "f.pt2", args=(torch.ones(6), torch.tensor(4.0)))
    loaded = sg.load(tmp_path / "f.pt2")
    for scale in (4.0, 7.0, 2.5):
        given = torch.ones(6), torch.tensor(scale)
        assert loaded(*given).shape == part(*given).shape
