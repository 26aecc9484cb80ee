"""What the user chose for a capture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What the user chose."""

    unroll_limit: int = 64
    dynamic: bool | None = None  # what differs between calls is an input; from the first call on; or never
    for_calls: bool = True  # a file has no lists that grow with each call, and no plain floats of the run
