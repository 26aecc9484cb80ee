from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.deploy.onnx.onnx_session import run_onnx
from tests.sampling import few, only
from tests.unit.deploy.saving import save
from tests.unit.passes.captured import SAMPLES

X, LIMIT = torch.tensor([1.0, 2.0, 3.0]), torch.tensor(4.0)


def leaves(value: Any) -> list[Tensor]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
    return [
        part
        if isinstance(part, Tensor)
        else torch.tensor(part, dtype={bool: torch.bool, int: torch.int64, float: torch.float64}[type(part)])
        for part in parts
    ]


def operators(path: Path) -> set[str]:
    found: set[str] = set()

    def walk(graph: Any) -> None:
        for node in graph.node:
            found.add(node.op_type)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    walk(attribute.g)

    walk(onnx.load(path).graph)
    return found


FAST = ("branch_in_loop", "returned_from_loop", "numbers")


@pytest.mark.parametrize("name", only([each for each in SAMPLES if each != "Stateful"], FAST))
def test_onnxruntime_gives_what_the_original_gives(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    path = tmp_path / "program.onnx"
    save(sample.fresh(), path, sample.calls[0])
    onnx.checker.check_model(path, full_check=True)
    for call in sample.calls:
        torch.testing.assert_close(run_onnx(path, call), leaves(sample.fresh()(*call)))


def test_control_flow_is_in_the_file(tmp_path: Path) -> None:
    save(SAMPLES["branch_in_loop"].make(), tmp_path / "loop.onnx", (X, LIMIT))
    assert {"If", "Loop"} <= operators(tmp_path / "loop.onnx")


def test_a_loop_may_carry_a_tensor_that_grows(tmp_path: Path) -> None:
    def grown(x: Tensor, step: Tensor) -> tuple[Tensor, int]:
        while x.sum() < 20:
            following = x[:, -1:] + step
            if following.sum() > 7:
                following = following * 2
            x = torch.cat([x, following], dim=1)
        return x, x.shape[1]

    path = tmp_path / "grown.onnx"
    save(grown, path, (torch.ones(2, 1), torch.tensor(1.0)))
    for x in (torch.ones(2, 1), torch.zeros(2, 1), torch.full((2, 1), 50.0)):
        torch.testing.assert_close(run_onnx(path, (x, torch.tensor(1.0))), leaves(grown(x, torch.tensor(1.0))))


class Decoder(nn.Module):
    """Greedy decoding until the end of text or a limit."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.output = nn.Linear(8, 12)

    def forward(self, ids: Tensor) -> Tensor:
        while ids.shape[1] < 10:
            logits = self.output(self.embedding(ids).mean(dim=1) + self.embedding(ids[:, -1]))
            token = logits.argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, token], dim=1)
            if (token == 3).all():
                break
        return ids


def test_a_decoding_loop(tmp_path: Path) -> None:
    torch.manual_seed(3)
    decoder, path = Decoder(), tmp_path / "decoder.onnx"
    prompts = [torch.randint(0, 12, (1, 3)) for _ in range(6)]
    save(decoder, path, (prompts[0],))
    for prompt in prompts:
        assert torch.equal(run_onnx(path, [prompt])[0], decoder(prompt))


def test_sizes_stay_open(tmp_path: Path) -> None:
    def halved(x: Tensor) -> Tensor:
        while x.sum() > x.shape[0]:
            x = x / 2
        return x

    path = tmp_path / "open.onnx"
    save(halved, path, (torch.ones(2, 3),), input_spec=[sg.InputSpec([None, 3])])
    for rows in (2, 4, 7):
        x = torch.full((rows, 3), 5.0)
        torch.testing.assert_close(run_onnx(path, [x])[0], halved(x))


def test_an_exception_of_the_program_makes_the_run_fail(tmp_path: Path) -> None:
    def checked(x: Tensor) -> tuple[Tensor, int]:
        if x.sum() > 10:
            raise ValueError("too large")
        return x * 2, 3

    path = tmp_path / "checked.onnx"
    save(checked, path, (X,))
    torch.testing.assert_close(run_onnx(path, [X]), [X * 2, torch.tensor(3)])
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        run_onnx(path, [X * 9])


def test_numbers_far_from_zero(tmp_path: Path) -> None:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(x, y)

    path = tmp_path / "loss.onnx"
    save(loss, path, (torch.tensor([-200.0, 0.5]), torch.tensor([1.0, 0.0])))
    assert torch.isfinite(run_onnx(path, [torch.tensor([-300.0, 300.0]), torch.tensor([1.0, 0.0])])[0])


def test_a_transposed_matrix_times_a_vector(tmp_path: Path) -> None:
    def gradient(a: Tensor, x: Tensor) -> Tensor:
        while x.norm() > 1:
            x = x - a.T @ (a @ x) / 20
        return x

    path = tmp_path / "product.onnx"
    a, x = torch.randn(5, 3), torch.randn(3) * 5
    save(gradient, path, (a, x))
    torch.testing.assert_close(run_onnx(path, [a, x])[0], gradient(a, x), rtol=1e-4, atol=1e-5)


def test_bfloat16_is_computed_in_float32(tmp_path: Path) -> None:
    def mixed(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y.float()

    path, x = tmp_path / "mixed.onnx", torch.randn(4, 4)
    save(mixed, path, (x,))
    torch.testing.assert_close(run_onnx(path, [x])[0], mixed(x), rtol=2e-2, atol=2e-2)


INFINITE = torch.tensor([math.inf, -math.inf, 1.0, -0.5])


def bounded(x: Tensor) -> tuple[Tensor, ...]:
    y = x if x[0] > 0 else -x
    return y.clamp(max=1.0), y.clamp(min=0.0), y.clamp_max(0.5), y.clamp_min(-1), y.clamp(-1, 1)


def middle(x: Tensor) -> Tensor:
    return x.median() if x[2] > 0 else x.median() * 2


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (bounded, [INFINITE, -INFINITE, torch.tensor([math.nan, 1.0, -math.inf, 2.0])]),
        (middle, [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, math.nan, 3.0]), INFINITE[:3]]),
        (middle, [torch.tensor([1, 2, 3]), torch.tensor([5, 5, -4])]),
    ],
)
def test_values_that_are_not_finite(function: Any, calls: list[Tensor], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.onnx", args=(torch.ones_like(calls[0]),))
    loaded = sg.load(tmp_path / "program.onnx")
    for x in calls:
        torch.testing.assert_close(loaded(x), function(x), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", few([torch.int64, torch.int32, torch.uint8, torch.float32], 2))
def test_quotients_that_are_rounded(dtype: torch.dtype, tmp_path: Path) -> None:
    def shared(x: Tensor, y: Tensor) -> list[Tensor]:
        if x.sum() > 0:
            return [torch.div(x, y, rounding_mode="floor"), torch.div(x, 3, rounding_mode="trunc")]
        return [torch.div(x, y, rounding_mode="trunc"), torch.div(x, 3, rounding_mode="floor")]

    sg.save(shared, tmp_path / "shared.onnx", args=(torch.ones(3, dtype=dtype), torch.ones(3, dtype=dtype)))
    loaded = sg.load(tmp_path / "shared.onnx")
    large = {torch.int64: 2**53 + 1, torch.int32: 2**24 + 1, torch.uint8: 255, torch.float32: 12.5}[dtype]
    rows = [[7, large, 5], [0, 0, 0]] if dtype == torch.uint8 else [[7, large, -5], [-7, -large, 6]]
    for row in rows:
        x, y = torch.tensor(row, dtype=dtype), torch.tensor([2, 1, 3], dtype=dtype)
        for divisor in (y,) if dtype == torch.uint8 else (y, -y):
            torch.testing.assert_close(loaded(x, divisor), shared(x, divisor), rtol=0, atol=0)


class Counting(nn.Module):
    """State that is written in place and is the result as well."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        self.seen += x
        return self.seen


def test_state_that_is_the_result(tmp_path: Path) -> None:
    sg.save(Counting(), tmp_path / "counting.onnx", args=(torch.ones(3),))
    loaded, original = sg.load(tmp_path / "counting.onnx"), Counting()
    for value in (1.0, 2.0, 0.5):
        torch.testing.assert_close(loaded(torch.full((3,), value)), original(torch.full((3,), value)))


def stepped(x: Tensor) -> tuple[float, bool, Tensor]:
    time = 0.0
    while time < x:
        time += 0.1
    return time, time > 0.7, torch.full((2,), 0.1, dtype=torch.float64) + x.double() * 0.3


def test_constants_of_double_precision(tmp_path: Path) -> None:
    sg.save(stepped, tmp_path / "stepped.onnx", args=(torch.tensor(0.25),))
    loaded = sg.load(tmp_path / "stepped.onnx")
    for value in (0.25, 0.65, 0.95, 3.05):
        torch.testing.assert_close(loaded(torch.tensor(value)), stepped(torch.tensor(value)), rtol=1e-14, atol=0)


def nearly(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    z = x if x.sum() > 0 else -x
    return z / (y + 1e-9), z * 1.000005, z.double() - 1e-9


def test_constants_near_zero_and_one(tmp_path: Path) -> None:
    sg.save(nearly, tmp_path / "nearly.onnx", args=(X, X))
    y = torch.tensor([0.0, 1e-9, 1.0])
    torch.testing.assert_close(sg.load(tmp_path / "nearly.onnx")(X, y), nearly(X, y), rtol=1e-7, atol=0)


def found_places(rows: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Where values lie among sorted ones, on one side or the other."""
    row, places = rows[0], torch.searchsorted
    if x.sum() > 0:
        return places(rows, x), places(row, x, right=True), torch.bucketize(x, row)
    return places(rows, x, side="right"), places(row, x), torch.bucketize(x, row, right=True)


def test_places_among_sorted_values(tmp_path: Path) -> None:
    rows = torch.tensor([[0.0, 1, 1, 2], [-3.0, -1, 2, 2]])
    x = torch.tensor([[1.0, 5.0, 0.5], [2.0, -9.0, -1.0]])
    sg.save(found_places, path := tmp_path / "places.onnx", args=(rows, x))
    for given in (x, -x, torch.full((2, 3), torch.nan)):
        for found, expected in zip(sg.load(path)(rows, given), found_places(rows, given), strict=True):
            assert torch.equal(found, expected)
            assert found.dtype == expected.dtype


def counted(x: Tensor) -> int:
    kept = x[x > 0]
    return kept.numel() if x.sum() > 0 else -kept.numel()


def test_the_number_of_elements_of_what_only_the_run_knows(tmp_path: Path) -> None:
    sg.save(counted, path := tmp_path / "counted.onnx", args=(X,))
    for given in (X, -X, X - 1, torch.zeros_like(X)):
        assert sg.load(path)(given) == counted(given)


def counted_beside_writes(x: Tensor) -> Tensor:
    while x.sum() < 100:
        last = x[:, -1:]
        count = 1 if last.numel() == 0 else last.numel() * 2
        row = torch.full((x.shape[0], 3), 1.0)
        row[:, 1] = last[:, 0] + count
        x = torch.cat([x, row[:, 1:2]], 1)
    return x


def test_the_number_of_elements_beside_writes_in_place(tmp_path: Path) -> None:
    spec = [sg.InputSpec([None, None])]
    sg.save(counted_beside_writes, path := tmp_path / "counted.onnx", args=(torch.ones(2, 3),), input_spec=spec)
    for given in (torch.ones(2, 3), torch.rand(3, 4), torch.full((1, 1), 200.0)):
        torch.testing.assert_close(sg.load(path)(given), counted_beside_writes(given))


def few_left(x: Tensor) -> Any:
    kept = [value for value in x if value > 0]
    if len(kept) < 2:
        raise ValueError("too few")
    return kept


def fewer_in_one(x: Tensor) -> Any:
    if x.sum() < 0:
        raise ValueError("too few")
    return x[x > 0]


@pytest.mark.parametrize("function", [few_left, fewer_in_one])
def test_a_raise_ends_the_run_where_the_results_are_empty(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "f.onnx", args=(X,))
    loaded = sg.load(tmp_path / "f.onnx")
    for given, expected in zip(leaves_of(loaded(X - 1.5)), leaves_of(function(X - 1.5)), strict=True):
        assert torch.equal(given, expected)
    with pytest.raises(RuntimeError, match="onnxruntime"):
        loaded(-X)


def leaves_of(value: Any) -> list[Tensor]:
    return value if isinstance(value, list) else [value]
