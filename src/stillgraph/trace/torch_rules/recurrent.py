"""Recurrent layers of sequences whose sizes are open, or packed: their shapes are told by those of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.program.facts.schemas import RECURRENT
from stillgraph.trace.fakes.symbolic import kernels_in_python, known_false, known_true
from stillgraph.trace.torch_rules.packed import batch_of, is_batch_sizes, zeros_from

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


def _recurrent(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``lstm``, ``gru``, …: of packed sequences, of sequences whose sizes are open, of others."""
    if len(args) == 9 and not kwargs and isinstance(args[0], torch.Tensor):
        given = recorder.to_fake(tuple(args))
        if isinstance(given[1], torch.Tensor) and is_batch_sizes(given[1]):
            return _of_packed(recorder, func, args, given)
        if given[0].dim() == 3 and not all(isinstance(size, int) for size in given[0].shape[:2]):
            return _of_open_sizes(recorder, func, args, given)
    return recorder.record(func, args, kwargs)


def _of_packed(recorder: Recorder, func: Any, args: Any, given: Any) -> Any:
    """``(data, batch_sizes, hx, weights, …)``."""
    data, batch_sizes, hidden, *rest = given
    recorder.before_raise(RuntimeError)
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        output, *last = _one_step(func, data, hidden, (*rest, False))
        batch = batch_of(recorder, batch_sizes)
        result = (zeros_from(output, (data.shape[0], output.shape[2])), *_of_batch(last, batch))
    return recorder.bind(result, recorder.emit("call_function", func, args, {}))


def _of_open_sizes(recorder: Recorder, func: Any, args: Any, given: Any) -> Any:
    """``(input, hx, weights, …, batch_first)``."""
    padded, hidden, *rest, batch_first = given
    recorder.before_raise(RuntimeError)  # there must be a step
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        output, *last = _one_step(func, padded, hidden, (*rest, batch_first))
        steps, batch = padded.transpose(0, int(batch_first)).shape[:2]
        whole = zeros_from(output, (steps, batch, output.shape[2])).transpose(0, int(batch_first))
        result = (whole, *_of_batch(last, batch))
    return recorder.bind(result, recorder.emit("call_function", func, args, {}))


def _one_step(func: Any, data: torch.Tensor, hidden: Any, rest: tuple[Any, ...]) -> Any:
    """What a layer gives for one step of one sequence: it has the sizes and the dtype of any other."""
    several, weights = isinstance(hidden, (tuple, list)), rest[0]
    begins = tuple(zeros_from(h, (h.shape[0], 1, h.shape[2])) for h in (hidden if several else (hidden,)))
    width = data.shape[-1] if isinstance(data.shape[-1], int) else weights[0].shape[1]  # torch raises for others
    return func(zeros_from(data, (1, 1, width)), begins if several else begins[0], *rest)


def _of_batch(last: list[torch.Tensor], batch: Any) -> Iterator[torch.Tensor]:
    return (zeros_from(h, (h.shape[0], batch, h.shape[2])) for h in last)


def _cell(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """One step of a layer: torch's kernels take the example's batch for every other, its code in Python does not."""
    if len(args) > 2 and not kwargs and isinstance(args[0], torch.Tensor):
        given = recorder.to_fake(tuple(args))
        first = given[1] if isinstance(given[1], torch.Tensor) else given[1][0]
        if given[0].dim() == first.dim() == 2:
            same = given[0].shape[0] == first.shape[0]
            if not known_true(same) and not known_false(same):
                return _of_two_batches(recorder, func, args, given)
    with kernels_in_python():
        return recorder.record(func, args, kwargs)


def _of_two_batches(recorder: Recorder, func: Any, args: Any, given: Any) -> Any:
    """``(input, hx, weights, …)`` whose batches may differ for all that is known: torch raises then."""
    data, hidden, *rest = given
    recorder.before_raise(RuntimeError)
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        several = isinstance(hidden, (tuple, list))
        begins = tuple(zeros_from(h, (1, h.shape[1])) for h in (hidden if several else (hidden,)))
        ends = func(zeros_from(data, (1, data.shape[1])), begins if several else begins[0], *rest)
        batch = (hidden[0] if several else hidden).shape[0]
        found = tuple(zeros_from(h, (batch, h.shape[1])) for h in (ends if several else (ends,)))
    return recorder.bind(found if several else found[0], recorder.emit("call_function", func, args, {}))


HANDLERS: dict[Any, Callable[..., Any]] = {
    **{getattr(torch, name): _recurrent for name in RECURRENT},
    **{getattr(torch, name): _cell for name in ("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")},
}
