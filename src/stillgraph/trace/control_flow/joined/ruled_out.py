"""What a value cannot be where conditions are known: one of its alternatives, or some of its constants."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.program.constants import Known
from stillgraph.trace.control_flow.joined.told_objects import objects_in
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, alternatives, entries_of, is_leaf, is_lost
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.exits import EXITS, Exit
from stillgraph.trace.values.numbers import StagedBool

OnPath = Callable[[], contextlib.AbstractContextManager[None]]
"""Within it, a recorder answers as at the end of a path."""

Met = tuple[Any, Any, Any]
"""A joined value, and what each of two paths has left for it."""


def narrowed(recorder: Recorder, value: Any) -> Any:
    """A value as it can be where the recorder is: the one that is decided, or the constants that are left."""
    while type(value) is Unjoined and not is_lost(value):
        taken = recorder.decided(alternatives(value).flag)
        if taken is None:
            return value
        value = alternatives(value).left if taken else alternatives(value).right
    if isinstance(value, Picked):
        return value.of(recorder.possible_entries(value.stillgraph_number(), entries_of(value)))
    return recorder.constant_here(value)


def rule_out(
    recorder: Recorder, exit: Exit, exits: tuple[Any, Any], met: Sequence[Met], paths: tuple[OnPath, OnPath] | None
) -> None:
    """Tell which constants a joined place does not hold where control has left a block, or another place is true.

    Args:
        recorder: the capture.
        exit: how control leaves behind two paths.
        exits: how each of them leaves; anything else than an `Exit` for one that never arrives.
        met: the joined values.
        paths: within which the recorder answers as at the end of each.
    """
    tables = [each for each in met if isinstance(each[0], Picked)]
    flags = [each for each in met if isinstance(each[0], StagedBool)]
    if all(isinstance(each, Exit) for each in exits):
        flags += [(getattr(exit, name), *(getattr(each, name) for each in exits)) for name in EXITS]
    on_paths = paths or (contextlib.nullcontext, contextlib.nullcontext)
    for flag, *told in flags if tables else ():
        for value, *sides in tables if isinstance(flag, StagedBool) else ():
            for when in (True, False):
                held = [_held(recorder, *each, when) for each in zip(sides, told, on_paths)]
                for entry in entries_of(value):
                    if None not in held and not any(entry in each for each in held if each is not None):
                        recorder.excludes_entry(value, entry, flag, when)


def _held(recorder: Recorder, value: Any, flag: Any, on_path: OnPath, when: bool) -> tuple[Known, ...] | None:
    """The constants that a value may be at the end of a path if a flag is ``when`` there; None if nobody knows."""
    if isinstance(flag, bool) and flag is not when:
        return ()
    is_told = isinstance(flag, StagedBool)
    with on_path(), recorder.assuming(flag, when) if is_told else contextlib.nullcontext():
        return objects_in(narrowed(recorder, value), lambda held: not is_leaf(held))
