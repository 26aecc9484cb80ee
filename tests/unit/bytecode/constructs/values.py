"""Operators, assignments, containers, texts and patterns."""
# ruff: noqa  (every way to write Python is what this file is for)

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque, namedtuple
from typing import Any

from tests.unit.bytecode.constructs.case import Cases

CASES = Cases()
COUNT = 3


class Noisy:
    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        print("get", self.name, name)
        return Noisy(f"{self.name}.{name}")

    def __getitem__(self, key: Any) -> Any:
        print("item", self.name, key)
        if isinstance(key, int) and key > 3:
            raise IndexError
        return 7

    def __setitem__(self, key: Any, value: Any) -> None:
        print("set", self.name, key, value)

    def __delitem__(self, key: Any) -> None:
        print("delete", self.name, key)

    def __add__(self, other: Any) -> Any:
        print("add", self.name, other)
        return NotImplemented

    def __lt__(self, other: Any) -> Any:
        print("less", self.name, other)
        return []

    def __eq__(self, other: Any) -> Any:
        return "equal"

    def __contains__(self, other: Any) -> Any:
        print("contains", other)
        return 2

    def __iadd__(self, other: Any) -> Any:
        print("iadd", other)
        return self

    def __rsub__(self, other: Any) -> Any:
        return ("rsub", other)

    def __neg__(self) -> Any:
        return "neg"

    def __format__(self, spec: str) -> str:
        return f"<{self.name}|{spec}>"


class Untrue:
    def __bool__(self) -> Any:
        return 3


class Long:
    def __len__(self) -> int:
        return -1


class Text(str):
    def __str__(self) -> str:
        return Text("text of text")

    def __format__(self, spec: str) -> str:
        return Text("formatted" + spec)


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


@CASES((2, 3), (7.5, -2), (True, 4), ("a", 2), (2, "a"), ([1], [2]), (1, 0), (None, 1), (2, -1), ({1, 2}, {2}))
def arithmetic(a: Any, b: Any) -> Any:
    found = []
    for act in (
        lambda: a + b, lambda: a - b, lambda: a * b, lambda: a / b, lambda: a // b, lambda: a % b, lambda: a**b,
        lambda: a << b, lambda: a >> b, lambda: a & b, lambda: a | b, lambda: a ^ b, lambda: a @ b,
        lambda: +a, lambda: -a, lambda: ~a, lambda: not a,
    ):
        try:
            found.append(act())
        except Exception as error:
            found.append(error)
    return found


@CASES((2, 3), (1.5, 1.5), ("a", "b"), ("a", 1), (None, None), ([1], [1]), (float("nan"), 1.0), ({1}, {1, 2}))
def comparison(a: Any, b: Any) -> Any:
    found = []
    for act in (
        lambda: a < b, lambda: a <= b, lambda: a == b, lambda: a != b, lambda: a > b, lambda: a >= b, lambda: a is b,
        lambda: a is not b, lambda: a in [b], lambda: a not in (b,), lambda: a in b, lambda: 0 < a < b <= 9 != 4,
    ):
        try:
            found.append(act())
        except Exception as error:
            found.append(error)
    return found


@CASES((1, 2), (0, 3), ("", []), (None, 0))
def plus(a: Any, b: Any) -> Any:
    return a + b


@CASES(*[(a, b, c) for a in (0, 1) for b in (0, "b") for c in (None, "c")])
def truths(a: Any, b: Any, c: Any) -> Any:
    d = a and b or c
    e = (a or b) and c
    f = b if a else c if b else a
    if not (a and (b or c)) or (a and not c):
        d = [d]
    return d, e, f, not a, (a and b and c), (a or b or c), a is None or b is not None, (x if (x := b) else x)


@CASES((1, 2, 3), (2, 2, 3), (3, 2, 1))
def chains(a: Any, b: Any, c: Any) -> Any:
    return a < b < c, a <= b >= c, a < b in (b, c), a is a is not b, [a < b < c for _ in range(2)], not a < b < c


@CASES()
def noisy() -> Any:
    n = Noisy("n")
    n["a"] = n.b.c[1:2]
    del n["a", ...]
    n += 4
    found = [n == 1, n != 1, 1 in n, 5 - n, -n, n < 3, f"{n} {n!r:>{1}}"[:3], f"{n:a{n:b}c}"]
    return found, n + 1


@CASES(Untrue(), Long(), [1], "", Noisy("n"))
def truth_of(value: Any) -> Any:
    if value:
        return "true"
    return "false"


@CASES(Untrue(), Long())
def truth_in_and(value: Any) -> Any:
    return value and 1


@CASES([1, 2, 3], (1, 2), [1], [], "abc", 5, None, {"a": 1, "b": 2, "c": 3}, range(3), range(9), iter([1, 2, 3]))
def unpacking(values: Any) -> Any:
    a, b, c = values
    return c, b, a


@CASES([1, 2, 3], [1], [], "abcd", 5, range(2), iter("xy"), Noisy("n"))
def unpacking_star(values: Any) -> Any:
    a, *b, c = values
    return a, b, c


