"""Stretches of operations on elements and the like, written as one Python function on the tensors of all lanes.

Which function is right depends on the kinds of what a stretch is given: what differs among the lanes, dtypes, and how
many dimensions there are. It does not depend on sizes, nor on how many lanes there are. So it is written once for each.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from stillgraph.program.context import Context
from stillgraph.program.graphs import arguments
from stillgraph.runtime.batched.direct import RULES, direct
from stillgraph.runtime.batched.operations import ELEMENTWISE, NUMBERS, Action, Operation
from stillgraph.runtime.batched.steps import Step
from stillgraph.runtime.batched.values import Batch, Lanes, Truths, leaves, mapped


@dataclass(frozen=True, eq=False)
class Stretch:
    """Steps of a region that follow one another, none of which is control flow.

    Attributes:
        steps: them.
        inputs: the nodes whose values they take.
        outputs: the nodes whose values are asked for behind them.
        done_with: the nodes whose values nothing asks for behind them.
        context: the modes that all of them were recorded under.
        written: a function for each kind of inputs; None for a kind of which there is none.
    """

    steps: tuple[Step, ...]
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    done_with: tuple[fx.Node, ...]
    context: Context | None
    written: dict[Any, Any] = field(default_factory=dict)


def stretches(steps: Sequence[Step]) -> list[Step | Stretch]:
    """The steps of a region, those that can be written as one function together."""
    found: list[Step | Stretch] = []
    together: list[Step] = []

    def close() -> None:
        if len(together) > 1:
            found.append(_stretch(tuple(together)))
        else:
            found.extend(together)
        together.clear()

    for step in steps:
        if not _is_eligible(step):
            close()
            found.append(step)
            continue
        if together and step.context is not together[0].context:
            close()
        together.append(step)
    close()
    return found


def _is_eligible(step: Step) -> bool:
    has_rule = step.target in ELEMENTWISE or step.target in RULES
    return has_rule and step.part is None and not step.written and not step.draws


def _stretch(steps: tuple[Step, ...]) -> Stretch:
    inside = {step.node for step in steps}
    used = dict.fromkeys(node for step in steps for node in step.node.all_input_nodes if node not in inside)
    done = {node for step in steps for node in step.done_with}
    outputs = tuple(step.node for step in steps if step.node not in done)
    return Stretch(steps, tuple(used), outputs, tuple(node for node in used if node in done), steps[0].context)


# ---- what is right for a kind of arguments
def kind_of(args: Any) -> Any:
    """What arguments have in common with those for which the same action is right."""
    parts: list[Any] = []
    for each in args:
        kind = type(each)
        if kind is Batch:
            tensor = each.tensor
            parts += (tensor.dtype, tensor.dim())
        elif kind is list or kind is tuple:
            parts += (kind, kind_of(each))
        elif isinstance(each, Tensor):
            parts += (kind, each.dtype, each.dim())
        else:
            parts.append(kind)
    return tuple(parts)


def action_of(step: Step, args: Any, kwargs: Any) -> Action | None:
    """What does a step on tensors of all lanes, for all arguments of the kind of an example."""
    kinds = {type(leaf) for leaf in leaves((args, kwargs))}
    if step.target is operator.getitem and type(args[0]) in (list, tuple):
        return step.function
    if Lanes in kinds and not kwargs and all(type(each) is Lanes or type(each) in NUMBERS for each in args):
        return _OnNumbers(step.function)
    if Lanes in kinds or Truths in kinds:
        return None
    if Batch not in kinds:
        return step.function
    return direct(step.target, step.function, args, kwargs)


@dataclass(frozen=True)
class _OnNumbers:
    """An operation on numbers of Python's, of which some differ among the lanes."""

    function: Operation

    def __call__(self, *args: Any) -> Lanes:
        (count,) = {len(each.values) for each in args if type(each) is Lanes}
        columns = [each.values if type(each) is Lanes else [each] * count for each in args]
        return Lanes([*map(self.function, *columns)])


def raw(value: Any) -> Any:
    """A value with the tensors of all lanes in the place of batches."""
    kind = type(value)
    if kind is Batch:
        return value.tensor
    return mapped(raw, value) if kind is list or kind is tuple else value


# ---- writing
class Writer:
    """Writes a stretch as a function, step by step, while it is carried out."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self._names: dict[fx.Node, str] = {node: f"i{index}" for index, node in enumerate(stretch.inputs)}
        self._objects: dict[str, Any] = {"Batch": Batch}
        self._lines = [f"def stretch({', '.join(self._names.values())}):"]
        self._batches: set[fx.Node] = set()
        self._fails = False

    def add(self, step: Step, action: Action | None, result: Any) -> None:
        """Add a step.

        Args:
            step: it.
            action: what does it; None where there is nothing of that kind.
            result: what it gave, with the lanes told apart.
        """
        if type(result) in (Truths, list, tuple, dict) or isinstance(action, _OnNumbers) != (type(result) is Lanes):
            action = None
        if action is None:
            self._fails = True
        if self._fails:
            return
        name = f"v{len(self._lines)}"
        args = [self._text(each) for each in arguments(step.node)]
        args += [f"{key}={self._text(each)}" for key, each in step.node.kwargs.items()]
        if action is step.function and isinstance(step.target, str):
            called = f"{args[0]}.{step.target}({', '.join(args[1:])})"
        else:
            called = f"{self._object(action)}({', '.join(args)})"
        self._lines.append(f"    {name} = {called}")
        self._names[step.node] = name
        if type(result) is Batch:
            self._batches.add(step.node)

    def finish(self) -> Any:
        """The function; None where some step has no action."""
        if self._fails:
            return None
        results = [f"Batch({self._names[e]})" if e in self._batches else self._names[e] for e in self._stretch.outputs]
        self._lines.append(f"    return ({''.join(f'{each}, ' for each in results)})")
        namespace = dict(self._objects)
        exec("\n".join(self._lines), namespace)
        return namespace["stretch"]

    def _object(self, value: Any) -> str:
        name = f"o{len(self._objects)}"
        self._objects[name] = value
        return name

    def _text(self, given: Any) -> str:
        if isinstance(given, fx.Node):
            return self._names[given]
        if given is None or given is ... or type(given) in (bool, int, str):
            return repr(given)
        if isinstance(given, torch.Size):
            return self._object(given)
        if isinstance(given, (tuple, list)):
            inner = "".join(f"{self._text(each)}, " for each in given)
            return f"({inner})" if isinstance(given, tuple) else f"[{inner}]"
        if isinstance(given, dict):
            return f"{{{', '.join(f'{key!r}: {self._text(each)}' for key, each in given.items())}}}"
        if isinstance(given, slice):
            return f"slice({', '.join(self._text(each) for each in (given.start, given.stop, given.step))})"
        return self._object(given)
