"""Modules import only from layers below their own."""
from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


def _imported(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that a module imports when it runs, in functions too; not those for annotations."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in whole)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        yield from _imported(node)


def test_no_modules_import_each_other() -> None:
    graph = {name: set(_imported(tree)) - {name} for name, tree in MODULES.items()}
    graphlib.TopologicalSorter(graph).prepare()


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
