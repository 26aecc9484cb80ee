"""What `save` writes, without a file: a program as `torch.export`, ONNX and `torch.nn` have it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from stillgraph.api.saving import entry_of_program, save
from stillgraph.deploy.archive import made_in_memory
from stillgraph.deploy.pt2.pt2 import called_in_memory
from stillgraph.deploy.pt2.standalone import StandaloneModule
from stillgraph.program.program import Example, Program, exported_program_of, module_of, onnx_of
from stillgraph.runtime.native.tracebacks import presenting


@exported_program_of.defined
@presenting
def _exported_program_of(program: Program, example: Example) -> ExportedProgram:
    return _made(program, example)[0]


@module_of.defined
@presenting
def _module_of(program: Program, example: Example) -> torch.nn.Module:
    return StandaloneModule(called_in_memory(*_made(program, example)))


@onnx_of.defined
@presenting
def _onnx_of(program: Program, example: Example, opset: int | None) -> Any:
    args, kwargs = example
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        save(program, path, args=args, kwargs=kwargs, opset=opset)
        import onnx

        return onnx.load(path)


def _made(program: Program, example: Example) -> tuple[ExportedProgram, dict[str, Any]]:
    args, kwargs = example
    arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    return made_in_memory(entry_of_program(program, arguments, dict(kwargs or {})))
