"""Names that rewriting adds to a function: its operators and its helpers."""
from __future__ import annotations

from collections.abc import Set


class Names:
    """Hands out names that the user's function does not use.

    Attributes:
        operators: operator -> the name it goes by in this function, for those asked for so far.
        helpers: the names of generated functions.
        fresh_names: every name made by `fresh`: helpers and temporary variables.
    """

    def __init__(self, taken: Set[str]) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}
        self.operators: dict[str, str] = {}
        self.helpers: set[str] = set()
        self.fresh_names: set[str] = set()

    def operator(self, name: str) -> str:
        """The name of an operator: its own, unless the user has a variable of that name."""
        known = self.operators.get(name)
        if known is None:
            known = self.operators[name] = name if name not in self._taken else self._numbered(name)
            self._taken.add(known)
        return known

    def fresh(self, stem: str) -> str:
        """A new name for a temporary variable, `stem_1`, `stem_2` …"""
        made = self._numbered(stem)
        self.fresh_names.add(made)
        return made

    def variable(self, stem: str) -> str:
        """A new name for a variable that any part of the function may assign, as it may the user's."""
        return self._numbered(stem)

    def helper(self, stem: str) -> str:
        """A new name for a generated function."""
        made = self.fresh(stem)
        self.helpers.add(made)
        return made

    def _numbered(self, stem: str) -> str:
        number = self._last.get(stem, 0) + 1
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._last[stem] = number
        self._taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"
