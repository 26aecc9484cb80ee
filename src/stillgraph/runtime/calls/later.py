"""What a static function needs once a transform of `torch.func` is at work around a call of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillgraph.core.later import imported_when_asked

if TYPE_CHECKING:
    from stillgraph.runtime.calls.transformed import call_transformed

__all__ = ["call_transformed"]

_HOMES = {"call_transformed": "stillgraph.runtime.calls.transformed"}
__getattr__ = imported_when_asked(__name__, _HOMES)
