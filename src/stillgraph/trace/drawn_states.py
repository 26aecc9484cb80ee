"""The state of a random generator that the run reads: it may be handed back to one, and nothing else."""

from __future__ import annotations

from stillgraph.trace.outcome import Outcome


class DrawnState(Outcome):
    """What ``random.getstate()`` gives."""
