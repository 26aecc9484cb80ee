"""What an ONNX file draws: each place draws its own numbers, and no two depend on each other."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.exporting.verification import check_artefact


def uniform(x: Tensor) -> Tensor:
    return torch.stack([torch.rand(()) for _ in range(5)])


def normal_and_in_a_loop(x: Tensor) -> Tensor:
    first, second, total, count = torch.randn(()), torch.randn(()), x.sum(), 0
    while total < 3:
        total = total + torch.rand(())
        count += 1
    return torch.stack([first, second, torch.rand(()), total])


@pytest.mark.parametrize("function", [uniform, normal_and_in_a_loop])
def test_draws_are_independent(tmp_path: Path, function: object) -> None:
    sg.save(function, path := tmp_path / "draws.onnx", args=(torch.zeros(2),))
    loaded = sg.load(path)
    drawn = torch.stack([loaded(torch.zeros(2)) for _ in range(500)])
    apart = torch.corrcoef(drawn.mT) - torch.eye(drawn.shape[1])
    assert apart.abs().max() < 0.15  # neighbouring seeds give 0.49
    assert len(set(drawn[0].tolist())) == drawn.shape[1]
    steps = drawn[:, 1:3] - drawn[:, :2]
    assert not torch.allclose(steps[:, 0] % 1, steps[:, 1] % 1, atol=1e-4)  # as on a lattice


def raised_by_what_it_draws(x: Tensor) -> Tensor:
    drawn = torch.rand(())
    assert drawn > 0.5, "too small"
    return x + 1


def always_raised(x: Tensor) -> Tensor:
    drawn = torch.rand(())
    assert drawn > 2, "too small"
    return x + 1


@pytest.mark.parametrize("fails", [False, True])
def test_only_what_other_draws_explain_is_taken(fails: bool) -> None:
    """Whichever failed alone is run again: what always fails is not explained by draws."""
    x = torch.zeros(2)

    def run() -> list[Tensor]:
        if fails:
            raise ValueError("always")
        return [x + 1]

    program = sg.export(uniform if fails else always_raised, (x,))
    with pytest.raises(sg.ExportError, match="SG403"):
        check_artefact(program, run, (x,), {}, same_generator=False)


def test_what_other_draws_explain_is_taken() -> None:
    x = torch.zeros(2)
    program, failed = sg.export(raised_by_what_it_draws, (x,)), []

    def now_and_then() -> list[Tensor]:
        failed.append(len(failed) % 2 == 0)
        if failed[-1]:
            raise ValueError("too small")
        return [x + 1]

    for run in (now_and_then, lambda: [x + 1]):
        check_artefact(program, run, (x,), {}, same_generator=False)


def test_the_seed_of_torch_decides(tmp_path: Path) -> None:
    drawn = []
    for number, seed in enumerate((3, 3, 4)):
        torch.manual_seed(seed)
        sg.save(uniform, path := tmp_path / f"{number}.onnx", args=(torch.zeros(2),))
        drawn.append(sg.load(path)(torch.zeros(2)))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def in_a_loop(x: Tensor) -> Tensor:
    k, drawn, others = 0, torch.zeros(8), torch.zeros(8)
    while k < x.sum() + 8:
        drawn[k] = torch.rand(())
        others[k] = torch.randn(())
        k += 1
    return torch.cat([drawn[:3], others[:3]])


def test_each_operation_has_a_seed_of_its_own(tmp_path: Path) -> None:
    path, x = tmp_path / "drawn.onnx", torch.zeros(())
    sg.save(in_a_loop, path, args=(x,))
    model = onnx.load(path)
    graphs, seeds = [model.graph], []
    for graph in graphs:
        for node in graph.node:
            graphs += [each.g for each in node.attribute if each.type == onnx.AttributeProto.GRAPH]
            seeds += [each.f for each in node.attribute if each.name == "seed"]
    assert len(seeds) == len({*seeds}) == 2
    assert all(seed == int(seed) and 0 < seed < 1 << 24 for seed in seeds)


def test_draws_may_decide_sizes_and_what_a_loop_writes(tmp_path: Path) -> None:
    def walk(x: Tensor) -> tuple[Tensor, Tensor]:
        path, place = x[None], x
        while place.abs() < 3 and len(path) < 40:
            place = place + torch.randn(())
            path = torch.cat([path, place[None]])
        return path, x + 1

    x = torch.zeros(())
    sg.save(walk, tmp_path / "walk.onnx", args=(x,))
    loaded = sg.load(tmp_path / "walk.onnx")
    for start in (x, torch.tensor(5.0)):
        path, after = loaded(start)
        assert path[0] == start
        assert (path[:-1].abs() < 3).all()
        assert after == start + 1
        assert path[-1].abs() >= 3 or len(path) == 40
