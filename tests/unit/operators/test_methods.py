"""Methods that Python calls for operators: what they do is done by each call, in order, with the values of the run."""

from __future__ import annotations

import contextlib
import enum
import functools
import io
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import bytecode  # noqa: F401  # a fixture
from tests.unit.trace.agreement import agree


class Telling:
    """Everything that it is asked for is printed and kept."""

    def __init__(self, factor: Any, kept: list[Any]) -> None:
        self.factor, self.kept, self.count = factor, kept, 0

    def tell(self, what: str) -> None:
        self.count += 1
        self.kept.append((what, self.count))
        print(what, self.count)

    def __add__(self, other: Any) -> Any:
        self.tell("add")
        return self.factor + other

    def __radd__(self, other: Any) -> Any:
        self.tell("radd")
        return other - self.factor

    def __mul__(self, other: Any) -> Any:
        self.tell("mul")
        return NotImplemented

    def __rmul__(self, other: Any) -> Any:
        self.tell("rmul")
        return self.factor * 5

    def __iadd__(self, other: Any) -> Any:
        self.tell("iadd")
        self.factor = self.factor + other
        return self

    def __rsub__(self, other: Any) -> Any:
        self.tell("rsub")
        return other * 2

    def __neg__(self) -> Any:
        self.tell("neg")
        return -self.factor

    def __getitem__(self, key: Any) -> Any:
        self.tell("item")
        return self.factor * 2

    def __iter__(self) -> Any:
        self.tell("iter")
        return iter([self.factor, self.factor * 2])

    def __contains__(self, value: Any) -> bool:
        self.tell("in")
        return True

    def __eq__(self, other: object) -> bool:
        self.tell("eq")
        return True

    def __lt__(self, other: Any) -> bool:
        self.tell("lt")
        return self.count % 2 == 0

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        self.tell("call")
        return x * self.factor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.tell(f"getattr {name}")
        return 7

    def __format__(self, spec: str) -> str:
        self.tell(f"format {spec}")
        return "formatted"

    def __repr__(self) -> str:
        self.tell("repr")
        return "shown"


class Derived(Telling):
    def __radd__(self, other: Any) -> Any:
        self.tell("derived radd")
        return self.factor * 11


class Described:
    def __get__(self, owner: Any, kind: Any) -> Any:
        print("get")
        return owner.__dict__.get("value", 3)

    def __set__(self, owner: Any, value: Any) -> None:
        print("set")
        owner.__dict__["value"] = value


class Owner:
    described = Described()


FOLLOWED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda a, b, x: a + x,
    "reflected": lambda a, b, x: x + a,
    "reflected by a number": lambda a, b, x: 2 - a,
    "the derived class first": lambda a, b, x: a + b,
    "not implemented": lambda a, b, x: 2 * a,
    "negative": lambda a, b, x: -a,
    "item": lambda a, b, x: a[0] + x,
    "in": lambda a, b, x: x + (3 if x in a else 4),
    "not in": lambda a, b, x: x + (3 if x not in a else 4),
    "equal": lambda a, b, x: x + (3 if a == 5 else 4),
    "equal, reflected": lambda a, b, x: x + (3 if 5 == a else 4),  # noqa: SIM300
    "unequal by equal": lambda a, b, x: x + (3 if a != b else 4),
    "less": lambda a, b, x: x + (3 if a < b else 4),
    "greater by less": lambda a, b, x: x + (3 if 5 > a else 4),  # noqa: SIM300
    "call": lambda a, b, x: a(x),
    "missing attribute": lambda a, b, x: x + a.missing,
    "getattr": lambda a, b, x: x + getattr(a, "missing", 1),
    "hasattr": lambda a, b, x: x + (3 if hasattr(a, "missing") else 4),
    "format": lambda a, b, x: (x + 1, f"{a:>3} {a}"),
    "repr": lambda a, b, x: (x + 1, f"{a!r}"),
}


def iterated(a: Any, b: Any, x: Any) -> Any:
    for each in a:
        x = x + each
    return x


def unpacked(a: Any, b: Any, x: Any) -> Any:
    first, second = a
    return first + second + x


def in_place(a: Any, b: Any, x: Any) -> Any:
    a += x
    x += b
    return x + a.factor


def raising(a: Any, b: Any, x: Any) -> Any:
    try:
        return a * 3
    except TypeError as error:
        return x + 1, str(error)


FOLLOWED |= {"loop": iterated, "unpacked": unpacked, "in place": in_place, "a type error": raising}
FOLLOWED |= {"star": lambda a, b, x: [*a][1]}

REFUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sorted": lambda a, b, x: (x + 1, len(sorted([a, b]))),
    "count": lambda a, b, x: x + [a, b].count(4),
    "in a list": lambda a, b, x: x + (1 if 5 in [b] else 2),
    "a template": lambda a, b, x: (x, "{}".format(a)),  # noqa: UP032
}


