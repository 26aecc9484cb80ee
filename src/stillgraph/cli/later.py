"""What the commands do, imported when one of them does it: most of it needs torch."""
from __future__ import annotations

from typing import TYPE_CHECKING

from stillgraph.core.later import imported_when_asked

if TYPE_CHECKING:
    from stillgraph.cli.actions import code, demo, explain, export, migrate
    from stillgraph.cli.doctor import doctor
    from stillgraph.cli.reasons import errors

__all__ = ["code", "demo", "doctor", "errors", "explain", "export", "migrate"]

_HOMES = {
    "code": "stillgraph.cli.actions",
    "demo": "stillgraph.cli.actions",
    "doctor": "stillgraph.cli.doctor",
    "errors": "stillgraph.cli.reasons",
    "explain": "stillgraph.cli.actions",
    "export": "stillgraph.cli.actions",
    "migrate": "stillgraph.cli.actions",
}
__getattr__ = imported_when_asked(__name__, _HOMES)
