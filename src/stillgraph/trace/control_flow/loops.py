"""Staging a loop: a test that only the run knows becomes a ``while_loop`` of the program, found by fixpoint."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.aliases import (
    CarriedElements,
    freeze_all,
    freeze_copies,
    freeze_older,
    freeze_put_in,
    freeze_result,
    held_elsewhere,
    mutable_containers,
    refuse_lost_names,
    remember_copies,
    staying,
    with_other_names,
)
from stillgraph.trace.control_flow.arms import Arm, continue_arm, run_arm
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.join_errors import named
from stillgraph.trace.control_flow.joined.leaves import DEAD
from stillgraph.trace.control_flow.joined.ruled_out import Met, rule_out
from stillgraph.trace.control_flow.loop_state import (
    Fixed,
    Listed,
    Slot,
    State,
    Tree,
    build,
    has_stale,
    is_rebuilt,
    leaves_of,
    slots_of,
    tree_of,
)
from stillgraph.trace.control_flow.region_interface import leaf_node, unify_captures
from stillgraph.trace.control_flow.staging import NO_EXIT, Block, any_flag, as_flag, bind_outputs, branch, carried
from stillgraph.trace.control_flow.tables import joined_place
from stillgraph.trace.control_flow.unknown import leave
from stillgraph.trace.control_flow.widening import telling_entry, widen
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.assigned import Line, assigned_before, assigned_by
from stillgraph.trace.heap.exits import Exit, Return
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place
from stillgraph.trace.values.containers import object_parts, split

_MAX_ROUNDS = 12
_LATE = 9  # rounds
Test = Callable[[], Any]  # gives True, False, a tensor or a staged number


@dataclass
class _Loop:
    """A loop being staged: the state of every place it touches, and of its exit."""

    recorder: Recorder
    noted: list[Place]
    places: dict[Hashable, Place]
    state: dict[Hashable, State]
    exit: State
    unsettled: str | None = None  # a place that has changed its kind in the last round
    shared: set[Hashable] = field(default_factory=set)  # places whose containers have other names
    copied: set[Hashable] = field(default_factory=set)  # places whose objects containers hold, too
    elements: CarriedElements = field(init=False)
    endless: bool = False  # whether its test always says yes, so that something in its body ends it

    def __post_init__(self) -> None:
        self.elements = CarriedElements(self.recorder)

    def all_states(self) -> list[State]:
        """The states of the places and of the exit, in the order in which they are carried."""
        return [*self.state.values(), self.exit]

    def slots(self) -> list[Slot]:
        """The carried leaves."""
        return [slot for state in self.all_states() for slot in slots_of(state)]


def loop(
    recorder: Recorder,
    test: Test,
    body: Block,
    variables: Sequence[Place],
    dropped: Sequence[Place],
    writes: bool = False,
) -> Exit | None:
    """Stage ``while test(): body()``.

    What the loop carries is found by running the body on placeholders until the types of its places settle.

    Args:
        recorder: the capture.
        test, body: the user's blocks.
        variables: locals that they assign and that are live at the loop's head or behind it.
        dropped: the other locals that they assign.
        writes: whether the test is known to write something.

    Returns:
        The exit of the last iteration (``broke``, ``returned``), or None where the loop certainly ends by its test.

    Raises:
        JoinFailure: a place changes its kind from one iteration to the next.
    """
    noted = [*variables, *dropped]
    lines = assigned_before(), assigned_by(test, body)
    if writes or _test_writes(recorder, test, noted):
        test, body = _always, _rotated(recorder, test, body, variables, dropped)
    mark = recorder.symbolic.mark
    parts = split(NO_EXIT)
    assert parts is not None
    state = _Loop(
        recorder,
        noted,
        {p.key: p for p in variables},
        {p.key: Fixed(p.get()) for p in variables},
        tree_of(NO_EXIT, parts),
    )
    skip = {place.key for place in dropped}
    decided = len(recorder.watch.decisions)
    for count in range(_MAX_ROUNDS):
        recorder.watch.forget(decided)
        rebuilt = [state.places[key] for key, each in state.state.items() if is_rebuilt(each)]
        state.shared = {place.key for place in with_other_names(recorder, rebuilt)} if rebuilt else set()
        _tell_shared(state)
        stale = len(recorder.stale)
        with recorder.handlers.trying() as failed:
            arm, inputs = _run_body(state, body)
        changed = len(recorder.stale) > stale  # an iteration finds changed what the one before has let be changed
        with recorder.executed.paused():
            settled = _settle(state, arm, inputs, mark, skip, lines, is_late=count >= _LATE)
        if settled and not changed:
            if failed and test is not _always:  # perhaps on paths that the test rules out
                return loop(recorder, test, body, variables, dropped, writes=True)
            if failed:
                recorder.handlers.path_fails(failed[0])
            try:
                return _close(state, test, arm, inputs)
            except _Writes:
                return loop(recorder, test, body, variables, dropped, writes=True)
    message = f"after {_MAX_ROUNDS} rounds, an iteration still changes what kind of value it finds"
    failure = JoinFailure("SG205", message)
    failure.place, failure.in_loop = state.unsettled, True
    raise failure


def _test_writes(recorder: Recorder, test: Test, noted: list[Place]) -> bool:
    before = {place.key: place.get() for place in noted}
    return run_arm(recorder, lambda: Return(test()), noted).has_written(before)


def _always() -> bool:
    """The test of a loop whose body begins with the user's."""
    return True


