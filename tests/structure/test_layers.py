"""Modules import only from layers below their own."""
from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_keep_the_layers() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_a_layer() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(c for c in config["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    layers = {part.strip(" ()") for layer in contract["layers"] for part in layer.split("|")}
    modules = {path.stem for path in (ROOT / "src/stillgraph").iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert modules <= layers