@CASES([1, [2, [3, 4, 5]]], [1, 2], [1, [2, 3]])
def unpacking_nested(values: Any) -> Any:
    a, (b, [*c, d]) = values
    (e) = f = [g, h] = a, b
    (i,) = (d,)
    [] = ()
    return a, b, c, d, e, f, g, h, i


@CASES(([1],), ([],), ([1, 2],), (3,))
def unpacking_one(values: Any) -> Any:
    (a,) = values
    return a


@CASES([3, 1, 2])
def unpacking_order(values: Any) -> Any:
    places = {}
    i, places[i if "i" in locals() else 0], *places["rest"] = values
    i = 0
    i, values[i] = 1, 9
    a = b = c = []
    a.append(1)
    return places, i, values, b is c, c


@CASES((1, 2), (1.5, 2), ("a", 3), ([1], [2]), ([1], 2), ([1], "x"), ({1}, {2}), ((1,), (2,)), (None, 1), (7, 0))
def augmented(a: Any, b: Any) -> Any:
    same = a
    found = []
    for act in range(13):
        try:
            if act == 0: a += b
            elif act == 1: a -= b
            elif act == 2: a *= b
            elif act == 3: a /= b
            elif act == 4: a //= b
            elif act == 5: a %= b
            elif act == 6: a **= b
            elif act == 7: a <<= b
            elif act == 8: a >>= b
            elif act == 9: a &= b
            elif act == 10: a |= b
            elif act == 11: a ^= b
            else: a @= b
        except Exception as error:
            found.append(error)
        found.append((a is same, same))
        a = same
    return found


@CASES(([1, 2],), ({"k": 1, 0: 2},))
def augmented_places(target: Any) -> Any:
    p = Point([1], 2)
    p.x += [2]
    p.y **= 3
    target[0] += 5
    target[(print("once"), 0)[1]] -= 1
    t = ([],)
    try:
        t[0] += [1]
    except TypeError as error:
        return p.x, p.y, target, t, error


@CASES()
def deleting() -> Any:
    a, b, c = 1, [1, 2, 3, 4], {"k": 1}
    p = Point(1, 2)
    del b[1:3], c["k"], p.x
    del (a, p.y)
    try:
        a
    except UnboundLocalError as error:
        return b, c, vars(p), error, error.name if hasattr(error, "name") else None


@CASES()
def deleting_twice() -> Any:
    a = 1
    del a
    del a


@CASES(({},), ([],), (1,))
def deleting_missing(target: Any) -> Any:
    del target["missing"]


@CASES(1)
def deleting_attribute(target: Any) -> Any:
    del target.missing


@CASES((1,), ([],), (None,))
def attribute_missing(target: Any) -> Any:
    return target.missing


@CASES(1, None)
def attribute_set(target: Any) -> Any:
    target.missing = 3


@CASES(1, None)
def method_missing(target: Any) -> Any:
    return target.missing(1, 2)


@CASES(([1, 2], 5), ({}, "k"), (3, 1), ([1], "a"), ({}, []), ("abc", 1.5))
def item(target: Any, key: Any) -> Any:
    return target[key]


@CASES(([1, 2], 5), ({}, "k"), (3, 1), ([1], "a"), ({}, []), ("abc", 1))
def item_set(target: Any, key: Any) -> Any:
    target[key] = "new"
    return target


@CASES(list(range(10)), "abcdefghij", tuple(range(10)))
def slices(v: Any) -> Any:
    a, n = 2, None
    return v[a:], v[:a], v[a:5], v[::a], v[-1:a:-1], v[n:n], v[:], v[a:-a:1], v[slice(a)], slice(a, n)


@CASES(list(range(10)), "abc")
def slices_set(v: Any) -> Any:
    v[1:3] = "abc"
    v[::2] = [0] * len(v[::2])
    v[2:] += [7]
    del v[5:], v[0]
    v[1:2] = 5
    return v


@CASES()
def containers() -> Any:
    a, b = [1, 2], {"x": 1}
    return (
        [*a, 3, *"xy"], (*a, *a), {*a, 2, 3}, {**b, "x": 2, **{"y": 1}}, {"y": 1, **b}, {1: 2, 1: 3, True: 4}, [[]] * 2,
        {1, True, 1.0}, (), [], {}, set(), [1, 2, 3], {"a": 1, "b": a}, (a, (b,)), {1, 2, 3},
    )


@CASES(([],), ({1},), (Noisy("n"),))
def unhashable(key: Any) -> Any:
    try:
        return {key: 1}
    except TypeError as error:
        return error, {1, key}


@CASES(5, None, Noisy("n"), "ab", Point(1, 2))
def spreading(value: Any) -> Any:
    return [1, *value]


@CASES(5, None, "ab")
def spreading_set(value: Any) -> Any:
    return {1, *value}


@CASES(5, None, "ab", [(1, 2)], {"a": 1}, OrderedDict(b=2))
def spreading_dict(value: Any) -> Any:
    return {"a": 0, **value}


