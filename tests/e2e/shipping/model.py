"""What one shipped model is: how to make it, what to save it for, and what to call the file with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Arguments = tuple[Tensor, ...]


@dataclass(frozen=True)
class Model:
    """One model that is saved in every format.

    Attributes:
        title: what the guide's table calls it.
        make: gives the function or module; its random weights are the same each time.
        example: the arguments it is saved for.
        others: arguments of other lengths and contents that the file is called with.
        input_spec: the sizes that stay open, as `sg.save` takes it.
        refused: by format, the code of the reason why it is not saved.
        from_two: the formats whose file is for sizes from 2 on, and raises ValueError for others.
    """

    title: str
    make: Callable[[], Callable[..., Any]]
    example: Arguments
    others: tuple[Arguments, ...]
    input_spec: Any = None
    refused: Mapping[str, str] = field(default_factory=dict)
    from_two: tuple[str, ...] = ()

    def calls(self, kind: str) -> list[Arguments]:
        """The arguments that a file of a format is called with."""
        given = [self.example, *self.others]
        return [each for each in given if kind not in self.from_two or min(each[0].shape) > 1]

    def build(self) -> Callable[..., Any]:
        """The function or module, with the same weights each time."""
        torch.manual_seed(0)
        return self.make()


def tokens(seed: int, batch: int, length: int, vocabulary: int) -> Tensor:
    """Random token ids, none of the first five, which are special."""
    return torch.randint(5, vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))


def normal(seed: int, *size: int) -> Tensor:
    """Random numbers of the given size."""
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))
