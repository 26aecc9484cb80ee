"""What is known of a value that stands for one of the run, beside what a tensor or number tells of itself.

It lies on the stand-in: `mark` puts it there, `info` reads it, `like` copies what depends on the path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

_NAME = "stillgraph_info"


@dataclass(frozen=True)
class Info:
    """What is known of a value.

    Attributes:
        may_be_none: whether the place that it stands for holds None on some path.
        may_be_unbound: whether the variable that it stands for has no value on some path.
        may_be_number: whether a tensor is a Python number on some path.
        kind_varies: whether a number is of another class on some path.
        grad_differs: whether a tensor requires a gradient on some path only.
        grad_set: whether the program sets the ``.grad`` of a tensor.
        is_joined: whether a tensor is what a branch or loop leaves; it may be a tensor from before that.
        may_share: whether a sparse tensor may be another one, too.
        layout_varies: whether a tensor's memory depends on the path.
        offset_lost: whether nobody knows where a tensor begins in its memory.
        is_hidden: whether it is what autograd finds behind a tensor of which nobody knows where it is from.
        classes: of what a branch or loop leaves: which of torch's own classes it is, on one path or another.
        parameters: of what paths leave that may be a parameter of a module: what each of two has.
        batch: of the batch sizes of packed sequences: how many sequences there are.
    """

    may_be_none: bool = False
    may_be_unbound: bool = False
    may_be_number: bool = False
    kind_varies: bool = False
    grad_differs: bool = False
    grad_set: bool = False
    is_joined: bool = False
    may_share: bool = False
    layout_varies: bool = False
    offset_lost: bool = False
    is_hidden: bool = False
    classes: frozenset[type] = frozenset()
    parameters: tuple[Any, ...] = ()
    batch: Any = None

    @property
    def may_be_missing(self) -> bool:
        """Whether the place holds None or nothing on some path."""
        return self.may_be_none or self.may_be_unbound


_NOTHING = Info()
_OF_PATHS = ("may_be_none", "may_be_unbound", "may_be_number", "kind_varies", "grad_differs")


def info(value: Any) -> Info:
    """What is known of a value."""
    found = getattr(value, _NAME, _NOTHING)
    return found if isinstance(found, Info) else _NOTHING


def mark(value: Any, **known: Any) -> None:
    """Add to what is known of a value: attributes of `Info`."""
    setattr(value, _NAME, replace(info(value), **known))


def like(value: Any, other: Any) -> None:
    """Let a value be on each path of the kind that another one is of there: None, a number, with a gradient or not."""
    known = info(other)
    mark(value, **{name: getattr(known, name) for name in _OF_PATHS})
