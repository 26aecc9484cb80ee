"""Running a block of the user's in a region of its own: what it wrote is collected and undone."""

from __future__ import annotations

import contextlib
import copy
import re
from bdb import BdbQuit
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stillgraph.core.diagnostics import Side, StillgraphError, refuse
from stillgraph.core.faults import unwinds
from stillgraph.core.lookup import is_exactly
from stillgraph.program.context import current_context, restore
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.heap import OlderObjects, locals_of_users
from stillgraph.trace.control_flow.joined.join_errors import refuse_join
from stillgraph.trace.control_flow.joined.leaves import DEAD
from stillgraph.trace.control_flow.raising import emit_raise, emit_reraise, raised_by_rewritten, raised_by_user
from stillgraph.trace.fakes.in_eager import in_eager, quote_for_all_sizes
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.contents import is_same, replace_contents
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, Place
from stillgraph.trace.values.callables import cell_parts
from stillgraph.trace.values.caught import Caught, Raisable
from stillgraph.trace.values.containers import Parts, attribute_parts, object_parts


@dataclass
class Arm:
    """A block that ran in its own region, suspended: its writes are undone until it is resumed."""

    region: Region
    exit: Exit | None = None
    diverged: bool = False
    writes: dict[Hashable, tuple[Place, Any]] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    older: OlderObjects | None = None

    def value(self, place: Place, before: Any) -> Any:
        """What the arm left in a place."""
        if self.diverged:
            return DEAD
        written = self.writes.get(place.key)
        return before if written is None else written[1]

    def has_written(self, before: Mapping[Hashable, Any]) -> bool:
        """Whether it has left something else in a place than was there, of what was there in some by their keys."""
        return any(key not in before or not is_same(value, before[key]) for key, (_, value) in self.writes.items())

    def look(self) -> None:
        """To be called before variables are given what comes of the arm: that is not older than it."""
        if self.older is not None:
            self.older.look()

    def is_older(self, value: Any) -> bool:
        """Whether a mutable object was there before the arm."""
        return self.older is not None and self.older.holds_mutable(value)

    def freezes(self, recorder: Recorder) -> bool:
        """Whether it lets nobody change an object from before, be it on one path; to be asked of what runs many times.

        From then on nobody may from its beginning on: a run before may have put the object into a list.
        """
        frozen = [] if self.older is None or self.diverged else self.older.frozen()
        for each in frozen:
            recorder.identities.freeze(each, recorder.region.path)
        return bool(frozen)

    def view(self, value: Any) -> Parts | None:
        """A container taken apart as the arm left it: what the arm wrote into an older one has been undone."""
        contents = self.writes.get(("contents", id(value)))
        if contents is not None:
            return object_parts(_with_contents(value, contents[1]))
        variable = self.writes.get(("cell", id(value)))
        if variable is not None and not self.is_older(value):
            return cell_parts(variable[1])
        parts = object_parts(value)
        if parts is None or not parts.attributes:
            return parts
        state = dict(zip(parts.context, parts.children))
        for key, (_, written) in self.writes.items():
            if isinstance(key, tuple) and key[:2] == ("attribute", id(value)):
                state[key[2]] = written
                if written is MISSING:
                    del state[key[2]]
        return attribute_parts(parts.type, state)


def _with_contents(value: Any, contents: Any) -> Any:
    """A container like ``value`` with these contents."""
    if is_exactly(value, (list, dict, set)):
        return contents
    fresh = copy.copy(value)
    replace_contents(fresh, contents)
    return fresh


def run_arm(
    recorder: Recorder, block: Callable[[], Exit | None], variables: Iterable[Place], arm: Arm | None = None
) -> Arm:
    """Run a block in a new child region.

    Args:
        recorder: the capture.
        block: the user's block; returns its exit.
        variables: the locals it may assign: they are written without the journal's knowledge.
        arm: what to run it in, if not in a new region.
    """
    arm = arm or Arm(Region(recorder.region))
    continue_arm(recorder, arm, block, variables)
    return arm


