"""Programs read from a file: called like the originals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.deploy.description.binding import binding_of
from stillgraph.deploy.description.preconditions import Precondition
from stillgraph.deploy.description.structure import decode_result, decode_source
from stillgraph.deploy.exporting.checks import original, results_of
from stillgraph.passes.checks import Check
from stillgraph.passes.lists.lists import items_of
from stillgraph.program.input_spec import Dim
from stillgraph.program.sources import Argument, Source
from stillgraph.runtime.native.function_writer import read_source

_KINDS = {"bool": bool, "int": int, "float": float}


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
    dims: tuple[Dim | None, ...]

    def wrong(self, value: Any) -> str | None:
        """What a value is, if it is not such a tensor."""
        if not isinstance(value, torch.Tensor):
            return f"a {type(value).__name__}"
        fits = len(self.shape) == value.dim() and all(d in (None, s) for d, s in zip(self.shape, value.shape))
        inside = all(dim is None or dim.holds(size) for dim, size in zip(self.dims, value.shape))
        return None if fits and inside and value.dtype == self.dtype else _shown(value.dtype, value.shape)

    def __str__(self) -> str:
        return _shown(self.dtype, [size if dim is None else dim for size, dim in zip(self.shape, self.dims)])


def _shown(dtype: torch.dtype, shape: Sequence[int | Dim | None]) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return f"{str(dtype).removeprefix('torch.')}[{sizes}]"


def _decode_dim(data: Any) -> Dim | None:
    return None if data is None else Dim(data[0], min=data[1], max=data[2])


class LoadedProgram:
    """A program read from a file: call it like the original.

    Attributes:
        name: of the program.
        module: torch's module; it takes and gives tensors, and has the original's parameters and buffers. Of an
            AOTInductor package torch's callable, of an ``.onnx`` file an `onnx_session.OnnxSession`.
        notes: effects of the original that a call of this does not have.
        checks: the names of what the module gives last, of a program saved with ``assertions="return"``: a dict with a
            truth value for each, in the order in which the original would fail. A call of this raises what the
            original does.
    """

    def __init__(self, module: Any, structure: dict[str, Any], run: Callable[..., Any] | None = None) -> None:
        self.name: str = structure["name"]
        self.module = module
        self._run = run or module
        self.notes: tuple[str, ...] = tuple(structure["notes"])
        self._binding = binding_of(
            self.name, structure["parameters"], structure["receiver"], structure["arguments"]
        )
        self._tensors = [
            _Tensor(decode_source(source), getattr(torch, dtype), tuple(shape), tuple(map(_decode_dim, dims)))
            for source, dtype, shape, dims in structure["inputs"]
        ]
        self._constants = [_Constant(decode_source(source), value) for source, value in structure["constants"]]
        self._conditions = [Precondition(data) for data in structure.get("conditions", ())]
        self._kinds = [_KINDS[kind] if kind is not None else None for kind in structure["kinds"]]
        self._checks = tuple(Check(name, error) for name, error in structure.get("checks", ()))
        self._build = decode_result(structure["result"])

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: the original does not take these arguments, or the example call did not have one of them.
            ValueError: a Python argument, a dtype or a size differs from what the program was saved for.
            Exception: what the program raises, as the original would where the type is one of Python's own.
        """
        args, kwargs = self._binding.place(args, kwargs)
        for condition in self._conditions:
            wrong = condition.fault(lambda source: self._read(source, args, kwargs), self._named)
            if wrong is not None:
                raise ValueError(f"{self.name} was saved for {wrong}")
        for constant in self._constants:
            self._check(constant, args, kwargs)
        inputs = [self._tensor(tensor, args, kwargs) for tensor in self._tensors]
        self._check_names(inputs)
        with torch.no_grad():
            try:
                given = self._run(*inputs)
            except RuntimeError as error:
                raise original(str(error), error) from None
        outputs = results_of(given, self._checks)
        values = [_python(out, kind) for out, kind in zip(outputs, self._kinds)]
        return self._build(values, lambda source: read_source(source, args, kwargs))

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of what the module says of the original's assertions."""
        return tuple(check.name for check in self._checks)

    def _tensor(self, tensor: _Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = self._read(tensor.source, args, kwargs)
        wrong = tensor.wrong(value)
        if wrong is not None:
            raise ValueError(f"{self.name} was saved for {self._named(tensor.source)} of {tensor}, not {wrong}")
        return value

    def _check_names(self, inputs: list[torch.Tensor]) -> None:
        """Dimensions of one name have one size."""
        known: dict[str, tuple[int, Source]] = {}
        for tensor, value in zip(self._tensors, inputs):
            for dim, size in zip(tensor.dims, value.shape):
                if dim is None:
                    continue
                first, source = known.setdefault(dim.name, (size, tensor.source))
                if first != size:
                    sizes = f"{self._named(source)} has {first}, {self._named(tensor.source)} has {size}"
                    raise ValueError(f"{self.name} was saved for one size of {dim.name!r}: {sizes}")

    def _check(self, constant: _Constant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = self._read(constant.source, args, kwargs)
        # repr: -0.0 is not 0.0, and NaN is NaN
        if type(value) is not type(constant.value) or repr(value) != repr(constant.value):
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


class LoadedPrograms(Mapping[str, LoadedProgram]):
    """Several programs read from one file, each an attribute and an item: ``loaded.encode``, ``loaded["encode"]``."""

    def __init__(self, programs: dict[str, LoadedProgram]) -> None:
        self._programs = programs

    def __getitem__(self, name: str) -> LoadedProgram:
        try:
            return self._programs[name]
        except KeyError:
            raise KeyError(f"there is no entry {name!r}, there are {', '.join(self._programs)}") from None

    def __getattr__(self, name: str) -> LoadedProgram:
        programs: dict[str, LoadedProgram] = self.__dict__.get("_programs", {})
        if name not in programs:
            raise AttributeError(f"there is no entry {name!r}, there are {', '.join(programs)}")
        return programs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def __len__(self) -> int:
        return len(self._programs)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._programs]

    def __repr__(self) -> str:
        return f"<loaded programs {', '.join(self._programs)}>"
