"""Each path and all that is said of it: what is not named in a row is not so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import stillgraph
from stillgraph.core import files

OURS = str(Path(stillgraph.__file__).parent)
TORCH = str(Path(torch.__file__).parent)
STANDARD = str(Path(os.__file__).parent)
BESIDE_TORCH = str(Path(TORCH).parent)

ASKED: dict[str, Callable[[str], bool]] = {
    "ours": files.is_ours,
    "written by us": files.is_written_by_us,
    "torch": files.is_torch,
    "below torch": files.is_below_torch,
    "torch layer": files.is_torch_layer,
    "distributions": files.is_distributions,
    "written by torch": files.is_written_by_torch,
    "standard": files.is_standard_library,
    "container class": files.is_container_class,
    "users": files.is_users,
    "installed": files.is_installed,
    "library": files.is_library,
    "dependency": files.is_dependency,
}

IS_OURS = {"ours", "dependency"}
IS_TORCH = {"torch", "below torch", "installed", "library", "dependency"}
IS_STANDARD = {"standard", "dependency"}
IS_PACKAGE = {"users", "installed", "library", "dependency"}

ANSWERS: list[tuple[str, set[str]]] = [
    # stillgraph's
    (f"{OURS}/__init__.py", IS_OURS),
    (f"{OURS}/trace/frames.py", IS_OURS),
    (f"{OURS}/demo/gpt2.py", {"users"}),
    (f"{OURS}_experiments/model.py", {"users"}),
    ("<stillgraph driver of f 7f00>", IS_OURS | {"written by us", "library"}),
    # torch's
    (f"{TORCH}/__init__.py", IS_TORCH),
    (f"{TORCH}/optim/adam.py", IS_TORCH),
    (f"{TORCH}/nn/modules/linear.py", IS_TORCH | {"torch layer"}),
    (f"{TORCH}/nn/utils/parametrize.py", IS_TORCH | {"torch layer"}),
    (f"{TORCH}/optim/swa_utils.py", IS_TORCH | {"torch layer"}),
    (f"{TORCH}/distributions/normal.py", IS_TORCH | {"torch layer", "distributions"}),
    ("<eval_with_key>.7", {"users", "library", "written by torch"}),
    ("<string>", {"users", "library", "written by torch"}),
    ("/tmp/torchinductor_me/ab/cab.py", {"users", "written by torch"}),
    # what torch computes with, and what only begins with its letters
    (f"{BESIDE_TORCH}/numpy/linalg/linalg.py", IS_PACKAGE | {"below torch"}),
    (f"{BESIDE_TORCH}/typing_extensions.py", IS_PACKAGE | {"below torch"}),
    (f"{BESIDE_TORCH}/numpy_financial/core.py", IS_PACKAGE),
    (f"{BESIDE_TORCH}/torchvision/ops.py", IS_PACKAGE),
    (f"{TORCH}_mine/model.py", IS_PACKAGE),
    ("/home/me/torch/model.py", {"users"}),
    ("/home/me/torch_models/model.py", {"users"}),
    # Python's
    (os.__file__, IS_STANDARD),
    (f"{STANDARD}/collections/__init__.py", IS_STANDARD | {"container class"}),
    ("<frozen importlib._bootstrap>", IS_STANDARD | {"library"}),
    (f"{STANDARD}_mine/model.py", {"users"}),
    # installed packages, below the standard library's folder or elsewhere
    (f"{STANDARD}/site-packages/package/__init__.py", IS_PACKAGE),
    ("/env/lib/python3.11/site-packages/package/__init__.py", IS_PACKAGE),
    ("/usr/lib/python3/dist-packages/package/__init__.py", IS_PACKAGE),
    (pytest.__file__, IS_PACKAGE),
    # the user's
    (__file__, {"users"}),
    ("/home/me/my-site-packages/model.py", {"users"}),
    ("<stdin>", {"users", "library"}),
    ("", {"users"}),
]


@pytest.mark.parametrize(("file", "expected"), ANSWERS, ids=[file for file, _ in ANSWERS])
def test_whose_file_it_is(file: str, expected: set[str]) -> None:
    file = file.replace("/", os.sep)
    assert {name for name, asked in ASKED.items() if asked(file)} == expected


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("stillgraph", True),
        ("stillgraph.trace.code.frames", True),
        ("stillgraph.demo", False),
        ("stillgraph.demo.gpt2", False),
        ("stillgraph.demonstrating", True),
        ("stillgraph_experiments", False),
        ("torch", False),
        ("__main__", False),
    ],
)
def test_whose_module_it_is(name: str, ours: bool) -> None:
    assert files.is_our_module(name) is ours


def test_paths_in_torch() -> None:
    assert files.path_in_torch("autograd", "function.py") == torch.autograd.function.__file__
    assert files.path_in_torch("utils", "data", "") == os.path.dirname(torch.utils.data.__file__) + os.sep


AFRESH = """
import importlib.machinery, importlib.util, sys

def elsewhere(name):
    return importlib.machinery.ModuleSpec(name, None, origin="{root}/site-packages/torch/__init__.py")

importlib.util.find_spec = elsewhere
spec = importlib.util.spec_from_file_location("files", "{root}/site-packages/stillgraph/core/files.py")
files = importlib.util.module_from_spec(spec)
code = compile(open({source!r}).read(), spec.origin, "exec")
files.__file__ = spec.origin
exec(code, vars(files))
assert "torch" not in sys.modules
for path in sys.argv[1:]:
    print(files.is_ours(path), files.is_library(path), files.is_users(path))
"""


def test_stillgraph_may_be_installed_itself() -> None:
    """What is said of its files does not depend on where they lie; and torch is found, not imported."""
    root = "/env/lib/python3.11"
    asked = [f"{root}/site-packages/{name}" for name in ("stillgraph/api.py", "stillgraph/demo/gpt2.py", "torch/a.py")]
    text = AFRESH.format(root=root, source=files.__file__)
    ran = subprocess.run([sys.executable, "-c", text, *asked], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["True False False", "False False True", "False True False"]
