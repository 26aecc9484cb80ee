"""Context managers: `with cm as v:` becomes `with context(cm) as v:` (see `protected` for the statement)."""
from __future__ import annotations

from stillgraph.source.places import Step

STEP = Step("contexts")
