"""What is imported when: a process pays for what it uses."""
from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import stillgraph as sg

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

FOR_CAPTURES = (
    "stillgraph.bytecode",
    "stillgraph.deploy",
    "stillgraph.operators",
    "stillgraph.report.explain",
    "stillgraph.source",
    "stillgraph.trace.capture",
)
HEAVY_IN_TORCH = (
    "sympy",
    "torch._dynamo",
    "torch._functorch",
    "torch._inductor",
    "torch.fx.experimental.proxy_tensor",
    "torch.fx.experimental.symbolic_shapes",
)


def loaded(code: str) -> list[str]:
    """The modules that a fresh process has imported after it ran this."""
    telling = "\nimport json, sys\nprint(json.dumps([*sys.modules]), file=sys.stderr)"
    command = [sys.executable, "-c", textwrap.dedent(code) + telling]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return found


def among(modules: list[str], packages: tuple[str, ...]) -> list[str]:
    return [name for name in modules if any(name == each or name.startswith(f"{each}.") for each in packages)]


# ---- processes
def test_importing_the_library_imports_hardly_anything() -> None:
    modules = loaded("import stillgraph")
    ours = {"stillgraph", "stillgraph.core", "stillgraph.core.later", "stillgraph.trace"}
    assert set(among(modules, ("stillgraph",))) == ours
    assert among(modules, ("torch",)) == []


def test_decorating_imports_nothing_that_captures_need() -> None:
    modules = loaded(
        """
        import stillgraph as sg

        @sg.to_static(backend="eager")
        def whole(x):
            return x + 1

        @sg.symbolic_trace
        def partial(x):
            return x + 1
        """
    )
    by_torch_alone = loaded("import torch")
    assert among(modules, FOR_CAPTURES) == []
    assert [name for name in among(modules, HEAVY_IN_TORCH) if name not in by_torch_alone] == []
    assert len(among(modules, ("stillgraph",))) < 160


def test_a_capture_has_torch_load_no_compiler() -> None:
    modules = loaded(
        """
        import torch
        import stillgraph as sg

        @sg.to_static(backend="eager")
        def function(x):
            return x + 1 if x.sum() > 0 else x - 1

        function(torch.ones(3))
        """
    )
    assert among(modules, ("stillgraph.deploy", "stillgraph.report.explain", "stillgraph.runtime.calls.whole")) == []
    assert among(modules, ("torch.export._trace", "torch._functorch.aot_autograd", "torch._inductor.sizevars")) == []


@pytest.mark.parametrize("command", ["--version", "--help", "explain --help", "errors", "errors SG201"])
def test_commands_import_torch_only_where_they_need_it(command: str) -> None:
    code = f"""
    from stillgraph.cli import main
    main({command.split()}, standalone_mode=False)
    """
    assert among(loaded(code), ("torch",)) == []


FIRST_CALLED_IN_A_MODE = """
import gc
import random
import types
import torch
from torch.overrides import TorchFunctionMode
import stillgraph as sg

called = []


class Noting(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        if function is not torch.device:
            called.append(function)
        return function(*args, **(kwargs or {}))


def imports(caller):
    sg.to_static(len, backend="eager")
    from stillgraph.api import later
    for module in (sg, later):
        for name in module.__all__:
            getattr(module, name)


before = random.getstate(), torch.get_rng_state().tolist()
with Noting():
    imports("a frame")
gc.collect()
assert (random.getstate(), torch.get_rng_state().tolist()) == before
assert not called, called
frames = [each for each in gc.get_objects() if type(each) is types.FrameType]
assert imports.__code__ not in [each.f_code for each in frames], [each.f_code for each in frames]
"""


def test_what_a_first_call_imports_keeps_nothing_of_it() -> None:
    """It is imported below the user's frames, in the user's modes."""
    loaded(FIRST_CALLED_IN_A_MODE)


# ---- tables of names that are imported later
TABLES = sorted(path for path in SOURCE.rglob("*.py") if "\n__getattr__ = imported_when_asked(" in path.read_text())


def test_the_tables_are_found() -> None:
    assert SOURCE / "stillgraph/__init__.py" in TABLES


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_type_checkers_are_told_the_same(path: Path) -> None:
    tree = ast.parse(path.read_text())
    (told,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in told.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name: node.module for node in imports for alias in node.names} == _homes(tree)
    (listed,) = (ast.literal_eval(node.value) for node in _assigned(tree, "__all__"))
    assert sorted(listed) == sorted(_homes(tree))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_tables_keep_the_layers(path: Path) -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = next(each for each in config["tool"]["importlinter"]["contracts"] if each["type"] == "layers")["layers"]
    height = {part.strip(): -number for number, layer in enumerate(layers) for part in layer.split("|")}
    own, *_ = path.relative_to(SOURCE / "stillgraph").parts
    homes = [home.split(".") for home in _homes(ast.parse(path.read_text())).values()]
    ours = {home[1] for home in homes if home[0] == "stillgraph"}
    assert own == "__init__.py" or all(height[each] <= height[own] for each in ours)


def _assigned(tree: ast.Module, name: str) -> list[ast.Assign]:
    return [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name]


def _homes(tree: ast.Module) -> dict[str, str]:
    (table,) = (ast.literal_eval(node.value) for node in _assigned(tree, "_HOMES"))
    assert isinstance(table, dict)
    return table


# ---- the names
def test_the_library_lists_its_names() -> None:
    assert set(sg.__all__) <= set(dir(sg))


def test_a_function_keeps_its_name_where_a_package_has_it_too() -> None:
    code = """
    import stillgraph
    import stillgraph.trace.capture.capture
    from stillgraph import trace
    assert callable(trace) and stillgraph.trace is trace
    """
    assert "stillgraph.trace.capture.capture" in loaded(code)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="module 'stillgraph' has no attribute 'nothing'"):
        sg.nothing  # noqa: B018  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        exec("from stillgraph import nothing")
