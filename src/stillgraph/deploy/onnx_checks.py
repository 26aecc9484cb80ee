"""Assertions as outputs of an ONNX file: ``check_1`` and so on, the last ones; the file's properties say of what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.deploy.checks import require_all
from stillgraph.passes.checks import Check

PROPERTY = "checks"
"""Of the model: a JSON object with the name of each check by that of its output."""


def name_checks(model: Any, checks: Sequence[Check]) -> None:
    """Name the last outputs of a model of onnx_ir, and say what they tell of."""
    if not checks:
        return
    outputs = model.graph.outputs[len(model.graph.outputs) - len(checks) :]
    for number, (output, check) in enumerate(zip(outputs, checks, strict=True), 1):
        output.name = f"check_{number}"
        output.doc_string = check.name
    model.metadata_props[PROPERTY] = json.dumps({out.name: c.name for out, c in zip(outputs, checks, strict=True)})


def results(given: Sequence[torch.Tensor], checks: Sequence[Check]) -> list[torch.Tensor]:
    """What a run gives besides its checks.

    Raises:
        Exception: what the original raises where the first check that does not hold stands.
    """
    first = len(given) - len(checks)
    require_all(checks, given[first:])
    return list(given[:first])
