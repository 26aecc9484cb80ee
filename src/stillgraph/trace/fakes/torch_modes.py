"""The modes of torch's that anyone can write: what they do with a call of torch's, no program tells.

A dispatch mode sees the kernels that a call runs. In a capture these run on fake tensors, below the recorder: the mode
would do its work once, and on those.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import MethodType
from typing import Any

from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._python_dispatch import _pop_mode as _pop_dispatch_mode

from stillgraph.core.diagnostics import refuse
from stillgraph.program.context import dispatch_mode_depth, function_mode_depth
from stillgraph.trace.code.frames import here

_METHODS = (
    TorchFunctionMode.__enter__,
    TorchFunctionMode.__exit__,
    TorchDispatchMode.__enter__,
    TorchDispatchMode.__exit__,
)


def in_function_mode() -> bool:
    """Whether this thread is in a function mode that is not just a default device."""
    if not function_mode_depth():
        return False
    return any(not isinstance(mode, DeviceContext) for mode in _get_current_function_mode_stack())


def dispatch_modes() -> list[TorchDispatchMode]:
    """The dispatch modes that this thread is in, but those that torch's own tracing is made of."""
    if not dispatch_mode_depth():
        return []
    return [mode for mode in _get_current_dispatch_mode_stack() if not mode.is_infra_mode()]


def enters_or_leaves(function: Any) -> bool:
    """Whether a function is the method of such a mode that enters it or leaves it."""
    return isinstance(function, MethodType) and function.__func__ in _METHODS


@contextlib.contextmanager
def all_left() -> Iterator[None]:
    """A body that leaves the modes which it has entered by hand, at the latest where it is left itself."""
    functions, dispatches = function_mode_depth(), dispatch_mode_depth()
    try:
        yield
    finally:
        while function_mode_depth() > functions:
            _pop_mode()
        while dispatch_mode_depth() > dispatches:
            _pop_dispatch_mode()


def require_no_more(entered: int) -> None:
    """Require that this thread is in no more dispatch modes than it was in when the call began.

    Args:
        entered: how many these were.

    Raises:
        Refusal: it is in more of them.
    """
    modes = dispatch_modes()
    if len(modes) > entered:
        message = f"a dispatch mode ({type(modes[-1]).__name__}) is entered inside the function"
        hint = "Enter it around the call of the static function: it then sees the kernels that the program runs."
        raise refuse("SG304", message, location=here(), hint=hint)
