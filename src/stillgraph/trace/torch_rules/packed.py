"""Packed sequences: what packs and pads them gives, whose sizes are in the contents of ``batch_sizes``.

The first of the batch sizes is the size of the whole batch. Where the sequences are packed inside the function the
capture knows it; a fake ``batch_sizes`` remembers it (`info`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.program.facts.info import info, mark

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_VF = torch._C._VariableFunctions


def _pack(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``_pack_padded_sequence(input, lengths, batch_first)``."""
    recorder.before_raise(RuntimeError)
    padded, lengths = recorder.to_fake(args[0]), recorder.to_fake(args[1])
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        data = zeros_from(padded, (recorder.symbolic.fresh_size(), *padded.shape[2:]))
        batch_sizes: Any = torch.empty((recorder.symbolic.fresh_size(),), dtype=torch.int64)
    mark(batch_sizes, batch=lengths.shape[0])
    return recorder.bind((data, batch_sizes), recorder.emit("call_function", func, args, kwargs))


def _pad(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``_pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length)``."""
    recorder.before_raise(RuntimeError)
    data, batch_sizes, batch_first, _, length = recorder.to_fake(args)
    batch = batch_of(recorder, batch_sizes)
    sizes = (batch, length) if batch_first else (length, batch)
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        padded = zeros_from(data, (*sizes, *data.shape[1:]))
        lengths = torch.empty((batch,), dtype=torch.int64)
    return recorder.bind((padded, lengths), recorder.emit("call_function", func, args, kwargs))


def zeros_from(fake: torch.Tensor, shape: tuple[Any, ...]) -> torch.Tensor:
    """A tensor of a shape that autograd computes from ``fake``."""
    made = fake.new_zeros(shape)
    return made + fake.sum() * 0 if fake.is_floating_point() or fake.is_complex() else made


def is_batch_sizes(fake: torch.Tensor) -> bool:
    """Whether a second argument is the batch sizes; of sequences that are not packed it is the first hidden state."""
    return fake.dtype == torch.int64 and fake.dim() == 1


def batch_of(recorder: Recorder, batch_sizes: Any) -> Any:
    """How many sequences were packed."""
    known = info(batch_sizes).batch
    if known is None:
        known = recorder.symbolic.fresh_size()
        mark(batch_sizes, batch=known)
    return known


HANDLERS: dict[Any, Callable[..., Any]] = {
    _VF._pack_padded_sequence: _pack,
    _VF._pad_packed_sequence: _pad,
}
