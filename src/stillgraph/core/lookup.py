"""Looking names up without running anybody's code."""

from __future__ import annotations

from typing import Any


def class_member(kind: type, name: str) -> Any:
    """What a class, or else its first base, has under a name, descriptors as they are; None if there is nothing."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
