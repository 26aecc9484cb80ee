"""Staging a branch: a condition that only the run knows becomes a ``cond`` of the program."""

from __future__ import annotations

import contextlib
import functools
import keyword
import operator
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import Side
from stillgraph.program.facts.info import like
from stillgraph.program.types import JoinFailure, Type
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.arms import Arm, continue_arm, run_arm
from stillgraph.trace.control_flow.deductions import version
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.join_errors import named, quoted, refuse_join
from stillgraph.trace.control_flow.joined.leaves import DEAD, Pair
from stillgraph.trace.control_flow.joined.ruled_out import OnPath, rule_out
from stillgraph.trace.control_flow.joined.stale import Stale
from stillgraph.trace.control_flow.region_interface import leaf_node, unify_captures
from stillgraph.trace.control_flow.tables import before_unset, joined_place
from stillgraph.trace.control_flow.unknown import leave
from stillgraph.trace.fakes.symbolic import known_true
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.graph.typed_values import kept_of
from stillgraph.trace.heap.assigned import Line, assigned_by, nowhere
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, AttributePlace, ContentsPlace, PassingPlace, Place
from stillgraph.trace.values.lists import StagedList
from stillgraph.trace.values.numbers import StagedNumber, plain
from stillgraph.trace.values.several import in_graph

Block = Callable[[], Exit | None]
NO_EXIT = Exit()


def branch(
    recorder: Recorder,
    predicate: Any,
    then: Block,
    orelse: Block,
    variables: Sequence[Place],
    dropped: Sequence[Place],
    rest: Block | None = None,
    written: str = "",
) -> Exit | None:
    """Stage ``if predicate: then() else: orelse()`` and join what the two arms left behind.

    Args:
        recorder: the capture.
        predicate: a tensor with one element, or a staged number.
        then, orelse: the arms.
        variables: locals that the arms assign and that are live afterwards.
        dropped: locals that the arms assign and that are dead afterwards.
        rest: what follows in the block, when an arm may leave it. It joins the arm that goes on where the other
            certainly leaves; otherwise it is the caller's to run.
        written: what the user wrote for it (``"if"``, ``"and 1"``: its first operand); empty for a branch that the
            capture makes of its own accord, for a flag say.

    Returns:
        The joined exit, or None when control certainly goes on. When ``rest`` was given it has been run.
    """
    mark, asked = recorder.symbolic.mark, version(predicate)
    noted = [*variables, *dropped]
    ran: list[tuple[Block, ...]] = [(then,), (orelse,)]
    left, right = Arm(Region(recorder.region)), Arm(Region(recorder.region))
    recorder.identities.part(left.region, right.region)
    with recorder.assuming(predicate, True):
        run_arm(recorder, then, noted, left)
    with recorder.assuming(predicate, False):
        run_arm(recorder, orelse, noted, right)
    if rest is not None and (leaves(left) or leaves(right)):
        for side, arm in enumerate((left, right)):
            if not arm.diverged and (arm.exit is None or not arm.exit.certain):
                ran[side] = *ran[side], rest
                with _assuming(recorder, predicate, arm is left, asked):
                    continue_arm(recorder, arm, _after(recorder, arm.exit, rest, variables), noted)
        rest = None
    emit = functools.partial(_emit_cond, recorder, predicate, asked, left, right, written)
    at_the_end = functools.partial(_at_the_end, recorder, predicate, asked)
    paths = functools.partial(at_the_end, True, left), functools.partial(at_the_end, False, right)
    lines = assigned_by(*ran[0]), assigned_by(*ran[1])
    with recorder.executed.paused():
        exit = close_arms(recorder, emit, left, right, variables, dropped, mark, paths, lines)
    if (left.diverged or right.diverged) and version(predicate) == asked:
        recorder.learn(predicate, right.diverged)
    return exit if rest is None else continue_(recorder, exit, rest, variables, dropped)


@contextlib.contextmanager
def _at_the_end(recorder: Recorder, predicate: Any, asked: int | None, taken: bool, arm: Arm) -> Iterator[None]:
    """Within it, the recorder answers as at the end of an arm."""
    with _assuming(recorder, predicate, taken, asked), recorder.resume(arm.region):
        yield


def _assuming(recorder: Recorder, predicate: Any, taken: bool, asked: int | None) -> AbstractContextManager[None]:
    """As `Recorder.assuming`, behind code that may have written to a condition which is a tensor.

    Args:
        recorder: the capture.
        predicate: the condition of a branch.
        taken: which of its arms it is.
        asked: the version of the condition where the branch has asked it.
    """
    return recorder.assuming(predicate, taken) if version(predicate) == asked else contextlib.nullcontext()


def leaves(arm: Arm) -> bool:
    """Whether control certainly does not go on behind an arm."""
    return arm.diverged or (arm.exit is not None and arm.exit.certain)


def _after(recorder: Recorder, exit: Exit | None, rest: Block, variables: Sequence[Place]) -> Block:
    return lambda: continue_(recorder, exit, rest, variables, ())


