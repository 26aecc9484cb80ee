"""Code of the user's that C code, torch or a library calls back: it sees what eager shows it, and acts in each call."""

from __future__ import annotations

import collections
import contextlib
import copy
import enum
import functools
import heapq
import io
import itertools
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.sampling import few

SEEN: dict[str, Any] = {}


def note(key: str) -> None:
    SEEN[key] = SEEN.get(key, 0) + 1


def number(x: Tensor) -> float:
    return x.sum().item()


@dataclass
class Counted:
    x: Any

    def __post_init__(self) -> None:
        note("made")


def a_dataclass(x: Tensor) -> Any:
    return Counted(x).x + 1


IDS = [itertools.count(1)]


@dataclass
class Numbered:
    x: Any
    id: int = field(default_factory=lambda: next(IDS[0]))


def a_factory(x: Tensor) -> Any:
    return Numbered(x).id


@dataclass
class Lengths:
    hidden: list[Any]

    def __post_init__(self) -> None:
        self.n = len(self.hidden)


def a_length(x: Tensor) -> Any:
    hidden = []
    for i in range(int(x.sum().item())):
        hidden.append(x + i)
    return Lengths(hidden).n


@dataclass
class Converted:
    x: Any

    def __post_init__(self) -> None:
        if isinstance(self.x, float):
            self.x = torch.tensor(self.x)


def a_type(x: Tensor) -> Any:
    return Converted(number(x)).x


class Held:
    def __init__(self, v: Any) -> None:
        self.v = v

    @functools.cached_property
    def kind(self) -> str:
        return "none" if self.v is None else "set"

    def __lt__(self, other: Any) -> bool:
        note("lt")
        return isinstance(self.v, float) and self.v < other.v

    def __radd__(self, other: Any) -> bool:
        note("radd")
        return isinstance(self.v, float)

    def __str__(self) -> str:
        note("str")
        return "f" if isinstance(self.v, float) else "o"

    def __deepcopy__(self, memo: Any) -> Held:
        note("copied")
        return Held(isinstance(self.v, float))


def a_cached_property(x: Tensor) -> Any:
    v = None
    if x.sum() > 2:
        v = x * 2
    return Held(v).kind


def by_tree_map(x: Tensor) -> Any:
    return torch.utils._pytree.tree_map(lambda v: type(v) is Tensor, [x])


@functools.singledispatch
def told_apart(v: Any) -> str:
    return "any"


@told_apart.register
def _(v: float) -> str:
    note("float")
    return "float"


def by_singledispatch(x: Tensor) -> Any:
    return told_apart(number(x))


def by_sorted(x: Tensor) -> Any:
    v = number(x)
    return [each.v for each in sorted([Held(v), Held(2.0), Held(v * 2)])]


def by_sum(x: Tensor) -> Any:
    return sum([Held(number(x))])


def by_texts(x: Tensor) -> Any:
    v = Held(number(x))
    return "%s" % v, "{}".format(v), f"{v}", str(v)  # noqa: UP031, UP032 (these are what is meant)


def by_eval(x: Tensor) -> Any:
    v = number(x)
    return eval("isinstance(v, float)"), v


def by_deepcopy(x: Tensor) -> Any:
    return copy.deepcopy(Held(number(x))).v


def by_a_pattern(x: Tensor) -> Any:
    v = number(x)
    return re.sub("a", lambda m: type(v).__name__, "bab")


@dataclass
class Named:
    name: str


def by_a_written_repr(x: Tensor) -> Any:
    return repr(Named("a" if x.sum() > 2 else "b"))


class Doubling(dict[int, int]):
    def __missing__(self, key: int) -> int:
        note("missing")
        return key * 2


DOUBLING = Doubling()


def by_missing(x: Tensor) -> Any:
    return x * DOUBLING[3]


def by_a_default(x: Tensor) -> Any:
    return x * collections.defaultdict(lambda: note("default") or 3)["a"]


class Colour(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value: object) -> Colour:
        note("enum")
        return cls.RED


def by_an_enum(x: Tensor) -> Any:
    return x * Colour(int(x.sum().item()) + 7).value


class Base:
    k = 0

    def __init_subclass__(cls) -> None:
        note("class")
        cls.k = 3


def by_a_class(x: Tensor) -> Any:
    class Derived(Base):
        pass

    return x * Derived.k


def _layer(hook: Any) -> nn.Module:
    torch.manual_seed(0)
    made = nn.TransformerEncoderLayer(4, 1, 8, dropout=0.0)
    made.linear1.register_forward_hook(hook)
    return made


NOTING = _layer(lambda module, args, output: note("hook"))
PRINTING = _layer(lambda module, args, output: print("mean", round(output.mean().item(), 3)))


def by_a_hook(x: Tensor) -> Any:
    return NOTING(x.sum() * torch.ones(1, 2, 4))


def by_a_hook_that_prints(x: Tensor) -> Any:
    return PRINTING(x.sum() * torch.ones(1, 2, 4))


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        SEEN.setdefault("log", []).append(record.getMessage())


