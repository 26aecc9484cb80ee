"""What the tests of compiled guards share: classes to look at, and the check itself."""

from __future__ import annotations

import enum
import math
from typing import Any

import torch
from hypothesis import strategies as st

from stillgraph.program.guards import Guard
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.guards.explaining import explain_miss


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def holds(guards: list[Guard], *args: Any, **kwargs: Any) -> bool:
    """Whether the compiled guards hold, now and at a second check; the explanation must agree."""
    check = compile_guards((), guards)
    answers = {check(args, kwargs) is not None for _ in range(2)}
    answers.add(explain_miss(guards, args, kwargs) is None)
    assert len(answers) == 1, explain_miss(guards, args, kwargs)
    return answers.pop()


class Slotted:
    __slots__ = ()


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0, math.nan]), st.sampled_from("ab")
)


BASE = torch.zeros(3, 4)
