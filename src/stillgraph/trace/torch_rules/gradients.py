"""Gradients taken inside the captured function: ``backward``, `torch.autograd.grad`, and what ``.grad`` holds.

The program does all of it with PyTorch's own engine when it runs. The capture only has to know what comes out: which
gradients there are, and what they look like. ``tensor.grad`` is a place like any other: arms undo what they wrote to it
and what two paths left there is joined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.autograd.graph import GradientEdge

from stillgraph.core.diagnostics import refuse
from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import TensorType
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.kernels import by_kernels
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.torch_rules import sparse
from stillgraph.trace.torch_rules.autograd_graph import Reach, accumulates, reach_of, requirement_differs
from stillgraph.trace.torch_rules.hidden_inputs import HiddenInputs

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor


@dataclass(frozen=True, eq=False)
class GradientPlace:
    """``tensor.grad``, of a fake tensor; `MISSING` as long as nobody asked for what it holds when the call begins."""

    tensor: torch.Tensor
    held: dict[int, tuple[torch.Tensor, Any]]

    @property
    def key(self) -> tuple[str, int]:
        return ("gradient", id(self.tensor))

    def get(self) -> Any:
        return self.held.get(id(self.tensor), (None, MISSING))[1]

    def set(self, value: Any) -> None:
        if value is MISSING:
            self.held.pop(id(self.tensor), None)
        else:
            self.held[id(self.tensor)] = (self.tensor, value)

    def __str__(self) -> str:
        return "grad"


@dataclass(frozen=True, eq=False)
class RequirePlace:
    """``tensor.requires_grad``, of a fake tensor that is a leaf."""

    tensor: torch.Tensor

    @property
    def key(self) -> tuple[str, int]:
        return ("requires_grad", id(self.tensor))

    def get(self) -> Any:
        with torch._C.DisableTorchFunction():
            return self.tensor.requires_grad

    def set(self, value: Any) -> None:
        fake: Any = self.tensor
        mark(fake, grad_set=True)  # a compiled region has to look at it in the run
        if not isinstance(value, bool):  # joined: one path asked for it
            mark(fake, grad_differs=True)
            value = True
        with torch._C.DisableTorchFunction():
            if fake.is_leaf:  # else what was done in place decides, which nothing undoes
                fake.requires_grad_(value)

    def __str__(self) -> str:
        return "requires_grad"


# ---- ``tensor.grad``
def read_gradient(recorder: Recorder, tensor: torch.Tensor) -> Any:
    """``tensor.grad``."""
    return _settled(recorder, recorder.to_fake(tensor)).get()


def write_gradient(recorder: Recorder, tensor: torch.Tensor, value: Any) -> None:
    """``tensor.grad = value``."""
    if value is not None and not isinstance(value, torch.Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is not None:
        _require_fitting(recorder, recorder.to_fake(tensor), recorder.to_fake(value))
    recorder.emit("call_function", setattr, (tensor, "grad", value), {})
    _write(recorder, recorder.to_fake(tensor), value)


def _require_fitting(recorder: Recorder, fake: torch.Tensor, gradient: torch.Tensor) -> None:
    """Raise what torch raises for a gradient of another shape or kind."""
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        if any(type(size) is not int for size in (*fake.shape, *gradient.shape)):
            recorder.before_raise(RuntimeError)
        else:
            fake.detach().grad = gradient


def clear_gradients(recorder: Recorder, tensors: Iterable[torch.Tensor]) -> None:
    """Told that the program lets these tensors have no gradient any more."""
    for tensor in tensors:
        _write(recorder, recorder.to_fake(tensor), None)


def _settled(recorder: Recorder, fake: torch.Tensor) -> GradientPlace:
    """The place, after finding out what it holds when the call begins if nothing was written to it so far."""
    place = GradientPlace(fake, recorder.gradients)
    if place.get() is MISSING:
        unknown = recorder.went_outside and _may_accumulate(recorder, fake)
        place.set(_gradient_now(recorder, fake, False, True) if unknown else recorder.entry_gradient(fake))
    return place


def _write(recorder: Recorder, fake: torch.Tensor, value: Any) -> None:
    in_arm = recorder.region.parent is not None
    place = _settled(recorder, fake) if in_arm else GradientPlace(fake, recorder.gradients)
    recorder.journal.write(place, value)


def _may_accumulate(recorder: Recorder, fake: torch.Tensor) -> bool:
    """The same, also of one that was computed before the call, and is to keep its gradient."""
    if accumulates(fake):
        return True
    with torch._C.DisableTorchFunction():
        real = recorder.fakes.real_of(fake) if fake.requires_grad else None
        return real is not None and real.requires_grad and real.retains_grad


def _leaves(recorder: Recorder) -> Iterator[torch.Tensor]:
    """The fakes of all tensors known here whose gradients a backward pass may accumulate."""
    region: Any = recorder.region
    seen: set[int] = set()
    while region is not None:
        for value, _ in list(region.known.values()):
            if isinstance(value, torch.Tensor):
                fake = recorder.to_fake(value)
                if id(fake) not in seen and _may_accumulate(recorder, fake):
                    seen.add(id(fake))
                    yield fake
        region = region.parent


def _like(recorder: Recorder, fake: torch.Tensor, node: fx.Node, create_graph: bool, may_be_none: bool) -> Any:
    """A fresh staged value for a gradient of a tensor."""
    type_ = TensorType(
        fake.dtype, fake.device, tuple(fake.shape), create_graph, grad_differs=create_graph, may_be_none=may_be_none
    )
    value = recorder.instantiate(type_)
    recorder.region.define(value, node)
    node.meta["val"] = recorder.to_fake(value)
    return value


def _gradient_now(recorder: Recorder, fake: torch.Tensor, create_graph: bool, may_be_none: bool) -> Any:
    """What ``.grad`` of a tensor holds at this point of the run."""
    lifted = recorder.fakes.reals.get(id(fake), fake)  # now, where nothing has used the tensor so far
    node = recorder.emit("call_function", getattr, (lifted, "grad"), {})
    node.meta["bookkeeping"] = True
    return _like(recorder, fake, node, create_graph, may_be_none)


def _goes_outside(recorder: Recorder, reach: Reach) -> bool:
    """Whether a backward pass comes by a tensor that was computed before the call: nobody knows from what."""
    with torch._C.DisableTorchFunction():
        computed = [fake for real, fake in recorder.fakes.by_real.values() if real.grad_fn is not None]
        computed += [fake for fake, real in recorder.fakes.apart.values() if real.grad_fn is not None]
        return any(map(reach.meets, computed))


def _tensors(given: Any) -> list[torch.Tensor]:
    if isinstance(given, GradientEdge) or (not isinstance(given, torch.Tensor) and _has_edge(given)):
        raise refuse("SG304", "an edge of autograd's graph is differentiated", location=here())
    return [given] if isinstance(given, torch.Tensor) else list(given)


def _has_edge(given: Any) -> bool:
    return any(isinstance(each, GradientEdge) for each in given)


# ---- backward passes
def _backward(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> None:
    """``tensor.backward()``."""
    gradient, retain_graph, create_graph, inputs = _given(args[1:], kwargs, _BACKWARD)
    del gradient, retain_graph
    _record_backward(recorder, "call_method", "backward", args, kwargs, [args[0]], create_graph, inputs)


def _backward_of_all(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> None:
    """`torch.autograd.backward`."""
    tensors, _, _, create_graph, _, inputs = _given(args, kwargs, _BACKWARD_OF_ALL)
    target = torch.autograd.backward
    _record_backward(recorder, "call_function", target, args, kwargs, _tensors(tensors), create_graph, inputs)


_BACKWARD = (("gradient", None), ("retain_graph", None), ("create_graph", False), ("inputs", None))
_BACKWARD_OF_ALL = (
    ("tensors", ()),
    ("grad_tensors", None),
    ("retain_graph", None),
    ("create_graph", False),
    ("grad_variables", None),
    ("inputs", None),
)
_GRAD = (
    ("outputs", ()),
    ("inputs", ()),
    ("grad_outputs", None),
    ("retain_graph", None),
    ("create_graph", False),
    ("only_inputs", True),
    ("allow_unused", None),
    ("is_grads_batched", False),
    ("materialize_grads", False),
)


def _given(args: Any, kwargs: Any, parameters: Sequence[tuple[str, Any]]) -> list[Any]:
    """The arguments of a call in the order of the parameters."""
    names = [name for name, _ in parameters]
    named = {**dict(parameters), **dict(zip(names, args)), **kwargs}
    return [named[name] for name in names]


def _record_backward(
    recorder: Recorder, op: str, target: Any, args: Any, kwargs: Any, roots: list[Any], create_graph: Any, inputs: Any
) -> None:
    recorder.before_raise(None if recorder.has_callbacks() else RuntimeError)
    reach = reach_of(recorder.to_fake(root) for root in roots)
    with recorder.calling_autograd("backward()"):
        recorder.emit(op, target, args, kwargs)
    if _goes_outside(recorder, reach):
        reach = replace(reach, certain=False)
        recorder.went_outside = True
    wanted = None if inputs is None else {id(recorder.to_fake(tensor)) for tensor in _tensors(inputs)}
    for fake in list(_leaves(recorder)):
        if wanted is not None and id(fake) not in wanted:
            continue
        met = reach.meets(fake)
        if not met and reach.certain:
            continue
        given = met and reach.certain and not requirement_differs(fake) and not _may_be_dropped(recorder, fake)
        before = None if given else _settled(recorder, fake).get()
        may_be_none = not given and (before is None or _may_be_none(before))
        _write(recorder, fake, _gradient_now(recorder, fake, bool(create_graph), may_be_none))


def _may_be_dropped(recorder: Recorder, fake: torch.Tensor) -> bool:
    """Whether a hook of the user's is called when the gradient is there: a step in the backward pass may drop it."""
    real = recorder.fakes.reals.get(id(fake))
    return bool(getattr(real, "_post_accumulate_grad_hooks", None))