def failing() -> Any:
    yield 1
    raise TypeError("of the iterator")


@CASES()
def spreading_failing() -> Any:
    return [*failing()]


@CASES((3, "x"), (2.5, None), (Text("t"), [1]), (-7, "é"))
def texts(a: Any, b: Any) -> Any:
    w = 8
    return (
        f"{a}", f"{b!r}", f"{b!s:>{w}}", f"{b!a:^{w + 2}}|", f"{a}{b}", f"x{a!r}y{{}}", f"{a=}", f"{a=!s:>5}", f"",
        f"{'nested ' + f'{a}'}", "%s and %r" % (a, b), "%(k)s" % {"k": a}, f"{a!s}", "a" "b",
    )


@CASES((3, ">10.2f"), ("s", "d"), (3, "q"), ([], "1"), (2.5, ".1f"))
def formats(a: Any, spec: str) -> Any:
    return f"{a:{spec}}"


@CASES(*[(v,) for v in (
    0, 1, -1, 2.5, "text", b"x", None, True, [], [1], [1, 2], (1, 2, 3), [1, [2, 3], 4], {}, {"a": 1}, {"a": 1, "b": [2]},
    {"k": {"k": None}}, Point(0, 1), Point(2, Point(3, 4)), {1, 2}, range(3), deque([1, 2]), "ab", 3j, (5, 5), [0, 1, 2, 3],
    {"a": 1, 2: 3, "c": 4}, {"op": "add", "args": [1, 2]}, OrderedDict(a=1), bytearray(b"ab"),
)])
def patterns(v: Any) -> Any:
    match v:
        case 0 | -1:
            return "numbers", v
        case True:
            return "True"
        case 1:
            return "one"
        case None:
            return "None"
        case "text" | b"x":
            return "texts"
        case float(x) if x > 2:
            return "float", x
        case complex(real=r, imag=i):
            return "complex", r, i
        case str() as s:
            return "str", s
        case []:
            return "empty"
        case [x]:
            return "single", x
        case [1, y]:
            return "one and", y
        case [a, [b, *c], d]:
            return a, b, c, d
        case (a, b) if a == b:
            return "equal", a
        case [0, *_, last]:
            return "last", last
        case [first, *rest]:
            return first, rest
        case {"op": "add" | "sub" as op, "args": [l, r]}:
            return op, l, r
        case {"a": 1, "b": [x, *_]}:
            return "ab", x
        case {"a": x, **rest}:
            return "a", x, rest
        case {"k": {"k": None}}:
            return "nested"
        case {}:
            return "mapping"
        case Point(x=0, y=y):
            return "on axis", y
        case Point(x, Point(a, b)):
            return x, a, b
        case _:
            return "other", v


class Bad:
    __match_args__ = ["x"]


class BadName:
    __match_args__ = ("x", 3)
    x = 1


class Twice:
    __match_args__ = ("x", "x")
    x = 1


@CASES(Bad(), BadName(), Twice(), Point(1, 2), 3)
def patterns_failing(v: Any) -> Any:
    found = []
    for act in range(6):
        try:
            match act, v:
                case 0, Bad(x): pass
                case 1, BadName(x, y): pass
                case 2, Twice(x, y): pass
                case 3, Point(a, b, c): pass
                case 4, Point(a, x=b): pass
                case 5, int(a, b): pass
        except TypeError as error:
            found.append(error)
    return found


@CASES(({"a": 1},))
def patterns_same_key(v: Any) -> Any:
    class K:
        a = "a"
        b = "a"

    match v:
        case {K.a: x, K.b: y}:
            return x, y


@CASES(3)
def patterns_no_class(v: Any) -> Any:
    kind = 5
    match v:
        case kind():
            return 1


@CASES(3, 4, "z")
def patterns_names(v: Any) -> Any:
    class K:
        three = 3

    match v:
        case K.three:
            return "three"
        case int() | float() as number if number > 1:
            return number
        case other:
            return other, locals().keys() - {"K"}


@CASES([1, 2, 3, 4, 5], [])
def walrus(v: Any) -> Any:
    found = [y for x in v if (y := x * 2) > 4]
    while (n := len(v)) > 3:
        v.pop()
    return found, n, y if found else None, (z := 3), z


@CASES()
def annotations() -> Any:
    a: int = 3
    b: str
    (c): int = 4
    return a, c, sorted(locals())


@CASES(1, 0, [])
def asserting(v: Any) -> Any:
    assert v
    return "fine"


@CASES(1, 0)
def asserting_text(v: Any) -> Any:
    assert v, f"not {v}"
    assert v != 1, ("a", "tuple")


@CASES()
def made_here() -> Any:
    P = namedtuple("P", "x y")
    D = dataclasses.make_dataclass("D", ["a"])
    return P(1, 2), P.__module__, D(3).a, __name__


@CASES()
def constants() -> Any:
    return 1, 2.0, 3j, "s", b"b", None, ..., True, (1, (2, "x")), -1, 10**20, __debug__
