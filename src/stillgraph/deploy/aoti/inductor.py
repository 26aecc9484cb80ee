"""The adapter to AOTInductor: torch's compiler of exported programs, its packages, and its loader of them."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from stillgraph.deploy.exporting.regions_apart import regions_apart
from stillgraph.deploy.exporting.torch_export import quiet
from stillgraph.deploy.pt2.patient import patient
from stillgraph.program.graphs import regions

_LOGGER = "torch._inductor"
_KEY = "stillgraph"
_STATE = "data/weights/stillgraph_state"
"""The record with what several models of a package share. Torch's loader passes it over."""


def check_compiler() -> None:
    """Refuse to begin where there is no C++ compiler.

    Raises:
        RuntimeError: torch finds none.
    """
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        raise RuntimeError("saving as aoti needs a C++ compiler: install g++, or name one in CXX") from None


def compiled(program: ExportedProgram, text: str) -> list[Any]:
    """The files that the compiler makes of a program, with a text to go with them."""
    options = {"aot_inductor.package": True, "aot_inductor.metadata": {_KEY: text}}
    module = program.module(check_guards=False)
    assert isinstance(module, torch.fx.GraphModule), "an exported program is a graph"
    _end_at_the_size(module)
    args, kwargs = program.example_inputs
    with quiet(_LOGGER), torch.no_grad(), regions_apart():
        files = torch._inductor.aot_compile(module, args, kwargs, options=options)
    assert isinstance(files, list), "a package is made of files"
    return files


def _end_at_the_size(module: torch.fx.GraphModule) -> None:
    """Let slices to the end be slices to the size: Inductor (torch 2.13) compares no constant with an open size."""
    for region in regions(module):
        for node in list(region.graph.nodes):
            dim, end = _DIM_AND_END.get(node.target, (0, 0))
            if not end or node.args[end : end + 1] != (_END,):
                continue
            sliced = node.args[0]
            size = sliced.meta["val"].shape[node.args[dim]]
            if not isinstance(size, int):
                with region.graph.inserting_before(node):
                    read = region.graph.call_function(torch.ops.aten.sym_size.int, (sliced, node.args[dim]))
                read.meta["val"] = size
                node.update_arg(end, read)
        region.recompile()


_END = 2**63 - 1  # as far as a slice can go; `torch_export` writes all operands of these
_DIM_AND_END: dict[Any, tuple[int, int]] = {
    torch.ops.aten.slice.Tensor: (1, 3),
    torch.ops.aten.slice_scatter.default: (2, 4),
}


def write_package(path: Path, models: Mapping[str, list[Any]], state: list[torch.Tensor]) -> None:
    """Write a package.

    Args:
        path: of the file.
        models: what `compiled` made, by name.
        state: tensors to go with them.

    Raises:
        OSError: the file cannot be written.
    """
    from torch.export.pt2_archive import PT2ArchiveWriter
    from torch.export.pt2_archive._package import _package_aoti_files

    data = io.BytesIO()
    torch.save(state, data)
    with path.open("wb") as file, patient(file) as writing, quiet(_LOGGER), PT2ArchiveWriter(writing) as writer:
        _package_aoti_files(writer, dict(models))
        if state:
            writer.write_bytes(_STATE, data.getvalue())


def is_inlined(tensor: torch.Tensor) -> bool:
    """Whether the compiler writes the values of a tensor into the code, where the program only reads it."""
    return tensor.dim() == 0 or (tensor.dim() == 1 and tensor.numel() <= 8)


