"""Variables: what is read of one that may have no value, and all of a function, as `locals()` and `dir()` show them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.unset import may_be_unset, value_read
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.numbers import Staged


def loaded(value: Any, name: str, free: bool = False) -> Any:
    """A variable that is read, where only the run may know whether it has a value.

    Args:
        value: what it holds.
        name: the variable's.
        free: whether it belongs to a function around the one that reads it.

    Returns:
        What it holds where it has a value; the program raises what Python raises where it has none.
    """
    capture = session()
    if capture is None or not capture.has_unset:
        return value
    return value_read(capture, value, functools.partial(no_value, name, free))


def evaluated(code: Any) -> Any:
    """What ``eval`` or ``exec`` is given to run.

    Raises:
        CaptureError: only the run knows it.
    """
    if isinstance(code, Unjoined):
        code.refuse()
    if isinstance(code, Staged):
        raise refuse("SG302", "eval or exec is given a text that only the run knows", location=here())
    return code


def hidden(name: str) -> NoReturn:
    """A function that looks at the variables of the one that calls it, from a block of that: it would see the block's.

    Args:
        name: the function's.

    Raises:
        Restart: another front end, which makes no functions of blocks, can go on.
        CaptureError: none can.
    """
    capture = session()
    if capture is not None:
        capture.unseen.follow_all()
    message = f"{name}() in a branch, loop or operand would see the variables of that block alone"
    raise refuse("SG104", message, location=here())


def own(read: Callable[[], Any], name: str) -> Any:
    """As `loaded`, of a variable of the function itself, read in a part of it that has become a function of its own.

    Args:
        read: reads it, and does nothing else.
        name: the variable's.

    Raises:
        UnboundLocalError: it has no value whatever the run decides.
    """
    try:
        value = read()
    except NameError:
        value = MISSING
    if value is MISSING:
        no_value(name, free=False)
    return loaded(value, name)


def no_value(name: str, free: bool) -> NoReturn:
    """Raise what Python raises for a variable without a value.

    Raises:
        NameError: it belongs to a function around the one that reads it.
        UnboundLocalError: it is that function's own.
    """
    if free:
        raise NameError(f"cannot access free variable '{name}' where {_NO_VALUE} in enclosing scope", name=name)
    raise UnboundLocalError(f"cannot access local variable '{name}' where {_NO_VALUE}")


_NO_VALUE = "it is not associated with a value"


def require_set(variables: Mapping[str, Any], reader: str = "") -> None:
    """To be called before the user's code is shown variables with their names, or Python reads them in ``reader``.

    Raises:
        CaptureError: one of them has a value on some paths only.
    """
    capture = session()
    if capture is None or not capture.has_unset:
        return
    for name, value in variables.items():
        if may_be_unset(capture, value):
            why = f"{reader} reads '{name}'" if reader else "all variables are asked for"
            message = f"{why}, and only the run knows whether '{name}' has a value"
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
