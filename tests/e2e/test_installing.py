"""What is built from the repository installs beside torch alone, and works there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


class Built(NamedTuple):
    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built from a copy: two processes that test would build in one folder."""
    out = tmp_path_factory.mktemp("dist")
    others = (".git", ".venv*", ".*_cache", ".hypothesis", "build", "dist", "demo-out", "*.egg-info", "__pycache__")
    tree = shutil.copytree(ROOT, tmp_path_factory.mktemp("tree") / "tree", ignore=shutil.ignore_patterns(*others))
    run(sys.executable, "-m", "build", "--outdir", str(out), str(tree))
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def fresh(built: Built, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of a new environment with the wheel and what it needs, without any extra."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    run(python, "-m", "pip", "install", "-qq", f"torch=={version('torch')}")
    run(python, "-m", "pip", "install", "-qq", str(built.wheel))
    return python


def run(*command: str, cwd: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that sees no other copy of the project than what is installed."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=alone)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def first_example() -> str:
    """The Python of the README's first example and of its first lines that save."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join([blocks[0], *[line for line in blocks[1].splitlines() if line.startswith("sg.save(")]])


# ---- what is built
def test_the_wheel_says_what_it_is(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = archive.namelist()
        (metadata,) = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    for line in ("License-Expression: Apache-2.0", "Author: the stillgraph developers", "Requires-Dist: numpy"):
        assert line in metadata
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert {"stillgraph/py.typed", "stillgraph/__main__.py", "stillgraph/cli/errors.md"} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"stillgraph"}


def test_the_source_distribution_is_complete(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    listed = run("git", "-C", str(ROOT), "ls-files").stdout.split("\n")
    assert {name for name in listed if name and Path(name).name != ".gitignore"} <= held


# ---- what is installed
def test_the_example_of_the_readme(fresh: str, tmp_path: Path) -> None:
    script = tmp_path / "first.py"
    script.write_text(first_example() + "\nprint(sg.load('halve.pt2')(x, limit)[1])\n", encoding="utf-8")
    assert run(fresh, str(script), cwd=tmp_path).stdout.splitlines()[-1] == "6"
    assert {"halve.pt2", "halved.py"} <= {each.name for each in tmp_path.iterdir()}


def test_the_command_line(fresh: str, tmp_path: Path) -> None:
    command = str(Path(fresh).with_name("stillgraph"))
    for start in ([command], [fresh, "-m", "stillgraph"]):
        assert version("stillgraph") in run(*start, "--version").stdout
    (tmp_path / "model.py").write_text("def f(x):\n    return x + 1 if x.sum() > 0 else x\n", encoding="utf-8")
    run(command, "export", "model.py:f", "-i", "float32[2]", "-o", "f.pt2", cwd=tmp_path)
    assert (tmp_path / "f.pt2").stat().st_size > 0
    assert "if staged at model.py:2" in run(command, "explain", "model.py:f", "-i", "float32[2]", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("sg.save(torch.sin, 'f.onnx', args=(torch.ones(2),))", "saving as .onnx needs onnx, onnxscript, onnxruntime"),
        ("open('f.onnx', 'w').close(); sg.load('f.onnx')", "loading an .onnx needs onnxruntime"),
    ],
)
def test_what_an_extra_is_needed_for_says_so(fresh: str, code: str, says: str, tmp_path: Path) -> None:
    done = run(fresh, "-c", f"import torch, stillgraph as sg\n{code}", cwd=tmp_path, status=1)
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: {says}: pip install 'stillgraph[onnx]'"
