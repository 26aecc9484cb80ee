"""Everyday Python around tensors, in segments: what it gives, prints, raises and keeps is what eager PyTorch has."""

from __future__ import annotations

import contextlib
import copy
import io
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.sampling import few
from tests.unit.bytecode.everyday import modeling, objects, sharing, state, training, values

MODULES = (values, state, modeling, objects, training, sharing)
LONG = {"early", "namedt", "missing", "rl", "search_tree", "ns", "buckets", "argskw", "sorting", "late_closures"}
ALL = [(each, name) for each in MODULES for name in vars(each) if hasattr(vars(each)[name], "calls")]
SLOW = [(each, name) for each, name in ALL if each in (training, modeling) or name in LONG]  # a few seconds each


def made(function: Any, call: tuple[Any, ...]) -> dict[str, Any]:
    """What a call gives and does."""
    arguments, value, error = copy.deepcopy(call), None, None
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            value = function(*arguments)
        except Exception as raised:
            error = type(raised), str(raised)
    return {"value": value, "error": error, "printed": printed.getvalue(), "arguments": arguments}


@pytest.mark.parametrize(("module", "name"), few(ALL, 2, SLOW), ids=[name for _, name in ALL])
def test_everyday(module: ModuleType, name: str) -> None:
    function = getattr(module, name)
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    calls = [call for call in function.calls for _ in range(2)]
    outcomes = []
    for each in (function, static):
        module.reset()
        outcomes.append([made(each, call) for call in calls])
    for number, (expected, actual) in enumerate(zip(*outcomes)):
        for what in expected:
            assert_same(expected[what], actual[what], f"call {number}, {what}")
