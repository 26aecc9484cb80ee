"""What goes into one file: one program, or several under names of their own."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stillgraph.deploy.description.other_sizes import Served
from stillgraph.program.program import Program
from stillgraph.program.sources import Source

Json = Any


@dataclass(frozen=True)
class Entry:
    """A program and the call it was captured from.

    Attributes:
        program: as captured.
        args, kwargs: the example call, a receiver first.
        parameters: of the original, by `binding.encode_parameters`; None where they are not known.
        receiver: 1 if ``args[0]`` is the receiver, which callers of a loaded program leave out.
        notes: what else to say of the file.
        returns_checks: whether the file gives what its assertions found instead of raising.
        time_limit: the seconds that the program, and then the file, may run on the example call; None for no bound.
        served: sizes that the program serves besides the example's, and so the file is to.
        no_leaves: arguments that are written to in place, which PyTorch refuses for leaves that require gradients.
    """

    program: Program
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    parameters: Json = None
    receiver: int = 0
    notes: tuple[str, ...] = ()
    returns_checks: bool = False
    time_limit: float | None = None
    served: tuple[Served, ...] = ()
    no_leaves: tuple[Source, ...] = ()


def check_names(names: Iterable[Any]) -> None:
    """Refuse what cannot be the name of an entry.

    Raises:
        ValueError: there is none, or one is not a Python name, is private, or is a method of every mapping.
    """
    names = list(names)
    if not names:
        raise ValueError("save: there is no entry to save")
    for name in names:
        plain = isinstance(name, str) and name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        if not plain or name.startswith("_"):
            raise ValueError(f"save: an entry's name is a public Python name of ASCII letters, not {name!r}")
        if hasattr(Mapping, name):
            raise ValueError(f"save: an entry cannot be named {name!r}: what `load` gives has a method of this name")
