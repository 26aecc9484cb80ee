"""Functions over the values of `kinds`, as files that tests write."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from types import FunctionType

from tests.importing import loaded
from tests.property.kinds import KINDS

_HEAD = """
import collections, copy, dataclasses, enum, fractions, functools, heapq, itertools, json, math, operator, string, types
import numpy as np
import torch

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

class Access(enum.IntFlag):
    READ = 1
    WRITE = 2

class Whole(int):
    pass

class Real(float):
    pass

class Scaling(int):
    def __radd__(self, other):
        return int.__radd__(self, other) * 10
    def __rmul__(self, other):
        return super().__rmul__(other) + 1
    def __eq__(self, other):
        return int.__eq__(self, other) is False
    def __hash__(self):
        return 5

scaling = Scaling(2)
linear, relu = torch.nn.Linear(2, 2), torch.nn.ReLU()
torch.nn.init.ones_(linear.weight)
torch.nn.init.zeros_(linear.bias)

class Bag:
    def __repr__(self):
        return f"Bag({sorted(vars(self))})"

class Flag(enum.Flag):
    A = 1
    B = 2

@dataclasses.dataclass
class Point:
    a: object
    b: object = 2

@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: object
    b: object = 2

class Index:
    def __init__(self, value):
        self.value = value
        self.asked = 0
    def __index__(self):
        self.asked += 1
        return self.value

Pair = collections.namedtuple("Pair", "a b")

def counting(x):
    for row in x:
        yield row + 1

def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1

def scaled(x, by=1, *, plus=0):
    return x * by + plus

def doubled(y):
    return y * 2

def tripled(y):
    return y * 3

def kept(*args, **kwargs):
    return args, kwargs

def function(x):
    v, n, p = x.sum().item(), int(x.sum().abs()), x.sum() > 0
"""
_TAIL = """
    except Exception as error:
        found = type(error).__name__, str(error)
    return found
"""


def written(folder: Path, kind: str, asked: str) -> FunctionType:
    """The function that asks something of the values of a kind, and returns the answer or what was raised."""
    statements, _, expression = asked.rpartition(";;")
    body = f"{statements.rstrip()}\nfound = {expression.strip()}".strip()
    return written_of(folder, "\n".join(_needed(KINDS[kind][0], body)), body)


def written_of(folder: Path, made: str, body: str) -> FunctionType:
    """The function that makes values, carries out a body in a `try`, and returns its ``found``, or what was raised."""
    path = folder / "written.py"
    path.write_text(_HEAD + textwrap.indent(made, " " * 4) + "\n    try:\n" + textwrap.indent(body, " " * 8) + _TAIL)
    function: FunctionType = loaded(path).function
    return function


def _needed(makings: tuple[tuple[str, str], ...], body: str) -> list[str]:
    """The statements that make what a function's body names, and what those need: others might be refused."""
    needed: list[str] = []
    for name, statement in reversed(makings):
        if re.search(rf"\b{name}\b", "\n".join([*needed, body])):
            needed.insert(0, statement)
    return needed
