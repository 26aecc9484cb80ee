"""The modes and settings under which an operation runs: grad, inference, autocast, and torch's global switches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

# In how many modes this thread is; no public way to ask says so in less than the 5 µs that are too much for every call.
function_mode_depth: Callable[[], int] = torch._C._len_torch_function_stack
dispatch_mode_depth: Callable[[], int] = torch._C._len_torch_dispatch_stack


@dataclass(frozen=True)
class Autocast:
    """Autocast as it stands for one device type."""

    device_type: str
    dtype: torch.dtype
    cache_enabled: bool

    def __str__(self) -> str:
        return f"autocast({self.device_type}, {str(self.dtype).removeprefix('torch.')})"


@dataclass(frozen=True)
class Context:
    """Every recorded operation carries the context it was called in; a lowering enters and leaves it.

    Attributes:
        grad, inference, autocast: torch's modes of the thread.
        switches: the values of `SWITCHES`, which belong to the whole process.
        hooks: those for saved tensors that the function itself has put on.
    """

    grad: bool
    inference: bool
    autocast: tuple[Autocast, ...]
    switches: tuple[Any, ...] = field(default=(), repr=False)
    hooks: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        parts = ["inference mode is on" if self.inference else f"grad mode is {'on' if self.grad else 'off'}"]
        return ", ".join(parts + [str(a) for a in self.autocast])

    @property
    def default_dtype(self) -> torch.dtype | None:
        """torch's default dtype, if it is known."""
        return self.switches[0] if self.switches else None


def in_backward(context: Context) -> Context:
    """The modes in which a backward pass computes gradients that nobody differentiates, for a call under some modes."""
    return replace(context, grad=False, autocast=())


@dataclass(frozen=True)
class Switch:
    """A setting of torch's for the whole process, which a function may change on the way."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]


def _matmul_precision() -> str | None:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # it was set for each backend apart, and there is no one answer
        return None


def _set_matmul_precision(value: str | None) -> None:
    if value is not None:
        torch.set_float32_matmul_precision(value)


def _attention_kernels() -> tuple[Any, ...]:
    cuda = torch.backends.cuda
    kinds = (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled())
    return (*kinds, cuda.cudnn_sdp_enabled())


def _set_attention_kernels(value: tuple[Any, ...]) -> None:
    cuda = torch.backends.cuda
    set_each = (cuda.enable_flash_sdp, cuda.enable_mem_efficient_sdp, cuda.enable_math_sdp, cuda.enable_cudnn_sdp)
    for enable, enabled in zip(set_each, value, strict=True):
        enable(enabled)


SWITCHES = (
    Switch("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Switch("float32 matmul precision", _matmul_precision, _set_matmul_precision),
    Switch("deterministic algorithms", torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    Switch(
        "anomaly detection",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda value: torch.set_anomaly_enabled(*value),
    ),
    Switch("the kernels for attention", _attention_kernels, _set_attention_kernels),
)

_AUTOCAST_DEVICES = ("cpu", "cuda")


def current_context() -> Context:
    """Read torch's modes of this thread, and its switches."""
    autocast = [
        Autocast(device, torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled())
        for device in _AUTOCAST_DEVICES
        if torch.is_autocast_enabled(device)
    ]
    switches = tuple([switch.read() for switch in SWITCHES])
    return Context(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), tuple(autocast), switches, _idle_hooks())


def write_switches(values: tuple[Any, ...]) -> None:
    """Set torch's switches to what a context has, where they differ."""
    for switch, value in zip(SWITCHES, values):
        if switch.read() != value:
            switch.write(value)


def restore(context: Context) -> None:
    """Put back what a plain call can have changed: all but inference mode, which needs a block to be left."""
    torch.set_grad_enabled(context.grad)
    write_switches(context.switches)
    enabled = {autocast.device_type: autocast for autocast in context.autocast}
    for device in _AUTOCAST_DEVICES:
        wanted = enabled.get(device)
        if torch.is_autocast_enabled(device) != (wanted is not None):
            torch.set_autocast_enabled(device, wanted is not None)
        if wanted is not None and torch.get_autocast_dtype(device) != wanted.dtype:
            torch.set_autocast_dtype(device, wanted.dtype)


# ---- hooks for saved tensors
class _Idle:
    """Stands for one of the user's hooks during a capture: what is saved there has no data to be packed."""

    def __init__(self, hook: Callable[[Any], Any] | None) -> None:
        self.hook = hook

    def __call__(self, saved: Any) -> Any:
        return saved


class IdleHooks(saved_tensors_hooks):
    """Hooks for saved tensors, there for `current_context` to be seen and for nothing else.

    Args:
        behind: those that operations of the program are to run under; None for those that the call finds there.
    """

    def __init__(self, behind: saved_tensors_hooks | None) -> None:
        pack, unpack = (None, None) if behind is None else (behind.pack_hook, behind.unpack_hook)
        super().__init__(_Idle(pack), _Idle(unpack))


def are_hooks_on() -> bool:
    """Whether tensors saved for the backward pass go through hooks in this thread."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def _idle_hooks() -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    top: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
    if top is None or not isinstance(top[0], _Idle) or top[0].hook is None:
        return None
    return top[0].hook, top[1].hook
