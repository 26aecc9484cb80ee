"""A call of a static function under a transform of `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.runtime.batched import transforms
from stillgraph.runtime.batched.calling import Callee
from stillgraph.runtime.calls.cache import CapturedCall


def call_transformed(
    name: str, static: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call it: the program runs uncompiled, on the tensors of the transforms.

    Args:
        name: of the function.
        static: the static function.
        run: its way to run a program.
        args, kwargs: of the call.
    """

    def uncompiled(call: CapturedCall, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return run(call.uncompiled(), tuple(inputs), args, kwargs)

    return transforms.call_transformed(Callee(name, static.captured, static), args, kwargs, uncompiled)
