"""Who exports what: the conformance cases and whole models, by stillgraph and by torch's own exporters.

``python -m bench.exporters [--exporter NAME]... [--case NAME]... [--only cases|models] [--json FILE] [--verbose]``. An
exporter makes a file from the first input of a case; the file is read back and called with every input, and has to
give eager PyTorch's results. The rule is the same for all, and lenient about form: a tuple may stand for a list, a 0-d
tensor for a number, any exception for eager's; what is printed is not looked at.

A file is made anew for another dtype, rank or Python argument, and for training and evaluation. Sizes in which the
inputs differ are left open. An exporter that makes a file for one size all the same, and refuses another when it is
called, is not wrong but refuses at run.
"""

from __future__ import annotations

import copy
import inspect
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.exporters``

import stillgraph as sg
from bench._judging import as_module, brief, leaves, printed, quiet, same, within
from bench._timing import machine, write_json
from bench.models import MODELS
from tests.cases.case import Case, all_cases
from tests.cases.compare import tensors_in
from tests.cases.harness import Outcome, observe

RIGHT, REFUSED, AT_RUN, WRONG = "right", "refused", "refused at run", "wrong"
VERDICTS = (RIGHT, REFUSED, AT_RUN, WRONG)
"""From best to worst."""
SECONDS = 300


