"""All variables of a function at once, as `locals()` and `dir()` show them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.frames import here
from stillgraph.trace.unjoined import may_be_unset


def require_set(variables: Mapping[str, Any]) -> None:
    """To be called before the user's code is shown variables with their names.

    Raises:
        CaptureError: one of them has a value on some paths only.
    """
    for name, value in variables.items():
        if may_be_unset(value):
            message = f"all variables are asked for, and only the run knows whether '{name}' has a value"
            raise refuse("SG301", message, location=here(), hint="Give it a value before the branch or loop.")


def variables(found: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """What ``locals()`` gives in rewritten code: those of the names that the user's code has.

    Raises:
        CaptureError: as `require_set`.
    """
    shown = {name: value for name, value in found.items() if name in names}
    require_set(shown)
    return shown


def own_names(found: list[str], names: Collection[str]) -> list[str]:
    """What ``dir()`` gives in rewritten code, which calls this.

    Raises:
        CaptureError: as `require_set`.
    """
    values = sys._getframe(1).f_locals
    shown = [name for name in found if name in names]
    require_set({name: values[name] for name in shown})
    return shown
