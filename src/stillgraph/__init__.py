"""stillgraph: whole static programs from plain eager PyTorch."""
from stillgraph.api import (
    Coverage,
    Dim,
    InputSpec,
    Program,
    coverage,
    enable_to_static,
    export,
    ignore_modules,
    load,
    not_to_static,
    save,
    set_artefacts,
    set_code_level,
    set_verbosity,
    symbolic_trace,
    to_static,
    trace,
)
from stillgraph.core.diagnostics import CaptureError, CheckError, ExportError, InternalError, LoadError, StillgraphError

__version__ = "0.1.0"

__all__ = [
    "CaptureError",
    "CheckError",
    "Coverage",
    "Dim",
    "ExportError",
    "InputSpec",
    "InternalError",
    "LoadError",
    "Program",
    "StillgraphError",
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
