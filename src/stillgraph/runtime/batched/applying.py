"""How a batched run carries out one operation: by the first rule that gives what each lane would give by itself."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx

from stillgraph.core.diagnostics import StillgraphError, refusal
from stillgraph.program import operations as ours
from stillgraph.runtime.batched.direct import direct
from stillgraph.runtime.batched.levels import at_level
from stillgraph.runtime.batched.memory import Memory
from stillgraph.runtime.batched.operations import (
    AS_NUMBERS,
    AS_TRUTHS,
    WITH_NUMBERS,
    by_groups,
    item_at,
    lane_by_lane,
    numbers_of,
    plain_only,
    set_item_at,
    truths_of,
    with_tensors_for_numbers,
)
from stillgraph.runtime.batched.steps import Step
from stillgraph.runtime.batched.stretches import Stretch, Writer, action_of, kind_of, raw
from stillgraph.runtime.batched.values import DIFFERING, Batch, Lanes, Resists, Truths, gathered, leaves, mapped

_RESISTING: frozenset[Any] = frozenset(
    [
        *(torch.autograd.grad, torch.autograd.backward, "backward", "requires_grad_", "retain_grad", "register_hook"),
        *("register_post_accumulate_grad_hook", "set_", "resize_", "data_ptr", "apply_", "map_", "numpy", setattr),
        *(ours.generator_state, ours.set_generator_state, ours.closed_over, ours.module_hooks, ours.hooked_inputs),
        *(ours.hooked_outputs, ours.to_numpy, ours.copied_tensors),
    ]
)
"""What is about a tensor itself, and not about its elements: of a batch it would not be what it is of each lane."""


_MOVING: frozenset[Any] = frozenset(
    [
        *(ours.build_list, ours.popped, ours.deleted, ours.inserted, ours.replaced, ours.taken, ours.repeated),
        *(ours.made, ours.chosen_each, ours.is_unbound, ours.as_tensor, len),
    ]
)
"""What moves values about and looks at none of them."""


class Applying:
    """Carries out operations for all lanes of a group, and counts how.

    Attributes:
        memory: what is known of memory; None where the program writes to none.
        counts: how many operations were done in which way.
    """

    def __init__(self, lanes: int, randomness: str, inputs: Sequence[Any] | None) -> None:
        self._lanes = lanes
        self._randomness = randomness
        self.memory = None if inputs is None else Memory(inputs)
        self.counts = {"alike": 0, "elements": 0, "level": 0, "groups": 0, "lanes": 0}

    def __call__(self, step: Step, args: Any, kwargs: Any, written: tuple[Any, ...], lanes: int) -> Any:
        """What an operation gives for each lane of a group.

        Args:
            step: the operation.
            args, kwargs: of it, for this group.
            written: the tensors among them that it writes to.
            lanes: how many lanes the group has.
        """
        if step.target is None:
            value = step.function()
            if self.memory is not None:
                self.memory.add_foreign(value)
            return value
        if self.memory is not None and written:
            self.memory.check_write(written)
        if step.draws:
            return self._drawn(step, args, kwargs, lanes)
        if lanes == 1:
            self.counts["alike"] += 1
            return step.function(*args, **kwargs)
        key = None
        if self.memory is None and not kwargs:
            key = kind_of(args)
            action = step.actions.get(key)
            if action is not None:
                self.counts["elements"] += 1
                return Batch(action(*map(raw, args)))
        target = step.target
        if target in AS_TRUTHS and len(args) == 1 and type(args[0]) in (Batch, Truths):
            return truths_of(target, args[0])
        kinds = {type(leaf) for leaf in leaves((args, kwargs))} & DIFFERING
        if kinds and (target in _MOVING or (target is operator.getitem and type(args[0]) in (list, tuple, dict))):
            with contextlib.suppress(Resists):  # of the length of a tensor, say
                return step.function(*args, **kwargs)
        if Truths in kinds:
            args, kwargs = mapped(_in_python, (args, kwargs))
            return self(step, args, kwargs, written, lanes)
        if Lanes in kinds:
            return self._of_lanes(step, args, kwargs, lanes)
        if step.target in _RESISTING:
            raise Resists(f"{_name(step)} is about a tensor itself")
        if kinds:
            return self._of_batches(step, args, kwargs, lanes, key)
        self.counts["alike"] += 1
        result = step.function(*args, **kwargs)
        if self.memory is not None:
            return self.memory.each_its_own(result, lanes)
        return result

    def stretch(self, stretch: Stretch, values: dict[fx.Node, Any], lanes: int) -> None:
        """Carry out a stretch: by the function that was written for inputs of this kind, if there is one."""
        given = [values[node] for node in stretch.inputs]
        key = kind_of(given)
        function = stretch.written.get(key)
        if function is not None:
            self.counts["elements"] += len(stretch.steps)
            values.update(zip(stretch.outputs, function(*map(raw, given))))
            for node in stretch.done_with:
                del values[node]
            return
        writer = None if key in stretch.written else Writer(stretch)
        for step in stretch.steps:
            args, kwargs = step.args(values), step.kwargs(values)
            result = values[step.node] = self(step, args, kwargs, (), lanes)
            if writer is not None:
                writer.add(step, action_of(step, args, kwargs), result)
            for node in step.done_with:
                del values[node]
        if writer is not None:
            stretch.written[key] = writer.finish()

    # ---- batches
    def _of_batches(self, step: Step, args: Any, kwargs: Any, lanes: int, key: Any = None) -> Any:
        target = step.target
        if target in AS_NUMBERS and len(args) == 1 and type(args[0]) is Batch:
            change = AS_NUMBERS[target]
            return gathered([change(number) for number in numbers_of(args[0])])
        action = direct(target, step.function, args, kwargs)
        if action is not None:
            self.counts["elements"] += 1
            if key is not None:
                step.actions[key] = action
            return Batch(action(*map(raw, args), **{name: raw(each) for name, each in kwargs.items()}))
        if self.memory is not None and target is operator.getitem and _picks_by_tensor(args[1]):
            raise Resists("a view at a place that differs among the lanes, in a program that writes in place")
        try:
            result = at_level(step.function, args, kwargs, lanes)
        except StillgraphError:
            raise
        except Exception as error:  # of any kind: each lane finds out by itself
            if step.written:
                raise Resists(f"{_name(step)} has no rule for a batch: {error}") from None
            return self._by_lane(step, args, kwargs, lanes)
        self.counts["level"] += 1
        return result

    def _by_lane(self, step: Step, args: Any, kwargs: Any, lanes: int) -> Any:
        self.counts["lanes"] += 1
        return lane_by_lane(step.function, args, kwargs, lanes, stack=self.memory is None)

    # ---- numbers that differ, and tensors of more than one shape
    def _of_lanes(self, step: Step, args: Any, kwargs: Any, lanes: int) -> Any:
        target = step.target
        if plain_only(args, kwargs):
            return lane_by_lane(step.function, args, kwargs, lanes)
        if target is operator.setitem and set_item_at(args):
            return None
        if self.memory is not None:
            return self._by_lane(step, args, kwargs, lanes)
        if target in WITH_NUMBERS:
            given = with_tensors_for_numbers(args)
            if given is not None and not kwargs:
                return self._of_batches(step, given, kwargs, lanes)
        if target is operator.getitem:
            found = item_at(args)
            if found is not None:
                return found
        self.counts["groups"] += 1

        def apply(args: Any, kwargs: Any, some: int) -> Any:
            return self(step, args, kwargs, (), some)

        return by_groups(apply, args, kwargs, lanes)

    # ---- random numbers
    def _drawn(self, step: Step, args: Any, kwargs: Any, lanes: int) -> Any:
        if any(isinstance(each, torch.Generator) for each in leaves((args, kwargs))):
            raise Resists("a generator of the function's own")
        if self._randomness == "error":
            message = f"{_name(step)} draws at random for many lanes at once"
            hint = 'Give sg.vmap randomness="different" or "same".'
            raise refusal("SG311", message, location=step.node.meta.get("location"), hint=hint)
        if any(type(each) is Lanes for each in leaves((args, kwargs))):
            return self._by_lane(step, args, kwargs, lanes)
        if self._randomness == "different":
            return step.function(*args, **kwargs) if lanes == 1 else self._at_random(step, args, kwargs, lanes)
        if lanes < self._lanes:
            raise Resists("some of the lanes draw the same random numbers as the others")
        return self._at_random(step, args, kwargs, lanes)

    def _at_random(self, step: Step, args: Any, kwargs: Any, lanes: int) -> Any:
        return at_level(step.function, args, kwargs, lanes, self._randomness)


def _in_python(leaf: Any) -> Any:
    return leaf.numbers() if type(leaf) is Truths else leaf


def _picks_by_tensor(index: Any) -> bool:
    return any(type(each) is Batch or isinstance(each, Tensor) for each in leaves(index))


def _name(step: Step) -> str:
    return step.target if isinstance(step.target, str) else getattr(step.target, "__name__", str(step.target))
