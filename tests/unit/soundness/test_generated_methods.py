"""Changes of what methods read that nobody wrote: those of dataclasses, named tuples and orderings."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.unit.soundness.following import follows, setting


@dataclasses.dataclass
class Plain:
    """Compared by its fields."""

    rate: Any = 1
    name: str = "a"


@dataclasses.dataclass
class Nested:
    """Has another dataclass in a field."""

    inner: Plain = dataclasses.field(default_factory=Plain)


@dataclasses.dataclass(order=True, unsafe_hash=True)
class Ordered:
    """Compared in order, and hashed, by its fields."""

    rate: Any = 1


@functools.total_ordering
class Total:
    """Compared in order by one comparison."""

    def __init__(self, rate: Any = 1) -> None:
        self.rate = rate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Total) and self.rate == other.rate

    def __lt__(self, other: Total) -> bool:
        return bool(self.rate < other.rate)

    __hash__ = None  # type: ignore[assignment]


COMPARED: list[tuple[str, type[Any], Callable[[Any, Any], Any]]] = [
    ("equal", Plain, lambda a, b: a == b),
    ("unequal", Plain, lambda a, b: a != b),
    ("equal-in-a-list", Plain, lambda a, b: [a] == [b]),
    ("in", Plain, lambda a, b: a in (b,)),
    ("index", Plain, lambda a, b: [b].count(a)),
    ("less", Ordered, lambda a, b: a < b),
    ("at-most", Ordered, lambda a, b: a <= b),
    ("sorted", Ordered, lambda a, b: sorted([a, b])[0] is a),
    ("max", Ordered, lambda a, b: max(a, b) is a),
    ("hash", Ordered, lambda a, b: hash(a) == hash(b)),
    ("set", Ordered, lambda a, b: len({a, b}) == 2),
    ("total-at-most", Total, lambda a, b: a <= b),
    ("total-more", Total, lambda a, b: a > b),
    ("total-equal", Total, lambda a, b: a == b),
]


@pytest.mark.parametrize(("kind", "compare"), [each[1:] for each in COMPARED], ids=[each[0] for each in COMPARED])
def test_comparisons(kind: type[Any], compare: Callable[[Any, Any], Any]) -> None:
    left, right = kind(), kind()
    follows(lambda x: x * 2 if compare(left, right) else x, setting(left, rate=7), setting(right, rate=9))


def test_equality_of_nested_dataclasses() -> None:
    left, right = Nested(), Nested()
    follows(lambda x: x * 2 if left == right else x, setting(left.inner, rate=7), setting(right, inner=Plain(7)))


def test_a_field_that_is_left_out_of_the_comparison() -> None:
    @dataclasses.dataclass
    class Labelled:
        rate: int = 1
        label: str = dataclasses.field(default="a", compare=False)

    left, right = Labelled(), Labelled()
    follows(lambda x: x * 2 if left == right else x, setting(left, label="b"), setting(left, rate=3))


READ: list[tuple[str, Callable[[Plain], Any]]] = [
    ("format", lambda a: len(f"{a}")),
    ("repr", lambda a: len(repr(a))),
    ("replace", lambda a: dataclasses.replace(a, name="b").rate),
    ("asdict", lambda a: len(str(dataclasses.asdict(a)["rate"]))),
    ("astuple", lambda a: len(str(dataclasses.astuple(a)))),
    ("fields", lambda a: sum(len(str(getattr(a, each.name))) for each in dataclasses.fields(a))),
]


@pytest.mark.parametrize("read", [each[1] for each in READ], ids=[each[0] for each in READ])
def test_what_is_made_of_a_dataclass(read: Callable[[Plain], Any]) -> None:
    plain = Plain()
    follows(lambda x: x * read(plain), setting(plain, rate=700))


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int


def test_equality_of_named_tuples() -> None:
    class Box:
        pair = Pair(1, 2)
        other = Pair(1, 2)

    follows(lambda x: x * 2 if Box.pair == Box.other else x, setting(Box, pair=Pair(1, 3)))
    follows(lambda x: x * Box.pair._replace(first=4).second, setting(Box, pair=Pair(1, 5)))


GENERATED = """
def __eq__(self, other):
    return self.rate == other.rate * FACTOR

def __lt__(self, other):
    return self.rate < other.rate
"""


@pytest.mark.parametrize("namespace", [{}, {"__name__": "stillgraph_test_generated"}], ids=["nameless", "named"])
def test_methods_from_generated_code(namespace: dict[str, Any]) -> None:
    namespace = {**namespace, "FACTOR": 1}
    exec(GENERATED, namespace)
    kind: Any = type("Generated", (), {name: namespace[name] for name in ("__eq__", "__lt__")})
    left, right = kind(), kind()
    left.rate = right.rate = 1
    follows(
        lambda x: x * 2 if left == right else x,
        setting(left, rate=2),
        lambda: namespace.update(FACTOR=2),
    )
    follows(lambda x: x * 2 if left < right else x, setting(left, rate=-1))


def test_a_counter_and_a_chain_map_compared() -> None:
    left, right = collections.Counter("aab"), collections.Counter("aab")
    follows(lambda x: x * 2 if left == right else x, lambda: left.update("c"))
    follows(lambda x: x * 2 if left <= right else x, lambda: right.update("cc"))
