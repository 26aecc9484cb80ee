"""Context managers that tests share."""

from __future__ import annotations

from typing import Any


class Manager:
    """Counts, and ends the exceptions of some types."""

    def __init__(self, *ends: type[BaseException]) -> None:
        self.ends = ends
        self.log: list[int] = []

    def __enter__(self) -> Manager:
        self.log.append(0)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.log.append(1 if kind is None else 2)
        if kind is not None and issubclass(kind, self.ends):
            self.log.append(3)
            return True
        return False