class _Writes(Exception):
    """The test of a loop writes something, in an iteration behind the first one."""


def _rotated(
    recorder: Recorder, test: Test, body: Block, variables: Sequence[Place], dropped: Sequence[Place]
) -> Block:
    """A body that begins with a test which itself assigns variables."""

    def test_then_body() -> Exit | None:
        go = test()
        if isinstance(go, bool):
            return body() if go else Exit(ended=True)
        return branch(recorder, go, body, lambda: Exit(ended=True), variables, dropped)

    return test_then_body


def _run_body(loop_: _Loop, body: Block) -> tuple[Arm, dict[Hashable, Any]]:
    """Run the body once, every carried leaf a fresh placeholder."""
    arm, inputs, _ = _begin(loop_)
    continue_arm(loop_.recorder, arm, body, loop_.noted)
    return arm, inputs


def _begin(loop_: _Loop) -> tuple[Arm, dict[Hashable, Any], Exit]:
    """A region of the loop: its arm, and what stands there for what the places hold and for how the loop is left."""
    recorder = loop_.recorder
    region = Region(recorder.region)
    with recorder.resume(region):
        inputs = {key: build(state, lambda slot: carried(recorder, region, slot)) for key, state in loop_.state.items()}
        exit: Exit = build(loop_.exit, lambda slot: carried(recorder, region, slot))
    loop_.elements.begin(region, loop_.places, _rebuilt(loop_, inputs))
    _freeze_shared(loop_, inputs)
    for key in loop_.copied:
        freeze_all(recorder.identities, inputs[key], loop_.places[key].get())
    return Arm(region, writes={key: (loop_.places[key], value) for key, value in inputs.items()}), inputs, exit


def _tell_shared(loop_: _Loop) -> None:
    """Carry whether a place still holds a container that other names lead to: its changes are seen by those."""
    for key in loop_.shared:
        state, place = loop_.state[key], loop_.places[key]
        if isinstance(state, (Tree, Listed)) and not isinstance(place, ContentsPlace):
            loop_.state[key] = telling_entry(state, str(place))


def _freeze_shared(loop_: _Loop, values: dict[Hashable, Any]) -> None:
    """Let nobody change a container that is made anew in each iteration while another name leads to the first one."""
    for key in loop_.shared:
        if is_rebuilt(loop_.state[key]):
            mine = {id(container): container for container in mutable_containers(loop_.places[key].get())}
            for container in mutable_containers(values[key]):
                if id(container) not in mine and not loop_.recorder.identities.is_told(container):
                    loop_.recorder.identities.copy_of(container, mine.values())


def _settle(
    loop_: _Loop,
    arm: Arm,
    inputs: dict[Hashable, Any],
    mark: int,
    skip: set[Hashable],
    lines: tuple[Line, Line],
    is_late: bool,
) -> bool:
    """Widen the state by what an iteration left; whether it already covered that."""
    views = object_parts, arm.view
    joiner = Joiner(loop_.recorder, mark, False, is_late, is_older=arm.is_older, views=views, lines=lines)
    settled = True
    for key, (place, _) in arm.writes.items():
        if key not in loop_.places and key not in skip:
            loop_.places[key] = place
            loop_.state[key] = Fixed(place.get())
    for key, place in loop_.places.items():
        before = inputs.get(key, place.get())
        after = arm.value(place, before)
        if isinstance(place, AttributePlace):
            sides = (None, place.get()), (arm.writes.get(key, (None,))[0], after)
            loop_.places[key] = joined_place(loop_.recorder.journal, place, sides)
        if after is before and isinstance(loop_.state[key], Fixed):
            continue
        joiner.at = place
        state = widen(joiner, loop_.state[key], after, str(place))
        if state is not loop_.state[key]:
            settled = False
            loop_.unsettled = named(place)
        loop_.state[key] = state
    joiner.at = None
    exit = widen(joiner, loop_.exit, DEAD if arm.diverged else _final(arm.exit), "return")
    left = _left(loop_, arm, inputs)
    rebuilt = _rebuilt(loop_, left)
    copied = held_elsewhere(loop_.recorder.identities, rebuilt, loop_.places)
    holds = arm.diverged or loop_.elements.settle(arm.region, inputs, left, rebuilt)
    for key, value in left.items():
        freeze_older(loop_.recorder, loop_.state[key], value, inputs.get(key, loop_.places[key].get()), arm)
    freezes = arm.freezes(loop_.recorder)
    settled = settled and exit is loop_.exit and copied <= loop_.copied and holds and not freezes
    loop_.copied |= copied
    loop_.exit = exit
    return settled


