"""`.pt2`: torch's archive of an exported program, with the structure of arguments and result beside it as JSON."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from stillgraph.deploy.exported_program import to_exported_program
from stillgraph.deploy.one_structure import one_structure
from stillgraph.deploy.signature import is_argument, objects_of, values_of
from stillgraph.deploy.structure import decode_result, decode_source, encode_result, encode_source, is_atom
from stillgraph.deploy.torch_export import quiet
from stillgraph.deploy.verification import check_artefact
from stillgraph.program.guards import ConstantGuard, Source
from stillgraph.program.program import Program
from stillgraph.runtime.function_writer import read_source

LOGGER = logging.getLogger("stillgraph.deploy")
_STRUCTURE = "stillgraph.json"
_KINDS = {"bool": bool, "int": int, "float": float}


def write_pt2(
    program: Program,
    path: Path,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameters: tuple[str, ...],
    receiver: int,
) -> None:
    """Write a program and check what was written.

    Raises:
        ExportError: `torch.export` cannot express the program, or the file differs from it.
    """
    program = one_structure(program)
    exported = to_exported_program(program, args, kwargs)
    for note in exported.notes:
        LOGGER.warning("%s: %s", program.name, note)
    structure = {
        "version": 1,
        "name": program.name,
        "receiver": receiver,
        "parameters": list(parameters),
        "inputs": [encode_source(taken.source) for taken in exported.signature.taken],
        "arguments": [*range(receiver, len(args)), *kwargs],
        "constants": _constants(program),
        "kinds": [kind.__name__ if kind is not None else None for kind in exported.kinds],
        "result": encode_result(program.result),
        "notes": list(exported.notes),
    }
    with quiet():
        torch.export.save(exported.program, path, extra_files={_STRUCTURE: json.dumps(structure)})
    module = load_pt2(path).module
    given = [t.detach().clone() for t in values_of(exported.signature, args, kwargs)]
    check_artefact(program, lambda: module(*given), args, kwargs)


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
        self._receiver: int = structure["receiver"]
        self._parameters: Sequence[str] = structure["parameters"]
        self._arguments: list[int | str] = structure["arguments"]
        self._inputs = [decode_source(data) for data in structure["inputs"]]
        self._constants = [_Constant(decode_source(source), value) for source, value in structure["constants"]]
        self._kinds = [_KINDS[kind] if kind is not None else None for kind in structure["kinds"]]
        self._build = decode_result(structure["result"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: an argument is missing.
            ValueError: a Python argument differs from the one the program was saved for.
        """
        args, kwargs = self._placed(args, kwargs)
        for constant in self._constants:
            self._check(constant, args, kwargs)
        try:
            inputs = [read_source(source, args, kwargs) for source in self._inputs]
        except (IndexError, KeyError, AttributeError) as error:
            raise TypeError(f"{self.name}: an argument is missing ({type(error).__name__}: {error})") from None
        with torch.no_grad():
            outputs = list(self.module(*inputs))
        values = [out if kind is None else kind(out.item()) for out, kind in zip(outputs, self._kinds)]
        return self._build(values, lambda source: read_source(source, args, kwargs))

    def _placed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments where the example call had them; the receiver's place is empty."""
        placed = [None] * self._receiver + list(args)
        kwargs = dict(kwargs)
        for position, name in enumerate(self._parameters, self._receiver):
            if position == len(placed) and position in self._arguments and name in kwargs:
                placed.append(kwargs.pop(name))
            elif position < len(placed) and position not in self._arguments and name in self._arguments:
                kwargs[name] = placed[position]
        unknown = [key for key in [*range(self._receiver, len(placed)), *kwargs] if key not in self._arguments]
        if unknown and not self._names(unknown) <= set(kwargs):
            shown = ", ".join(sorted(self._names(unknown)))
            raise TypeError(f"{self.name} was saved without the argument {shown}: it has its default value")
        return tuple(placed), kwargs

    def _names(self, keys: list[int | str]) -> set[str]:
        """Arguments by name, where it is known."""
        known = dict(enumerate(self._parameters, self._receiver))
        return {key if isinstance(key, str) else known.get(key, f"number {key + 1 - self._receiver}") for key in keys}

    def _check(self, constant: _Constant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            value = read_source(constant.source, args, kwargs)
        except (IndexError, KeyError):
            return  # left to its default, which is what the program was captured with
        if type(value) is not type(constant.value) or (value != constant.value and value == value):
            raise ValueError(f"{self.name} was saved for {constant.source} = {constant.value!r}, not {value!r}")

    def __repr__(self) -> str:
        return f"<loaded program {self.name}>"