LOG = logging.getLogger(__name__)
LOG.propagate = False
LOG.addHandler(Handler())
LOG.setLevel(logging.INFO)


@dataclass
class Logged:
    x: Any

    def __post_init__(self) -> None:
        LOG.info("made")


def by_a_log(x: Tensor) -> Any:
    return Logged(x).x * 2


def by_apply(x: Tensor) -> Any:
    nn.Sequential(nn.Linear(4, 4)).apply(lambda module: note("apply"))
    return x


def by_a_jacobian(x: Tensor) -> Any:
    return torch.autograd.functional.jacobian(lambda v: (note("jacobian"), v * 2)[1], x)


def by_itertools(x: Tensor) -> Any:
    return (
        [key for key, _ in itertools.groupby([1, 1, 2], key=lambda v: note("group") or v)],
        list(itertools.accumulate([1, 2], lambda a, b: note("accumulate") or a + b)),
        functools.reduce(lambda a, b: note("reduce") or a + b, [1, 2, 3]),
    )


def by_keys(x: Tensor) -> Any:
    return (
        sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: note("compare") or a - b)),
        heapq.nlargest(1, [1, 2], key=lambda v: note("heap") or v),
        max([1, 2], key=lambda v: note("max") or v),
    )


def by_json(x: Tensor) -> Any:
    return json.dumps({"a": Held(1)}, default=lambda o: note("json") or "z"), asdict(Counted(1))


class Inherited(Held):
    @property
    def is_float(self) -> bool:
        note("property")
        return isinstance(self.v, float)


class Inheriting(Inherited):
    @property
    def is_float(self) -> bool:
        return super().is_float


def by_super(x: Tensor) -> Any:
    return Inheriting(number(x)).is_float


FUNCTIONS = [
    *(a_dataclass, a_factory, a_length, a_type, a_cached_property, by_tree_map, by_singledispatch, by_sorted, by_sum),
    *(by_texts, by_eval, by_deepcopy, by_a_pattern, by_a_written_repr, by_missing, by_a_default, by_an_enum),
    *(by_a_class, by_a_hook, by_a_hook_that_prints, by_a_log, by_apply, by_a_jacobian, by_itertools, by_keys, by_json),
    by_super,
]
VALUES = ([1.0, 1.0, 1.0], [1.0, 1.0], [1.0], [2.0, 1.0, 1.0])


def observed(function: Callable[..., Any]) -> list[Any]:
    SEEN.clear()
    IDS[0] = itertools.count(1)
    found = []
    for each in VALUES:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = repr(function(torch.tensor(each)))
        found.append((value, copy.deepcopy(SEEN), printed.getvalue()))
    return found


@pytest.mark.parametrize("function", few(FUNCTIONS, 2), ids=lambda function: function.__name__)
def test_without_a_full_graph(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    assert observed(static) == observed(function)


NOT_SEEN = {by_eval}  # with a full graph, what it asks of a stand-in is answered by that
SEEN_WHOLE = [each for each in FUNCTIONS if each not in NOT_SEEN]


@pytest.mark.parametrize("function", few(SEEN_WHOLE, 2), ids=lambda function: function.__name__)
def test_with_a_full_graph_it_is_refused_or_right(function: Callable[..., Any]) -> None:
    expected = observed(function)
    try:
        found = observed(sg.to_static(function, backend="eager"))
    except sg.CaptureError:
        return
    assert found == expected


@pytest.mark.parametrize("function", [a_dataclass, a_length, a_type])
def test_what_a_dataclass_calls_is_captured(function: Callable[..., Any]) -> None:
    assert observed(sg.to_static(function, backend="eager")) == observed(function)


# ---- what is not the user's, wherever its code has come from
class Pair(NamedTuple):
    left: Any
    right: Any = None


def by_the_environment(x: Tensor) -> Any:
    return x * 3 if os.environ.get("STILLGRAPH_TESTS_FORCE", "0") == "1" else x + len(os.getenv("PATH", ""))


def by_named_tuples(x: Tensor) -> Any:
    pairs = list(itertools.starmap(Pair, [(x, 1), (x * 2, 2)]))
    alone = list(map(Pair, [x, x + 1]))
    return pairs[1].left + alone[1].left, pairs[0]._replace(right=x)


@pytest.mark.parametrize("function", [by_the_environment, by_named_tuples])
def test_what_python_has_written_itself_is_captured(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    assert observed(static) == observed(function)
    assert static.explain().breaks == ()
    assert len(static.explain().subgraphs) == len({len(each) for each in VALUES})


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: (x, re.sub("a", lambda m: "c", "bab")), "a lambda is called back by re.sub"),
        (by_missing, "__missing__ is called back by a function of C's"),
        (by_a_pattern, "it makes an inner function with shared variables that no program can hand on"),
    ],
)
def test_a_reason_says_who_calls_back(function: Callable[..., Any], reason: str) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    static(torch.ones(3))
    assert reason in {each.reason for each in static.explain().breaks}
