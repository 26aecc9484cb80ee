"""What one part of the demonstration reports, and how its numbers are taken."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

import stillgraph as sg


@dataclass(frozen=True)
class Outcome:
    """The row of one part.

    Attributes:
        program: the program that was captured.
        capture_seconds: how long the capture took.
        difference: the largest absolute difference from eager PyTorch over everything that was compared.
        tolerance: the difference up to which the part agrees.
        files: what was written.
        remarks: what was compared, one short clause each.
        faults: what went wrong besides a difference.
    """

    program: sg.Program
    capture_seconds: float
    difference: float
    tolerance: float
    files: tuple[Path, ...]
    remarks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the program gives what eager PyTorch gives."""
        return not self.faults and self.difference <= self.tolerance


def timed_capture(capture: Callable[[], sg.Program]) -> tuple[sg.Program, float]:
    """Run `capture`; give the program and the seconds it took."""
    start = time.perf_counter()
    program = capture()
    return program, time.perf_counter() - start


def write_listing(program: sg.Program, path: Path) -> Path:
    """Write the printed program to `path`."""
    path.write_text(str(program) + "\n", encoding="utf-8")
    return path


def regions(program: sg.Program) -> list[fx.GraphModule]:
    """The top level, and every branch and loop body below it."""
    return [module for module in program.graph.modules() if isinstance(module, fx.GraphModule)]


def node_count(program: sg.Program) -> int:
    """Operations in all regions: every node that is not an input, an attribute or the output."""
    bookkeeping = {"placeholder", "get_attr", "output"}
    return sum(node.op not in bookkeeping for region in regions(program) for node in region.graph.nodes)


def largest_difference(expected: Any, found: Any) -> float:
    """The largest absolute difference between two structures of tensors and numbers.

    Returns:
        Infinity where types, structures, shapes or dtypes differ, or where only one side is NaN.
    """
    if type(expected) is not type(found):
        return math.inf
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(expected, found)
    if isinstance(expected, dict):
        if list(expected) != list(found):
            return math.inf
        expected, found = tuple(expected.values()), tuple(found.values())
    if isinstance(expected, (tuple, list)):
        if len(expected) != len(found):
            return math.inf
        return max((largest_difference(e, f) for e, f in zip(expected, found, strict=True)), default=0.0)
    if isinstance(expected, (int, float)):
        return float(abs(expected - found))
    return 0.0 if expected == found else math.inf


def _tensor_difference(expected: torch.Tensor, found: torch.Tensor) -> float:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return math.inf
    if torch.equal(expected, found) or expected.numel() == 0:
        return 0.0
    difference = float((expected.detach().double() - found.detach().double()).abs().max())
    return math.inf if math.isnan(difference) else difference
