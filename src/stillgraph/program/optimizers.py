"""What a program calls of optimizers that it makes itself, and of schedulers."""

from __future__ import annotations

from typing import Any

import torch


def stepped(optimizer: torch.optim.Optimizer, options: list[dict[str, Any]]) -> None:
    """``optimizer.step()``, with these options of its groups: the function may have set them since."""
    for group, given in zip(optimizer.param_groups, options, strict=True):
        group.update(given)
    optimizer.step()


def zeroed(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
    """``optimizer.zero_grad()``."""
    optimizer.zero_grad(*args, **kwargs)


def learning_rate(rates: Any, index: int) -> float:
    """One of the learning rates that a scheduler's ``get_last_lr`` gives.

    Raises:
        TypeError: it is no float any more, as all were when the program was captured.
    """
    rate = rates()[index]
    if type(rate) is not float:
        raise TypeError(f"a scheduler has set a learning rate to a {type(rate).__name__}, after floats")
    return rate
