"""Exceptions and context managers."""
# ruff: noqa  (every way to write Python is what this file is for)

from __future__ import annotations

import contextlib
import sys
import traceback
import warnings
from typing import Any

from tests.unit.bytecode.constructs.case import Cases

CASES = Cases()
KINDS = ("none", "value", "key", "zero", "stop", "exit", "return", "group")


def act(kind: str) -> Any:
    if kind == "value":
        raise ValueError("a value", 1)
    if kind == "key":
        raise KeyError("k")
    if kind == "zero":
        return 1 / 0
    if kind == "stop":
        raise StopIteration(5)
    if kind == "exit":
        raise SystemExit(3)
    if kind == "group":
        raise ExceptionGroup("several", [ValueError(1), KeyError(2)])
    return kind


@CASES(*[(kind,) for kind in KINDS])
def every_clause(kind: str) -> Any:
    found = []
    try:
        found.append("body")
        act(kind)
        if kind == "return":
            return found
    except ValueError as error:
        found.append(error)
        found.append(sys.exc_info()[1] is error)
    except (KeyError, ZeroDivisionError):
        found.append(sys.exception())
    except StopIteration as error:
        raise RuntimeError("stopped") from error
    else:
        found.append("else")
    finally:
        found.append("finally")
        found.append(sys.exception())
        print(found)
    found.append(sys.exc_info())
    return found, "error" in locals()


@CASES(*[(a, b) for a in KINDS for b in ("none", "key", "raise", "from", "none from", "return", "break")])
def within_handlers(a: str, b: str) -> Any:
    for i in range(2):
        try:
            try:
                act(a)
            except Exception as error:
                print(type(sys.exception()))
                if b == "raise":
                    raise
                if b == "from":
                    raise OSError("wrapped") from error
                if b == "none from":
                    raise OSError("alone") from None
                if b == "return":
                    return "returned", error
                if b == "break":
                    break
                act(b)
            finally:
                print("inner", sys.exc_info()[0])
        except (KeyError, OSError) as error:
            print("outer", repr(error), repr(error.__context__), repr(error.__cause__))
            if i:
                raise
            continue
        finally:
            print("finally", i, sys.exc_info()[0])
    else:
        return "else"
    return "broke"


@CASES(*[(kind,) for kind in KINDS])
def finally_returns(kind: str) -> Any:
    try:
        return act(kind)
    finally:
        return "swallowed"


@CASES(*[(kind,) for kind in KINDS])
def finally_breaks(kind: str) -> Any:
    for i in range(3):
        try:
            act(kind)
        finally:
            if i == 1:
                break
            continue
    return i, sys.exception()


@CASES(*[(kind,) for kind in KINDS])
def finally_raises(kind: str) -> Any:
    try:
        act(kind)
    finally:
        raise LookupError("in finally")


@CASES(*[(kind,) for kind in KINDS])
def finally_plain(kind: str) -> Any:
    x = 1
    try:
        x = act(kind)
        return x
    finally:
        x = 2
        print(x)


@CASES(*[(kind,) for kind in KINDS])
def loops_in_try(kind: str) -> Any:
    found = []
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            act(kind)
            found.append(i)
        except ValueError:
            found.append("handled")
            continue
        else:
            found.append("else")
        finally:
            found.append("finally")
    return found


@CASES()
def raise_nothing() -> Any:
    raise


@CASES()
def raise_again_after() -> Any:
    try:
        raise ValueError(1)
    except ValueError as error:
        kept = error
    try:
        raise kept
    except ValueError as again:
        print(again is kept)
    raise kept


@CASES(1, ValueError, ValueError("made"), "text", None, int)
def raising(what: Any) -> Any:
    raise what


@CASES(*[(what, cause) for what in (1, ValueError, ValueError("made")) for cause in (None, KeyError, KeyError(1), 3)])
def raising_from(what: Any, cause: Any) -> Any:
    try:
        1 / 0
    except ZeroDivisionError:
        raise what from cause


class Odd(Exception):
    def __init__(self) -> None:
        raise TypeError("cannot be made")


class NoError(Exception):
    def __new__(cls, *args: Any) -> Any:
        return 3


@CASES(Odd, NoError)
def raising_odd(kind: Any) -> Any:
    raise kind


@CASES((ValueError, 3), (ValueError, (KeyError, 3)), (ValueError, "x"), (ValueError, ((ValueError,),)), (ValueError, ()))
def matching(kind: Any, kinds: Any) -> Any:
    try:
        raise kind("k")
    except kinds as error:
        return error


class Meta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return True

    def __subclasscheck__(cls, value: Any) -> bool:
        return True


class Anything(Exception, metaclass=Meta):
    pass


@CASES()
def matching_by_bases() -> Any:
    try:
        raise ValueError(1)
    except Anything:
        return "wrong"
    except Exception:
        return "right"


@CASES()
def contexts() -> Any:
    try:
        try:
            try:
                raise ValueError("one")
            except ValueError:
                raise KeyError("two")
        except KeyError:
            try:
                raise IndexError("three")
            except IndexError:
                pass
            raise TypeError("four")
    except TypeError as error:
        try:
            raise error.__context__
        except KeyError:
            pass
        return error


@CASES()
def context_of_handled() -> Any:
    try:
        raise ValueError("first")
    except ValueError as first:
        try:
            raise KeyError("second")
        except KeyError as second:
            print(second.__context__ is first, sys.exception() is second)
            try:
                raise first
            except ValueError as again:
                print(again.__context__ is second, second.__context__)
        print(sys.exception() is first)
    print(sys.exception())


