"""Stories: whole uses of a module or function, told once with the original and once with the static one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.trace.fakes.symbolic import is_fake
from tests.cases.compare import assert_same, tensors_in

Static = Callable[[Any], Any]  # makes a module or function static, or leaves it as it is
X = torch.tensor([1.0, 2.0, 3.0])
XS = [X * factor for factor in (1, -1, 2, -2, 3)]
BATCH = torch.arange(12.0).reshape(4, 3) / 7 - 0.5


def story(programs: int) -> Callable[[Callable[[Static], Any]], Callable[[], None]]:
    """A test that a story goes the same way with static functions, in so many programs at most.

    A story takes ``static``, which makes a module or function static; it returns all that is to be compared. What else
    it takes are parameters of the test.
    """

    def test_of(tell: Callable[..., Any]) -> Callable[..., None]:
        def test(**given: Any) -> None:
            made: list[Any] = []

            def static(target: Any) -> Any:
                made.append(sg.to_static(target, backend="eager"))
                return made[-1]

            torch.manual_seed(0)
            expected = tell(lambda target: target, **given)
            torch.manual_seed(0)
            actual = tell(static, **given)
            assert not any(is_fake(tensor) for tensor in tensors_in(actual))
            assert_same(expected, actual)
            held = [each.forward if isinstance(each, nn.Module) else each for each in made]
            captured = sum(each.cache_info().programs for each in held)
            assert min(programs, 1) <= captured <= programs  # what is never captured runs as plain PyTorch

        test.__doc__ = tell.__doc__
        parameters = [each for name, each in inspect.signature(tell).parameters.items() if name != "static"]
        test.__signature__ = inspect.Signature(parameters)
        return test

    return test_of


def state(module: nn.Module) -> dict[str, Any]:
    """All that a module keeps: attributes, tensors, which of them are what, gradients."""
    return {
        "attributes": {k: v for k, v in vars(module).items() if not k.startswith("_") and k != "forward"},
        "state_dict": dict(module.state_dict()),
        "parameters": [(n, p.detach().clone(), p.requires_grad, p.grad) for n, p in module.named_parameters()],
        "modules": [(name, type(each).__name__, each.training) for name, each in module.named_modules()],
        "buffers": dict(module.named_buffers()),
    }


def train(module: nn.Module, steps: int = 3, x: Tensor = BATCH) -> list[Any]:
    """A few steps of SGD: each loss, and every gradient."""
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    told: list[Any] = []
    for _ in range(steps):
        loss = module(x).sum()
        loss.backward()
        told += [loss.detach().clone(), [None if p.grad is None else p.grad.clone() for p in module.parameters()]]
        optimizer.step()
        optimizer.zero_grad()
    return told


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, or the exception that it raises; a refusal is no answer."""
    try:
        return function(*args)
    except sg.CaptureError:
        raise
    except Exception as error:
        return type(error).__name__, str(error)


class Two(nn.Module):
    """Two layers, and a keyword argument."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x: Tensor, *, k: float = 1.0) -> Tensor:
        return self.b(self.a(x).relu()) * k
