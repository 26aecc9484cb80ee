"""Loops and comprehensions."""
# ruff: noqa  (every way to write Python is what this file is for)

from __future__ import annotations

from typing import Any

from tests.unit.bytecode.constructs.case import Cases

CASES = Cases()


@CASES((0,), (3,), (7,), (12,))
def while_else(n: int) -> Any:
    found = []
    while n > 0:
        n -= 1
        if n == 5:
            continue
        if n == 9:
            break
        found.append(n)
    else:
        found.append("else")
    return found, n


@CASES([], [1, 2, 3], [1, 0, 2], [5, 9, 1], "ab", 5, None)
def for_else(values: Any) -> Any:
    found = []
    for i, x in enumerate(values):
        if x == 0:
            continue
        if x == 9:
            break
        found.append((i, x))
    else:
        found.append("else")
    return found, x if found[1:] else None


@CASES((2, 2), (3, 5), (6, 6), (0, 1), (4, 3))
def nested(n: int, m: int) -> Any:
    found = []
    for i in range(n):
        j = 0
        while True:
            j += 1
            if j > m:
                break
            if (i + j) % 3 == 0:
                continue
            for k in range(j):
                if k == i:
                    break
                found.append((i, j, k))
            else:
                if i == 4:
                    return found, "from within"
                continue
            found.append("broke")
        else:
            found.append("never")
        if i == 5:
            break
    else:
        found.append("else")
    return found, i if n else "no i"


@CASES([3, 4], [], [[1, 2], [3, 4]], [[1]])
def for_targets(values: Any) -> Any:
    where: dict[Any, Any] = {}
    for where["a"], *where["b"] in [values]:
        pass
    return where


class Failing:
    def __init__(self, at: int) -> None:
        self.at = at

    def __iter__(self) -> Any:
        if self.at == 0:
            raise ValueError("no iterator")
        return self

    def __next__(self) -> Any:
        self.at -= 1
        if self.at == 1:
            raise ValueError("no next")
        if self.at > 5:
            return self.at
        raise StopIteration("end")


class NotIterating:
    def __iter__(self) -> Any:
        return 3


class Indexed:
    def __getitem__(self, i: int) -> int:
        if i > 3:
            raise IndexError
        return i * 10


@CASES(*[(Failing(n),) for n in (0, 2, 8)], NotIterating(), Indexed())
def iterating(values: Any) -> Any:
    found = []
    for x in values:
        found.append(x)
    return found


@CASES([1, 2, 3, 4, 5, 6])
def comprehensions(values: Any) -> Any:
    n = 2
    return (
        [x * n for x in values if x % 2 if x > 1],
        {x % 3 for x in values},
        {x: y for x in values if x > n for y in range(x)},
        [(x, y) for x in values for y in values if x < y if y - x == n],
        [[y for y in range(x)] for x in range(3)],
        list(x + n for x in values),
        sum(x for x in values if x != n),
        [lambda: x for x in range(3)][0](),
        [f() for f in [lambda i=i: i * n for i in range(3)]],
        [x for x, in [(1,), (2,)]],
        [a + b for a, (b, *_) in [(1, (2, 3)), (4, (5,))]],
        {**{k: v for k, v in zip("ab", values)}},
        [x if x > 3 else -x for x in values],
        any(x > 5 for x in values), all(x for x in values),
    )


@CASES(0, [1, 0, 2], ["a"], None)
def comprehension_failing(values: Any) -> Any:
    x = "outer"
    try:
        found = [1 // x for x in values]
    except ZeroDivisionError as error:
        return x, error
    return x, found


@CASES([1, 0])
def generator_failing(values: Any) -> Any:
    return list(1 // x for x in values)


@CASES(None)
def generator_not_iterable(values: Any) -> Any:
    return (x for x in values)


@CASES()
def comprehension_scopes() -> Any:
    x = 5
    found = [x for x in range(3)]
    y = [z for _ in "ab" if (z := x)]
    later = [lambda: (x, k) for k in range(2)]
    x = 6
    return found, x, y, z, [each() for each in later], [[x + w for w in range(2)] for x in range(2)]


@CASES()
def comprehension_unbound() -> Any:
    return [later for _ in range(2)]
    later = 1


@CASES((3,), (0,))
def loops_and_closures(n: int) -> Any:
    acts = []
    for i in range(n):
        def act(k=i):
            return i, k
        acts.append(act)
    return [act() for act in acts]


@CASES((30,), (2,))
def collatz(n: int) -> Any:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


@CASES((20,))
def primes(n: int) -> Any:
    found = []
    for i in range(2, n):
        for p in found:
            if i % p == 0:
                break
        else:
            found.append(i)
    return found


@CASES([1, 2, 3])
def changing(values: Any) -> Any:
    for x in values:
        if len(values) < 8:
            values.append(x * 2)
    d = dict.fromkeys(values)
    for k in d:
        d[len(d) + 100] = k
    return values
