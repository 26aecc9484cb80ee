# ruff: noqa: B007, B008, B012, B023, C400, C416, E501, E702, E731, F821, F842, RUF012, SIM221, UP008
# The functions are user code, roundabout on purpose.
"""Every construct does the same when it is rewritten."""
from __future__ import annotations

import contextlib
import functools
import linecache
import os
import os.path as osp
from collections.abc import Iterator
from typing import Any

import pytest

from stillgraph.core.diagnostics import CaptureError
from tests.unit.source.plain_operators import converted, rewritten
from tests.unit.source.same import check

EVENTS: list[object] = []
COUNT = 0


def note(value: Any, *more: Any) -> Any:
    print(value, *more)
    return value


class Thing:
    """Attributes and items, with a word about each access."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        print("set", name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        print("del", name)
        super().__delattr__(name)

    def __getitem__(self, key: object) -> object:
        print("get", key)
        return self.__dict__.get(str(key), 0)

    def __setitem__(self, key: object, value: object) -> None:
        print("item", key, value)
        self.__dict__[str(key)] = value

    def __delitem__(self, key: object) -> None:
        print("del item", key)

    def __repr__(self) -> str:
        return f"Thing({self.__dict__})"


class manager(contextlib.AbstractContextManager):
    def __init__(self, name: str, *swallows: type[BaseException], breaks: bool = False) -> None:
        self.name, self.swallows, self.breaks = name, swallows, breaks

    def __enter__(self) -> str:
        print("enter", self.name)
        return self.name

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> bool:
        print("exit", self.name, kind and kind.__name__)
        if self.breaks:
            raise KeyError(self.name)
        return kind is not None and issubclass(kind, self.swallows)


# ---- branches and exits
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


# ---- try and with
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


# ---- expressions
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


# ---- stores
def test_stores_keep_the_order_of_evaluation() -> None:
    def stores(thing):
        note(thing).x = note(1)
        thing[note("k")] = note(2)
        note(thing)[note("i")] = thing.y = a = note(3)
        thing.x, b, note(thing)[note("t")], c = note((1, 2, 3, 4))
        d, (thing.p, e), *thing.q = 1, (2, 3), 4, 5
        note(thing).x += note(10)
        thing[note("k")] -= note(1)
        note(thing)[note("i")] *= note(2)
        thing[0] += 1
        thing[1:2] = 1
        del thing.x, note(thing)[note("k")]
        del (a, [thing.y])
        thing.z: int = note(5)
        note(thing).w: int
        return b, c, d, e, thing

    check(stores, Thing())


def test_swaps_and_starred_targets() -> None:
    def swaps(a, b, xs):
        a, b = b, a
        xs[0], xs[-1] = xs[-1], xs[0]
        i, xs[i] = 0, 9
        first, *middle, last = xs
        return a, b, xs, i, first, middle, last

    check(swaps, (1, 2, [1, 2, 3]), (1, 2, [4]))


def test_targets_of_loops() -> None:
    def targets(thing, xs):
        for thing.x in xs:
            pass
        for thing[note("k")], i in enumerate(xs):
            if i == 2:
                break
        return thing

    check(targets, (Thing(), [1, 2, 3]), (Thing(), []))


def test_augmented_assignment() -> None:
    def augmented(x, y):
        z = x
        x += y
        x *= 2
        x -= -1
        return x, z, x is z

    check(augmented, (1, 2), (1.5, 2))
    check(augmented, ([1], [2]))


def test_annotated_assignment() -> None:
    def annotated(x):
        y: undefined_name
        z: int = x
        if x:
            y: int = 3
            w: undefined_name
        else:
            y = 4
        return y, z

    check(annotated, 0, 1)


# ---- globals and nonlocals
def test_globals() -> None:
    def use_globals(n):
        global COUNT, EVENTS, thing, osp2, made, Made, path
        COUNT = n
        for COUNT in range(n):
            if COUNT == 3:
                COUNT += 10
                break
        else:
            (COUNT, EVENTS), thing = (1, [2]), 5
        import os.path as osp2
        if n:
            from os import path

            def made():
                return COUNT

            class Made:
                pass

            with manager("g") as thing:
                COUNT += n
            print((COUNT := COUNT + 1), made.__qualname__, Made.__qualname__)
            del thing
        return COUNT, EVENTS, "thing" in globals(), osp2 is osp, path is os.path

    check(use_globals, 0, 2, 5)


def make_counter(start: int) -> Any:
    count = start
    limit = 3

    def counter(step):
        nonlocal count
        if count + step > limit:
            count = 0
        else:
            count += step
        return count, limit

    return counter


def test_closures_are_kept() -> None:
    one, other = make_counter(0), make_counter(0)
    made = converted(one)
    assert made.written_cells == ("count",)
    assert [made.function(1) for _ in range(5)] == [other(1) for _ in range(5)]
    assert one.__closure__[0].cell_contents == other.__closure__[0].cell_contents
    again = converted(make_counter(2))
    assert again.function.__code__ is made.function.__code__
    assert again.function(1) == (3, 3)


def test_written_cells_at_any_depth() -> None:
    def outer():
        a = b = c = 0

        def middle(c=c):
            def inner():
                nonlocal a, c
                a = c = 1
                return b

            if c:
                nonlocal b
                b = 2
            return inner

        return middle, (a, b, c)

    assert converted(outer()[0]).written_cells == ("a", "b")


# ---- functions and classes
class Base:
    def __init__(self, x):
        self.__x = x
        self._Base__y = 2

    def get(self, deep=False):
        if deep:
            return [self.__x, self.__y, (lambda: self.__x)()]
        return self.__x

    @classmethod
    def make(cls, x):
        return cls(x)


class __Derived(Base):
    def __init__(self, x, __extra=1):
        if x:
            super().__init__(x)
        else:
            super().__init__(-1)
        self.__x = __extra
        self.__x += 1
        local = {"__name": 1}
        __local = 5
        if x:
            __local += 1
        self.values = [self.__x, __local, self.__class__ is __class__, local]

    def get(self, deep=False):
        def nested(self):
            if deep:
                return super().get(deep)
            return super().get(), __class__.__name__

        return nested(self), self.__x

    @classmethod
    def make(cls, x):
        if x > 1:
            return super().make(x)
        return super(__Derived, cls).make(0)


def test_super_and_private_names() -> None:
    def use(x, deep):
        made = __Derived_.make(x)
        return made.get(deep), made.values, sorted(vars(made))

    check(use, (0, True), (1, False), (2, True))


__Derived_ = __Derived


def test_classes_in_functions() -> None:
    def classes(x):
        base = Base
        if x:
            class Inner(base):
                """Documentation."""

                values = [v for v in range(3) if v]
                size = len(values) if x else 0
                key = staticmethod(lambda v: v and -v)

                def get(self, deep=x):
                    if deep:
                        return super().get(), self.__private(), self.size
                    return "shallow"

                def __private(self):
                    return type(self).__name__ if x == 1 else __class__.__qualname__

                @property
                def twice(self):
                    return [self.get() for _ in range(2)]
        else:
            Inner = base
        made = Inner(3)
        return made.get(), getattr(made, "twice", None), Inner.__qualname__, Inner.get.__qualname__, Inner.__doc__

    check(classes, 0, 1, 2)


def test_decorators_and_defaults() -> None:
    def decorated(x):
        @functools.lru_cache(maxsize=note(x + 1))
        @functools.wraps(note)
        def inner(a, /, b=note(x and "b"), *, c=note("c")):
            """Inner."""
            if a:
                return a, b, c
            return "no"

        return inner(0), inner(1), inner(1, c=3), inner.__name__, inner.__wrapped__ is note

    check(decorated, 0, 1)


def test_everything_about_a_function_is_kept() -> None:
    def function(a: int, /, b: str = "b", *args: int, c: float = 1.5, **kwargs: object) -> dict:
        """What it does."""
        return {"a": a, "b": b, "args": args, "c": c, "kwargs": kwargs}

    function.tag = 1
    made = rewritten(function)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__defaults__",
                 "__kwdefaults__", "__dict__"):
        assert getattr(made, name) == getattr(function, name), name
    assert made.__globals__ is function.__globals__
    assert made(1, 2, 3, c=4, d=5) == function(1, 2, 3, c=4, d=5)
    assert made.__code__.co_qualname == function.__code__.co_qualname
    with pytest.raises(TypeError, match=r"function\(\) missing 1 required positional argument: 'a'"):
        made()


def test_lambdas() -> None:
    same_line = [lambda x: x and 1, lambda x: x or 2, lambda x: (lambda x: x and 3)(x)]; pair = lambda a: lambda a: a or "in"
    for function in (*same_line, pair(0)):
        check(function, 0, 5)
    check(lambda x=3, *a, k=2, **kw: (x, a, k, kw) if x else None, 0, 1)
    assert rewritten(lambda: 1).__name__ == "<lambda>"


def test_generators() -> None:
    def generator(n):
        total = 0
        for i in range(n):
            if i % 2:
                got = yield i
                total += 1 if got is None else got
                continue
            while total < i:
                total += 1
                if total == 4:
                    break
            if i == 6:
                return "six"
            with manager(str(i)):
                if total > 2:
                    yield from (total, i)
        else:
            yield "else"
        if total:
            total = yield (total and (yield "inner"))
        try:
            yield [x for x in range(n) if x]
        finally:
            if total:
                note("finally")
        if n > 2:
            return "end"

    def collect(n):
        made, got = generator(n), []
        try:
            while True:
                got.append(next(made))
        except StopIteration as stop:
            return got, stop.value

    check(collect, 0, 1, 4, 7)


def test_match_statements() -> None:
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x, y=0):
            self.x, self.y = x, y

        def __repr__(self):
            return f"Point({self.x}, {self.y})"

    class Color:
        RED = "red"

    def matches(value, flag):
        match value:
            case 0 | -1 | 1.5:
                found = "number"
            case None:
                return "none"
            case True | "yes":
                found = "yes"
            case Color.RED:
                found = "red"
            case Point(x=0, y=y) | Point(y, 0) if flag:
                found = "on axis", y
            case Point(x, y):
                if x == y:
                    return "diagonal"
                found = x, y
            case [first, *_, ("a" | "b") as last]:
                found = first, last
            case {"kind": kind, **others} if note(flag):
                found = kind, others
            case str(text):
                found = "text " + text
            case (a, b) if (c := a) == b:
                found = "pair", c
            case other if flag:
                found = "other", other
            case _:
                found = "nothing"
        return found

    values = (0, -1, 1.5, None, True, "yes", "red", Point(0, 4), Point(3, 0), Point(2, 2), Point(1, 2), [1, 2, "b"],
              {"kind": 1, "x": 2}, "other", (2, 2), (2, 3), 17, [])
    check(matches, *[(value, flag) for value in values for flag in (True, False)])


def test_match_on_a_computed_subject() -> None:
    def computed(xs):
        out = []
        for x in xs:
            match note(x), len(out):
                case 1, n:
                    out.append(n)
                case [x, 2]:
                    break
                case _ if x == 5:
                    continue
            match x:
                case x if x == 3:
                    return "three", x
        else:
            out.append("else")
        return out, x, n

    check(computed, ([1, 1, 7, 2],), ([3],), ([5, 1],), ([],))


# ---- names
def test_names_of_operators_are_left_to_the_user() -> None:
    def names(call, item, if_=None, Return=3):
        while_ = BREAK = 0
        for item in call:
            if item:
                while_ += item
                if while_ > Return:
                    return "early", item
            then_1 = loop_body_1 = value_1 = item
        exit_1 = [result_of for result_of in call]
        return call[0], item, while_, if_, Return, then_1, loop_body_1, value_1, exit_1, BREAK, is_none(call)

    check(names, ([1, 2],), ([1, 2, 3], 4))


def is_none(value: object) -> str:
    return f"mine {value}"


def test_locals_are_the_users_own() -> None:
    def own(a, b=2):
        c = a + b
        if a:
            c += 1
        return locals(), sorted(vars()), eval("a + b"), "{a} {c}".format(**locals())

    check(own, 0, 1)


def test_the_functions_of_a_frame() -> None:
    def frame(x):
        if x:
            return globals() is note.__globals__, "note" in globals()
        return dir(x) == dir(0), vars(Thing(y=1)), eval("1 + 1", {}), hasattr(x, "real")

    check(frame, 0, 1)


# ---- helpers
def define(source: str, name: str | None = None) -> Any:
    file = f"<defined {hash(source)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"note": note, "__name__": __name__}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name or source.split("def ")[1].split("(")[0]]


@pytest.fixture(autouse=True)
def _globals_are_restored() -> Iterator[None]:
    before = dict(globals())
    yield
    globals().update(before)
