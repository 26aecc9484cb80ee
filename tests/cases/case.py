"""What a conformance case is, and the registry every case puts itself into."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Case:
    """A function or module and what to call it with.

    For every input in turn (the later ones take another branch, another trip count, another type) the static function
    gives what eager PyTorch gives: value, shape, dtype, Python type, exception, output, and the state left behind. One
    program serves all inputs, unless they differ in a Python argument or, where nothing else is said, in shape.
    """

    name: str
    make: Callable[[], Any]  # a fresh function or module
    inputs: Sequence[tuple[Any, ...]]  # one tuple of arguments per call
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    input_dims: Sequence[Sequence[int | None]] | None = None  # per argument, None = symbolic
    shapes_vary: bool = False  # a new shape may need a new program, unless input_dims says otherwise
    rows: bool = False  # the result is a list of a length that only the run knows: ONNX gives a tensor with its rows
    attrs: tuple[str, ...] = ()  # Python attributes of the module to compare after each call
    grad: bool = False  # compare the gradient of the first argument
    pgrad: bool = False  # ... and of the parameters
    toggle_train: bool = False  # the first call in train mode, the others in eval mode
    programs: int | None = None  # how many are fine, where Python state other than numbers changes
    may_give_up: bool = False  # without a full graph, it may be another function in each call, and be left to Python
    capture_refused: str | None = None  # one program is impossible: what the error must say
    export_refused: str | None = None  # runs as one program, but an export must refuse it, saying this

    def target(self) -> Any:
        """A fresh function or module, its parameters the same each time."""
        torch.manual_seed(0)
        return self.make()


_CASES: dict[str, Case] = {}


def case(
    target: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    name: str | None = None,
    fresh: bool = False,
    **options: Any,
) -> None:
    """Declare a case.

    Args:
        target: a function, or a class that is instantiated anew for each use.
        inputs: one tuple of arguments per call.
        name: the case's name, where it is not the target's.
        fresh: `target` is a factory to be called for each use, as for a closure with state.
        options: further fields of `Case`.
    """
    name = name or target.__name__
    if name in _CASES:
        raise ValueError(f"the case {name} is declared twice")
    make = target if fresh or isinstance(target, type) else lambda: target
    _CASES[name] = Case(name, make, inputs, **options)


def all_cases() -> dict[str, Case]:
    """Every case by name; the modules that declare them are imported on the first call."""
    for folder in ("grammar", "algorithms"):
        package = importlib.import_module(f"tests.cases.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return _CASES
