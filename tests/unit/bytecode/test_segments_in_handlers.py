"""Breaks while exceptions are being handled: what Python finds there behind them is what eager PyTorch finds."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from tests.unit.bytecode.segmented import CALLS, Record, agrees, to_partial


def printed_and_left(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            raise ValueError("a")
        except ValueError as error:
            print("caught", error, x.sum().item())
            y = x - 1
        finally:
            print("finally")
        return y * 2

    return f


def depending_on_the_run(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            if x.sum().item() < 0:
                raise ValueError(f"{x.sum().item():.2f}")
            y = x * 2
        except ValueError as error:
            print(error)
            y = x - 1
        else:
            print("else", y.sum().item())
            y = y + 1
        finally:
            print("finally")
        return y

    return f


def one_in_another(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            try:
                raise ValueError("inner")
            except ValueError as inner:
                print("one", x.sum().item())
                try:
                    raise KeyError("of the handler")
                except KeyError as error:
                    print("two", error, repr(error.__context__), repr(sys.exception()))
                    x = x * 2
                print("one again", repr(sys.exception()), inner)
                x = x + 1
                raise TypeError(x.shape[0]) from inner
        except TypeError as outer:
            print("three", outer, repr(outer.__cause__), repr(sys.exception()))
            x = x * 3
        print("none", sys.exception())
        return x

    return f


def raised_again(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            try:
                raise ValueError("a")
            except ValueError:
                print("again", x.mean().item())
                y = x + 1
                print(y.sum().item())
                raise
        except ValueError as error:
            print(error, [each.name for each in traceback.extract_tb(error.__traceback__)])
        return x

    return f


def raised_behind_a_break(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            raise ValueError("a")
        except ValueError:
            print(x.sum().item())
            return x / (1 // int(x.sum().item() > 100))

    return f


def in_a_loop(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        seen = []
        for number in range(4):
            try:
                if number == 1:
                    continue
                if number == 2:
                    raise KeyError(number)
                x = x + number
                print("body", number, x.sum().item())
                if number == 3:
                    break
            except KeyError as error:
                seen.append(str(error))
                print("caught", error, x.mean().item())
            finally:
                print("finally", number)
                seen.append(number)
        return x, seen

    return f


def called_in_a_handler(note: Record) -> Any:
    def helper(x: Tensor, error: Exception) -> Tensor:
        print("helper", error, repr(sys.exception()), x.sum().item())
        try:
            raise RuntimeError("in the helper")
        except RuntimeError as own:
            print(repr(own.__context__), x.mean().item())
        y = x * 2
        print(repr(sys.exception()))
        return y

    def f(x: Tensor) -> Tensor:
        try:
            raise ValueError("a")
        except ValueError as error:
            y = helper(x, error) + 1
        print(y.sum().item())
        return y

    return f


def by_a_callee(note: Record) -> Any:
    def check(x: Tensor) -> Tensor:
        print("check", x.sum().item())
        if x.sum().item() < 0:
            raise ValueError("negative")
        return x * 2

    def f(x: Tensor) -> Tensor:
        try:
            y = check(x)
            print("good", y.sum().item())
        except (KeyError, ValueError) as error:
            print("bad", error)
            y = -x
        return y + 1

    return f


def groups(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])
        except* ValueError as found:
            print("values", found.exceptions, x.sum().item())
            x = x + 1
        except* KeyError as found:
            print("keys", found.exceptions, x.sum().item())
            x = x * 2
        return x

    return f


def returned_in_finally(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            print(x.sum().item())
            raise ValueError("a")
        finally:
            print("finally", repr(sys.exception()))
            note(x.mean().item())
            return x + 1  # noqa: B012  -- it swallows the exception, as is to be seen

    return f


def finally_in_finally(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:  # both ways through what follows end with one handler, at two depths of the stack
            return x.sum()
        finally:
            y = x * 2
            try:
                print(repr(sys.exception()))
            finally:
                note(y.mean().item())

    return f


@pytest.mark.parametrize(
    "make",
    [
        finally_in_finally,
        printed_and_left,
        depending_on_the_run,
        one_in_another,
        raised_again,
        raised_behind_a_break,
        in_a_loop,
        called_in_a_handler,
        by_a_callee,
        groups,
        returned_in_finally,
    ],
)
def test_breaks_in_handlers(make: Callable[[Record], Any]) -> None:
    agrees(make, *CALLS)


def _raises_below(x: Tensor) -> Tensor:
    def put(values: list[Tensor]) -> None:
        values[9] = x

    try:
        put([x])
    finally:
        print("finally")
    return x


def _raises_far_below(x: Tensor) -> Tensor:
    def put(values: list[Tensor]) -> None:
        values[9] = x

    def handing_on() -> None:
        put([x])

    try:
        handing_on()
    except IndexError:
        print("caught")
        raise
    return x


@pytest.mark.parametrize("function", [_raises_below, _raises_far_below])
def test_an_exception_that_a_callee_raises_is_a_new_one_in_each_call(
    function: Callable[[Tensor], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    static = to_partial(function)
    errors = []
    for _ in range(3):
        with pytest.raises(IndexError, match="out of range") as raised:
            static(CALLS[0][0])
        errors.append(raised.value)
    assert len(set(map(id, errors))) == 3
    with pytest.raises(IndexError) as raised:
        function(CALLS[0][0])
    expected = _lines(raised.value)
    assert [_lines(error) for error in errors] == [expected] * 3
    assert len(capsys.readouterr().out.splitlines()) == 4


def _lines(error: BaseException) -> list[int]:
    return [each.lineno or 0 for each in traceback.extract_tb(error.__traceback__)][1:]


# ---- which exception is being handled
def _asked(x: Tensor, hook: Any) -> Any:
    try:
        y = x * 2
        hook(y)
    except Exception:  # of any kind: that is what is asked
        print("failed", sys.exc_info()[1].args)  # type: ignore[union-attr]  # there is one
        return sys.exc_info()[0].__name__  # type: ignore[union-attr]  # there is one
    finally:
        print(sys.exception())
    return y


def _nested(x: Tensor, hook: Any) -> Any:
    try:
        hook(x)
    except Exception:  # of any kind: that is what is asked
        try:
            raise ValueError("in")
        except ValueError:
            print(sys.exc_info()[0], sys.exc_info()[1].__context__)  # type: ignore[union-attr]  # there is one
        print(sys.exc_info()[0])
    return x + 1, sys.exc_info()


def _divides(y: Tensor) -> None:
    raise ZeroDivisionError("0")


def _looks_up(y: Tensor) -> None:
    raise KeyError("k")


def _nothing(y: Tensor) -> None:
    return None


@pytest.mark.parametrize("function", [_asked, _nested])
def test_python_is_asked_which_exception_is_handled(function: Any) -> None:
    hooks = (_divides, _looks_up, _looks_up, _nothing, _divides)
    agrees(lambda record: function, *((CALLS[0][0], hook) for hook in hooks), settled=3, times=4)
    with pytest.raises(sg.CaptureError, match="tells which exception is being handled"):
        sg.to_static(function, backend="eager")(CALLS[0][0], _divides)


# ---- ways out of a statement
def _raises_in_finally(x: Tensor, k: int) -> Any:
    try:
        k += 1
    except KeyError:
        return x
    finally:
        if k > 100:
            raise ValueError("large")
    return x * k


def _caught_in_an_arm(x: Tensor, k: Any) -> Any:
    try:
        if x.mean() > 0:
            [][100]
    except IndexError:
        pass
    else:
        k = k + None
    return x


@pytest.mark.parametrize("function", [_raises_in_finally, _caught_in_an_arm])
def test_ways_out(function: Any) -> None:
    x = CALLS[0][0]
    agrees(lambda record: function, (x, 1), (x, 200), (-x, 1))