@CASES()
def unbound_after() -> Any:
    error = 1
    try:
        raise ValueError
    except ValueError as error:
        pass
    return error


@CASES()
def traces() -> Any:
    try:
        act("zero")
    except ZeroDivisionError as error:
        print(traceback.format_exc())
        first = error.__traceback__
        try:
            raise KeyError(2)
        except KeyError:
            traceback.print_exc(file=sys.stdout)
        try:
            raise error
        except ZeroDivisionError:
            print(traceback.format_exc())
        return first, error


def looking() -> Any:
    return sys.exc_info()[:2], sys.exception()


@CASES()
def seen_by_others() -> Any:
    found = [looking()]
    try:
        act("value")
    except ValueError:
        found.append(looking())
        try:
            act("key")
        except KeyError:
            found.append(looking())
        found.append(looking())
    found.append(looking())
    return found


def groups() -> Any:
    return (
        ExceptionGroup("g", [ValueError(1), KeyError(2), ExceptionGroup("h", [ValueError(3), TypeError(4)])]),
        ValueError("lone"),
        BaseExceptionGroup("b", [KeyboardInterrupt(), ValueError(1)]),
        TypeError("other"),
        ExceptionGroup("k", [KeyError(1)]),
    )


@CASES(*[(group, how) for group in range(5) for how in ("nothing", "raise", "new", "from", "both")])
def except_star(number: int, how: str) -> Any:
    found = []
    try:
        try:
            raise groups()[number]
        except* ValueError as group:
            found.append(("value", group.exceptions, sys.exception() is group))
            if how in ("raise", "both"):
                raise
            if how == "new":
                raise OSError("new")
            if how == "from":
                raise OSError("new") from group
        except* (KeyError, OSError) as group:
            found.append(("key", group.exceptions, sys.exception() is group))
            if how == "both":
                raise RuntimeError("of key")
        else:
            found.append("else")
        finally:
            print("finally", sys.exc_info()[0])
    except BaseException as left:
        return found, [type(left), left, getattr(left, "exceptions", None)]
    return found, sys.exception()


@CASES()
def except_star_wrong() -> Any:
    try:
        raise ValueError
    except* ExceptionGroup:
        pass


@CASES()
def except_star_leaves() -> Any:
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError:
        pass


class Manager:
    def __init__(self, name: str, fails: str = "", suppresses: Any = False) -> None:
        self.name, self.fails, self.suppresses = name, fails, suppresses

    def __enter__(self) -> Any:
        print("enter", self.name)
        if self.fails == "enter":
            raise OSError("enter")
        return self.name, 1

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        print("exit", self.name, kind, repr(error), error is None or error.__traceback__ is trace, sys.exc_info()[0])
        if self.fails == "exit":
            raise LookupError("exit")
        if self.fails == "again":
            raise error
        return self.suppresses


@CASES(*[(kind, Manager("m", fails, suppresses)) for kind in KINDS
         for fails, suppresses in (("", False), ("", True), ("enter", False), ("exit", False), ("", [1]))])
def with_one(kind: str, manager: Any) -> Any:
    with manager as (name, number):
        act(kind)
        if kind == "return":
            return "within", name
    return "behind", sys.exception()


@CASES(*[(kind, fails) for kind in ("none", "value", "return") for fails in ("", "enter", "exit", "again")])
def with_several(kind: str, fails: str) -> Any:
    for i in range(2):
        with Manager("a", suppresses=i == 0) as a, Manager("b", fails), Manager("c") as c:
            print(a, c)
            if kind == "return":
                continue
            act(kind)
            break
    return i


class OnlyEnter:
    def __enter__(self) -> Any:
        return 1


class OnlyExit:
    def __exit__(self, *args: Any) -> Any:
        return 1


class Static:
    def __init__(self) -> None:
        self.__dict__.update(__enter__="not asked", __exit__="not asked")

    @staticmethod
    def __enter__() -> Any:
        return "static"

    @staticmethod
    def __exit__(*args: Any) -> Any:
        return len(args) == 3


@CASES(OnlyEnter(), OnlyExit(), 3, None, Static(), contextlib.nullcontext(4), contextlib.suppress(ValueError))
def with_wrong(manager: Any) -> Any:
    with manager as entered:
        print(entered)
        raise ValueError("in with")
    return "behind"


@contextlib.contextmanager
def managed(suppresses: bool) -> Any:
    try:
        yield 1
    except ValueError:
        if not suppresses:
            raise
    finally:
        print("left")


@CASES(True, False)
def with_generators(suppresses: bool) -> Any:
    with managed(suppresses) as one, contextlib.ExitStack() as stack:
        stack.callback(print, "called")
        act("value")
    return one


@CASES()
def warning() -> Any:
    warnings.warn("of the user's")
    for i in range(2):
        warnings.warn(
            "on two lines", DeprecationWarning,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("as an error", UserWarning, stacklevel=1)


@CASES(*[(kind,) for kind in KINDS])
def deep(kind: str) -> Any:
    def inner(n: int) -> Any:
        try:
            if n:
                return inner(n - 1)
            return act(kind)
        except ValueError as error:
            raise KeyError(n) from error
        except KeyError:
            if n % 2:
                raise
            raise ValueError(n)
    return inner(3)


class Told:
    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        print("dies", self.name)


@CASES()
def lifetimes() -> Any:
    a = Told("a")
    b = [Told("b")]
    a = 1
    print("a is gone")
    b.pop()
    Told("c")
    print("c is gone")
    for each in (Told(str(i)) for i in range(2)):
        print("loop")
    del each
    try:
        raise ValueError(Told("in error"))
    except ValueError:
        print("handling")
    print("handled")
    return Told("returned").name