@dataclass(frozen=True)
class Request:
    """What one file is made for: a fresh target, example arguments, and which sizes are open."""

    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    sizes: Any  # as args, with `_Sizes` for each tensor; or None where no size is open

    @property
    def dynamic_shapes(self) -> Any:
        """The open sizes as `torch.export` takes them: it may fix them where the code makes it."""
        if self.sizes is None:
            return None
        auto = torch.export.Dim.AUTO
        given = tuple(
            tree_map(lambda sizes: {d: auto for d, s in enumerate(sizes.dims) if s is None}, place, is_leaf=_is_sizes)
            for place in self.sizes
        )
        return given if isinstance(self.target, nn.Module) else (given,)

    @property
    def input_spec(self) -> Any:
        """The open sizes as stillgraph takes them."""
        if self.sizes is None:
            return None
        pairs = zip(self.sizes, self.args, strict=True)
        return [sg.InputSpec(sizes.dims, given.dtype) for sizes, given in pairs]

    def example(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A copy of the arguments."""
        return copy.deepcopy((self.args, dict(self.kwargs)))


@dataclass(frozen=True)
class _Sizes:
    dims: list[int | None]


def _is_sizes(value: Any) -> bool:
    return isinstance(value, _Sizes)


Export = Callable[[Request, Path], Callable[..., Any]]
"""Writes a file to the folder and gives what runs it."""


# ---- the exporters
def _stillgraph(suffix: str, request: Request, folder: Path) -> Callable[..., Any]:
    path = folder / f"model{suffix}"
    args, kwargs = request.example()
    sg.save(request.target, path, args=args, kwargs=kwargs, input_spec=request.input_spec)
    loaded: Callable[..., Any] = sg.load(path, native=suffix == ".aoti.pt2")
    return loaded


def _torch_export(strict: bool, request: Request, folder: Path) -> Callable[..., Any]:
    path = folder / "model.pt2"
    module, (args, kwargs) = as_module(request.target), request.example()
    shapes = _with_keywords(request, module)
    program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=strict)
    torch.export.save(program, path)
    return torch.export.load(path).module()


def _with_keywords(request: Request, module: nn.Module) -> Any:
    shapes = request.dynamic_shapes
    return shapes if shapes is None or not request.kwargs else (*shapes, tree_map(lambda _: None, dict(request.kwargs)))


def _torch_onnx(request: Request, folder: Path) -> Callable[..., Any]:
    path = folder / "model.onnx"
    args, kwargs = request.example()
    module, shapes = as_module(request.target), request.dynamic_shapes
    if kwargs or not all(isinstance(given, Tensor) for given in args):  # ONNX takes tensors alone
        module, args, kwargs, shapes = _OfTensors(request), tuple(tensors_in((args, kwargs))), {}, None
    torch.onnx.export(module, args, path, kwargs=kwargs, dynamo=True, dynamic_shapes=shapes, verbose=False)
    return _onnxruntime(path)


def _script(request: Request, folder: Path) -> Callable[..., Any]:
    path = folder / "model.pt"
    torch.jit.save(torch.jit.script(request.target), str(path))
    loaded = torch.jit.load(str(path))
    if isinstance(request.target, nn.Module):
        return loaded
    signature = inspect.signature(request.target)

    def run(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()  # the file of a function has none
        return loaded(*bound.args, **bound.kwargs)

    return run


def _trace(request: Request, folder: Path) -> Callable[..., Any]:
    path = folder / "model.pt"
    module = _OfTensors(request)
    tensors = tuple(tensors_in(request.example()))
    state = copy.deepcopy(module.state_dict())
    traced = torch.jit.trace(module, tensors, check_trace=False, strict=False)
    traced.load_state_dict(state)  # tracing is a call, which may write to buffers
    torch.jit.save(traced, str(path))
    loaded = torch.jit.load(str(path))
    return lambda *args, **kwargs: loaded(*tensors_in((args, kwargs)))


EXPORTERS: Mapping[str, Export] = {
    "stillgraph .pt2": partial(_stillgraph, ".pt2"),
    "stillgraph .onnx": partial(_stillgraph, ".onnx"),
    "torch.export": partial(_torch_export, False),
    "torch.export(strict=True)": partial(_torch_export, True),
    "torch.onnx.export": _torch_onnx,
    "torch.jit.script": _script,
    "torch.jit.trace": _trace,
}
AOTI: Mapping[str, Export] = {"stillgraph .aoti.pt2": partial(_stillgraph, ".aoti.pt2")}
"""Half a minute for each file: only where it is asked for."""


class _OfTensors(nn.Module):
    """The target as a function of the tensors among its arguments; all else stays what the example has."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.target = request.target
        self.given, self.structure = tree_flatten(request.example())

    def forward(self, *tensors: Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = tree_unflatten([next(rest) if isinstance(v, Tensor) else v for v in self.given], self.structure)
        return self.target(*args, **kwargs)


def _onnxruntime(path: Path) -> Callable[..., Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [taken.name for taken in session.get_inputs()]

    def run(*args: Any, **kwargs: Any) -> list[Tensor]:
        given = [tensor.numpy() for tensor in tensors_in((args, kwargs))]
        return [torch.as_tensor(made) for made in session.run(None, dict(zip(names, given, strict=True)))]

    return run


# ---- judging
@dataclass(frozen=True)
class Judgement:
    """What became of a case, and why."""

    verdict: str
    reason: str = ""


def judge(case: Case, export: Export) -> Judgement:
    """Export the case for each kind of input it has and call the files with every input; the worst is the verdict."""
    with tempfile.TemporaryDirectory() as folder, quiet(), printed():
        judgements = [
            _judge_group(case, export, indices, Path(folder) / str(number))
            for number, indices in enumerate(_groups(case))
        ]
    return max(judgements, key=lambda judgement: VERDICTS.index(judgement.verdict))


def _groups(case: Case) -> Iterator[list[int]]:
    """The inputs that one file should serve; the first alone where Python state decides, which no file has."""
    groups: dict[str, list[int]] = {}
    for index, args in enumerate(case.inputs if case.programs is None else case.inputs[:1]):
        values, structure = tree_flatten(args)
        kinds = [f"{v.dtype}[{v.dim()}]" if isinstance(v, Tensor) else repr(v) for v in values]
        training = case.toggle_train and index == 0
        groups.setdefault(f"{structure} {kinds} {training}", []).append(index)
    yield from groups.values()


def _judge_group(case: Case, export: Export, indices: Sequence[int], folder: Path) -> Judgement:
    folder.mkdir()
    case = replace(case, attrs=(), grad=False, pgrad=False)
    eager = _target(case, indices)
    expected = {index: observe(case, eager, case.inputs[index]) for index in indices}
    served = [index for index in indices if expected[index].error is None]
    example = served[0] if served else indices[0]
    try:
        with within(SECONDS):
            torch._dynamo.reset()
            sizes = _sizes(case, indices, example)
            run = export(Request(_target(case, indices), case.inputs[example], case.kwargs, sizes), folder)
    except Exception as error:  # every refusal counts, whatever its type
        return Judgement(REFUSED, brief(error)) if served else Judgement(RIGHT)
    found = [_judge_input(case, run, index, expected[index]) for index in indices]
    return max(found, key=lambda judgement: VERDICTS.index(judgement.verdict))


def _target(case: Case, indices: Sequence[int]) -> Any:
    target = case.target()
    if case.toggle_train:
        target.train(0 in indices)
    return target


def _sizes(case: Case, indices: Sequence[int], example: int) -> Any:
    """As the arguments, the sizes of tensors, None where they are open or the inputs differ; or None for all."""
    given, structure = tree_flatten(case.inputs[example])
    others = [tree_flatten(case.inputs[index])[0] for index in indices]
    declared = case.input_dims or [()] * len(given)
    found, is_open = [], False
    for place, value in enumerate(given):
        dims: list[int | None] = []
        for dim in range(value.dim() if isinstance(value, Tensor) else 0):
            left_open = dim < len(declared[place]) and declared[place][dim] is None
            left_open |= len({values[place].shape[dim] for values in others}) > 1
            dims.append(None if left_open else value.shape[dim])
        is_open |= None in dims
        found.append(_Sizes(dims))
    return tree_unflatten(found, structure) if is_open else None


def _judge_input(case: Case, run: Callable[..., Any], index: int, expected: Outcome) -> Judgement:
    args, kwargs = copy.deepcopy((case.inputs[index], dict(case.kwargs)))
    torch.manual_seed(1)
    try:
        with within(SECONDS):
            value = run(*args, **kwargs)
    except Exception as error:  # as above
        return Judgement(RIGHT) if expected.error is not None else Judgement(AT_RUN, f"input {index}: {brief(error)}")
    if expected.error is not None:
        return Judgement(WRONG, f"input {index}: eager raises {brief(expected.error)}")
    wanted, found = _present(expected.value), _present(value)
    rows = [row for tensor in found for row in tensor] if case.rows else found  # of a list, where a format has none
    if same(wanted, found) or same(wanted, rows):
        return Judgement(RIGHT)
    return Judgement(WRONG, f"input {index}: the result differs")


def _present(value: Any) -> list[Any]:
    """The leaves but for None, which files leave out."""
    return [leaf for leaf in leaves(value) if leaf is not None]


# ---- the command
@click.command()
@click.option("--exporter", "wanted", multiple=True, type=click.Choice([*EXPORTERS, *AOTI]), help="Only this one.")
@click.option("--case", "names", multiple=True, help="Only this case or model; may be repeated.")
@click.option("--only", type=click.Choice(["cases", "models"]), help="Only the conformance cases, or only the models.")
@click.option("--aoti", is_flag=True, help="stillgraph's AOTInductor packages as well: half a minute for each.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every verdict to this file.")
@click.option("--verbose", is_flag=True, help="Print every verdict with its reason.")
def main(
    wanted: tuple[str, ...], names: tuple[str, ...], only: str | None, aoti: bool, json_file: Path | None, verbose: bool
) -> None:
    """Export every case and model by every exporter and print what became of them."""
    torch.set_num_threads(1)
    console = Console()
    if not console.is_terminal:
        console.width = 150
    exporters = {**EXPORTERS, **(AOTI if aoti or set(wanted) & set(AOTI) else {})}
    exporters = {name: export for name, export in exporters.items() if not wanted or name in wanted}
    sets = {"cases": all_cases(), "models": {case.name: case for case in MODELS}}
    unknown = [name for name in names if not any(name in cases for cases in sets.values())]
    if unknown:
        raise click.BadParameter(f"there is no {unknown[0]!r}", param_hint="--case")
    results: dict[str, dict[str, dict[str, Judgement]]] = {}
    for title, cases in sets.items():
        if only not in (None, title):
            continue
        results[title] = {}
        for name, case in cases.items():
            if names and name not in names:
                continue
            results[title][name] = {}
            for exporter, export in exporters.items():
                judgement = results[title][name][exporter] = judge(case, export)
                if verbose:
                    line = f"{exporter}  {name}  {judgement.verdict}  {judgement.reason}"
                    console.print(line, markup=False, soft_wrap=True)
    for title, found in results.items():
        if title == "models":
            console.print(_each(found, list(exporters)))
        console.print(_counts(f"{len(found)} {title}", found, list(exporters)))
    console.print(machine())
    write_json(json_file, tree_map(lambda judgement: vars(judgement), results))


def _counts(title: str, found: Mapping[str, Mapping[str, Judgement]], exporters: Sequence[str]) -> Table:
    table = Table("", *VERDICTS, title=title)
    for exporter in exporters:
        counts = Counter(judgements[exporter].verdict for judgements in found.values())
        table.add_row(exporter, *(str(counts[verdict]) for verdict in VERDICTS))
    return table


def _each(found: Mapping[str, Mapping[str, Judgement]], exporters: Sequence[str]) -> Table:
    table = Table("", *exporters, title="The models, one by one")
    for name, judgements in found.items():
        table.add_row(name, *(judgements[exporter].verdict for exporter in exporters))
    return table


if __name__ == "__main__":
    main()
