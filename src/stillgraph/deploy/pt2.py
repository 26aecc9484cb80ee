"""`.pt2`: torch's archive of an exported program, with the structure of arguments and result beside it as JSON."""

from __future__ import annotations

import builtins
import json
import logging
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from stillgraph.core.logs import log
from stillgraph.deploy.binding import binding_of
from stillgraph.deploy.exported_program import to_exported_program
from stillgraph.deploy.one_structure import one_structure
from stillgraph.deploy.signature import Taken, is_argument, objects_of, values_of
from stillgraph.deploy.structure import decode_result, decode_source, encode_result, encode_source, is_atom
from stillgraph.deploy.torch_export import quiet
from stillgraph.deploy.verification import check_artefact
from stillgraph.passes.lists import items_of
from stillgraph.passes.printing import prints
from stillgraph.program.guards import Argument, ConstantGuard, Source, TensorGuard
from stillgraph.program.program import Program
from stillgraph.runtime.function_writer import read_source

_STRUCTURE = "stillgraph.json"
_KINDS = {"bool": bool, "int": int, "float": float}


def write_pt2(
    program: Program,
    path: Path,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameters: Any,
    receiver: int,
    notes: tuple[str, ...] = (),
) -> None:
    """Write a program and check what was written.

    Args:
        program: what to write.
        path: of the file.
        args, kwargs: the example call, a receiver first.
        parameters: those of the original, by `binding.encode_parameters`.
        receiver: 1 if ``args[0]`` is the receiver.
        notes: what else to say of the file.

    Raises:
        ExportError: `torch.export` cannot express the program, or the file differs from it.
    """
    program = one_structure(program)
    exported = to_exported_program(program, args, kwargs)
    notes = (*notes, *exported.notes, *(("a loaded program does not print",) if prints(program) else ()))
    for note in notes:
        log("deploy", "note", f"{program.name}: {note}", logging.WARNING, program=program.name)
    structure = {
        "version": 1,
        "name": program.name,
        "receiver": receiver,
        "parameters": parameters,
        "inputs": [_encode_taken(program, taken) for taken in exported.signature.taken],
        "arguments": [*range(receiver, len(args)), *kwargs],
        "constants": _constants(program),
        "kinds": [kind.__name__ if kind is not None else None for kind in exported.kinds],
        "result": encode_result(program.result),
        "notes": list(notes),
    }
    with quiet():
        torch.export.save(exported.program, path, extra_files={_STRUCTURE: json.dumps(structure)})
    module = load_pt2(path).module
    given = [t.detach().clone() for t in values_of(exported.signature, args, kwargs)]
    check_artefact(program, lambda: module(*given), args, kwargs)


def _encode_taken(program: Program, taken: Taken) -> list[Any]:
    """Where a tensor of the call is found, and what it has to be: dtype, and sizes with None for any."""
    (guard,) = [g for g in program.guards if isinstance(g, TensorGuard) and g.source == taken.source]
    return [encode_source(taken.source), str(guard.dtype).removeprefix("torch."), list(guard.shape)]


def _constants(program: Program) -> list[Any]:
    """The Python values among the arguments that the program was made for."""
    found = []
    objects = objects_of(program)
    for guard in program.guards:
        if isinstance(guard, ConstantGuard) and is_argument(guard.source, objects):
            source = encode_source(guard.source)
            if source is not None and is_atom(guard.value):
                found.append([source, guard.value])
    return found


def load_pt2(path: Path) -> LoadedProgram:
    """Load a `.pt2`, one of ours or any other."""
    extra = {_STRUCTURE: ""}
    with quiet():
        try:
            program = torch.export.load(path, extra_files=extra)
        except zipfile.BadZipFile:
            raise ValueError(f"{path.name!r} is no .pt2 archive") from None
    module = program.module()
    if not extra[_STRUCTURE]:
        raise ValueError(f"{path.name!r} was not saved by stillgraph; open it with torch.export.load")
    return LoadedProgram(module, json.loads(extra[_STRUCTURE]))


