"""Warnings of calls, at the user's lines."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from stillgraph.core.files import is_our_module

_BETWEEN = "torch.nn.modules.module"  # a module's call goes through it


def warn(text: str) -> None:
    """Warn at the line of the user's that has made the call, with a `RuntimeWarning`."""
    frame: FrameType | None = sys._getframe(1)
    depth = 2
    while frame is not None and _is_between(str(frame.f_globals.get("__name__"))):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, RuntimeWarning, stacklevel=depth)


def _is_between(module: str) -> bool:
    return module == _BETWEEN or is_our_module(module)