class Model:
    """A model of a package that is loaded: called with tensors, it gives tensors."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self._orders: Sequence[Sequence[int]] | None = None
        self._written: frozenset[int] = frozenset()

    def text(self) -> str | None:
        """What was written to go with it; None if another program wrote the package."""
        text: str | None = self.runner.get_metadata().get(_KEY)
        return text

    def lacks(self, names: Iterable[str]) -> list[str]:
        """Those of the names of tensors that it does not know: they are in its code, or not used."""
        known = set(self.runner.get_constant_fqns())
        return [name for name in names if name not in known]

    def use(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Read and write other memory from now on, which the caller keeps alive."""
        self.runner.load_constants(dict(tensors), check_full_update=False, user_managed=True)
        self._kept = dict(tensors)

    def expect(self, orders: Sequence[Sequence[int]] | None, written: Iterable[int]) -> None:
        """Say what it was compiled for.

        Args:
            orders: by `order_of`, of each tensor that it takes; None for row by row.
            written: the positions of the tensors that it writes to.
        """
        self._orders, self._written = orders, frozenset(written)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Run it; tensors that lie otherwise in memory than it was compiled for are copied: it reads past them."""
        orders = [range(tensor.dim()) for tensor in tensors] if self._orders is None else self._orders
        given = [laid_out(tensor, order) for tensor, order in zip(tensors, orders, strict=True)]
        made = self.runner(*given)
        for place in self._written:
            if given[place] is not tensors[place]:
                tensors[place].copy_(given[place])
        return made


def crashes(path: Path, name: str, tensors: Sequence[torch.Tensor], seconds: float | None = None) -> bool:
    """Whether a model of a package ends the process that runs it; one of its own does, which takes some seconds.

    An error, or a run that takes longer than it may, is no crash: the caller's own run meets it, too.

    Args:
        path: of the package.
        name: of the model.
        tensors: laid out as the model was compiled for.
        seconds: for how long it may run; None for no bound.
    """
    try:
        return run_apart(path, name, tensors, seconds) < 0  # by a signal
    except subprocess.TimeoutExpired:
        return False


def run_apart(path: Path, name: str, tensors: Sequence[torch.Tensor], seconds: float | None = None) -> int:
    """Run a model of a package in a process of its own; the arguments are those of `crashes`.

    Returns:
        How the process ended: 0 if the model ran, and less if a signal ended it.
    """
    with tempfile.TemporaryDirectory() as folder:
        package, given = _named(path, folder), Path(folder) / "tensors.pt"
        torch.save(tuple(tensors), given)
        bound = None if seconds is None else seconds + _STARTING
        command = [sys.executable, "-c", _RUN, str(package), name, str(given)]
        return subprocess.run(command, capture_output=True, check=False, timeout=bound).returncode


_STARTING = 60.0  # seconds for Python and torch to begin
_RUN = """
import sys, torch
from torch.export.pt2_archive._package import load_pt2
load_pt2(sys.argv[1]).aoti_runners[sys.argv[2]](*torch.load(sys.argv[3]))
"""


def order_of(tensor: torch.Tensor) -> list[int]:
    """The dimensions of a dense tensor, the one whose neighbours lie farthest apart in memory first."""
    strides = tensor.stride()
    return sorted(range(tensor.dim()), key=lambda dim: -strides[dim])


def laid_out(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """A tensor, or a copy of it, that is dense with its dimensions in an order as `order_of` gives it."""
    tensor = tensor.resolve_conj().resolve_neg()
    turned = tensor.permute(tuple(order))
    if turned.is_contiguous():
        return tensor
    return turned.contiguous().permute([list(order).index(dim) for dim in range(tensor.dim())])


def read_package(path: Path) -> tuple[dict[str, Model], list[torch.Tensor]]:
    """Load a package, whose code may do anything: its models by name, and the tensors that go with them."""
    from torch.export.pt2_archive import PT2ArchiveReader
    from torch.export.pt2_archive._package import load_pt2

    with tempfile.TemporaryDirectory(prefix="stillgraph-") as folder, quiet(_LOGGER):
        named = str(_named(path, folder))
        runners = load_pt2(named).aoti_runners
        with PT2ArchiveReader(named) as reader:
            data = reader.read_bytes(_STATE) if _STATE in reader.get_file_names() else None
    state = [] if data is None else torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    return {name: Model(runner) for name, runner in runners.items()}, state


def _named(path: Path, folder: str) -> Path:
    """The path of a package by a name that torch takes for one."""
    if path.suffix == ".pt2":
        return path
    named = Path(folder) / "model.pt2"
    named.symlink_to(path.absolute())
    return named
