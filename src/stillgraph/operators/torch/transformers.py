"""`torch.nn.TransformerEncoder` without gradients: its fast path, which leaves zeros where a sequence is padded.

torch takes that path by conditions, one of which is that no mode sees torch's functions, as a capture does. So they are
asked here. Whether the padding is at the ends of the sequences only the run knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.dispatch import call
from stillgraph.program.operations import encode_nested
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here

_DEVICES = ("cpu", "cuda", "xpu")


def _encode(
    module: nn.TransformerEncoder,
    src: Any,
    mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool | None = None,
) -> Any:
    """``module.forward(…)``."""
    capture = capturing()

    def plainly() -> Any:
        forward: Any = nn.TransformerEncoder.forward
        forward = capture.conversion.convert(forward) if capture.conversion.is_wanted(forward) else forward
        return forward(module, src, mask, src_key_padding_mask, is_causal)

    if src_key_padding_mask is None or mask is not None or not _is_eligible(capture, module, src):
        return plainly()
    if not all(map(_is_plain, module.layers)):
        message = "an encoder whose layers are not torch's own, or have hooks, would take its fast path"
        hint = "Call torch.backends.mha.set_fastpath_enabled(False)."
        raise refuse("SG304", message, location=here(), hint=hint)
    padding = nn.functional._canonical_mask(src_key_padding_mask, "src_key_padding_mask", None, "mask", src.dtype)
    assert padding is not None
    kept = padding.logical_not()
    if not getattr(module, "mask_check", True):
        return _nested(capture, module, src, kept)
    aligned = capture.emit("call_function", torch._nested_tensor_from_mask_left_aligned, (src, kept), {})
    return select(capture, capture.fresh_result(bool, aligned), lambda: _nested(capture, module, src, kept), plainly)


def _is_eligible(capture: Session, module: nn.TransformerEncoder, src: Tensor) -> bool:
    """Whether eager takes the fast path for a padded batch, as far as the padding does not decide it."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    capture.reads.settings.append((torch.backends.mha.get_fastpath_enabled, (), enabled))
    first: Any = module.layers[0]
    usable = enabled and getattr(module, "use_nested_tensor", False) and not first.training and src.dim() == 3
    if not usable or torch.is_autocast_enabled() or src.device.type not in _DEVICES:
        return False
    return not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in (src, *_weights(first)))


def _is_plain(layer: Any) -> bool:
    """Whether a layer takes its own fast path wherever the first one does."""
    forward = type(layer).forward is nn.TransformerEncoderLayer.forward and "forward" not in vars(layer)
    return forward and not layer.training and not any(m._forward_hooks or m._forward_pre_hooks for m in layer.modules())


def _weights(layer: Any) -> tuple[Tensor, ...]:
    attention = layer.self_attn
    return (
        *(attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias),
        *(layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias),
        *(layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias),
    )


def _options(layer: Any) -> tuple[Any, ...]:
    attention = layer.self_attn
    gelu = layer.activation_relu_or_gelu == 2
    return attention.embed_dim, attention.num_heads, gelu, layer.norm_first, layer.norm1.eps


def _nested(capture: Session, module: nn.TransformerEncoder, src: Tensor, kept: Tensor) -> Any:
    weights, options = [_weights(layer) for layer in module.layers], [_options(layer) for layer in module.layers]
    with torch._C.DisableTorchFunction():
        fake = capture.to_fake(src)
        result = capture.symbolic.empty(tuple(fake.shape), fake.dtype, fake.device, False)
    node = capture.emit("call_function", encode_nested, (src, kept, weights, options), {})
    output = capture.bind(result, node)
    return output if module.norm is None else call(module.norm, output)


def _transform(module: nn.Transformer, *args: Any, **kwargs: Any) -> Any:
    """``nn.Transformer.forward``, in which there is an encoder."""
    return capturing().conversion.convert(nn.Transformer.forward)(module, *args, **kwargs)  # type: ignore[arg-type]  # a function


METHODS: dict[Any, Callable[..., Any]] = {nn.TransformerEncoder.forward: _encode, nn.Transformer.forward: _transform}
"""What methods of torch's layers mean when rewritten code calls them."""
