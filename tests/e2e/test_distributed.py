"""Training under `torchrun`, on two and four processes: losses and weights are those of one with the whole batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.distributed_scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def torchrun(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in several processes."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run(
        [sys.executable, *launch, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900
    )


@pytest.mark.parametrize("processes", [2, 4])
def test_every_scenario_trains_as_it_should(processes: int, tmp_path: Path) -> None:
    """All in one launch: processes take longer to start than to train."""
    finished = torchrun(processes, "tests/e2e/distributed_scenarios.py", str(tmp_path))
    assert finished.returncode == 0, finished.stderr[-4000:]
    faults = {
        f"{name}, process {rank}": json.loads((tmp_path / f"{name}.{rank}.json").read_text())
        for name in SCENARIOS
        for rank in range(processes)
    }
    assert {place: fault for place, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("processes", [2, 4])
def test_the_example(processes: int) -> None:
    finished = torchrun(processes, "examples/train_ddp.py", "--steps", "3")
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert f"{processes} process(es): losses and weights are those of one process" in finished.stdout
