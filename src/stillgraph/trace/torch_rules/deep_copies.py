"""``copy.deepcopy`` and ``copy.copy`` of tensors that only the run knows.

A deep copy is a clone without a history, a leaf as the original is. What are copied together share memory as the
originals do: clones do not. So each of them notes with which others it was made, and `passes.state.memory` tells in the
end whether two of the originals may share memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.passes.state.memory import COPIED, Copying
from stillgraph.program.facts.info import info, mark
from stillgraph.program.operations import copied_tensors
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.torch_rules import layouts, sparse
from stillgraph.trace.torch_rules.gradients import read_gradient

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T: Any = torch.Tensor
_IS_LEAF, _REQUIRES_GRAD = _T.is_leaf.__get__, _T.requires_grad.__get__
_HINT = "Copy it with .detach().clone(), or outside the function."


def copying_of(memo: dict[Any, Any]) -> Copying:
    """The deep copy that a memo belongs to."""
    found: Copying = memo.setdefault(Copying, Copying())
    return found


def deep_copied(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.__deepcopy__(memo)``.

    Raises:
        RuntimeError: it is the result of an operation that has a gradient, in torch's words.
        CaptureError: a clone would not be what eager PyTorch makes.
    """
    tensor, memo = args
    if not recorder.__torch_function__(_IS_LEAF, (), (tensor,)):
        _raise_as_torch()
    if id(tensor) in memo:
        return memo[id(tensor)]
    fake = recorder.to_fake(tensor)
    real = recorder.fakes.real_of(tensor)
    _require_plain(recorder, tensor, fake, real)
    _require_apart(copying_of(memo).sources, real)
    copying_of(memo).sources.append(tensor if real is None else real)
    flat = recorder.record(_T.detach, (tensor,), {})
    node = recorder.emit("call_method", "clone", (flat,), {})
    node.meta[COPIED] = copying_of(memo)
    copy = recorder.bind(recorder.run(_T.clone, (flat,), {}), node)
    mark(copy, offset_lost=not _begins_its_memory(fake))
    if fake.requires_grad:
        copy = recorder.__torch_function__(_T.requires_grad_, (), (copy,))
    memo[id(tensor)] = copy
    return copy


def copied_list(recorder: Recorder, column: Any, memo: dict[Any, Any]) -> fx.Node:
    """The node that copies a list of tensors, of a length that only the run knows: as Python does it."""
    copying_of(memo).sources.append(column)
    node = recorder.emit("call_function", copied_tensors, (column,), {})
    node.meta[COPIED] = copying_of(memo)
    return node


def refuse_shared(location: Location | None) -> BaseException:
    """What to raise where two tensors that are copied together may share memory."""
    message = "copy.deepcopy is given two tensors that may share memory, and would have copies that share it"
    hint = "Copy the tensors one by one, with .detach().clone(), or the object outside of the function."
    return refuse("SG301", message, location=location, hint=hint)


def may_share(copying: Copying) -> bool:
    """Whether two tensors of a deep copy may share memory for all that is known before the end of the capture."""
    return len(copying.sources) > 1 and any(
        not isinstance(each, torch.Tensor) or info(each).is_joined for each in copying.sources
    )


def _require_apart(others: list[Any], real: torch.Tensor | None) -> None:
    """Refuse what is from before the call and shares memory with another such: the program does not know."""
    if any(each is real for each in others):
        raise Restart("aliases", None)  # the code has got it twice
    if real is None or real.layout is not torch.strided:
        return
    with torch._C.DisableTorchFunction():
        memory = real.untyped_storage()._cdata
        if any(not is_fake(each) and each.untyped_storage()._cdata == memory for each in others if _is_strided(each)):
            raise refuse_shared(here())


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def shallow(recorder: Recorder, tensor: torch.Tensor) -> Any:
    """``copy.copy(tensor)``: another leaf with the same memory."""
    fake = recorder.to_fake(tensor)
    _require_plain(recorder, tensor, fake, recorder.fakes.real_of(tensor))
    needs_gradient = recorder.__torch_function__(_REQUIRES_GRAD, (), (tensor,))
    copy = recorder.record(_T.detach, (tensor,), {})
    return recorder.__torch_function__(_T.requires_grad_, (), (copy,)) if needs_gradient else copy


def _raise_as_torch() -> None:
    with torch._C.DisableTorchFunction():
        _T.__deepcopy__(torch.ones((), requires_grad=True) * 1, {})


def _require_plain(recorder: Recorder, tensor: Any, fake: Any, real: Any) -> None:
    """Refuse what a clone would differ from: in its class, its memory, its gradient, or its attributes."""
    what = _unlike_a_clone(recorder, tensor, fake, real)
    if what is not None:
        raise refuse("SG301", f"a tensor is copied by the module copy {what}", location=here(), hint=_HINT)


def _unlike_a_clone(recorder: Recorder, tensor: Any, fake: Any, real: Any) -> str | None:
    if not sparse.is_dense(fake) or fake.is_quantized or fake.is_conj() or fake.is_neg():
        return "that is sparse, quantized or a conjugate"
    if real is not None and (type(real) is not _T or vars(real)):
        return "that has a class or attributes of its own"
    if not layouts.varies(recorder, tensor) and not _is_dense(fake):
        return "whose elements do not lie next to each other"
    if fake.requires_grad and read_gradient(recorder, tensor) is not None:
        return "that has a gradient"
    return None


def _is_dense(fake: torch.Tensor) -> bool:
    """Whether the elements of a tensor fill its memory, as far as is known."""
    end: Any = 1
    for stride, size in sorted(zip(fake.stride(), fake.shape, strict=True), key=layouts.by_step):
        if type(size) is int and size == 1:
            continue
        if type(stride) is not int or type(size) is not int:
            return bool(fake.is_contiguous())
        if stride != end:
            return False
        end = stride * size
    return True


def _begins_its_memory(fake: torch.Tensor) -> bool:
    offset = fake.storage_offset()
    return type(offset) is int and offset == 0
