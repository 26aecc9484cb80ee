"""Assertions as outputs of an ONNX file: ``check_1`` and so on behind the results; its properties say of what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.deploy.exporting.checks import require_all
from stillgraph.passes.checks import Check


def names(checks: Sequence[Check]) -> list[str]:
    """The names of the outputs."""
    return [f"check_{number}" for number, _ in enumerate(checks, 1)]


def told(checks: Sequence[Check]) -> dict[str, str]:
    """The name of each check by that of its output."""
    return {name: check.name for name, check in zip(names(checks), checks, strict=True)}


def describe(model: Any, checks: Sequence[Check]) -> None:
    """Let the outputs of a model of onnx_ir say what they tell of."""
    texts = told(checks)
    for output in model.graph.outputs:
        if output.name in texts:
            output.doc_string = texts[output.name]


def results(given: Sequence[torch.Tensor], checks: Sequence[Check], behind: int) -> list[torch.Tensor]:
    """What a run gives besides its checks.

    Args:
        given: all outputs.
        checks: of the program.
        behind: how many outputs there are behind them.

    Raises:
        Exception: what the original raises where the first check that does not hold stands.
    """
    end = len(given) - behind
    first = end - len(checks)
    require_all(checks, given[first:end])
    return [*given[:first], *given[end:]]
