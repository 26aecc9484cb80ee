"""Running ONNX files in onnxruntime, with the state from one call to the next: the adapter to onnxruntime."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from stillgraph.core.diagnostics import LoadError, load_error, refuse
from stillgraph.deploy.description.description import check_version
from stillgraph.deploy.exporting.loaded import LoadedProgram
from stillgraph.deploy.exporting.torch_export import summary
from stillgraph.deploy.onnx.onnx_checksum import changed, check_sum, path_beside_weights

PROGRAM = "stillgraph"
STATE, WRITTEN, DIMENSIONS = "stillgraph.state", "stillgraph.written", "stillgraph.dims"
CHECKS = "checks"
"""Keys of a file's metadata. The texts are JSON: which output is the next value of which input; the ranges of sizes;
which output tells of which assertion."""

VERSION = 2
_WITH_CHECKSUM = 2
_BFLOAT16 = 16


class OnnxSession:
    """An ONNX file in onnxruntime: tensors in, tensors out. What a call writes is there at the next.

    Attributes:
        session: onnxruntime's.
        state: by the name of the input: what the last call left of each part of the state; empty before the first.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        """Open a model.

        Args:
            path: of its file.
            data: what is in the file.

        Raises:
            LoadError: its weights are in a file of their own, and not there.
            Exception: onnxruntime does not take it.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # a failing assertion is reported by the exception alone
        beside = path_beside_weights(data, path)
        model = data if beside is None else str(beside)
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.texts: dict[str, str] = self.session.get_modelmeta().custom_metadata_map
        self.state: dict[str, torch.Tensor] = {}
        self._names = [taken.name for taken in self.session.get_inputs()]
        self._outputs = [given.name for given in self.session.get_outputs()]
        self._next: dict[str, str] = json.loads(self.texts.get(STATE, "{}"))
        self._written: dict[str, str] = json.loads(self.texts.get(WRITTEN, "{}"))
        self._checks: dict[str, str] = json.loads(self.texts.get(CHECKS, "{}"))

    def run(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All outputs for tensors, those of what the call writes behind the results; nothing is kept.

        Raises:
            RuntimeError: the program raises an exception, or an operation fails.
        """
        fed = {name: _given(t) for name, t in (*zip(self._names, given, strict=True), *self.state.items())}
        try:
            return [_made(value) for value in self.session.run_with_ort_values(self._outputs, fed)]
        except Exception as error:  # onnxruntime's own, which have no class in common but this
            raise RuntimeError(f"onnxruntime: {summary(error)}") from error

    def __call__(self, *given: torch.Tensor) -> list[Any]:
        """The results for tensors; what the program writes is written, to tensors of the call as well.

        A file with checks also gives a dict of them, as the last.
        """
        outputs = dict(zip(self._outputs, self.run(given)))
        self.state = {name: outputs[output] for name, output in self._next.items()}
        for name, output in self._written.items():
            given[self._names.index(name)].copy_(outputs[output])
        kept = {*self._next.values(), *self._written.values(), *self._checks}
        results: list[Any] = [value for name, value in outputs.items() if name not in kept]
        if self._checks:
            results.append({check: outputs[name] for name, check in self._checks.items()})
        return results


def _given(tensor: torch.Tensor) -> Any:
    from onnxruntime import OrtValue

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:  # which numpy does not have
        return OrtValue.ortvalue_from_numpy_with_onnx_type(tensor.view(torch.uint16).numpy(), _BFLOAT16)
    return OrtValue.ortvalue_from_numpy(tensor.numpy())


def _made(value: Any) -> torch.Tensor:
    if value.element_type() == _BFLOAT16:
        return torch.utils.dlpack.from_dlpack(value).clone()
    return torch.from_numpy(value.numpy().copy())


def run_onnx(path: Path, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run an ONNX file once: all its outputs."""
    return OnnxSession(path, path.read_bytes()).run(given)


def require_runnable(path: Path) -> None:
    """See that onnxruntime has what a file asks for.

    Raises:
        ExportError: it has no implementation of one of the operators for the dtypes there.
    """
    try:
        OnnxSession(path, path.read_bytes())
    except Exception as error:  # onnxruntime's own, which have no class in common but this
        missing = re.search(r"find an implementation for (\w+)", str(error))
        if missing is None:
            return  # the file is run next, and what it raises is told beside what the program gives
        message = f"onnxruntime has no {missing[1]} for the dtype that it is given here"
        raise refuse("SG402", message, hint="Compute it in float32 (a Python float is float64).") from error


def load_onnx(path: Path) -> LoadedProgram:
    """Load an ``.onnx`` file; it runs in onnxruntime, on the CPU.

    Raises:
        ImportError: onnxruntime is not installed.
        LoadError: the file is damaged, was changed since it was saved, or was not saved here.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    try:
        has_checksum = check_sum(data)
        session = OnnxSession(path, data)
        if PROGRAM not in session.texts:
            raise load_error("it was not saved by stillgraph", "Open it with onnxruntime.InferenceSession.")
        structure = json.loads(session.texts[PROGRAM])
        check_version(structure["version"], VERSION)
        if structure["version"] >= _WITH_CHECKSUM and not has_checksum:
            raise changed()
        return LoadedProgram(session, structure["entry"])
    except ImportError:
        raise
    except LoadError as error:
        raise LoadError(error.reason, f"{path.name!r} cannot be loaded: {error.message}", error.hint) from error
    except Exception as error:  # of any kind: onnxruntime's, and what reading a wrong text raises
        raise load_error(f"{path.name!r} cannot be loaded: it is damaged ({summary(error)})") from error
