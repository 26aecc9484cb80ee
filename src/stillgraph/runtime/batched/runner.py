"""The batched run of a program: the same control flow as in the reference interpreter, by groups of lanes.

A group runs a straight-line piece once for all its lanes. Where a condition differs among them, the group is divided:
each part takes its own arm, and what they leave is put together again. In a loop the lanes that are done are set aside,
and the others go on. So nothing is computed for a lane that eager PyTorch would not compute for it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import InternalError
from stillgraph.passes.lists.repeating import draws_at_random
from stillgraph.program import operations as ours
from stillgraph.program.context import Context
from stillgraph.program.facts.rerouting import rerouted
from stillgraph.program.facts.writes import writes_in_place
from stillgraph.program.graphs import regions
from stillgraph.program.guards import ModeGuard
from stillgraph.program.interpreter import under
from stillgraph.program.program import Program
from stillgraph.runtime.batched.applying import Applying
from stillgraph.runtime.batched.memory import Part, tensors_in
from stillgraph.runtime.batched.operations import truths
from stillgraph.runtime.batched.steps import Region, Step, prepared
from stillgraph.runtime.batched.stretches import Stretch, stretches
from stillgraph.runtime.batched.values import (
    Batch,
    Lanes,
    Resists,
    Truths,
    chosen,
    lane,
    leaves,
    merged,
    selected,
    varies,
)

MOST_CHOSEN = 12
"""The most operations of both arms of a branch that are computed for all lanes, for that costs less than to part."""

_AS_IT_IS = contextlib.nullcontext()
Values = tuple[Any, ...]
Group = Sequence[int]


@dataclass(frozen=True)
class Frame:
    """Where a group is: the lanes in it, torch's modes, the recursions that it can call, what the tries were handed."""

    group: Group
    modes: Context | None
    functions: dict[str, tuple[fx.GraphModule, Values, Group]] = field(default_factory=dict)
    kept: dict[str, Values] = field(default_factory=dict)

    def of(self, positions: Sequence[int]) -> Frame:
        """That of some of the lanes."""
        return replace(self, group=[self.group[each] for each in positions], kept={})


