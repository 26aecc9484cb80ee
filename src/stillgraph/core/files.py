"""Which files are this package's."""

from __future__ import annotations

import os

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO = _OURS + "demo" + os.sep  # user code


def is_ours(file: str) -> bool:
    """Whether a file belongs to stillgraph."""
    return file.startswith(_OURS) and not file.startswith(_DEMO)
