# ruff: noqa: B012
# The functions are user code, roundabout on purpose.
"""``try`` and ``with`` do the same when rewritten."""

from __future__ import annotations

from tests.unit.source.same import check
from tests.unit.source.telling import Thing, manager, note


def test_try() -> None:
    def tries(x):
        try:
            if x == 1:
                return note("one")
            if x == 2:
                raise ValueError("two")
            y = 10 // x
        except ZeroDivisionError as error:
            if x == 0:
                note("zero", error)
            y = "inf"
        except (ValueError, TypeError) as error:
            raise KeyError("from") from error
        else:
            if x > 5:
                return note("else", y)
            note("else", y)
        finally:
            note("finally")
            if x == 7:
                note("seven")
        return y

    check(tries, 0, 1, 2, 3, 6, 7, "x")


def test_finally_that_leaves() -> None:
    def leaves(n):
        for i in range(n):
            try:
                if i == 2:
                    raise ValueError(i)
                if i == 3:
                    return "body"
            finally:
                if i == 1:
                    continue
                if i == 2:
                    note("swallowed")
                    break
                for j in range(i):
                    if j == 5:
                        return "finally"
        else:
            return "else"
        return "after", i

    def returns(x):
        try:
            if x:
                return note("body")
        finally:
            if x == 2:
                return "finally"
        return "after"

    check(leaves, 0, 1, 2, 3, 9)
    check(returns, 0, 1, 2)


def test_an_exit_is_given_up_when_leaving_fails() -> None:
    def given_up(x):
        try:
            with manager("inner", breaks=x > 1):
                if x:
                    return "returned"
            note("end of try")
        except KeyError:
            note("handled")
        note("after")
        with manager("outer", KeyError), manager("second", breaks=x == 3):
            if x == 3:
                return "second"
        return "last"

    check(given_up, 0, 1, 2, 3)


def test_loops_in_protected_statements() -> None:
    def protected(n):
        for i in range(n):
            with manager(str(i), ValueError) as name:
                if i == 1:
                    continue
                if i == 2:
                    raise ValueError
                for j in range(i):
                    if j == 3:
                        return name
                if i == 5:
                    break
            note("end", i)
        return "done"

    check(protected, 1, 3, 4, 6)


def test_exception_groups() -> None:
    def groups(kinds):
        seen = []
        try:
            if kinds:
                raise ExceptionGroup("some", [kind("x") for kind in kinds])
            return "none"
        except* ValueError as group:
            if len(group.exceptions) > 1:
                seen.append("values")
            for each in group.exceptions:
                seen.append(str(each))
        except* TypeError:
            seen.append("type")
        return seen

    check(groups, ([],), ([ValueError],), ([ValueError, TypeError, ValueError],), ([KeyError],))


def test_with_targets() -> None:
    def targets(thing):
        with manager("ab") as (a, b), manager("c") as thing.x, manager("d") as thing["k"], manager("e") as e:
            if a == "a":
                return a, b, e, thing
        return None

    check(targets, Thing())
