"""What a handler may ask of an exception that only the run raises."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from stillgraph.program.exceptions import raise_, which
from tests.unit.operators.asserting import told
from tests.unit.trace.agreement import N, P, agree, count, program_of, refusal


class Base(ValueError):
    code = 1

    def describe(self) -> str:
        return "base"


class Odd(Base):
    code = 2

    def __init__(self, text: str, limit: int = 5) -> None:
        super().__init__(text)
        self.limit = limit

    def describe(self) -> str:
        return "odd"


def one(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise Odd("too much", 7)
    return x * 2


def two(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise ValueError("too much", 3)
    if x.sum() < -5:
        raise KeyError("too little")
    return x * 2


def four(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise Odd("far too much" if x.sum() > 5.5 else "too much")
    if x.sum() < -5:
        raise KeyError("too little" if x[0] < 0 else ("too", 1.5, None))
    return x * 2


def staged(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise Odd(f"the sum is {x.sum().item()}")
    if x.sum() < -5:
        raise KeyError("too little")
    return x * 2


# ---- what is known
def its_class(x: Tensor, of: Any) -> Any:
    try:
        return of(x)
    except (ValueError, KeyError) as error:
        print(type(error), error.__class__.__name__, type(error) is Odd)
        return x, type(error).__name__


def its_text(x: Tensor, of: Any) -> Any:
    try:
        return of(x)
    except (ValueError, KeyError) as error:
        print(f"{type(error).__name__}: {error} {error!r}", len(error.args))
        return x, str(error), repr(error), f"<{error}>", len(str(error)), str(error) == "too much"


def its_arguments(x: Tensor, of: Any) -> Any:
    try:
        return of(x)
    except (ValueError, KeyError) as error:
        return x, error.args, error.args[0]


def kept_for_later(x: Tensor, of: Any) -> Any:
    said = None
    try:
        x = of(x)
    except (ValueError, KeyError) as error:
        said = f"{type(error).__name__}: {error}"
    return x, said


def told_again(x: Tensor, of: Any) -> Any:
    try:
        return of(x)
    except (ValueError, KeyError) as error:
        raise RuntimeError(f"{type(error).__name__} for {error}") from error


def caught_further_out(x: Tensor, of: Any) -> Any:
    try:
        try:
            try:
                return of(x)
            finally:
                x = x + 1
        except IndexError:
            return x
        except Odd:
            raise
    except (ValueError, KeyError) as error:
        return x, str(error)


@pytest.mark.parametrize("of", [one, four])
@pytest.mark.parametrize("use", [its_class, its_text, its_arguments, kept_for_later, told_again, caught_further_out])
def test_of_constants(use: Any, of: Any) -> None:
    agree(lambda x: use(x, of), P, N, P / 10)


def test_the_class_of_what_holds_a_value_of_the_run() -> None:
    agree(lambda x: its_class(x, staged), P, N, P / 10)


def in_a_handler_of_its_own(x: Tensor) -> Any:
    try:
        return two(x)
    except KeyError as error:
        return x * len(error.args[0])
    except ValueError as error:
        return x * error.args[1]


def attributes(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        asked = getattr(error, "code", 0), getattr(error, "other", 9), hasattr(error, "limit")
        return x, error.code, error.limit, asked


def an_attribute_of_the_class(x: Tensor) -> Any:
    try:
        return staged(x)
    except Base as error:
        return x, error.code


def logged(x: Tensor) -> Any:
    try:
        return two(x)
    except (KeyError, ValueError) as error:
        logging.getLogger(__name__).warning("%s: %s", type(error).__name__, error)
        return x


def the_class_of_what_fails(x: Tensor) -> Any:
    n = int(x.sum())
    try:
        y = x[n]
    except (IndexError, ZeroDivisionError) as error:
        kind = type(error)
        known = kind is IndexError, issubclass(kind, LookupError), isinstance(error, ArithmeticError)
        print(f"{type(error).__name__}: {error}")
        return kind.__name__, error.__class__.__qualname__, known
    return y


def the_name_of_any_class(x: Tensor) -> Any:
    try:
        y = x[int(x.sum())]
    except Exception as error:
        print("failed:", type(error).__name__, error)
        return x
    return y


def its_message(x: Tensor) -> Any:
    try:
        return staged(x)
    except ValueError as error:
        return x, error.args


@pytest.mark.parametrize(
    "function",
    [
        *(in_a_handler_of_its_own, attributes, an_attribute_of_the_class, told, the_class_of_what_fails),
        *(the_name_of_any_class, its_message),
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, P, N, P / 10)


def test_logged(caplog: pytest.LogCaptureFixture) -> None:
    function = sg.to_static(logged, backend="eager")
    for value in (P, N, P / 10):
        function(value)
    assert caplog.messages == ["ValueError: ('too much', 3)", "KeyError: 'too little'"]
    assert function.cache_info().programs == 1


def test_one_branch_tells_two_apart() -> None:
    program = program_of(lambda x: kept_for_later(x, two), P)
    assert count(program, which) == 2  # by their classes, and by what they say
    assert count(program_of(lambda x: kept_for_later(x, one), P), which) == 2


def test_what_was_not_to_be_expected_goes_on() -> None:
    """The handler is for the exception that the capture knows; any other that turns up there is raised."""
    error = Odd("too much")
    assert which(error, (KeyError, Odd), ("('k',)", "('too much',)")) == 1
    with pytest.raises(Odd) as found:
        which(error, (KeyError, Odd), ("('k',)", "('other',)"))
    assert found.value is error


# ---- what is not
def a_method(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        return x, error.describe()


def its_cause(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        return x, error.__cause__ is None


def its_namespace(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        return x, vars(error)


def its_traceback(x: Tensor) -> Any:
    try:
        return one(x)
    except Base:
        traceback.print_exc()
        return x


def a_note(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        error.add_note("seen")
        raise


@pytest.mark.parametrize(
    "function", [a_method, its_cause, its_namespace, a_note]
)
def test_refused(function: Any) -> None:
    assert refusal(function, P).reason.code == "SG301"


def test_where_it_has_come_by_is_not_told() -> None:
    assert refusal(its_traceback, P).reason.code == "SG305"


def changed(x: Tensor) -> Any:
    try:
        return one(x)
    except Odd as error:
        error.limit = 8
        raise


def test_it_is_not_changed() -> None:
    error = refusal(changed, P)
    assert error.reason.code == "SG305"
    assert "limit of an exception is set that the program has caught" in str(error)


# ---- raising it on
def from_another(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        raise error from KeyError("k")


def from_nothing(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        raise error from None


def without_its_traceback(x: Tensor) -> Any:
    try:
        return one(x)
    except Base as error:
        raise error.with_traceback(None)  # noqa: B904  # it is the same one


def from_the_first(x: Tensor) -> Any:
    try:
        return two(x)
    except ValueError as first:
        try:
            return one(x)
        except Odd as second:
            raise second from first


def chosen(x: Tensor) -> Any:
    try:
        return two(x)
    except (ValueError, KeyError) as error:
        raise (Base("a") if x[0] > 1.5 else Odd("b")) from error


def a_chosen_class(x: Tensor) -> Any:
    kind = Odd if x[0] > 1.5 else Base
    if x.sum() > 0:
        raise kind("c") from KeyError
    raise kind("d") from None


def a_chosen_text(x: Tensor) -> Any:
    if x.sum() > 0:
        raise RuntimeError("far too much" if x.sum() > 5 else "too much")
    raise Odd("far too little" if x.sum() < -5 else "too little", 4)


@pytest.mark.parametrize(
    "function",
    [
        *(from_another, from_nothing, without_its_traceback, from_the_first, chosen, a_chosen_class, a_chosen_text),
    ],
)
def test_raised_on(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for value in (P, P * 2, N, P / 10):
        ends = []
        for call in (static, function):
            try:
                call(value)
                ends.append(None)
            except Exception as error:  # of any kind: both are to be alike
                cause, around = error.__cause__, error.__context__
                ends.append((repr(error), repr(cause), repr(around), error.__suppress_context__, vars(error)))
        assert ends[0] == ends[1]


def test_a_traceback_given_up_is_gone() -> None:
    static = sg.to_static(without_its_traceback, backend="eager")
    for call in (without_its_traceback, static):
        with pytest.raises(Odd) as found:
            call(P)
        names = [frame.name for frame in traceback.extract_tb(found.value.__traceback__)]
        assert "one" not in names
        assert "without_its_traceback" in names


def test_a_cause_must_be_an_exception() -> None:
    def function(x: Tensor) -> Tensor:
        raise Odd("a") from x  # type: ignore[misc]  # which is wrong

    with pytest.raises(TypeError, match="exception causes must derive from BaseException"):
        sg.to_static(function, backend="eager")(P)


def test_the_raise_of_a_copy_is_one_of_the_program() -> None:
    assert count(program_of(a_chosen_text, P), raise_) == 4
