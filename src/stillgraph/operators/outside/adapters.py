"""What `logging.LoggerAdapter` does, for one that the captured call makes: its ``process`` is the user's."""

from __future__ import annotations

import logging
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member
from stillgraph.operators.dispatch import call
from stillgraph.trace.code.frames import here

_OWN: Any = logging.LoggerAdapter
_LEVELS = {"fatal": logging.CRITICAL} | {
    name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error", "critical")
}


def log_by(adapter: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Log something through an adapter, as `logging` has it.

    Args:
        adapter: made by the call.
        name: of the method, which is `logging`'s own.
        args: by position.
        kwargs: by name.

    Raises:
        CaptureError: the method says more than what is logged.
    """
    if name != "log":
        if name not in _LEVELS:
            message = f"LoggerAdapter.{name} is called of an adapter that is made inside the function"
            raise refuse("SG305", message, location=here(), hint="Call warning or error.")
        args = (_LEVELS[name], *args)
        if class_member(type(adapter), "log") is not class_member(_OWN, "log"):
            call(adapter.log, *args, **kwargs)
            return
    if len(args) < 2:
        raise refuse("SG305", "the level or message of what is logged is given by name", location=here())
    level, message, *values = args
    if class_member(type(adapter), "isEnabledFor") is not class_member(_OWN, "isEnabledFor"):
        raise refuse("SG305", "an adapter made inside the function says itself whether it speaks", location=here())
    if call_of_adapted(adapter, "isEnabledFor", (level,), {}):
        told, named = call(adapter.process, message, kwargs)
        call(adapter.logger.log, level, told, *values, **named)


def call_of_adapted(adapter: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of what an adapter adapts, as its own does."""
    return call(getattr(adapter.logger, name), *args, **kwargs)
