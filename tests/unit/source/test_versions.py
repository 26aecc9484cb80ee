"""The other Pythons that are supported, where they are installed."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def interpreter(version: str) -> str | None:
    """A Python of this version: one of pyenv's, or else one on the path."""
    installed = next(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")), None)
    return installed or shutil.which(f"python{version}")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_rewriting_under(version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    script = Path(__file__).parent / "versions.py"
    done = subprocess.run([python, "-W", "ignore", str(script), str(ROOT), *map(str, range(6))],
                          capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("fine"), done.stderr[-3000:]
