"""Judges one program: captured with a full graph, equal to eager on each call, trained, saved, timed."""

from __future__ import annotations

import copy
import functools
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg
from bench._judging import leaves
from bench._timing import median, median_ratio, per_call
from bench.zoo.entries import Entry, Made

FORMATS = ("pt2", "onnx")


@dataclass
class Verdict:
    """What was found of a program. Empty texts mean that nothing is wrong.

    Attributes:
        refused: the code, line and text of the error with which a full graph was refused.
        wrong: the first difference from eager PyTorch.
        programs: how many programs all calls needed.
        first, eager: seconds of the first call, and of eager's.
        ratio: a warm call's time, as a multiple of eager's.
        files: by format, empty where the file gave eager's results for each call, or why not.
    """

    refused: str = ""
    wrong: str = ""
    programs: int = 0
    first: float = 0.0
    eager: float = 0.0
    ratio: float = 0.0
    files: dict[str, str] | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judged(entry: Entry, *, files: bool = True, rounds: int = 5) -> Verdict:
    """Run everything that the table tells about a program."""
    verdict = Verdict()
    plain = _made(entry)
    start = time.perf_counter()
    wanted = [_run(plain, plain.function, each) for each in range(len(plain.calls()))]
    verdict.eager = (time.perf_counter() - start) / len(wanted)
    made = _made(entry)
    static: Any = sg.to_static(made.function, full_graph=True, backend="eager")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "the capture fails")
            for each, want in enumerate(wanted):
                start = time.perf_counter()
                found = _run(made, static, each)
                verdict.first = verdict.first or time.perf_counter() - start
                difference = compared(want, found, made.exact)
                if difference and not verdict.wrong:
                    verdict.wrong = f"call {each}: {difference}"
    except (sg.CaptureError, RuntimeWarning) as error:
        verdict.refused = _told(error)
        return verdict
    except Exception as error:  # of any kind: eager PyTorch has raised none
        verdict.wrong = f"raises {type(error).__name__}: {str(error)[:300]}"
        return verdict
    verdict.programs = len((static.forward if isinstance(static, nn.Module) else static).programs)
    verdict.ratio = _ratio(plain, made, static, rounds)
    if files:
        verdict.files = {kind: _in_file(entry, wanted, kind) for kind in FORMATS}
    return verdict


def _made(entry: Entry) -> Made:
    torch.manual_seed(0)
    return entry.make()


def _run(made: Made, call: Callable[..., Any], each: int) -> list[Any]:
    """The results of one call; with them the gradients, if it trains, and what the module's buffers hold then."""
    args = made.calls()[each]
    torch.manual_seed(each)
    if not made.trains:
        return [*leaves(call(*args)), *_buffers(made)]
    tensors = _trained(made, args)
    for tensor in tensors:
        tensor.requires_grad_(True)
    result = call(*args)
    outputs = [leaf for leaf in _tensors(result) if leaf.requires_grad]
    given = torch.autograd.grad([leaf.sum() for leaf in outputs], tensors, allow_unused=True)
    return [*leaves(result), *given, *_buffers(made)]


def _buffers(made: Made) -> list[Tensor]:
    module = made.function
    return [each.detach().clone() for each in module.buffers()] if isinstance(module, nn.Module) else []


def _trained(made: Made, args: tuple[Any, ...]) -> list[Tensor]:
    parameters = list(made.function.parameters()) if isinstance(made.function, nn.Module) else list(made.parameters)
    return [each for each in (*args, *parameters) if isinstance(each, Tensor) and each.is_floating_point()]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for part in value for leaf in _tensors(part)] if isinstance(value, (list, tuple)) else []


def compared(wanted: list[Any], found: list[Any], exact: bool) -> str:
    """The first difference of two lists of leaves, or an empty text."""
    if len(wanted) != len(found):
        return f"{len(wanted)} results in eager PyTorch, {len(found)} in the program"
    for place, (want, got) in enumerate(zip(wanted, found)):
        try:
            tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-6}
            if isinstance(want, Tensor) and isinstance(got, Tensor):
                torch.testing.assert_close(got, want, equal_nan=True, **tolerance)
            elif isinstance(want, (int, float, bool)):
                assert type(got) is type(want), f"{type(got).__name__} for {type(want).__name__}"
                torch.testing.assert_close(got, want, equal_nan=True, **tolerance)
            elif not (got == want or (type(got) is type(want) and not isinstance(want, (str, bytes, type(None))))):
                return f"result {place}: {got!r} for {want!r}"
        except AssertionError as error:
            return f"result {place}: {' '.join(str(error).split())[:200]}"
    return ""


def _told(error: BaseException) -> str:
    """The first lines of an error, in one."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("File ", "^", "~"))]
    return " | ".join([*told[:1], *told[-6:]])[:1200]


def _ratio(plain: Made, made: Made, static: Any, rounds: int) -> float:
    """A warm call's time as a multiple of eager's, the two taking turns."""
    calls = {
        "eager": functools.partial(plain.function, *plain.calls()[0]),
        "static": functools.partial(static, *made.calls()[0]),
    }
    torch.manual_seed(0)
    seconds = per_call(calls, rounds=rounds)
    assert median(seconds["eager"]) > 0
    return median_ratio(seconds["static"], seconds["eager"])


@torch.no_grad()
def _in_file(entry: Entry, wanted: list[list[Any]], kind: str) -> str:
    """Why a file does not give eager's results for each call, or an empty text."""
    made = _made(entry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"program.{kind}"
        try:
            sg.save(made.function, path, args=made.calls()[0])
            loaded = sg.load(path)
            for each in range(len(wanted)):
                torch.manual_seed(each)
                found = [leaf.detach() for leaf in _tensors(loaded(*copy.deepcopy(made.calls()[each])))]
                want = [leaf for leaf in wanted[each] if isinstance(leaf, Tensor)][: len(found)]
                difference = compared(want, found, exact=False)
                if difference:
                    return f"wrong at call {each}: {difference}"
        except Exception as error:  # of any kind: the table says why there is no file
            return f"{type(error).__name__}: {_told(error)}"
    return ""