def continue_arm(recorder: Recorder, arm: Arm, block: Callable[[], Exit | None], variables: Iterable[Place]) -> None:
    """Resume an arm where it stopped and run one more block in it."""
    watching = recorder.executed.pause()  # what is done around the block is ours

    def watched() -> Exit | None:
        recorder.executed.resume(watching)
        try:
            return block()
        finally:
            recorder.executed.pause()

    try:
        _continue_arm(recorder, arm, watched, variables)
    finally:
        recorder.executed.resume(watching)


def _continue_arm(recorder: Recorder, arm: Arm, block: Callable[[], Exit | None], variables: Iterable[Place]) -> None:
    mark = recorder.journal.mark
    context = current_context()
    variables = list(variables)
    mine = {place.key for place in variables}
    if arm.older is None:
        arm.older = OlderObjects(recorder)
    else:
        arm.older.look()  # what was made since the arm began is not older than it
    held = recorder.memory.as_now(locals_of_users(recorder))
    try:
        for place in variables:
            recorder.journal.note(place)
        for place, value in arm.writes.values():
            recorder.journal.write(place, value)
        with recorder.resume(arm.region), recorder.symbolic.learned_inside(), diverging(recorder, arm):
            arm.exit = block()
        if current_context() != context:
            hint = "Switch it for a block inside: with torch.no_grad(): ..., with torch.autocast(...): ..."
            raise refuse("SG305", "a branch or loop body leaves a torch mode switched", location=here(), hint=hint)
        recorder.memory.require_unchanged(held, here())
    except BaseException as error:
        if not unwinds(error):  # as a refusal does, for which the cleaning up of the user's code is not carried out
            recorder.memory.require_unchanged(held, here())
        raise
    finally:
        restore(context)
        _suspend(recorder, arm, mark, mine)


def _suspend(recorder: Recorder, arm: Arm, mark: int, variables: set[Hashable]) -> None:
    """Undo what an arm wrote since a mark, and keep it for when the arm is resumed or joined.

    An object that the arm made keeps what was written to it: only the arm's own results can lead there.
    """
    assert arm.older is not None
    recorder.hooked.require_unchanged()
    mine = variables | arm.writes.keys()
    arm.writes = {}
    for key, (place, value) in recorder.journal.rewind(mark).items():
        if key in mine or arm.older.has(place):
            arm.writes[key] = place, value
        else:
            place.set(value)
    recorder.hooked.forget_undone()


@contextlib.contextmanager
def diverging(recorder: Recorder, arm: Arm) -> Iterator[None]:
    """Turn an exception that the user's code raises into a raise of the program."""
    try:
        yield
    except Diverged:
        arm.diverged = True
    except BaseException as error:
        if isinstance(error, Caught):
            emit_reraise(recorder, error)
            arm.diverged = True
            return
        if isinstance(error, (StillgraphError, BdbQuit)) or unwinds(error):
            raise
        if isinstance(error, JoinFailure):
            raise refuse_join(error.place or "what this leaves", error) from error
        failed = recorder.failed
        if failed is not None and (failed.is_eagers(error) or quote_for_all_sizes(error, failed)):
            Raisable(error.__traceback__).restore(error)  # without what the capture was at when the operation failed
            emit_raise(recorder, error)
        elif raised_by_rewritten(recorder, error) or raised_by_user(error):
            emit_raise(recorder, error)
        else:
            recorder.handlers.path_fails(_failure(recorder, error))
        arm.diverged = True


def _failure(recorder: Recorder, error: BaseException) -> BaseException:
    """The refusal of a path on which torch raises an error."""
    text = re.sub(r"\bFakeTensor\b", "Tensor", str(in_eager(error, recorder.failed)))
    message = f"on a path that only the run takes, the code raises {type(error).__name__}: {text}"
    hint = _GUARD_NONE if "NoneType" in text else None
    where, beginning = recorder.locator.raised_at(error), here()
    known = where is None or beginning is None or (where.file, where.line) == (beginning.file, beginning.line)
    sides = () if known else (Side("the path begins here", beginning),)
    refusal = refuse("SG209", message, location=where, hint=hint, sides=sides)
    refusal.__cause__ = error.with_traceback(None)
    return refusal


_GUARD_NONE = (
    "All paths are captured. If this one is not for None, let Python decide that: put 'value is not None and' before "
    "the tensor's condition."
)