def continue_(
    recorder: Recorder, exit: Exit | None, rest: Block, variables: Sequence[Place], dropped: Sequence[Place]
) -> Exit | None:
    """Run ``rest`` where ``exit`` did not leave the block."""
    if exit is None:
        return rest()
    if exit.certain:
        return exit
    return branch(recorder, any_flag(exit), lambda: exit.taken, rest, variables, dropped)


def any_flag(exit: Exit) -> Any:
    """Whether control left the block, as a staged truth value."""
    flags = [flag for flag in exit.flags if flag is not False]
    result = flags[0]
    for flag in flags[1:]:
        result = result | flag
    return result


def close_arms(
    recorder: Recorder,
    emit: Callable[[Joiner], list[Any]],
    left: Arm,
    right: Arm,
    variables: Sequence[Place],
    dropped: Sequence[Place],
    mark: int,
    paths: tuple[OnPath, OnPath] | None = None,
    lines: tuple[Line, Line] = (nowhere, nowhere),
) -> Exit | None:
    """Join what two arms left behind; ``emit`` makes the node of which they are the regions, and gives its values."""
    views = left.view, right.view
    arms = None if paths is None else (left.region, right.region)
    joiner = Joiner(recorder, mark, is_older=left.is_older, views=views, paths=paths, lines=lines, arms=arms)
    builds: list[tuple[Place, Any, Any]] = []
    met: list[tuple[Any, Any, Any]] = []
    for place, before in _places(recorder, [left, right], variables, dropped):
        joiner.at = place
        join = joiner.join_contents if isinstance(place, ContentsPlace) else joiner.join
        sides: tuple[Any, Any] = left.value(place, before), right.value(place, before)
        if isinstance(place, PassingPlace) and any(side is not MISSING for side in sides):
            sides = DEAD if sides[0] is MISSING else sides[0], DEAD if sides[1] is MISSING else sides[1]
        try:
            build = join(*sides, str(place))
        except JoinFailure as failure:
            raise refuse_join(str(place), failure) from None
        builds.append((place, before, build))
    joiner.at = None
    exits = [DEAD if arm.diverged else (arm.exit or NO_EXIT) for arm in (left, right)]
    try:
        exit_build = joiner.join(exits[0], exits[1], "return")
    except JoinFailure as failure:
        raise refuse_join("the result", failure) from None
    outputs = emit(joiner)
    if left.diverged and right.diverged:
        raise Diverged
    for place, before, build in builds:
        one_sided = not (place.key in left.writes and place.key in right.writes)
        _refuse_if_stale(place, before, [arm.value(place, before) for arm in (left, right) if not arm.diverged])
        if isinstance(place, AttributePlace) and not (left.diverged or right.diverged):
            _require_told(recorder, place, left.value(place, before), right.value(place, before), lines)
        if one_sided:
            recorder.relied.add(place)
        held = [(arm.writes.get(place.key, (None,))[0], arm.value(place, before)) for arm in (left, right)]
        joined = joined_place(recorder.journal, place, held)
        value = build(outputs)
        met.append((value, left.value(place, before), right.value(place, before)))
        if isinstance(place, ContentsPlace):
            going_on = (arm.value(place, before) for arm in (left, right) if not arm.diverged)
            recorder.identities.references.meet(place.target, going_on, value)
        if value is not before:
            leave(recorder, joined, value)
    for arm in (left, right):
        recorder.region.outdated.update({} if arm.diverged else arm.region.outdated)
    exit = exit_build(outputs)
    rule_out(recorder, exit, (exits[0], exits[1]), met, paths)
    return None if all(flag is False for flag in exit.flags) else exit


def _refuse_if_stale(place: Place, before: Any, sides: list[Any]) -> None:
    """Refuse a place that the function writes on one path, and code that it calls may change on the other."""
    stale = next((side for side in sides if isinstance(side, Stale)), None)
    if stale is not None and any(side is not before and not isinstance(side, Stale) for side in sides):
        stale.refuse()


def _require_told(
    recorder: Recorder, place: AttributePlace, left: Any, right: Any, lines: tuple[Line, Line]
) -> None:
    """Refuse an attribute that an object has on one path only, where its reads cannot be told of that."""
    if (left is MISSING) != (right is MISSING):
        try:
            before_unset(recorder, place, right if left is MISSING else left)
        except JoinFailure as failure:
            failure.place = named(place)
            does = ("does not have" if value is MISSING else "has" for value in (left, right))
            failure.sides = tuple(
                Side(f"{who} {has} {quoted(failure.place)}", line(failure.place))
                for who, has, line in zip(("one path", "the other path"), does, lines)
            )
            raise refuse_join(failure.place, failure) from None


def _places(
    recorder: Recorder, arms: Sequence[Arm], variables: Sequence[Place], dropped: Sequence[Place]
) -> list[tuple[Place, Any]]:
    """Every place to be joined, with what it holds before the arms."""
    places: dict[Hashable, Place] = {place.key: place for place in variables}
    skip = {place.key for place in dropped}
    for arm in arms:
        for key, (place, _) in arm.writes.items():
            if key not in skip:
                places.setdefault(key, place)
    return [(place, place.get()) for place in places.values()]