def _rebuilt(loop_: _Loop, values: dict[Hashable, Any]) -> dict[Hashable, Any]:
    """Those of some values that each iteration finds made anew."""
    return {key: values[key] for key, state in loop_.state.items() if is_rebuilt(state)}


def _left(loop_: _Loop, arm: Arm, inputs: dict[Hashable, Any]) -> dict[Hashable, Any]:
    """What an iteration leaves in each place."""
    return {key: arm.value(place, inputs.get(key, place.get())) for key, place in loop_.places.items()}


def _final(exit: Exit | None) -> Exit:
    """An exit as the loop sees it: ``continue`` is the end of the iteration."""
    return NO_EXIT if exit is None else replace(exit, continued=False)


def _close(loop_: _Loop, test: Test, arm: Arm, inputs: dict[Hashable, Any]) -> Exit | None:
    recorder = loop_.recorder
    left = _left(loop_, arm, inputs)
    with recorder.executed.paused(), recorder.resume(arm.region):
        leaves = [leaf for key, state in loop_.state.items() for leaf in leaves_of(state, left[key], arm.view)]
        leaves += leaves_of(loop_.exit, DEAD if arm.diverged else _final(arm.exit), arm.view)
        arm.outputs = [leaf_node(recorder, value, slot.type, slot.place) for slot, value in leaves]
    check = _run_test(loop_, test)
    with recorder.executed.paused():
        return _joined(loop_, check, arm, inputs, left)


def _joined(
    loop_: _Loop, check: Arm, arm: Arm, inputs: dict[Hashable, Any], left: dict[Hashable, Any]
) -> Exit | None:
    """Emit the loop, and let its places hold what it gives."""
    recorder = loop_.recorder
    operands = unify_captures(recorder, [check.region, arm.region])
    test_graph = recorder.region.attribute("test", check.region.close(check.outputs))
    body_graph = recorder.region.attribute("body", arm.region.close(arm.outputs))
    slots = loop_.slots()
    entries = tuple(leaf_node(recorder, slot.entry, slot.type, slot.place) for slot in slots)
    node = recorder.emit("call_function", torch.ops.higher_order.while_loop, (), {})
    node.args = (test_graph, body_graph, entries, tuple(operands))
    values = iter(bind_outputs(recorder, node, [slot.type for slot in slots], [slot.place for slot in slots]))
    rebuilt = (key for key, state in loop_.state.items() if is_rebuilt(state))
    made_anew = {loop_.places[key]: left[key] for key in rebuilt if not isinstance(loop_.places[key], ContentsPlace)}
    refuse_lost_names(recorder.identities, made_anew, inputs.values())
    for place in loop_.places.values():
        recorder.relied.add(place)  # without an iteration it is left as it was
    if any(map(is_rebuilt, loop_.state.values())):
        arm.look()
    met: list[Met] = []
    for key, state in loop_.state.items():
        if has_stale(state):
            recorder.journal.write(loop_.places[key], build(state, lambda _: None))
        is_made_anew = loop_.places[key] in made_anew
        if slots_of(state) or is_made_anew:
            entry, result = loop_.places[key].get(), build(state, lambda _: next(values))
            for value in (entry, left[key]):
                recorder.identities.take_apart(mutable_containers(value))
            recorder.identities.tuples.join(result)
            freeze_put_in(recorder, state, left[key], result, arm, staying(recorder, inputs, left, key))
            leave(recorder, loop_.places[key], result)
            loop_.elements.close(key, left[key], result)
            met.append((result, entry, left[key]))
            if key in loop_.shared and is_rebuilt(state):
                freeze_copies(recorder, entry, result)
            if key in loop_.copied:
                freeze_all(recorder.identities, result, left[key])
            if is_made_anew:
                remember_copies(recorder, arm.is_older, result, left[key])
    loop_.elements.finish()
    exit: Exit = build(loop_.exit, lambda _: next(values))
    freeze_result(recorder.identities, exit, DEAD if arm.diverged else _final(arm.exit))
    at_the_end = contextlib.nullcontext, functools.partial(recorder.resume, arm.region)
    rule_out(recorder, exit, (NO_EXIT, _final(arm.exit)), met, at_the_end)
    if loop_.endless:
        exit = exit.taken
    return None if all(flag is False for flag in exit.flags) else exit


def _run_test(loop_: _Loop, test: Test) -> Arm:
    """The test's region: it says no once an iteration has left the loop, without asking the user's test again."""
    recorder = loop_.recorder
    arm, inputs, exit = _begin(loop_)

    def asked() -> Any:
        answer = test()
        loop_.endless = answer is True
        return answer

    def guarded() -> Exit | None:
        if all(flag is False for flag in exit.flags):
            return Return(asked())
        left = any_flag(exit)
        return branch(recorder, left, lambda: Return(False), lambda: Return(as_flag(recorder, asked())), (), ())

    before = {place.key: place.get() for place in loop_.noted} | inputs
    continue_arm(recorder, arm, guarded, loop_.noted)
    if test is not _always and arm.has_written(before):
        raise _Writes
    with recorder.resume(arm.region):
        assert arm.exit is not None
        arm.outputs = [as_argument(recorder, arm.exit.value)]
    return arm
