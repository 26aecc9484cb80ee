"""torch's modes as ``with`` blocks."""

from __future__ import annotations

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.program.context import Context


def modes_text(ambient: Context, then: Context, location: Location | None) -> str:
    """What a ``with`` statement names to get from the modes of the call into others.

    Raises:
        ExportError: they differ in what no ``with`` statement of torch's sets.
    """
    if ambient.switches and then.switches and ambient.switches != then.switches:
        raise refuse("SG402", "Python source does not change torch's settings for the whole process", location=location)
    if then.hooks is not None:
        raise refuse("SG402", "Python source has no hooks for saved tensors", location=location)
    parts: list[str] = []
    if then.inference != ambient.inference:
        parts.append(f"torch.inference_mode({'' if then.inference else 'False'})")
    elif then.grad != ambient.grad:
        parts.append(f"torch.{'enable_grad' if then.grad else 'no_grad'}()")
    before = {autocast.device_type: autocast for autocast in ambient.autocast}
    after = {autocast.device_type: autocast for autocast in then.autocast}
    for device in sorted({*before, *after}):
        wanted = after.get(device)
        if wanted is None:
            parts.append(f'torch.autocast("{device}", enabled=False)')
        elif wanted != before.get(device):
            parts.append(f'torch.autocast("{device}", dtype={wanted.dtype})')
    return ", ".join(parts) or "torch.set_grad_enabled(torch.is_grad_enabled())"
