# ruff: noqa: B007, B023
# The functions are user code, roundabout on purpose.
"""Branches, loops and their exits do the same when rewritten."""

from __future__ import annotations

import pytest

from stillgraph.core.diagnostics import CaptureError
from tests.unit.source.plain_operators import converted
from tests.unit.source.same import check
from tests.unit.source.telling import define


def test_branches() -> None:
    def arms(x):
        if x > 3:
            y = "big"
        elif x > 1:
            y = "middle"
        elif x < 0:
            return "negative"
        else:
            y = "small"
            z = 1
        if x == 0:
            return y, z
        return y

    check(arms, 5, 2, 0, -1, 1)


def test_unbound_variables() -> None:
    def unbound(x):
        if x:
            y = 1
        return y

    def deleted(x):
        y = 1
        if x:
            del y
        else:
            y += 1
        return y

    check(unbound, 0, 1)
    check(deleted, 0, 1)


def test_a_branch_without_a_value() -> None:
    def nothing(x):
        if x:
            return
        print("end")

    check(nothing, 0, 1)


def test_loops_with_all_exits() -> None:
    def loops(n, m):
        found = []
        for i in range(n):
            if i == 1:
                continue
            j = 0
            while j < m:
                j += 1
                if j == i:
                    break
                if i * j == 12:
                    return "twelve", found
                for k in (i, j):
                    if k > 4:
                        return k, found
                    if k == 2:
                        break
                else:
                    found.append((i, j))
                    continue
                found.append(k)
            else:
                if m == 3:
                    break
                found.append("else")
        else:
            found.append("end")
        return found, i

    check(loops, *[(n, m) for n in range(7) for m in range(6)])


def test_exits_in_the_else_of_a_loop() -> None:
    def inner_else(n):
        for i in range(4):
            for j in range(n):
                if j == 2:
                    break
            else:
                if i == 2:
                    break
                continue
            return i, j
        return "end", i

    check(inner_else, 0, 2, 3)


def test_the_target_of_a_loop_lives_on() -> None:
    def target(xs):
        i = "before"
        for i, (a, *b) in enumerate(xs):
            pass
        return i, a, b

    check(target, ([(1, 2), (3, 4, 5)],), ([],), ([()],), ([3],))


def test_closures_see_assignments() -> None:
    def closures(n):
        total, readers = 0, []

        def add(x):
            nonlocal total
            total += x
            return total

        for i in range(n):
            if i % 2:
                total = total * 2
            readers.append(lambda: (i, total))
            add(i)
        return [reader() for reader in readers], total

    check(closures, 0, 3, 6)


def test_recursion() -> None:
    def outer(n):
        def fib(k):
            if k < 2:
                return k
            return fib(k - 1) + fib(k - 2)

        return fib(n)

    check(outer, 0, 5)


@pytest.mark.parametrize("count", [30, 60, 300])
def test_many_early_returns(count: int) -> None:
    lines = ["def early(x):", "    y = 0", "    for z in range(2):"]
    for i in range(count):
        lines += [f"        if x == {i} * 2:", f"            return {i}, y", f"        if x == {i} * 2 + 1:",
                  "            break" if i % 2 else "            continue", f"        y += {i % 3}"]
    early = define("\n".join([*lines, "    else:", "        return 'else', y", "    return 'none', y, z"]))
    check(early, 0, 1, 3, 2 * count - 1, 2 * count - 2, 2 * count, 50, 51)


def test_what_is_nested_too_deeply_is_refused() -> None:
    lines = [f"    elif x == {i}:\n        y = {i}" for i in range(400)]
    with pytest.raises(CaptureError, match="SG106"):
        converted(define("\n".join(["def long(x):", "    if x:", "        y = 0", *lines, "    return y"])))
