"""A call of a static function for many lanes: its program is run by groups of them, or lane by lane."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx

from stillgraph.core.diagnostics import StillgraphError, refusal
from stillgraph.core.logs import log
from stillgraph.program import operations as ours
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import regions
from stillgraph.program.program import Program
from stillgraph.runtime.batched.levels import without_transforms
from stillgraph.runtime.batched.runner import Batched
from stillgraph.runtime.batched.values import DIFFERING, Batch, Lanes, Resists, Truths, gathered, lane, varies
from stillgraph.runtime.native.repeating import Generators

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class Captured(Protocol):
    """What a batched call needs of a program that is kept."""

    program: Program
    batched: Any  # a `Batched` once there is one
    finish: Callable[[Sequence[Any], Args, Kwargs], Any]


@dataclass(frozen=True)
class Callee:
    """What is called for each lane.

    Attributes:
        name: of the function.
        captured: gives the program of a call, a `Captured`, and its inputs.
        alone: calls it for one lane.
    """

    name: str
    captured: Callable[[Args, Kwargs], tuple[Any, Sequence[Any]]]
    alone: Callable[..., Any]


class Given:
    """The arguments of a call for many lanes: each `Batch` among their leaves stands for a tensor of each lane."""

    def __init__(self, args: Args, kwargs: Kwargs, is_held: Callable[[Any], bool] = lambda leaf: False) -> None:
        """Take them.

        Args:
            args, kwargs: of the call.
            is_held: whether a capture must not see a tensor; it is shown another like it.
        """
        self._leaves, self._spec = pytree.tree_flatten((args, kwargs), is_leaf=_is_batch)
        self.stand_ins: dict[int, tuple[Any, Any]] = {}
        self._is_held = is_held

    def first(self) -> tuple[Args, Kwargs]:
        """The arguments as a capture sees them: without elements."""
        return self._tree([self._stand_in(each) for each in self._leaves])

    def of_lane(self, index: int) -> tuple[Args, Kwargs]:
        """The arguments of one lane."""
        return self._tree([lane(each, index) for each in self._leaves])

    def real(self, value: Any) -> Any:
        """What a leaf of `first` stands for; any other value as it is."""
        found = self.stand_ins.get(id(value))
        return value if found is None or found[0] is not value else found[1]

    def _tree(self, leaves: list[Any]) -> tuple[Args, Kwargs]:
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return args, kwargs

    def _stand_in(self, leaf: Any) -> Any:
        skipped = int(type(leaf) is Batch)
        tensor = leaf.tensor if skipped else leaf
        if not skipped and not (isinstance(leaf, Tensor) and self._is_held(leaf)):
            return leaf
        shape, stride = tensor.shape[skipped:], tensor.stride()[skipped:]
        for stand_in, meant in self.stand_ins.values():
            if meant is leaf or (type(meant) is type(leaf) is Batch and meant.tensor is tensor):
                return stand_in
        made = torch.empty_strided(shape, stride, dtype=tensor.dtype, device=tensor.device)
        if tensor.requires_grad:
            made.requires_grad_()
        self.stand_ins[id(made)] = made, leaf
        return made


def call_for_lanes(callee: Callee, given: Given, lanes: int, randomness: str) -> Any:
    """Call a function for many lanes.

    Args:
        callee: the function.
        given: the arguments.
        lanes: how many there are.
        randomness: as of `torch.vmap`.

    Returns:
        Its result, each leaf a tensor with the lanes in its first dimension, or what is the same for all lanes.

    Raises:
        CaptureError: the call cannot become one program, or has effects.
        Exception: what the first lane raises that raises anything.
    """
    with without_transforms():
        first = given.first()
        call, inputs = callee.captured(*first)
    if call.batched is None:
        _refuse_effects(call.program)
        call.batched = Batched(call.program)
    generators = Generators() if call.batched.draws else None
    try:
        outputs = call.batched([given.real(each) for each in inputs], lanes, randomness)
        return _stacked(_finished(call, outputs, given, first, lanes), lanes)
    except StillgraphError:
        raise
    except Exception as error:  # of any kind, of whatever lane: the first one is found out below
        why = f"{type(error).__name__}: {error}" if not isinstance(error, Resists) else str(error)
    log("runtime", "loop", f"{callee.name} is run for {lanes} lanes one after the other: {why}", function=callee.name)
    if generators is not None:
        generators.put_back()
    results = []
    for index in range(lanes):
        if generators is not None and randomness == "same":
            generators.put_back()
        args, kwargs = given.of_lane(index)
        results.append(callee.alone(*args, **kwargs))
    return _stacked(_in_one_tree(results), lanes)


def _is_batch(value: Any) -> bool:
    return type(value) is Batch


# ---- effects
_EFFECTS: frozenset[Any] = frozenset({ours.print_, ours.act, ours.outside, ours.settle})


def _refuse_effects(program: Program) -> None:
    effects = [*program.effects, *(each for some in program.midway for each in some)]
    if effects:
        raise refusal("SG311", f"{program.name} writes {effects[0]}", location=program.location)
    for node in _nodes(program):
        if node.target in _EFFECTS:
            what = f"{program.name} does what is seen outside: {name_of(node).strip('_')}"
            raise refusal("SG311", what, location=node.meta.get("location"))


def _nodes(program: Program) -> Iterator[fx.Node]:
    return (node for region in regions(program.graph) for node in region.graph.nodes if node.op == "call_function")


# ---- results
def _finished(call: Captured, outputs: Sequence[Any], given: Given, first: Any, lanes: int) -> Any:
    """The result of all lanes, as a tree with a `Batch` or `Lanes` where they differ."""
    try:
        found = call.finish(outputs, *first)
    except Resists:  # what differs decides which result it is
        each = [call.finish(lane(tuple(outputs), index), *given.of_lane(index)) for index in range(lanes)]
        return _in_one_tree(each)
    return pytree.tree_map(given.real, found, is_leaf=_is_leaf)


def _is_leaf(value: Any) -> bool:
    return type(value) in DIFFERING


def _in_one_tree(results: Sequence[Any]) -> Any:
    """The results of the lanes as one tree."""
    flat = [pytree.tree_flatten(each) for each in results]
    spec = flat[0][1]
    for _, other in flat:
        if other != spec:
            raise refusal("SG312", f"one lane returns {_shown(results[0])}, another one returns something else")
    return pytree.tree_unflatten([gathered(list(column)) for column in zip(*(leaves for leaves, _ in flat))], spec)


def _shown(result: Any) -> str:
    return type(result).__name__


def _stacked(tree: Any, lanes: int) -> Any:
    """A tree in which what differs among the lanes, and every number, is a tensor with the lanes first."""
    return pytree.tree_map(lambda leaf: _as_tensor(leaf, lanes), tree, is_leaf=_is_leaf)


_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}
_ALIKE = (str, bytes, complex, type(None), enum.Enum, torch.dtype, torch.device, torch.layout, torch.Size)
"""Kinds of values that are returned as they are. Any other object may hold what differs among the lanes."""


def _as_tensor(leaf: Any, lanes: int) -> Any:
    if type(leaf) is Batch or type(leaf) is Truths:
        return leaf.tensor
    if type(leaf) is Lanes:
        return _tensor_of(leaf.values)
    if isinstance(leaf, Tensor):
        return leaf.expand(lanes, *leaf.shape)
    if type(leaf) in _DTYPES:
        return torch.full((lanes,), leaf, dtype=_DTYPES[type(leaf)])
    if isinstance(leaf, _ALIKE) and not varies(leaf):
        return leaf
    raise refusal("SG312", f"each lane returns a {type(leaf).__name__}")


def _tensor_of(values: Sequence[Any]) -> Tensor:
    """A tensor of what the lanes have in one place."""
    kinds = {type(each) for each in values}
    if kinds <= set(_DTYPES):
        widest = max(kinds, key=list(_DTYPES).index)
        return torch.tensor(values, dtype=_DTYPES[widest])
    tensors = [each for each in values if isinstance(each, Tensor)]
    if tensors and all(isinstance(each, Tensor) or type(each) in _DTYPES for each in values):
        like = tensors[0]
        alike = all(each.shape == like.shape and each.dtype == like.dtype for each in tensors)
        if alike and (len(tensors) == len(values) or like.dim() == 0):
            return torch.stack([e if isinstance(e, Tensor) else like.new_tensor(e) for e in values])
        shapes = sorted({str(tuple(each.shape)) for each in tensors} | {str(each.dtype) for each in tensors})
        raise refusal("SG312", f"the lanes return tensors that cannot be stacked: {', '.join(shapes)}")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise refusal("SG312", f"the lanes return {names} in one place")
