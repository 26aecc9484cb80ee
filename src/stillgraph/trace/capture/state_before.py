"""The state from before a capture: what is put back in the end, and what must have been left as it was."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import StateLostError, refuse
from stillgraph.program.context import current_context
from stillgraph.program.guards import ModeGuard
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.random_states import RandomStates
from stillgraph.trace.effects.modules import ModuleTables, makes_modules
from stillgraph.trace.guards.promotion import Promotion
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place


@dataclass(frozen=True)
class StateBefore:
    """How the world was when an attempt began, and the way back to it."""

    capture: Session
    promotion: Promotion
    context: Any
    modes: ModeGuard
    tables: ModuleTables
    random: RandomStates

    def require_left(self) -> None:
        """Refuse modes that the function leaves switched, and what it has written to modules past the journal."""
        if current_context() != self.context:
            hint = "Switch it for a block: with torch.no_grad(): ..., with torch.autocast(...): ..."
            raise refuse("SG305", "the function leaves a torch mode switched", hint=hint)
        self._require_unchanged()

    def put_back(self) -> None:
        """Undo all that the attempt has done: where something cannot be undone, the rest is.

        Raises:
            StateLostError: something cannot.
        """
        try:
            with contextlib.ExitStack() as back:
                back.callback(self.capture.finder.memory.put_back)
                back.callback(self.random.put_back)
                back.callback(self.tables.restore)
                back.callback(self.capture.settling.put_back)
                back.callback(self.capture.locks.give_back)  # other threads go on, and are to find what there was
                self.capture.journal.rollback(0, self.outlives)
        except Exception as error:  # of any kind: the user's objects may raise what they like
            raised = f"{type(error).__name__}: {error}"
            raise StateLostError(f"the state from before the capture could not be put back ({raised})") from error

    def outlives(self, place: Place) -> bool:
        """Whether a place was there before the capture; what the capture made may keep what was written to it."""
        if not isinstance(place, (AttributePlace, ContentsPlace)) or place.key in self.promotion.put:
            return True
        if isinstance(place.target, (torch.nn.Module, type)) or self.capture.finder.holds(place.target):
            return True
        return id(place.target) in self.capture.finder.unopened or self.capture.elsewhere.is_old(place.target)

    def _require_unchanged(self) -> None:
        """Whatever was written to a module without the journal's knowledge cannot be repeated by the program."""
        self.capture.finder.memory.require_unchanged()
        self.capture.finder.memory.require_apart()
        changed = self.tables.restore(keep_added=True, keep_entries=not self.capture.unseen.has_run)
        if changed is None:
            return
        if makes_modules(changed.now):
            raise refuse("SG308", f"{changed} is made")
        self.capture.before_unseen_write()
        raise refuse("SG305", f"{changed} is changed by code that is not rewritten")