def _may_be_none(value: Any) -> bool:
    return info(value).may_be_none


def _grad(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """`torch.autograd.grad`."""
    outputs, inputs, _, _, create_graph, _, allow_unused, batched, materialize = _given(args, kwargs, _GRAD)
    if batched:
        return by_kernels(recorder, func, args, kwargs)
    recorder.before_raise(RuntimeError)
    wanted = [recorder.to_fake(tensor) for tensor in _tensors(inputs)]
    reach = reach_of(recorder.to_fake(output) for output in _tensors(outputs))
    if _goes_outside(recorder, reach):  # to an input's own history, which only the run has
        reach = replace(reach, certain=False)
    exact = _on_fakes(recorder, args, kwargs) if reach.certain and create_graph else None
    with recorder.calling_autograd("torch.autograd.grad"):
        node = recorder.emit("call_function", torch.autograd.grad, args, kwargs)
    results: list[Any] = []
    for index, fake in enumerate(wanted):
        met = reach.meets(fake)
        if not met and reach.certain and allow_unused and not materialize:
            results.append(None)
            continue
        part = recorder.region.graph.call_function(operator.getitem, (node, index))
        part.meta.update(node.meta, bookkeeping=True)
        sparse.require_dense_gradient(recorder, fake)
        if exact is not None and exact[index] is not None:
            results.append(recorder.bind(exact[index], part))
        else:
            unused = bool(allow_unused) and not materialize and not (met and reach.certain)
            results.append(_like(recorder, fake, part, bool(create_graph), unused))
    node.meta["val"] = tuple(map(recorder.to_fake, results))
    return tuple(results)


def _on_fakes(recorder: Recorder, args: Any, kwargs: Any) -> Any:
    """The gradients as autograd itself computes them on fakes: these know what they depend on; None if it cannot."""
    given = dict(zip((name for name, _ in _GRAD), _given(args, kwargs, _GRAD)))
    options = {**given, "retain_graph": True, "allow_unused": True, "materialize_grads": False}
    try:
        fakes = recorder.to_fake(options)
        with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode, HiddenInputs(recorder):
            return torch.autograd.grad(**fakes)
    except RuntimeError:  # what the run will raise too, or something that an arm did in place and that was undone
        return None


def write_require(recorder: Recorder, tensor: torch.Tensor, value: Any) -> None:
    """``tensor.requires_grad = value``; the caller records it."""
    fake = recorder.to_fake(tensor)
    if fake.is_leaf and fake.requires_grad is not bool(value):
        recorder.journal.write(RequirePlace(fake), bool(value))
    else:
        with torch._C.DisableTorchFunction():
            fake.requires_grad_(bool(value))  # which raises what eager raises


def require(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.requires_grad_(value)``."""
    (value,) = _given(args[1:], kwargs, (("requires_grad", True),))
    write_require(recorder, args[0], value)
    return recorder.bind(recorder.to_fake(args[0]), recorder.emit("call_method", "requires_grad_", args, kwargs))


def _retain(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> None:
    """``tensor.retain_grad()``."""
    fake = recorder.to_fake(args[0])
    if not fake.requires_grad:
        recorder.before_raise(RuntimeError)
    recorder.emit("call_method", "retain_grad", args, kwargs)
    if not is_fake(fake) or not fake.requires_grad:
        return
    with torch._C.DisableTorchFunction():
        fake.retain_grad()


HANDLERS: dict[Any, Callable[..., Any]] = {
    _T.backward: _backward,
    _T.retain_grad: _retain,
    torch.autograd.backward: _backward_of_all,
    torch.autograd.grad: _grad,
}
