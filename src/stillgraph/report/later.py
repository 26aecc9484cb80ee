"""What the logbook needs where somebody hears of captures: most processes never import it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillgraph.core.later import imported_when_asked

if TYPE_CHECKING:
    from stillgraph.report.artefacts import Artefacts
    from stillgraph.report.explain import explain

__all__ = ["Artefacts", "explain"]

_HOMES = {"Artefacts": "stillgraph.report.artefacts", "explain": "stillgraph.report.explain"}
__getattr__ = imported_when_asked(__name__, _HOMES)
