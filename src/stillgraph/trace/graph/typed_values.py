"""Types of staged values, and fresh staged values of types."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import ListType, NumberType, ObjectType, TensorType, Type
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.torch_rules import layouts, sparse, tensor_classes
from stillgraph.trace.values.lists import StagedList
from stillgraph.trace.values.numbers import kind_of, let_kind_vary, plain
from stillgraph.trace.values.text import StagedText

if TYPE_CHECKING:
    from torch import fx

    from stillgraph.trace.graph.recorder import Recorder


def type_of(recorder: Recorder, value: Any) -> Type:
    """The type of a tensor, number or column of a list."""
    if isinstance(value, StagedList):
        return value.type
    known = info(value)
    optional, mixed = (known.may_be_none, known.may_be_unbound), (known.grad_differs, known.may_be_number)
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            fake = recorder.fakes.of(value) if not is_fake(value) else value
            type_ = TensorType(fake.dtype, fake.device, tuple(fake.shape), fake.requires_grad, *mixed, *optional)
            return replace(type_, layout=sparse.layout_of(fake), classes=tensor_classes.classes_of(value))
    if isinstance(value, StagedText):
        return ObjectType(str, *optional)
    return NumberType(kind_of(value), known.kind_varies, *optional)


def kept_of(recorder: Recorder, value: Any) -> Any:
    """What a graph keeps of a staged value, to say what a node gives."""
    return type_of(recorder, value) if isinstance(value, StagedText) else recorder.to_fake(value)


def define(recorder: Recorder, type_: Type, node: fx.Node) -> Any:
    """The staged value of a type that a node gives."""
    value = recorder.instantiate(type_)
    node.meta["val"] = kept_of(recorder, value)
    recorder.region.define(value, node)
    return value


def fresh(recorder: Recorder, type_: Type) -> Any:
    """A fresh staged value of a type; the caller defines its node."""
    if isinstance(type_, ListType):
        recorder.follow_libraries()
        recorder.has_unset = recorder.has_unset or type_.may_be_unbound
        return StagedList(type_)
    if isinstance(type_, NumberType):
        value = recorder.fresh_number(type_.kind)
        if type_.mixed:
            let_kind_vary(value)
    elif isinstance(type_, ObjectType):
        value = StagedText.fresh(recorder)
    else:
        with recorder.executed.paused():
            shape = tuple(recorder.symbolic.fresh_size() if d is None else plain(d) for d in type_.shape)
            value = recorder.symbolic.empty(
                shape, type_.dtype, type_.device, type_.requires_grad, type_.grad_differs, type_.layout
            )
    if isinstance(type_, TensorType):
        known = {"grad_differs": type_.grad_differs, "may_be_number": type_.may_be_number, "classes": type_.classes}
        mark(value, is_joined=True, **known)
        layouts.let_vary(value)
    if type_.may_be_none or type_.may_be_unbound:
        mark(value, may_be_none=type_.may_be_none, may_be_unbound=type_.may_be_unbound)
        recorder.has_unset = recorder.has_unset or type_.may_be_unbound
    return value
