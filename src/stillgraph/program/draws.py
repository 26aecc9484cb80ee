"""What draws from Python's and numpy's random generators, in the run: the callables that `operations.invoke` is given.

A draw is done by the very generator that eager PyTorch would ask, with the very method, so that it is left in the same
state. Only what becomes of the numbers differs: an array becomes a tensor, and in place of the elements of a sequence
the program gets their indices.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

GENERATORS = (random.Random, numpy.random.RandomState, numpy.random.Generator, numpy.random.BitGenerator)
"""The classes of Python's and numpy's random generators, and of what gives these their bits."""

Draw = Callable[..., Any]


@dataclass(frozen=True)
class OfModule:
    """A function of a module's, as ``random.gauss``: a copy of the program draws from the generator of the process."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(sys.modules[self.module], self.name)(*args, **kwargs)


@dataclass(frozen=True)
class OfGenerator:
    """A method of a generator, which is the first argument."""

    name: str

    def __str__(self) -> str:
        return self.name

    def __call__(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(generator, self.name)(*args, **kwargs)


@dataclass(frozen=True)
class AsTensor:
    """A draw of numbers of numpy's, as a tensor of a known dtype; None in ``shape`` is a dimension of any size."""

    draw: Draw
    dtype: torch.dtype
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return str(self.draw)

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        drawn = torch.from_numpy(numpy.asarray(self.draw(*args, **kwargs)))
        fits = len(drawn.shape) == len(self.shape) and all(a in (b, None) for b, a in zip(drawn.shape, self.shape))
        if drawn.dtype != self.dtype or not fits:
            what = f"{drawn.dtype}{list(drawn.shape)}, and not {self.dtype}{list(self.shape)} as in the capture"
            raise TypeError(f"{self} gives {what}")
        return drawn


@dataclass(frozen=True)
class Indices:
    """A draw of elements of a sequence, of which there are ``count``: it gives their indices."""

    draw: Draw

    def __str__(self) -> str:
        return str(self.draw)

    def __call__(self, generator: tuple[Any, ...], count: int, *args: Any, **kwargs: Any) -> Any:
        return self.draw(*generator, range(count), *args, **kwargs)


@dataclass(frozen=True)
class Shuffled:
    """What a method that shuffles does to a list of ``count`` elements: for each place, where its element was."""

    draw: Draw

    def __str__(self) -> str:
        return str(self.draw)

    def __call__(self, generator: tuple[Any, ...], count: int) -> list[int]:
        order = list(range(count))
        self.draw(*generator, order)
        return order
