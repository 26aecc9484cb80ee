"""Files of programs whose handlers ask which exception they have, or let it go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import bytecode  # noqa: F401  # a fixture

X = torch.tensor([1.0, 2.0])
CALLS = (X, -X, X * 9, X - 1.5, torch.zeros(2), X * 2, -X * 3)


class Base(ValueError):
    """An exception of the user's."""


class Derived(Base):
    """One of its kind."""


def checked(v: Tensor) -> Tensor:
    if v.sum() > 5:
        raise Derived("large")
    if v.sum() < 0:
        raise RuntimeError("negative")
    return v + 1


def several_clauses(x: Tensor) -> Tensor:
    try:
        y = checked(x)
        assert x.sum() != 0, "zero"
    except ValueError:
        y = x * 2
    except (RuntimeError, KeyError):
        y = x * 3
    except AssertionError:
        y = x - 7
    return y


def by_isinstance(x: Tensor) -> Tensor:
    try:
        y = checked(x)
    except (ValueError, RuntimeError) as error:
        y = x * (2 if isinstance(error, Base) else 3)
        if isinstance(error, (KeyError, RuntimeError)):
            y = y - 1
    return y


def by_class(x: Tensor) -> Tensor:
    try:
        if x.max() > 10:
            raise Base("very large")
        y = checked(x)
    except (ValueError, RuntimeError) as error:
        if type(error) is Base:
            y = x * 2
        else:
            y = x * (3 if type(error) is Derived else 4)
    return y


def by_text(x: Tensor) -> Tensor:
    try:
        if x.max() > 10:
            raise KeyError("large")
        y = checked(x)
    except Exception as error:
        y = x * 2 if error.args == ("large",) else x * 3
        if str(error) == "'large'":
            y = y - 1
    return y