@dataclass(frozen=True)
class _Constant:
    source: Source
    value: Any


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the call: where it is, and what it has to be."""

    source: Source
    dtype: torch.dtype
    shape: tuple[int | None, ...]

    def wrong(self, value: Any) -> str | None:
        """What a value is, if it is not such a tensor."""
        if not isinstance(value, torch.Tensor):
            return f"a {type(value).__name__}"
        fits = len(self.shape) == value.dim() and all(d in (None, s) for d, s in zip(self.shape, value.shape))
        return None if fits and value.dtype == self.dtype else _shown(value.dtype, value.shape)

    def __str__(self) -> str:
        return _shown(self.dtype, self.shape)


def _shown(dtype: torch.dtype, shape: Sequence[int | None]) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return f"{str(dtype).removeprefix('torch.')}[{sizes}]"


class LoadedProgram:
    """A program read from a file: call it like the original.

    Attributes:
        name: of the program.
        module: torch's module; it takes and gives tensors, and has the original's parameters and buffers.
        notes: effects of the original that a call of this does not have.
    """

    def __init__(self, module: torch.nn.Module, structure: dict[str, Any]) -> None:
        self.name: str = structure["name"]
        self.module = module
        self.notes: tuple[str, ...] = tuple(structure["notes"])
        self._binding = binding_of(
            self.name, structure["parameters"], structure["receiver"], structure["arguments"]
        )
        self._tensors = [
            _Tensor(decode_source(source), getattr(torch, dtype), tuple(shape))
            for source, dtype, shape in structure["inputs"]
        ]
        self._constants = [_Constant(decode_source(source), value) for source, value in structure["constants"]]
        self._kinds = [_KINDS[kind] if kind is not None else None for kind in structure["kinds"]]
        self._build = decode_result(structure["result"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: the original does not take these arguments, or the example call did not have one of them.
            ValueError: a Python argument, a dtype or a size differs from what the program was saved for.
            Exception: what the program raises, as the original would where the type is one of Python's own.
        """
        args, kwargs = self._binding.place(args, kwargs)
        for constant in self._constants:
            self._check(constant, args, kwargs)
        inputs = [self._tensor(tensor, args, kwargs) for tensor in self._tensors]
        with torch.no_grad():
            try:
                outputs = list(self.module(*inputs))
            except RuntimeError as error:
                raise _original(error) from None
        values = [_python(out, kind) for out, kind in zip(outputs, self._kinds)]
        return self._build(values, lambda source: read_source(source, args, kwargs))

    def _tensor(self, tensor: _Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = self._read(tensor.source, args, kwargs)
        wrong = tensor.wrong(value)
        if wrong is not None:
            raise ValueError(f"{self.name} was saved for {self._named(tensor.source)} of {tensor}, not {wrong}")
        return value

    def _check(self, constant: _Constant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = self._read(constant.source, args, kwargs)
        if type(value) is not type(constant.value) or (value != constant.value and value == value):
            named = self._named(constant.source)
            raise ValueError(f"{self.name} was saved for {named} = {constant.value!r}, not {value!r}")

    def _read(self, source: Source, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return read_source(source, args, kwargs)
        except (IndexError, KeyError, AttributeError, TypeError):
            raise TypeError(f"{self.name}: there is no {self._named(source)} among the arguments") from None

    def _named(self, source: Source) -> str:
        return str(source) if not isinstance(source, Argument) else self._binding.shown(source.key)

    def __repr__(self) -> str:
        return f"<loaded program {self.name}>"


def _python(output: torch.Tensor, kind: type | None) -> Any:
    """What an output stands for: itself, a number, or a list of numbers."""
    if kind is None:
        return output
    return kind(output.item()) if output.dim() == 0 else items_of(output, kind)


def _original(error: RuntimeError) -> Exception:
    """The exception of Python's own that the program raises by an assertion of torch's with its name and text."""
    name, separator, text = str(error).partition(": ")
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        return kind(text) if separator else kind()
    return error
