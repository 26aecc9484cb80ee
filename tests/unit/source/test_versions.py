"""The other Pythons that are supported, where they are installed."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def interpreter(version: str) -> str | None:
    installed = sorted(Path("/root/.pyenv/versions").glob(f"{version}.*/bin/python3")) if Path("/root/.pyenv").exists() else []
    return str(installed[-1]) if installed else shutil.which(f"python{version}")


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_rewriting_under(version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    script = Path(__file__).parent / "versions.py"
    done = subprocess.run([python, "-W", "ignore", str(script), str(ROOT), *map(str, range(12))],
                          capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("fine"), done.stderr[-3000:]
