"""The public functions, and what they are made of: the only place that wires front end, runtime and deploy together."""

from stillgraph.api.capturing import export, symbolic_trace, to_static, trace
from stillgraph.api.process_settings import (
    coverage,
    ignore_modules,
    not_to_static,
    set_artefacts,
    set_code_level,
    set_verbosity,
)
from stillgraph.api.saving import load, save
from stillgraph.program.input_spec import Dim, InputSpec
from stillgraph.program.program import Program
from stillgraph.report.coverage import Coverage
from stillgraph.settings import enable_to_static

__all__ = [
    "Coverage",
    "Dim",
    "InputSpec",
    "Program",
    "coverage",
    "enable_to_static",
    "export",
    "ignore_modules",
    "load",
    "not_to_static",
    "save",
    "set_artefacts",
    "set_code_level",
    "set_verbosity",
    "symbolic_trace",
    "to_static",
    "trace",
]
