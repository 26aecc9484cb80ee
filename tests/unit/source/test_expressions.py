# ruff: noqa: B023, C400, C416, SIM221
# The functions are user code, roundabout on purpose.
"""Expressions do the same when rewritten."""

from __future__ import annotations

from tests.unit.source.same import check
from tests.unit.source.telling import define, note


def test_booleans_keep_their_values() -> None:
    def values(a, b, c):
        return a and b, a or b, not a, (a and b) or c, a and (b or c) and note("all"), not (a or (b and c))

    check(values, *[(a, b, c) for a in (0, 1, "") for b in ([], 2) for c in (None, 3)])


def test_chains_evaluate_once() -> None:
    def chains(a, b, c):
        return (note(a) < note(b) <= note(c), a < b == b < c, 0 < a < 3 != b, a in [a, b] in [c],
                [x for x in ([0, 1] if 0 < note(a) < 3 else [2])], (lambda q: q < note(b) < c)(a))

    check(chains, (1, 2, 3), (3, 2, 1), (2, 2, 2))


def test_named_expressions() -> None:
    def named(xs, limit):
        if xs and (n := len(xs)) > limit and (m := n * 2):
            print(n, m)
        while (last := xs.pop() if xs else None) is not None and (kept := last):
            pass
        doubled = [y := 1, y ** 2, (z := y + 1) if limit else (z := 5)]
        best = limit if (limit and (hit := limit > 3)) else None
        total = sum(t := v for v in (1, 2))
        odd = any((witness := v) % 2 for v in (2, 3, 4))
        return n, last, kept, doubled, y, z, best, hit, total, t, odd, witness, (lambda q: q and (r := q) + r)(limit)

    check(named, ([1, 2, 3], 1), ([1, 2, 3], 5), ([], 0), ([0], 9))


def test_conditional_expressions() -> None:
    def conditional(x):
        return note("a") if note(x) else note("b"), (1 if x else 2) if x != 3 else 4

    check(conditional, 0, 1, 3)


def test_membership_and_identity() -> None:
    def membership(x, y=None, *rest):
        y = y or rest
        return x in (1, 2), x not in [1], x is None, x is not None, None is y, y is x, rest is None

    check(membership, 1, None, (2, 2), (3, None, 4))


def test_calls() -> None:
    def f(*args, **kwargs):
        print(args, kwargs)
        return len(args)

    def calls(x):
        return f(note(1), *note([2, x]), note(3), *(), a=note(4), **note({"b": 5}), c=note(6)), f(function=1, self=2)

    check(calls, 7)


def test_comprehensions() -> None:
    def comprehensions(xs, d):
        return ([x * 2 for x in xs], [x for x in xs if x if x > 1], {x % 3 for x in xs}, {k: v for k, v in d.items()},
                {v: note(k) for k, (v, *w) in d.items() if w}, [[x * y for y in xs if y] for x in xs],
                [(x, y) for x in xs for y in xs if x < y], list(x for x in xs), [f() for f in [lambda: x for x in xs]],
                [x for x in [y for y in xs if not y or y]], [[a for a, b in [(x, x)]] for x in xs],
                [x and [y for _, y in [(1, x)]] for x in xs], sum(x > 1 and x for x in xs))

    def scoping(x):
        x = [x for x in range(x)]
        return x, [y for x in [[1], [2]] for y in x], [len for len in x]

    check(comprehensions, ([1, 2, 3], {"a": (1, 2), "b": (3,)}), ([], {}), ([0, 5], {1: (2, 3, 4)}), ([0], {1: 2}))
    check(scoping, 3)


def test_formatted_strings() -> None:
    def strings(x, w, xs):
        return (f"{x}", f"{x!r:>{w}}|{x!s}", f"{{}} {x:{w}.{2}f} {x=}", "plain", "", f"{xs} {xs.append(x)} {xs}",
                f"{x:%}", "a" f"{w}" "b", f"{x:{'>'}{w}}", f"{xs[0]!a} {len(xs)}")

    check(strings, (1.5, 8, [1]), (2, 3, ["é"]))
    check(strings, ("text", 3, [1]))


def test_assertions() -> None:
    # pytest changes the assertions of test files, but not those of this text
    check(define("""def asserts(x):
        assert x, note("message")
        assert x > 1
        assert x != 3, (x, "three")
        return x
    """), 0, 1, 2, 3)


def test_subscripts() -> None:
    def subscripts(xs, i, j):
        return xs[0], xs[-1], xs[1:], xs[:-1:2], xs[i], xs[i:j], xs[:j], xs[i:], xs[::j], xs[i + 1]

    class Key:
        def __getitem__(self, key):
            return key

    def keys(i):
        return Key()[i, ...], Key()[1:2, i], Key()[i:, None, ::i], Key()[(i,)], Key()[*[1, i]], Key()[i:i, *(2, 3)]

    check(subscripts, ([1, 2, 3, 4], 1, 3), ("abc", 0, 2), ([], 0, 1))
    check(keys, 5)