def of_python(x: Tensor) -> Any:
    n, kept = int(x.sum()), [value for value in x if value > 0]
    try:
        y = kept[1] * (10 // n)
        if n > 5:
            raise ValueError("large")
    except ZeroDivisionError:
        y = x.sum() - 1
    except IndexError:
        y = x.sum() - 2
    except ValueError:
        y = x.sum() - 3
    return y


def raised_again(x: Tensor) -> Tensor:
    try:
        y = checked(x)
    except (Base, RuntimeError) as error:
        if x.max() > 10 or type(error) is RuntimeError:
            raise
        y = x * 2
    if y.sum() == 12:
        raise KeyError("later")
    return y


def raised_again_and_handled(x: Tensor) -> Tensor:
    try:
        try:
            try:
                y = checked(x)
            except (Base, RuntimeError) as error:
                if x.max() > 10 or x.sum() < -4:
                    raise error from None
                y = x * 2
        except RuntimeError:
            raise KeyError("negative") from None
    except (ValueError, LookupError) as error:
        y = x * 5 if isinstance(error, Derived) else x * 7
    return y


def handled_in_a_handler(x: Tensor) -> Tensor:
    try:
        y = checked(x)
    except (Base, RuntimeError) as error:
        try:
            if x.max() > 10:
                raise KeyError("very large") from None
            if isinstance(error, Base):
                raise
            y = x * 7
        except KeyError:
            y = x * (2 if type(error) is Derived else 4)
    return y


def in_a_loop(x: Tensor) -> Tensor:
    total = x * 0
    for i in range(int(x.abs().sum())):
        try:
            total = total + checked(x * i - 2)
        except (Base, RuntimeError) as error:
            if isinstance(error, RuntimeError) and i > 5:
                raise
            total = total - (1 if isinstance(error, Base) else 100)
    return total


def one_of_two(x: Tensor) -> Tensor:
    try:
        if x.sum() > 0:
            raise Derived("positive")
        raise RuntimeError("not positive")
    except ValueError:
        y = x * 2
    except RuntimeError:
        y = x * 3
    return y


def cleaned_up(x: Tensor) -> Tensor:
    done = torch.zeros(2)
    try:
        y = checked(x)
    finally:
        done = done + 1
    return y + done


def described(x: Tensor) -> Any:
    message = f"{0}"
    try:
        y = checked(x)
    except (ValueError, RuntimeError) as error:
        y, message = x, f"{type(error)}"
    return y, message


def chained(x: Tensor) -> Any:
    try:
        y = checked(x)
    except ValueError as error:
        raise KeyError("large") from error
    return y


def of_known_sequences(x: Tensor) -> Any:
    n = int(x.sum())
    try:
        y = x * [1, 2, 3][n]
    except IndexError:
        y = x * 7
    try:
        y = y + (x, -x)[-n]
    except LookupError as error:
        y = y - (1 if str(error) == "tuple index out of range" else 100)
    if n > 0:
        if n >= 10:
            raise LookupError("too large")
        y = y + list(range(4))[n]
    return y


def with_an_else(x: Tensor) -> Tensor:
    try:
        try:
            if x.sum() > 5:
                raise KeyError("large")
        except KeyError:
            y = x * 2
        else:
            if x.sum() < 0:
                raise KeyError("negative")
            y = x * 3
    except KeyError:
        y = x * 4
    return y


HANDLERS = [several_clauses, by_isinstance, by_class, by_text, of_python, raised_again, raised_again_and_handled]
HANDLERS += [handled_in_a_handler, in_a_loop, one_of_two, cleaned_up, described, chained]
HANDLERS += [of_known_sequences, with_an_else]


def outcome(function: Callable[..., Any], x: Tensor) -> Any:
    try:
        return function(x)
    except Exception as error:
        return error


def assert_alike(function: Callable[..., Any], loaded: Callable[..., Any]) -> None:
    """A loaded program gives, or raises, what the function does; of a class of the user's a file has the name."""
    for x in CALLS:
        expected, found = outcome(function, x), outcome(loaded, x)
        if isinstance(expected, Base):
            assert (type(found), str(found)) == (RuntimeError, f"{type(expected).__name__}: {expected}")
        elif isinstance(expected, Exception):
            assert (type(found), str(found)) == (type(expected), str(expected))
        else:
            assert_same(expected, found)


@pytest.mark.parametrize("function", HANDLERS, ids=lambda each: each.__name__)
def test_a_handler_is_told_which_exception_it_has(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    assert_alike(function, sg.load(tmp_path / "program.pt2"))


NOT_FROM_BYTECODE = (several_clauses, handled_in_a_handler, in_a_loop)  # of which the capture is refused
FROM_BYTECODE = [each for each in HANDLERS if each not in NOT_FROM_BYTECODE]


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("function", FROM_BYTECODE, ids=lambda each: each.__name__)
def test_through_bytecode(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    assert_alike(function, sg.load(tmp_path / "program.pt2"))


@pytest.mark.slow
@pytest.mark.parametrize("function", HANDLERS, ids=lambda each: each.__name__)
def test_assertions_as_results(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,), assertions="return")
    assert_alike(function, sg.load(tmp_path / "program.pt2"))


# ---- what else happens to a try
def beside_a_list_that_nobody_uses(x: Tensor) -> Tensor:
    kept = []
    for i in range(int(x.abs().sum())):
        kept.append(x * i)
    try:
        y = checked(x)
    except (ValueError, RuntimeError):
        y = x - 1
    return y


def of_which_nobody_uses_the_result(x: Tensor) -> Tensor:
    results = [x]
    if x.sum() > 1:
        try:
            results.append(checked(x))
        except ValueError:
            results.append(x - 1)
    if x.sum() > 7:
        raise KeyError("very large")
    return results[0] + 1


@pytest.mark.parametrize("function", [beside_a_list_that_nobody_uses, of_which_nobody_uses_the_result])
def test_a_try_stays_where_code_around_it_is_dropped(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    assert_alike(function, sg.load(tmp_path / "program.pt2"))


# ---- refusals
def held(x: Tensor) -> Tensor:
    try:
        if x.sum() > 5:
            raise ValueError(x.sum().item())
        y = x + 1
    except ValueError as error:
        y = x * error.args[0]
    return y


def test_what_an_exception_holds_of_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="an except block uses the exception") as raised:
        sg.save(held, tmp_path / "program.pt2", args=(X,))
    assert "test_handlers.py" in str(raised.value)


def none_in_place_of_a_number(x: Tensor) -> Tensor:
    number = None if x.sum() > 5 else 3
    try:
        y = x * (number + 1)  # type: ignore[operator]  # it is to fail
    except TypeError:
        y = x - 1
    return y


def none_in_a_call(x: Tensor) -> Tensor:
    most = None if x.sum() > 5 else 1.5
    try:
        y = torch.clamp(x, max=most)
    except (TypeError, RuntimeError):
        y = x - 1
    return y


def no_assertion_of_the_users(x: Tensor) -> Tensor:
    number = None if x.sum() > 5 else 3
    try:
        assert x.sum() > 0
        y = x * (number + 1)  # type: ignore[operator]  # it is to fail
    except AssertionError:
        y = x - 1
    return y


@pytest.mark.parametrize("function", [none_in_place_of_a_number, none_in_a_call])
def test_what_python_raises_for_none_is_refused(function: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="may be None or unbound is used in a try") as raised:
        sg.save(function, tmp_path / "program.pt2", args=(X,))
    assert raised.value.reason.code == "SG402"


def test_a_handler_of_assertions_is_not_given_what_the_file_asserts(tmp_path: Path) -> None:
    sg.save(no_assertion_of_the_users, tmp_path / "program.pt2", args=(X,))
    loaded = sg.load(tmp_path / "program.pt2")
    assert_same(no_assertion_of_the_users(X), loaded(X), "in the body")
    assert_same(no_assertion_of_the_users(-X), loaded(-X), "handled")
    with pytest.raises(AssertionError, match="None or unbound"):
        loaded(X * 9)


def loop_at_the_beginning(x: Tensor) -> tuple[Tensor, Tensor]:
    last = x[0]
    try:
        while x[1] > -5:
            if x[1] > 1:
                last = x[1]
            if x[0] > 4:
                raise ValueError("large")
            x = x - 1
    except ValueError:
        x = x + 1
    return x, last


def test_a_loop_begins_a_body(tmp_path: Path) -> None:
    sg.save(loop_at_the_beginning, tmp_path / "program.pt2", args=(X,))
    loaded = sg.load(tmp_path / "program.pt2")
    for x in CALLS:
        assert_same(loop_at_the_beginning(x), loaded(x))
