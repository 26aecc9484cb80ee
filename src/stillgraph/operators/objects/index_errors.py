"""What is raised where an index that only the run knows is out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from stillgraph.trace.capture.session import Session
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.values.numbers import StagedBool


def require_in_range(capture: Session, count: Any, key: Any, said: Callable[[Any], Any]) -> None:
    """Let the program raise an IndexError, with what ``said`` gives of the index, where there is no such element."""
    outside = (key >= count) | (key < -count)

    def fail() -> NoReturn:
        raise IndexError(said(key))

    if isinstance(outside, StagedBool):
        branch(capture, outside, fail, lambda: None, (), ())
    elif outside:
        fail()
