"""The public names and signatures: people's code depends on them."""
from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

REQUIRED = inspect.Parameter.empty
ANY, KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY

SIGNATURES: dict[str, list[tuple[str, Any, Any]]] = {
    "to_static": [
        ("target", ANY, None),
        ("input_spec", KEYWORD, None),
        ("dynamic_shapes", KEYWORD, None),
        ("dynamic", KEYWORD, None),
        ("full_graph", KEYWORD, True),
        ("backend", KEYWORD, "inductor"),
        ("unroll_limit", KEYWORD, 64),
        ("cache_size", KEYWORD, 8),
        ("check", KEYWORD, 0),
        ("strict", KEYWORD, False),
        ("mode", KEYWORD, None),
        ("options", KEYWORD, None),
        ("others", inspect.Parameter.VAR_KEYWORD, REQUIRED),  # all of them refused, with what to write instead
    ],
    "symbolic_trace": [
        ("target", ANY, REQUIRED),
        ("backend", KEYWORD, "eager"),
        ("dynamic", KEYWORD, None),
        ("cache_size", KEYWORD, 8),
        ("strict", KEYWORD, False),
    ],
    "export": [
        ("target", ANY, REQUIRED),
        ("args", ANY, ()),
        ("kwargs", ANY, None),
        ("input_spec", KEYWORD, None),
        ("dynamic_shapes", KEYWORD, None),
        ("name", KEYWORD, None),
    ],
    "save": [
        ("target", ANY, REQUIRED),
        ("path", ANY, REQUIRED),
        ("args", KEYWORD, ()),
        ("kwargs", KEYWORD, None),
        ("input_spec", KEYWORD, None),
        ("dynamic_shapes", KEYWORD, None),
        ("format", KEYWORD, None),
        ("control_flow", KEYWORD, None),
        ("prints", KEYWORD, "drop"),
        ("assertions", KEYWORD, "keep"),
        ("opset", KEYWORD, None),
        ("max_iterations", KEYWORD, None),
        ("time_limit", KEYWORD, None),
        ("progress", KEYWORD, None),
        ("input_names", KEYWORD, ()),
        ("output_names", KEYWORD, ()),
        ("external_data", KEYWORD, None),
        ("custom_translation_table", KEYWORD, None),
        ("others", inspect.Parameter.VAR_KEYWORD, REQUIRED),
    ],
    "load": [("path", ANY, REQUIRED), ("native", KEYWORD, False), ("backend", KEYWORD, "eager")],
    "trace": [("fn", ANY, REQUIRED), ("args", ANY, REQUIRED)],
    "coverage": [("reset", KEYWORD, False)],
    "Dim": [("name", ANY, REQUIRED), ("min", KEYWORD, None), ("max", KEYWORD, None)],
    "InputSpec": [("shape", ANY, REQUIRED), ("dtype", ANY, "float32"), ("name", ANY, None)],
}
SETTERS = ["set_verbosity", "set_code_level", "set_artefacts"]
ONE_ARGUMENT = ["not_to_static", "ignore_modules", "enable_to_static", *SETTERS]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    parameters = inspect.signature(getattr(sg, name)).parameters.values()
    assert [(p.name, p.kind, p.default) for p in parameters] == SIGNATURES[name]


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_takes_one_argument(name: str) -> None:
    required = [p for p in inspect.signature(getattr(sg, name)).parameters.values() if p.default is REQUIRED]
    assert len(required) == 1


def test_all_names_what_there_is_and_documents_it() -> None:
    assert set(SIGNATURES) | set(ONE_ARGUMENT) | {"CaptureError", "InternalError", "Program"} <= set(sg.__all__)
    assert [name for name in sg.__all__ if not getattr(sg, name).__doc__] == []


def double(x: Tensor, times: int = 2) -> Tensor:
    """Twice, or more."""
    if x.sum() > 0:
        x = x * times
    return x


def test_a_static_function_shows_what_it_is() -> None:
    static = sg.to_static(double, backend="eager")
    assert static.__name__ == "double"
    assert static.__doc__ == "Twice, or more."
    assert inspect.signature(static) == inspect.signature(double)
    assert static.original is double
    assert "def double(x" in static.code
    assert isinstance(static.get_program(torch.ones(2)), sg.Program)
    assert len(static.programs) == static.cache_info().programs == 1
    assert str(static.explain(torch.ones(2)))
    assert static.rollback() is double


@pytest.mark.parametrize("decorate", [sg.to_static, sg.to_static(backend="eager")], ids=["bare", "with arguments"])
def test_to_static_decorates(decorate: Any) -> None:
    assert decorate(double).original is double


def test_a_static_module_is_the_module_itself() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    keys = list(module.state_dict())
    static = sg.to_static(module, backend="eager")
    assert static is module
    assert isinstance(static, nn.Sequential)
    assert list(static.state_dict()) == keys
