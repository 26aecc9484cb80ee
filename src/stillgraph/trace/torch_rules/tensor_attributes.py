"""Attributes of tensors, read and set: metadata as it is, sizes as staged numbers, views recorded."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.facts.info import info
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.torch_rules import layouts, sparse, tensor_queries
from stillgraph.trace.torch_rules.autograd_graph import requirement_differs
from stillgraph.trace.torch_rules.call_results import has_staged
from stillgraph.trace.torch_rules.fake_execution import takes_no_such_size, wants_plain_sizes
from stillgraph.trace.torch_rules.gradients import read_gradient, write_gradient, write_require
from stillgraph.trace.values.numbers import is_number, kind_of

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


# ---- attributes of tensors
PLAIN_ATTRIBUTES = frozenset(
    {
        "dtype",
        "device",
        "layout",
        "ndim",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "names",
        "is_cuda",
        "is_cpu",
        "is_meta",
        "is_sparse",
        "is_quantized",
        "is_mkldnn",
        "is_nested",
        "is_xpu",
        "is_mps",
        "is_sparse_csr",
        "is_vulkan",
        "is_ipu",
        "is_xla",
        "is_hpu",
        "is_mtia",
        "is_maia",
        "itemsize",
        "output_nr",
        "_version",
        "_backward_hooks",
        "name",
        "_cdata",
        "is_inference",
        "retains_grad",
        "volatile",
        "_post_accumulate_grad_hooks",
        "grad_dtype",
    }
)


def read_attribute(recorder: Recorder, func: Any, tensor: Any) -> Any:
    """``tensor.name``: metadata as it is, sizes as staged numbers, views (``T``, ``mT``, ``data``, …) recorded."""
    name = func.__self__.__name__
    fake = recorder.to_fake(tensor)
    if name in ("requires_grad", "is_leaf", "grad_fn") and requirement_differs(fake):
        raise refuse("SG301", f"{name} differs from path to path here", location=here())
    if name in ("is_leaf", "grad_fn") and info(fake).is_joined and fake.requires_grad:
        raise refuse("SG301", f"{name} is asked of what a branch or loop leaves", location=here())  # it may be a leaf
    if name == "shape":
        return read_shape(recorder, tensor, fake)
    if name == "nbytes" and sparse.is_dense(fake):
        return functools.reduce(operator.mul, read_shape(recorder, tensor, fake), fake.element_size())
    if name in ("grad", "_grad"):
        gradient = read_gradient(recorder, tensor)
        if is_fake(gradient) and recorder.fakes.real_of(gradient) is None:
            sparse.require_dense_gradient(recorder, fake)
        return gradient
    if name in tensor_queries.ATTRIBUTES:
        result = tensor_queries.ask(recorder, name, tensor, func)
    else:
        result = _read_of_fake(recorder, func, fake)
    if name in PLAIN_ATTRIBUTES or not has_staged(result):
        return result
    if name == "_base":
        raise refuse("SG301", f"{name} of a tensor is read during capture", location=here())
    return recorder.bind(result, recorder.emit("call_function", getattr, (tensor, name), {}))


def _read_of_fake(recorder: Recorder, func: Any, fake: Any) -> Any:
    try:
        with recorder.symbolic.fake_mode:
            return func(fake)
    except RuntimeError as error:
        if wants_plain_sizes(error):
            raise takes_no_such_size(func) from error
        raise


def read_shape(recorder: Recorder, tensor: Any, fake: Any) -> torch.Size:
    """``tensor.shape``; each dimension that is not known becomes a staged number."""
    with torch._C.DisableTorchFunction():
        shape = fake.shape
    recorder.watch.size_read(recorder.locator.here(), shape)
    if all(type(d) is int for d in shape):
        return shape  # type: ignore[no-any-return]  # of Any
    return torch.Size([d if type(d) is int else size_of(recorder, tensor, d, i) for i, d in enumerate(shape)])


def size_of(recorder: Recorder, tensor: Any, size: torch.SymInt, dim: int) -> Any:
    """``tensor.size(dim)`` where that is a symbol."""
    if size.node.is_constant():
        return size.node.maybe_as_int()
    node = recorder.emit("call_method", "size", (tensor, dim), {})
    node.meta["bookkeeping"] = True
    return recorder.number(size, node)


def set_attribute(recorder: Recorder, func: Any, args: Any) -> None:
    """``tensor.data = …``, ``tensor.requires_grad = …``: done to the fake, and recorded."""
    name = func.__self__.__name__
    if name in ("grad", "_grad"):
        write_gradient(recorder, args[0], args[1])
        return
    if name == "requires_grad":
        if not is_number(args[1]) or kind_of(args[1]) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        write_require(recorder, args[0], args[1])
        recorder.emit("call_function", setattr, (args[0], name, args[1]), {})
        return
    if name == "data" and args[1] is args[0]:
        return  # as ``module.to`` does where nothing is to be converted
    if recorder.region.parent is not None:
        raise refuse("SG305", f"{name} of a tensor is set in a staged branch or loop", location=here())
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        func(*recorder.to_fake(args))
    node = recorder.emit("call_function", setattr, (args[0], name, args[1]), {})
    layouts.hand_on(node, recorder.to_fake(args[0]))
