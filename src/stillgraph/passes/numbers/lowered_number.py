"""A number that is lowered: how its 0-d tensor is made, and torch's symbol for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx


@dataclass(eq=False)
class Number:
    """A number: its kind, and how its tensor and its symbol are made. Each is made once, when first asked for."""

    kind: type
    make_tensor: Callable[[], fx.Node]
    make_symbol: Callable[[], Any]
    is_size: bool = False  # made of sizes and constants alone
    _tensor: fx.Node | None = None
    _symbol: Any = None

    @property
    def tensor(self) -> fx.Node:
        """The 0-d tensor."""
        if self._tensor is None:
            self._tensor = self.make_tensor()
        return self._tensor

    @property
    def symbol(self) -> Any:
        """The number itself, as torch's symbolic number."""
        if self._symbol is None:
            self._symbol = self.make_symbol()
        return self._symbol
