"""Running a saved file in a process that has neither stillgraph nor the models' code, and taking what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.cases.compare import children
from tests.e2e.shipping.model import Arguments
from tests.unit.deploy.alone import alone

_OPEN = {
    "pt2": "run = torch.export.load(path).module()",
    "aoti": "run = torch._inductor.aoti_load_package(path)",
    "onnx": """
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        def run(*args):
            return [torch.from_numpy(a) for a in session.run(None, {n: t.numpy() for n, t in zip(names, args)})]
        """,
    "py": """
        import importlib.util
        spec = importlib.util.spec_from_file_location("written", path)
        written = importlib.util.module_from_spec(spec)
        sys.modules["written"] = written
        spec.loader.exec_module(written)
        run = written.load() if hasattr(written, "load") else getattr(written, name)
        """,
}
SUFFIX = {"pt2": ".pt2", "aoti": ".aoti.pt2", "onnx": ".onnx", "py": ".py"}


def run_alone(path: Path, kind: str, name: str, calls: Sequence[Arguments]) -> list[list[Tensor]]:
    """Call a file, once for each arguments, where torch is and the code that made it is not.

    Args:
        path: the saved file.
        kind: its format.
        name: the original's name, for Python source.
        calls: the arguments of each call.

    Returns:
        The results of each call, flat.
    """
    given, found = path.with_name("calls.pt"), path.with_name("results.pt")
    torch.save([list(call) for call in calls], given)
    lines = [
        "sys.modules['transformers'] = None",
        f"path, name = {str(path)!r}, {name!r}",
        *(line.removeprefix("        ") for line in _OPEN[kind].splitlines()),
        f"calls = torch.load({str(given)!r})",
        "with torch.no_grad():",
        f"    torch.save([run(*call) for call in calls], {str(found)!r})",
    ]
    alone("\n".join(lines))
    return [flat(results) for results in torch.load(found)]


def flat(value: Any) -> list[Tensor]:
    """The tensors of a result in order, as a file has them: numbers, and lists of numbers, as tensors."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (bool, int, float)):
        return [torch.tensor(value, dtype=_DTYPES[type(value)])]
    if isinstance(value, list) and all(isinstance(part, (int, float)) for part in value):
        return [torch.tensor(value, dtype=_DTYPES[type(value[0])] if value else torch.int64)]
    parts = children(value)
    assert parts is not None, type(value)
    return [tensor for _, part in parts for tensor in flat(part)]


_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}
