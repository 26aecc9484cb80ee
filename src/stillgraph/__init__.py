"""stillgraph: whole static programs from plain eager PyTorch."""
import importlib
from typing import TYPE_CHECKING

from stillgraph.core.later import imported_when_asked

if TYPE_CHECKING:
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
    from stillgraph.api.vmap import vmap
    from stillgraph.core.diagnostics import (
        CaptureError,
        CheckError,
        ExportError,
        InternalError,
        LoadError,
        StillgraphError,
    )
    from stillgraph.program.input_spec import Dim, InputSpec
    from stillgraph.program.program import Program
    from stillgraph.report.coverage import Coverage
    from stillgraph.settings import enable_to_static

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
    "vmap",
]

_HOMES = {
    "CaptureError": "stillgraph.core.diagnostics",
    "CheckError": "stillgraph.core.diagnostics",
    "Coverage": "stillgraph.report.coverage",
    "Dim": "stillgraph.program.input_spec",
    "ExportError": "stillgraph.core.diagnostics",
    "InputSpec": "stillgraph.program.input_spec",
    "InternalError": "stillgraph.core.diagnostics",
    "LoadError": "stillgraph.core.diagnostics",
    "Program": "stillgraph.program.program",
    "StillgraphError": "stillgraph.core.diagnostics",
    "coverage": "stillgraph.api.process_settings",
    "enable_to_static": "stillgraph.settings",
    "export": "stillgraph.api.capturing",
    "ignore_modules": "stillgraph.api.process_settings",
    "load": "stillgraph.api.saving",
    "not_to_static": "stillgraph.api.process_settings",
    "save": "stillgraph.api.saving",
    "set_artefacts": "stillgraph.api.process_settings",
    "set_code_level": "stillgraph.api.process_settings",
    "set_verbosity": "stillgraph.api.process_settings",
    "symbolic_trace": "stillgraph.api.capturing",
    "to_static": "stillgraph.api.capturing",
    "trace": "stillgraph.api.capturing",
    "vmap": "stillgraph.api.vmap",
}
__getattr__ = imported_when_asked(__name__, _HOMES)

# Once a package is imported, the one around it has its name. So let that be now: `trace` is the function.
importlib.import_module("stillgraph.trace")
del globals()["trace"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
