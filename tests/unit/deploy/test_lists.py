"""Lists of a length that only the run knows, in files: what torch alone sees, and what is built of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.archive import load
from stillgraph.deploy.onnx.onnx_session import run_onnx
from tests.unit.deploy.alone import alone
from tests.unit.deploy.saving import save

X = torch.tensor([[1.0, 2.0], [-3.0, 4.0], [5.0, -6.0]])
OTHERS = (X, -X, X.abs(), -X.abs())  # other lengths: 2, 1, 3, 0


def gathered(x: Tensor) -> dict[str, Any]:
    kept, sums, pairs = [], [], []
    for i, row in enumerate(x):
        if row.sum() > 0:
            kept.append(row)
            sums.append(float(row.sum()))
            pairs.append((row * 2, i))
    return {"kept": [x[0], *kept], "sums": sums, "pairs": pairs, "count": len(kept)}


def test_a_loaded_program_gives_lists(tmp_path: Path) -> None:
    save(gathered, tmp_path / "gathered.pt2", (X,))
    loaded = load(tmp_path / "gathered.pt2")
    for x in OTHERS:
        want, got = gathered(x), loaded(x)
        torch.testing.assert_close(got, want)
        assert [type(each) for each in got["sums"]] == [float] * want["count"]
        assert [type(each) for pair in got["pairs"] for each in pair] == [Tensor, int] * want["count"]


@pytest.mark.slow
def test_torch_alone_gives_rows(tmp_path: Path) -> None:
    save(gathered, tmp_path / "gathered.pt2", (X,))
    assert alone(f"""
        module = torch.export.load({str(tmp_path / "gathered.pt2")!r}).module()
        print([(str(each.dtype), list(each.shape)) for each in module(torch.ones(3, 2))])
    """) == (
        "[('torch.float32', [2]), ('torch.float32', [3, 2]), ('torch.float64', [3]), ('torch.float32', [3, 2]), "
        "('torch.int64', [3]), ('torch.int64', [])]\n"
    )


@pytest.mark.slow
def test_onnxruntime_gives_rows(tmp_path: Path) -> None:
    save(gathered, tmp_path / "gathered.onnx", (X,))
    session = onnxruntime.InferenceSession(str(tmp_path / "gathered.onnx"))
    for x in OTHERS:
        want = gathered(x)
        first, kept, sums, rows, places, count = (
            torch.from_numpy(np.asarray(each)) for each in session.run(None, {session.get_inputs()[0].name: x.numpy()})
        )
        torch.testing.assert_close([first, *kept], want["kept"])
        assert sums.tolist() == want["sums"]
        torch.testing.assert_close([*zip(rows, places.tolist())], want["pairs"])
        assert int(count) == want["count"]


@pytest.mark.slow
def test_an_index_out_of_range_raises_what_python_raises(tmp_path: Path) -> None:
    def third(x: Tensor) -> Tensor:
        kept = [row for row in x if row.sum() > 0]
        return kept[2] + kept.pop()

    save(third, tmp_path / "third.pt2", (X.abs(),))
    loaded = load(tmp_path / "third.pt2")
    torch.testing.assert_close(loaded(X.abs() + 1), third(X.abs() + 1))
    for x in (X, -X.abs()):
        with pytest.raises(IndexError, match=r"^list index out of range$"):
            third(x)
        with pytest.raises(IndexError, match=r"^list index out of range$"):
            loaded(x)


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_elements_have_the_sizes_of_the_input(suffix: str, tmp_path: Path) -> None:
    def doubled(x: Tensor) -> Tensor:
        a: list[Tensor] = []
        while x.sum() < 50:
            x = x * 2
            a.append(x)
        return torch.stack([*a, x])

    path = tmp_path / f"doubled.{suffix}"
    save(doubled, path, (torch.ones(3),), input_spec=[sg.InputSpec([None], "float32")])
    for size in (1, 4, 60):
        x = torch.ones(size)
        if suffix == "pt2":
            got = load(path)(x)
        else:
            session = onnxruntime.InferenceSession(str(path))
            (made,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
            got = torch.from_numpy(made)
        torch.testing.assert_close(got, doubled(x))


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_an_example_whose_list_is_empty(suffix: str, tmp_path: Path) -> None:
    def multiples(x: Tensor, n: Tensor) -> list[Tensor]:
        found = []
        while n > 0:
            found.append(x * n)
            n = n - 1
        return found

    path = tmp_path / f"multiples.{suffix}"
    spec = [sg.InputSpec([None], "float32"), sg.InputSpec([], "int64")]
    save(multiples, path, (torch.ones(3), torch.tensor(0)), input_spec=spec)
    for x, n in ((torch.ones(5), torch.tensor(2)), (torch.ones(2), torch.tensor(0))):
        if suffix == "pt2":
            torch.testing.assert_close(load(path)(x, n), multiples(x, n))
        else:
            (made,) = run_onnx(path, (x, n))
            assert made.shape == (int(n), len(x))
            torch.testing.assert_close(list(made), multiples(x, n))


# ---- tensors whose sizes differ
class Boxes(NamedTuple):
    """What is kept of a picture."""

    kept: list[Tensor]
    pairs: list[tuple[int, Tensor]]
    best: Tensor


def detected(boxes: Tensor, scores: Tensor) -> Boxes:
    """The boxes above each of several limits, as long as there are some."""
    kept, pairs, limit = [], [], 0
    while (scores > limit).any():
        above = boxes[scores > limit]
        kept.append(above)
        if above.shape[0] < 3:
            pairs.append((limit, above[:, 0]))
        limit += 1
    return Boxes(kept, pairs, torch.cat([boxes[:1], *kept]) if limit > 1 else boxes[:1])


BOXES, SCORES = torch.arange(20.0).reshape(5, 4), torch.tensor([2.5, 0.5, 1.5, -1.0, 3.5])
SEVERAL = (SCORES, -SCORES, SCORES - 2.0, SCORES * 2, SCORES - 9)  # the last keeps nothing


def wide(x: Tensor, n: Tensor) -> dict[str, Any]:
    """Columns and blocks: not the first dimension is the one that differs."""
    columns, blocks = [x[:, :1]], []
    for i in range(int(n)):
        columns.append(x[:, : i + 1])
        blocks.append(x[: i % 2, : i + 1])
    return {"columns": columns, "blocks": blocks, "all": torch.cat(columns, dim=1)}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_tensors_whose_sizes_differ(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"detected.{suffix}"
    save(detected, path, (BOXES, SCORES))
    loaded = load(path)
    for scores in SEVERAL:
        want, got = detected(BOXES, scores), loaded(BOXES, scores)
        torch.testing.assert_close(got, want)
        assert type(got) is Boxes
        assert [type(limit) for limit, _ in got.pairs] == [int] * len(want.pairs)


@pytest.mark.parametrize("suffix", ["pt2", pytest.param("onnx", marks=pytest.mark.slow)])
def test_tensors_of_which_other_sizes_differ(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"wide.{suffix}"
    x = torch.arange(15.0).reshape(3, 5)
    save(wide, path, (x, torch.tensor(3)))
    loaded = load(path)
    for n in (0, 1, 4):
        torch.testing.assert_close(loaded(x, torch.tensor(n)), wide(x, torch.tensor(n)))


@pytest.mark.slow
def test_torch_alone_gives_values_and_sizes(tmp_path: Path) -> None:
    save(detected, tmp_path / "detected.pt2", (BOXES, SCORES))
    assert alone(f"""
        module = torch.export.load({str(tmp_path / "detected.pt2")!r}).module()
        boxes, scores = torch.arange(20.0).reshape(5, 4), torch.tensor([2.5, 0.5, 1.5, -1.0, 3.5])
        kept, kept_sizes, limits, pairs, pairs_sizes, best = module(boxes, scores)
        print(list(kept.shape), kept_sizes.tolist(), limits.tolist(), pairs.tolist(), pairs_sizes.tolist())
        counts = kept_sizes.prod(1).tolist()
        parts = [part.unflatten(0, size) for part, size in zip(kept.split(counts), kept_sizes.tolist())]
        print([part[:, 0].tolist() for part in parts])
    """) == (
        "[10, 4] [[4], [3], [2], [1]] [2, 3] [0.0, 16.0, 16.0] [[2], [1]]\n"
        "[[0.0, 4.0, 8.0, 16.0], [0.0, 8.0, 16.0], [0.0, 16.0], [16.0]]\n"
    )


@pytest.mark.slow
def test_onnxruntime_gives_values_and_sizes(tmp_path: Path) -> None:
    save(detected, tmp_path / "detected.onnx", (BOXES, SCORES))
    session = onnxruntime.InferenceSession(str(tmp_path / "detected.onnx"))
    names = [output.name for output in session.get_outputs()]
    assert names == ["kept_0", "kept_0_sizes", "pairs_0", "pairs_0_2", "pairs_0_sizes", "best"]
    for scores in SEVERAL:
        given = {"boxes": BOXES.numpy(), "scores": scores.numpy()}
        made = dict(zip(names, session.run(None, given)))
        parts = np.split(made["kept_0"], np.cumsum(made["kept_0_sizes"].prod(1)))[:-1]
        want = detected(BOXES, scores).kept
        assert [part.tolist() for part in parts] == [part.tolist() for part in want]


def rows_for_nobody(x: Tensor) -> Tensor:
    rows = []
    while x.sum() < 9:
        rows.append([x, x + 1])
        x = x + 1
    return x


def test_a_list_of_lists_that_nobody_reads_is_left_out(tmp_path: Path) -> None:
    save(rows_for_nobody, tmp_path / "rows.pt2", (X,))
    loaded = load(tmp_path / "rows.pt2")
    for x in OTHERS:
        assert torch.equal(loaded(x), rows_for_nobody(x))