def _seen(act: Callable[[Any, Any, Any], Any], compiled: Callable[[Any], Any]) -> list[Any]:
    kept: list[Any] = []
    a, b = Telling(torch.ones(3), kept), Derived(torch.full((3,), 2.0), kept)

    def function(x: Any) -> Any:
        value = (x * 2).sum().item()
        print(value)
        made = act(a, b, x)
        kept.append(value)
        return made

    function, found = compiled(function), []
    for number in (1.0, 2.0, 5.0):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            made = function(torch.ones(3) * number)
        found.append((repr(made), printed.getvalue(), list(kept), a.count, b.count))
    return found


def _eager(function: Any) -> Any:
    return function


_FULL = functools.partial(sg.to_static, backend="eager")
_PARTIAL = functools.partial(sg.to_static, full_graph=False, strict=True, backend="eager")


@pytest.mark.parametrize("name", FOLLOWED)
def test_source(name: str) -> None:
    assert _seen(FOLLOWED[name], _FULL) == _seen(FOLLOWED[name], _eager)


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.usefixtures("bytecode")
def test_bytecode(name: str) -> None:
    assert _seen(FOLLOWED[name], _FULL) == _seen(FOLLOWED[name], _eager)


@pytest.mark.parametrize("name", [*FOLLOWED, *REFUSED])
def test_segments(name: str) -> None:
    act = {**FOLLOWED, **REFUSED}[name]
    assert _seen(act, _PARTIAL) == _seen(act, _eager)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_followed_is_refused(name: str) -> None:
    with pytest.raises(sg.CaptureError, match="print is called by code that is not rewritten"):
        _seen(REFUSED[name], _FULL)


@pytest.mark.parametrize("compiled", [_FULL, _PARTIAL])
def test_descriptors(compiled: Callable[[Any], Any]) -> None:
    def run(make: Callable[[Any], Any]) -> Any:
        owner = Owner()

        def function(x: Any) -> Any:
            owner.described = owner.described + x.sum().item()
            return x * owner.described

        called, printed = make(function), io.StringIO()
        with contextlib.redirect_stdout(printed):
            return [repr(called(torch.ones(2))) for _ in range(3)], vars(owner), printed.getvalue()

    assert run(compiled) == run(_eager)


def test_an_object_with_an_end_is_refused() -> None:
    kept: list[Any] = []

    class Ending:
        def __del__(self) -> None:
            kept.append("gone")

    def function(x: Any) -> Any:
        made = Ending()
        del made
        return x + 1

    with pytest.raises(sg.CaptureError, match="a Ending is made: what is done when an object is gone"):
        _FULL(function)(torch.ones(2))
    assert kept == []
    static = _PARTIAL(function)
    for calls in range(1, 4):
        static(torch.ones(2))
        assert len(kept) == calls


@pytest.mark.parametrize("compiled", [_FULL, _PARTIAL])
def test_a_pattern_asks_whether_a_staged_bool_is_true(compiled: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        value = x.sum().item()
        match (value > 10, value):
            case (True, found):
                return x + found
            case (False, found):
                return x - found
        return x

    static = compiled(function)
    for number in (1.0, 20.0, 2.0):
        x = torch.full((2,), number)
        assert torch.equal(static(x), function(x))


class Meta(type):
    """What classes have for operators is not for their instances."""

    def __bool__(cls) -> bool:
        return False

    def __len__(cls) -> int:
        return 3

    def __contains__(cls, value: Any) -> bool:
        return True

    def __iter__(cls) -> Any:
        return iter((1, 2))

    def __iadd__(cls, other: Any) -> Any:
        return 5

    def __setitem__(cls, key: Any, value: Any) -> None:
        pass


class Plain(metaclass=Meta):
    pass


class Color(enum.Enum):
    RED = 1
    NONE = 0


def true(x: Any) -> Any:
    k = Color.RED if x.sum() > 0 else Color.NONE
    whole = k.value if k else -1
    return whole, not Color.NONE, bool(Plain()), bool(Plain), Color.NONE or x, any([Plain(), x.sum() > 0])


def failures(x: Any) -> Any:
    plain: Any = Plain()
    said = []
    for fails in (
        *(lambda: len(Color.RED), lambda: len(plain), lambda: 1 in plain, lambda: list(plain), lambda: sum(plain)),
        *(lambda: operator.iadd(plain, 1), lambda: operator.setitem(plain, 1, 1)),
    ):
        try:
            said.append(fails())
        except TypeError as error:
            said.append(str(error))
    try:
        plain += 1
    except TypeError as error:
        said.append(str(error))
    try:
        plain[1] = 2
    except TypeError as error:
        said.append(str(error))
    return said, len(Color), len(Plain), x


@pytest.mark.parametrize("function", [true, failures])
def test_what_a_metaclass_has_is_for_the_class(function: Callable[..., Any]) -> None:
    agree(function, torch.ones(2), -torch.ones(2))
