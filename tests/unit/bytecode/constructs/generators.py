"""Generators."""
# ruff: noqa  (every way to write Python is what this file is for)

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any

from tests.unit.bytecode.constructs.case import Cases

CASES = Cases()


def drive(generator: Any, *steps: Any) -> Any:
    """Draw from a generator: None is ``next``, an exception is thrown, ``close`` closes, all else is sent."""
    found = []
    for step in steps:
        try:
            if step is None:
                found.append(next(generator))
            elif step == "close":
                found.append(generator.close())
            elif isinstance(step, BaseException) or (isinstance(step, type) and issubclass(step, BaseException)):
                found.append(generator.throw(step))
            else:
                found.append(generator.send(step))
        except BaseException as error:
            found.append(error)
        found.append(sys.exception())
    for _ in range(3):  # to its end: what is thrown away with something left to do is cleared up at any time
        with contextlib.suppress(BaseException):
            generator.throw(SystemExit)
    with contextlib.suppress(BaseException):
        generator.throw(StopIteration())
    return found


def steps_of(number: int) -> Any:
    """Made anew each time: exceptions keep where they have been."""
    return _STEPS[number]()


_STEPS = (
    lambda: (None, None, None, None, None, None),
    lambda: (None, "a", "b", "close", None),
    lambda: (None, ValueError("thrown"), None, None),
    lambda: (None, KeyError, "x", None),
    lambda: (ValueError("at once"), None),
    lambda: ("not yet", None),
    lambda: (None, StopIteration(7), None),
    lambda: (None, GeneratorExit, None),
    lambda: ("close", None),
    lambda: (None, "a", ValueError("second"), ValueError("third"), "close"),
    lambda: (None, None, GeneratorExit("given"), None),
)


def each(*functions: Any) -> Any:
    return [(function, steps) for function in functions for steps in range(len(_STEPS))]


def plain(n=3):
    got = []
    for i in range(n):
        got.append((yield i))
    return got


def guarded():
    try:
        got = yield "start"
        print("got", got)
        yield got
    except ValueError as error:
        print("caught", repr(error), sys.exception() is error)
        got = yield "handled"
        print("handler got", got, sys.exception() is error)
    except KeyError:
        raise RuntimeError("from key")
    else:
        yield "else"
    finally:
        print("finally", sys.exc_info()[0])
        yield "in finally"
    yield sys.exception()
    return "end"


def delegating():
    try:
        result = yield from guarded()
        print("result", result)
    except ValueError as error:
        print("outer", error)
        result = yield "outer"
    yield from [1, 2]
    return (yield from plain(2)), result


def stopping():
    yield 1
    raise StopIteration("inside")


def stopping_inner():
    yield next(iter([]))


def with_with():
    import contextlib

    with contextlib.suppress(ValueError):
        yield 1
        yield 2
    got = yield 3
    return got


def looping():
    n = 0
    while True:
        try:
            n = (yield n) or n + 1
        except ValueError:
            n = -1
        except GeneratorExit:
            print("closing", n)
            raise
        if n == "b":
            return n


def refusing():
    while True:
        try:
            yield 1
        except GeneratorExit:
            yield "refused"


class Iterator:
    def __init__(self) -> None:
        self.n = 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        self.n += 1
        if self.n > 3:
            raise StopIteration("value")
        return self.n


class Full(Iterator):
    def send(self, value: Any) -> Any:
        print("send", value)
        return value

    def throw(self, *error: Any) -> Any:
        print("throw", *(each if isinstance(each, type) else type(each) for each in error))
        if isinstance(error[0], StopIteration):
            raise error[0]
        return "thrown"

    def close(self) -> None:
        print("close")


def from_iterator():
    found = yield from Iterator()
    yield found


def from_full():
    found = yield from Full()
    yield found


def from_wrong():
    yield from 3


def handling():
    try:
        raise ValueError("own")
    except ValueError:
        got = yield sys.exception()
        print(sys.exception())
        yield 1 / 0


def returning_early(flag=True):
    if flag:
        return 5
    yield


@CASES(*each(*range(13)))
def driven(which: int, steps: int) -> Any:
    made = [plain, guarded, delegating, stopping, stopping_inner, with_with, looping, refusing, from_iterator, from_full,
            from_wrong, handling, returning_early]
    return drive(made[which](), *steps_of(steps))


@CASES(*range(len(_STEPS)))
def handled_outside(steps: int) -> Any:
    generator = handling()
    try:
        raise KeyError("outside")
    except KeyError:
        found = drive(generator, *steps_of(steps))
        print(sys.exception())
    return found, drive(generator, None)


@CASES()
def context_through_yield() -> Any:
    def gives():
        try:
            raise ValueError("inner")
        except ValueError as error:
            yield error
            yield sys.exception()

    made = gives()
    error = next(made)
    try:
        raise KeyError("outer") from error
    except KeyError as outer:
        outer.__context__ = error
        found = next(made)
        return found, outer.__context__ is error, error.__context__


@CASES((3,))
def iterated(n: int) -> Any:
    def squares():
        for i in range(n):
            yield i * i

    def tree(depth):
        if depth:
            yield from tree(depth - 1)
            yield depth
            yield from tree(depth - 1)

    a, *b = squares()
    return a, b, list(tree(n)), sum(squares()), dict(zip("abc", squares())), [*tree(2)], sorted(tree(n)), squares()


@CASES((4,))
def expressions(n: int) -> Any:
    made = (x * y for x in range(n) if x for y in range(x) if y != 2)
    first = next(made)
    return first, list(made), type(made) is types.GeneratorType, made.__name__, made.__qualname__


@CASES()
def described() -> Any:
    made = plain()
    return made.__name__, made.__qualname__, type(made) is types.GeneratorType


@CASES()
def running() -> Any:
    def itself():
        yield next(made)

    made = itself()
    return list(made)


@CASES()
def dropped() -> Any:
    def holds():
        try:
            yield 1
        finally:
            print("cleaned up")

    made = holds()
    next(made)
    del made
    print("dropped")


@CASES((3,), (0,))
def itself_a_generator(n: int) -> Any:
    try:
        for i in range(n):
            got = yield i
            print(got)
    finally:
        print("done")
    return "value"


@CASES((3, 1), ())
def itself_failing(n: int, m: int) -> Any:
    yield n
    yield from [m]
    raise ValueError(n)


def _handling_within():
    try:
        raise ValueError("its own")
    except ValueError:
        yield 1


@CASES(False, True)
def thrown_from_a_handler(own):
    generator = _handling_within() if own else plain()
    try:
        raise LookupError("the caller's")
    except LookupError:
        next(generator)
        generator.throw(KeyError("thrown"))
