"""Side effects of a capture: steps that do something outside, and exceptions of the run that pass blocks by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import fx

from stillgraph.passes.lists.repeating import may_repeat
from stillgraph.trace.code.signals import Restart

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session


class SideEffects:
    """What is known of them.

    Args:
        capture: the capture.

    Attributes:
        acted: whether a step has been recorded that does something outside, which the code could read there.
        passed_by: whether an exception of the run goes past a block that would be told of it, in eager PyTorch.
        cached_calls: functions with a cache that are being called.
    """

    def __init__(self, capture: Session) -> None:
        self._capture = capture
        self.acted = False
        self.passed_by = False
        self.cached_calls: list[Any] = []

    def pass_by(self) -> None:
        """An exception of the run goes past a block that eager PyTorch tells of it."""
        self.passed_by = True
        self._capture.watched = True  # what the block does may be a step of Python's, behind the program

    def before_act(self) -> None:
        """To be called before a step that does something outside: in a function with a cache, the cache decides."""
        if self.cached_calls:
            raise Restart("cached", self.cached_calls[0])
        if self._capture.may_end and self.passed_by and not self._capture.knowledge.acts:
            raise Restart("acts", None)
        self.acted = True

    def require_told(self, graph: fx.GraphModule) -> None:
        """To be called in the end: where the run fails, blocks are told of it, or else the call is made once more.

        Raises:
            Restart: the program leaves something behind, so that no call is made twice, and a block is passed by.
        """
        if self._capture.may_end and self.passed_by and not self._capture.knowledge.acts and not may_repeat(graph):
            raise Restart("acts", None)
