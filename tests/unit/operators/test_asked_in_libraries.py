"""A library's code, left to Python until it needs more: what its operations on tensors ask only the run knows."""
from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.importing import installed

LIBRARY = """
    def length(x):
        kept = x[x > 0]
        if len(kept) == 0:
            return x.sum()
        return kept.sum() * 2

    def contained(x):
        return x * 2 if x.max() in x[:2] else x.sum()

    def run_over(x):
        total = 0
        for each in x[x > 0]:
            total = total * 2 + each
        return total
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "asks_tensors_of_stillgraph_tests", LIBRARY, monkeypatch)


@pytest.mark.parametrize("name", ["length", "contained", "run_over"])
def test_pythons_operations_on_tensors(library: ModuleType, name: str) -> None:
    def f(x: Tensor) -> object:
        return getattr(library, name)(x)

    static = sg.to_static(f, full_graph=True)
    for values in ([1.0, 2.0, -1.0, 3.0], [-1.0, -2.0, -1.0, -3.0], [5.0, 2.0, 1.0, 3.0]):
        x = torch.tensor(values)
        wanted, found = f(x), static(x)
        assert type(found) is type(wanted)
        assert torch.equal(torch.as_tensor(found), torch.as_tensor(wanted))
    assert len(static.programs) == 1


LOGARITHMS = """
    import numpy as np

    def schedule(x):
        return x * float(np.log(x.max().item()))

    def scaled(x):
        return x * float(np.float64(2.0) * x.max().item())
"""


@pytest.mark.parametrize("name", ["schedule", "scaled"])
def test_numpy_given_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    library = installed(tmp_path, "computes_by_numpy_in_stillgraph_tests", LOGARITHMS, monkeypatch)

    def f(x: Tensor) -> object:
        return getattr(library, name)(x)

    static = sg.to_static(f, full_graph=True, backend="eager")
    for x in (torch.ones(3), torch.tensor([1.0, 7.0, -2.0]), torch.tensor([0.5, 0.25, 0.125])):
        assert torch.equal(static(x), f(x))  # type: ignore[arg-type]  # they are tensors
    assert len(static.programs) == 1