def _emit_cond(
    recorder: Recorder, predicate: Any, asked: int | None, left: Arm, right: Arm, written: str, joiner: Joiner
) -> list[Any]:
    """The values of the joined leaves; those that merely repeat the condition are taken from it.

    The version of a condition that is a tensor, where the branch asks it, is ``asked``.
    """
    flag = functools.cache(lambda: as_flag(recorder, predicate))
    known = {index: _repeats(recorder, flag, pair) for index, pair in enumerate(joiner.pairs)}
    pairs = [pair for index, pair in enumerate(joiner.pairs) if known[index] is None]
    if not pairs and left.region.is_empty and right.region.is_empty:
        if not _has_one_element(recorder, predicate):
            flag()  # there may be no truth in it: the run asks, and raises
        return list(known.values())
    values = _emit_arms(recorder, predicate, left, right, written, pairs)
    for value, pair in zip(values, pairs):
        recorder.came_from(value, predicate, asked, (pair.left, pair.right))
    made = iter(values)
    return [next(made) if known[index] is None else known[index] for index in range(len(joiner.pairs))]


def _has_one_element(recorder: Recorder, predicate: Any) -> bool:
    if not isinstance(predicate, torch.Tensor):
        return True
    fake = recorder.to_fake(predicate)
    with torch._C.DisableTorchFunction():
        return known_true(fake.numel() == 1)


def _repeats(recorder: Recorder, flag: Callable[[], Any], pair: Pair) -> Any:
    """The condition itself, or its opposite, for a leaf that is ``True`` on one path and ``False`` on the other."""
    if pair.left is True and pair.right is False:
        return flag()
    return recorder.opposite(flag()) if pair.left is False and pair.right is True else None


def as_flag(recorder: Recorder, predicate: Any) -> Any:
    """The condition as a truth value of Python's."""
    if not isinstance(predicate, torch.Tensor):
        return predicate
    flag = recorder.fresh_result(bool, recorder.emit("call_function", bool, (predicate,), {}))
    for when in (True, False):
        recorder.implies(predicate, when, flag)
    return flag


def _emit_arms(
    recorder: Recorder, predicate: Any, left: Arm, right: Arm, written: str, pairs: list[Pair]
) -> list[Any]:
    give_outputs(recorder, left, right, pairs)
    operands = unify_captures(recorder, [left.region, right.region])
    graphs = [
        recorder.region.attribute(stem, arm.region.close(arm.outputs))
        for stem, arm in (("true", left), ("false", right))
    ]
    node = recorder.emit("call_function", torch.ops.higher_order.cond, (predicate,), {})
    node.args = (node.args[0], *graphs, tuple(operands))
    outputs = bind_outputs(recorder, node, [pair.type for pair in pairs], [pair.place for pair in pairs])
    node.meta["written"] = written
    return outputs


def give_outputs(recorder: Recorder, left: Arm, right: Arm, pairs: Sequence[Pair]) -> None:
    """Let two arms hand out their sides of the joined leaves."""
    for arm, side in ((left, 0), (right, 1)):
        with recorder.resume(arm.region):
            arm.outputs = [leaf_node(recorder, pair.side(side), pair.type, pair.place) for pair in pairs]


def identifier(place: str) -> str:
    """A place as a name for its node: ``x``, ``self_step``."""
    name = re.sub(r"\W+", "_", place).strip("_")
    return name if name.isidentifier() and not keyword.iskeyword(name) else "value"


def carried(recorder: Recorder, region: Region, slot: Any) -> Any:
    """A fresh staged value that a region takes for a carried leaf, a `loop_state.Slot`."""
    value = recorder.instantiate(slot.type)
    region.define(value, region.placeholder(identifier(slot.place), kept_of(recorder, value)))
    return value


def plain_output(recorder: Recorder, value: Any) -> Any:
    """A staged value as the graph keeps it: a number must not keep its recorder, and with it the user's objects."""
    value = in_graph(value)
    if isinstance(value, StagedList):
        return value.type
    if not isinstance(value, StagedNumber):
        return kept_of(recorder, value)
    number = plain(value)
    like(number, value)
    return number


def bind_outputs(recorder: Recorder, node: fx.Node, types: Sequence[Type], places: Sequence[str]) -> list[Any]:
    """Fresh staged values for the outputs of a branch or loop node."""
    values = [recorder.instantiate(type_) for type_ in types]
    node.meta["val"] = tuple(plain_output(recorder, value) for value in values)
    for index, value in enumerate(values):
        part = recorder.region.graph.create_node(
            "call_function", operator.getitem, (node, index), name=identifier(places[index])
        )
        part.meta.update(node.meta, val=kept_of(recorder, value), bookkeeping=True)
        recorder.region.define(value, part)
    return values