class Batched:
    """A program that many lanes run at once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        modes = next((guard.context for guard in program.guards if isinstance(guard, ModeGuard)), None)
        contexts = {} if modes is None else {modes: modes}
        self._modes = modes
        self._regions: dict[int, Region] = {id(each): prepared(each, contexts) for each in regions(program.graph)}
        self._parts = {number: stretches(region.steps) for number, region in self._regions.items()}
        self._writes = writes_in_place(program.graph)
        self.draws = draws_at_random(program.graph)

    def __call__(self, inputs: Sequence[Any], lanes: int, randomness: str = "error") -> Values:
        """Run it.

        Args:
            inputs: a value for each of `Program.inputs`: a `Batch` where it differs among the lanes.
            lanes: how many there are.
            randomness: as of `torch.vmap`.

        Returns:
            The outputs of the graph, in which a `Batch` or `Lanes` stands for what differs.

        Raises:
            Resists: the lanes are to be run one after the other. Nothing that outlives the call has been written.
            Exception: whatever an operation raises, in whatever lane.
        """
        applying = Applying(lanes, randomness, inputs if self._writes else None)
        run = _Run(self._regions, self._parts, applying)
        found = run.region(self._program.graph, tuple(inputs), Frame(range(lanes), self._modes))
        lazy = self._program.unset_in_choices
        for index, value in enumerate(found):
            if index not in lazy:
                _check_bound(value)
        return found


def _check_bound(value: Any) -> None:
    for leaf in leaves(value):
        for each in leaf.values if type(leaf) is Lanes else (leaf,):
            if type(each) is not Batch:
                ours.bound(each)


class _Run:
    """One run."""

    def __init__(
        self, prepared_regions: dict[int, Region], parts: dict[int, list[Step | Stretch]], applying: Applying
    ) -> None:
        self._regions, self._parts = prepared_regions, parts
        self._applying = applying

    # ---- regions
    def region(self, module: fx.GraphModule, inputs: Values, frame: Frame) -> Values:
        """Carry out one region, for all lanes of a group. A lane that is alone is run as eager PyTorch would."""
        if len(frame.group) == 1:
            inputs = lane(inputs, 0)
        region = self._regions[id(module)]
        values: dict[fx.Node, Any] = dict(region.regions)
        values.update(zip(region.inputs, inputs, strict=True))
        by_steps = self._applying.memory is not None
        for step in region.steps if by_steps else self._parts[id(module)]:
            if type(step) is Stretch:
                self._stretch(step, values, frame)
                continue
            assert isinstance(step, Step)
            if step.part is not None:
                values[step.node] = values[step.part[0]][step.part[1]]
            else:
                values[step.node] = self._computed(step, values, frame)
            for node in step.done_with:
                del values[node]
        outputs: Values = region.outputs(values)
        return outputs

    def _stretch(self, stretch: Stretch, values: dict[fx.Node, Any], frame: Frame) -> None:
        with self._modes(stretch.context, frame):
            self._applying.stretch(stretch, values, len(frame.group))

    def _modes(self, context: Context | None, frame: Frame) -> AbstractContextManager[Any]:
        same = context is None or context is frame.modes  # equal ones are one object
        return _AS_IT_IS if context is None or same else under(context)

    def _computed(self, step: Step, values: dict[fx.Node, Any], frame: Frame) -> Any:
        if step.context is None or step.context is frame.modes:  # equal ones are one object
            return self._carried_out(step, values, frame)
        with under(step.context):
            return self._carried_out(step, values, replace(frame, modes=step.context))

    def _carried_out(self, step: Step, values: dict[fx.Node, Any], frame: Frame) -> Any:
        args = step.args(values)
        control = CONTROL.get(step.target)
        if control is not None:
            return control(self, args, frame)
        written = tuple(values[node] for node in step.written)
        return self._applying(step, args, step.kwargs(values), written, len(frame.group))

    def _parted(
        self, values: Values, positions: Sequence[int], run: Callable[[Values], Values]
    ) -> tuple[Sequence[int], Values]:
        """Run something on the values of some of the lanes."""
        memory = self._applying.memory
        if memory is None:
            return positions, run(selected(values, positions))
        part = Part(memory, values, positions)
        outputs = run(part.values)
        part.close(outputs)
        return positions, outputs

    # ---- control flow
    def _cond(self, args: Values, frame: Frame) -> Values:
        predicate, then, otherwise, operands = args
        if self._may_choose(predicate, then, otherwise, operands):
            mask = predicate.tensor.reshape(len(frame.group))
            with contextlib.suppress(Exception):  # then the lanes part
                both = [self.region(arm, tuple(operands), frame) for arm in (then, otherwise)]
                return tuple([chosen(mask, a, b) for a, b in zip(*both, strict=True)])
        holds = truths(predicate)
        if isinstance(holds, bool):
            return self.region(then if holds else otherwise, tuple(operands), frame)
        pieces = []
        for wanted, arm in ((True, then), (False, otherwise)):
            positions = [index for index, each in enumerate(holds) if each is wanted]
            run = functools.partial(self.region, arm, frame=frame.of(positions))
            pieces.append(self._parted(tuple(operands), positions, run))
        together: Values = merged(pieces)
        return together

    def _may_choose(self, predicate: Any, then: Any, otherwise: Any, operands: Any) -> bool:
        """Whether both arms may be computed for all lanes, and one of the two results be taken for each.

        That is so where neither can fail, and a gradient does not go through what is not taken: it could be no number.
        """
        if type(predicate) not in (Batch, Truths) or self._applying.memory is not None:
            return False
        if predicate.tensor.dtype is not torch.bool or predicate.tensor.numel() != predicate.tensor.shape[0]:
            return False
        weights = [self._regions[id(arm)].weight for arm in (then, otherwise)]
        if None in weights or sum(weights) > MOST_CHOSEN:  # type: ignore[arg-type]  # none is None
            return False
        return not any(weights) or not (
            torch.is_grad_enabled() and any(each.requires_grad for each in tensors_in(operands))
        )

    def _while(self, args: Values, frame: Frame) -> Values:
        test, body, entries, operands = args
        loop = _Loop(self._applying, tuple(entries), tuple(operands), len(frame.group))
        inner = frame
        while True:
            (go,) = self.region(test, (*loop.carried, *loop.operands), inner)
            holds = truths(go)
            if isinstance(holds, bool):
                if not holds:
                    return loop.result()
            else:
                loop.set_aside([index for index, each in enumerate(holds) if not each])
                inner = frame.of(loop.positions)
            loop.carried = self.region(body, (*loop.carried, *loop.operands), inner)

    def _try(self, args: Values, frame: Frame) -> Values:
        name, body, handler, kinds, operands = args
        operands = tuple(operands)
        if len(frame.group) == 1:
            return self._try_alone(args, frame)
        if self._applying.memory is None:
            try:
                return self.region(body, operands, replace(frame, kept={}))
            except tuple(kinds):
                pass  # of some lane: which one, each finds out by itself
        pieces = []
        for position in range(len(frame.group)):
            alone = (name, body, handler, kinds, lane(operands, position))
            outputs = self._try_alone(alone, frame.of([position]))
            if self._applying.memory is not None:
                self._applying.memory.check_fresh(outputs, operands)
                self._applying.memory.check_apart(outputs)
            pieces.append(([position], outputs))
        together: Values = merged(pieces)
        return together

    def _try_alone(self, args: Values, frame: Frame) -> Values:
        name, body, handler, kinds, operands = args
        inner = replace(frame, kept=dict(frame.kept))
        try:
            return self.region(body, tuple(operands), inner)
        except tuple(kinds) as error:
            taken = len(self._regions[id(handler)].inputs) - 1 - len(operands)
            kept = inner.kept.get(name, ())
            if len(kept) < taken:
                raise InternalError(f"the handler of {name} takes {taken} values, but {len(kept)} were kept") from None
            return self.region(handler, (error, *kept[:taken], *operands), frame)

    def _keep(self, args: Values, frame: Frame) -> None:
        name, kept = args
        frame.kept[name] = tuple(kept)

    def _recursion(self, args: Values, frame: Frame) -> Values:
        name, body, entries, operands = args
        functions = {**frame.functions, name: (body, tuple(operands), frame.group)}
        return self.region(body, (*entries, *operands), replace(frame, functions=functions, kept={}))

    def _recurse(self, args: Values, frame: Frame) -> Values:
        name, *given = args
        body, operands, group = frame.functions[name]
        if len(group) > len(frame.group) and varies(operands):
            if self._applying.memory is not None:
                raise Resists("a recursion that writes in place, of some of the lanes")
            places = {number: position for position, number in enumerate(group)}
            operands = selected(operands, [places[number] for number in frame.group])
        return self.region(body, (*given, *operands), replace(frame, kept={}))

    def _checkpointed(self, args: Values, frame: Frame) -> Values:
        body, inputs, operands, _ = args
        return self.region(body, (*inputs, *operands), replace(frame, kept={}))

    def _rerouted(self, args: Values, frame: Frame) -> Values:
        raise Resists("what the backward pass gives is replaced")


class _Loop:
    """A loop on the way: the lanes that go on, and what those that are done have left."""

    def __init__(self, applying: Applying, entries: Values, operands: Values, lanes: int) -> None:
        self.carried, self.operands = entries, operands
        self.positions: Sequence[int] = range(lanes)
        self._memory = applying.memory
        self._entries: list[Any] = [entries]  # and the copies of them
        self._parts: list[Part] = []
        self._done: list[tuple[Sequence[int], Values]] = []

    def set_aside(self, done: Sequence[int]) -> None:
        """Some of the lanes that went on are done."""
        left = set(done)
        on = [index for index in range(len(self.positions)) if index not in left]
        self._done.append(([self.positions[each] for each in done], selected(self.carried, done)))
        self.positions = [self.positions[each] for each in on]
        if self._memory is None:
            self.carried, self.operands = selected((self.carried, self.operands), on)
            return
        self._memory.check_fresh(self.carried, self._entries)
        part = Part(self._memory, (*self.carried, *self.operands), on)
        self._parts.append(part)
        count = len(self.carried)
        self.carried, self.operands = part.values[:count], part.values[count:]

    def result(self) -> Values:
        """What the loop leaves, in the order of the lanes."""
        for part in reversed(self._parts):
            part.close(self.carried, len(self.carried))
        if self._parts and self._memory is not None:
            self._memory.check_fresh(self.carried, self._entries)
        together: Values = merged([*self._done, (self.positions, self.carried)])
        return together


CONTROL: dict[Any, Callable[[_Run, Values, Frame], Any]] = {
    torch.ops.higher_order.cond: _Run._cond,
    torch.ops.higher_order.while_loop: _Run._while,
    ours.try_: _Run._try,
    ours.keep: _Run._keep,
    ours.recursion: _Run._recursion,
    ours.recurse: _Run._recurse,
    ours.checkpointed: _Run._checkpointed,
    rerouted: _Run._rerouted,
}
"""What an operation means that is more than a call of itself, as `interpreter.CONTROL`."""
