"""Libraries' functions: Python runs them as they are, or they are converted for what only the run knows."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.importing import installed
from tests.unit.trace.agreement import agree

TEXT = """
    import torch

    def over_rows(x):
        total = torch.zeros(2)
        for row in (x > 0).nonzero():
            if row[0] == 1:
                continue
            total = total + row
        return total
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "a_library", TEXT, monkeypatch)


def doubled(x: Any) -> Any:
    import a_library  # type: ignore[import-not-found]  # the fixture makes it

    return a_library.over_rows(x) * 2


@pytest.mark.usefixtures("library")
def test_a_loop_over_rows_of_which_only_the_run_knows_the_number() -> None:
    x = torch.tensor([[1.0, -1.0], [2.0, 3.0], [-1.0, 4.0]])
    agree(doubled, x, -x, x.abs(), x * 0)
