"""Going through what a module has: entries that are there on some paths only, or that were None."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

UP, DOWN = torch.tensor([1.0, 1.0, 3.0]), torch.tensor([-1.0, -3.0, -1.0])


class Gated(nn.Module):
    """Makes a parameter where its input says so, and goes through those it has."""

    def __init__(self, listing: Callable[[nn.Module], Any]) -> None:
        super().__init__()
        self.gate: nn.Parameter | None = None
        self.weight = nn.Parameter(torch.ones(3) * 2)
        self.listing = listing

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:  # noqa: SIM102 (the outer one alone is the run's)
            if self.gate is None:
                self.gate = nn.Parameter(torch.ones(3))
        return x * self.listing(self)


class Cleared(nn.Module):
    """Drops a buffer where its input says so."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.kept = None
        return x * len(list(self.buffers()))


class Remembering(nn.Module):
    """Keeps a tensor that is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Tensor | None = None
        self.weight = nn.Parameter(torch.ones(3) * 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.last = x * 2
        return x * sum(p.sum() for p in self.parameters())


class Counted(nn.Module):
    """Counts its buffers, of which one may be None."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("late", None)

    def forward(self, x: Tensor) -> Tensor:
        return x * len(list(self.buffers()))


def _parameters(module: nn.Module) -> Any:
    return sum(p.sum() for p in module.parameters())


def _names(module: nn.Module) -> int:
    return len(dict(module.named_parameters()))


def _state(module: nn.Module) -> int:
    return len(module.state_dict())


def _table(module: nn.Module) -> int:
    return len(module._parameters)


def _is_entered(module: nn.Module) -> int:
    return "gate" in module._parameters


def _own(module: nn.Module) -> int:
    return len(vars(module)["_parameters"])


def _dictionary(module: nn.Module) -> int:
    return len(module.__dict__["_parameters"])


LISTINGS = [_parameters, _names, _state, _table, _is_entered, _own, _dictionary]
MAKERS = [*(functools.partial(Gated, listing) for listing in LISTINGS), Cleared]
IDS = [*(listing.__name__.strip("_") for listing in LISTINGS), "buffers"]


@pytest.mark.parametrize("make", MAKERS, ids=IDS)
def test_entries_of_some_paths_are_refused_with_a_full_graph(make: Callable[[], nn.Module]) -> None:
    with pytest.raises(sg.CaptureError, match="only the run knows whether it has") as caught:
        sg.to_static(make(), backend="eager")(UP)
    assert caught.value.reason.code == "SG305"


@pytest.mark.parametrize("order", [(UP, DOWN), (DOWN, UP, DOWN)], ids=["up", "down"])
@pytest.mark.parametrize("make", MAKERS, ids=IDS)
def test_they_are_left_to_python_in_segments(make: Callable[[], nn.Module], order: tuple[Tensor, ...]) -> None:
    module, eager = make(), make()
    found = sg.to_static(module, full_graph=False, strict=True, backend="eager")
    for x in order:
        torch.testing.assert_close(found(x), eager(x))
        assert module.state_dict().keys() == eager.state_dict().keys()


@pytest.mark.parametrize("options", [{}, {"full_graph": False, "strict": True}], ids=["full", "segments"])
def test_what_is_no_parameter_is_no_entry(options: dict[str, Any]) -> None:
    found, eager = sg.to_static(Remembering(), backend="eager", **options), Remembering()
    for x in (UP, DOWN, UP):
        torch.testing.assert_close(found(x), eager(x))


@pytest.mark.parametrize("options", [{}, {"full_graph": False, "strict": True}], ids=["full", "segments"])
def test_an_entry_that_was_none_is_looked_at(options: dict[str, Any]) -> None:
    module = Counted()
    found = sg.to_static(module, backend="eager", **options)
    for late in (None, torch.ones(2), None):
        module.late = late
        torch.testing.assert_close(found(UP), UP * (late is not None))


class Replacing(nn.Module):
    """Has a parameter that a path replaces by one that it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.gate = nn.Parameter(x * 2)
        return (x * self.gate).sum()


@pytest.mark.parametrize("options", [{}, {"full_graph": False, "strict": True}], ids=["full", "segments"])
def test_a_parameter_may_be_replaced_on_a_path(options: dict[str, Any]) -> None:
    module, eager = Replacing(), Replacing()
    found = sg.to_static(module, backend="eager", **options)
    for x in (DOWN, UP, DOWN, UP * 2):
        torch.testing.assert_close(found(x), eager(x))
        assert type(module.gate) is nn.Parameter
        assert list(module._parameters) == list(eager._parameters)
        torch.testing.assert_close(module.gate, eager.gate)
