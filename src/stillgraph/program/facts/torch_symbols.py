"""What torch has for symbolic sizes, for modules that are imported before any is met: it brings in sympy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillgraph.core.later import imported_when_asked

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols
    from torch.utils._sympy.printers import PythonPrinter

__all__ = ["PythonPrinter", "ShapeEnv", "free_unbacked_symbols"]

_HOMES = {
    "PythonPrinter": "torch.utils._sympy.printers",
    "ShapeEnv": "torch.fx.experimental.symbolic_shapes",
    "free_unbacked_symbols": "torch.fx.experimental.symbolic_shapes",
}
__getattr__ = imported_when_asked(__name__, _HOMES)
