"""What exceptions of the run hold, asked by the handlers of the same program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.exceptions import message_of
from tests.cases.compare import assert_same
from tests.cases.harness import python_module
from tests.unit.trace.agreement import agree, program_of, refusal

CALLS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, 0.1, 0.1], [9.0, 9.0, -9.5])]


class Rejected(Exception):
    code = "rejected"

    def __init__(self, step: Any, value: Any) -> None:
        super().__init__("rejected")
        self.step, self.value = step, value

    def halved(self) -> Any:
        return self.value / 2


class Other(Exception):
    def __init__(self, *, value: Any) -> None:
        self.value = value


def checked(x: Tensor, step: int) -> Tensor:
    if x.sum() > step + 3:
        raise Rejected(step=step, value=x * 0.5)
    if x.sum() < -step:
        raise Rejected(-step, x * 0.25)
    return x + 1


def of_another_function(x: Tensor) -> Any:
    try:
        return checked(x, 2)
    except Rejected as error:
        return error.value * error.step, error.code, getattr(error, "step", 0), hasattr(error, "value")


def in_a_loop(x: Tensor) -> Any:
    n, total = 0, 0
    while x.abs().sum() > 0.5 and n < 12:
        try:
            x = checked(x, n) * 0.5
        except Rejected as error:
            x, total = error.value, total + error.step
        n += 1
    return x, n, total


def around_a_loop(x: Tensor) -> Any:
    n = 0
    try:
        while n < 9:
            n += 1
            x = x * 1.5 + 0.1
            if x.sum() > 30:
                raise Rejected(n, x)
            if x.sum() < -30:
                raise Rejected(step=-n, value=-x)
    except Rejected as error:
        return error.value, error.step
    return x, n


def of_two_classes(x: Tensor) -> Any:
    try:
        if x.sum() > 3:
            raise Rejected(1, x)
        if x.sum() < 0:
            raise Other(value=x * 2)
    except (Rejected, Other) as error:
        return error.value + isinstance(error, Other)
    return x


def beside_what_fails(x: Tensor) -> Any:
    try:
        y = x[int(x.sum().clamp(0, 2))] / 2
        if x.sum() > 3:
            raise Rejected(int(x.sum()), y)
        z = torch.linalg.vector_norm(x)
    except Rejected as error:
        return error.value, error.step
    return z


def raised_again(x: Tensor) -> Any:
    try:
        try:
            if x.sum() > 3:
                raise Rejected(int(x[0]), x)
        except Rejected as error:
            if error.step > 5:
                raise
            return error.value + 1
    except Rejected as error:
        return error.value * error.step
    return x


def changed_in_place(x: Tensor) -> Any:
    y = x.clone()
    try:
        if x.sum() > 3:
            raise Rejected(0, y)
    except Rejected as error:
        error.value.add_(1)
        error.value[0] = 5
        return y, error.value, error.value is y, error.value is x
    return y


def arguments(x: Tensor) -> Any:
    try:
        if x.sum() > 3:
            raise KeyError("big", x.sum().item(), x)
        if x.sum() < 0:
            raise KeyError("small", 3.0, x * 2)
    except KeyError as error:
        return error.args[1], error.args[2], len(error.args)
    return x


FUNCTIONS = [
    *(of_another_function, in_a_loop, around_a_loop, of_two_classes, beside_what_fails, raised_again),
    *(changed_in_place, arguments),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", [of_two_classes, raised_again], ids=lambda function: function.__name__)
def test_gradients(function: Any) -> None:
    static = sg.to_static(function, full_graph=True, backend="eager")
    for x in CALLS:
        expected, actual = (x.clone().requires_grad_() for _ in range(2))
        function(expected).sum().backward()
        static(actual).sum().backward()
        assert torch.equal(expected.grad, actual.grad)  # type: ignore[arg-type]  # both have one


def asks_a_method(x: Tensor) -> Any:
    try:
        return checked(x, 2)
    except Rejected as error:
        return error.halved()


def big_or_small(x: Tensor) -> Tensor:
    if x.sum() > 3:
        raise KeyError("big", x)
    if x.sum() < 0:
        raise KeyError("small", x)
    return x


def text_of_each(x: Tensor) -> Any:
    try:
        return big_or_small(x)
    except KeyError as error:
        return error.args[0] + "!"


def may_be_of_another_operation(x: Tensor) -> Any:
    try:
        n = int(x.sum())  # of a NaN, it raises a ValueError with other arguments
        if n > 3:
            raise ValueError(n, x)
    except ValueError as error:
        return error.args[1]
    return x


@pytest.mark.parametrize("function", [asks_a_method, text_of_each, may_be_of_another_operation])
def test_refused(function: Any) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG301"


def factored(x: Tensor) -> Any:
    try:
        return torch.linalg.cholesky(x.diag()).sum()
    except RuntimeError as error:
        if "positive" in error.args[0]:
            return x * len(error.args)
        raise


def factored_or_raised(x: Tensor) -> Any:
    try:
        if x.sum() > 7:
            raise RuntimeError(f"{x.sum():.1f} is too much")
        return torch.linalg.cholesky(x.diag()).sum()
    except RuntimeError as error:
        return error.args[0] + "!", error.args


def numbered(x: Tensor) -> Any:
    try:
        return 10.0 ** (x.sum() * 100).item()  # of which an OverflowError has a number and a text
    except ArithmeticError as error:
        return error.args[0]


@pytest.mark.parametrize("function", [factored, factored_or_raised, numbered])
def test_the_text_of_what_failed(function: Any) -> None:
    agree(function, *CALLS)


def test_arguments_of_what_failed_that_are_no_text() -> None:
    with pytest.raises(RuntimeError, match=r"was captured for one text, and they are .34, 'too large'."):
        message_of(OverflowError(34, "too large"))


def by_position(x: Tensor) -> Any:
    try:
        if x.sum() > 3:
            raise KeyError(x * 2, int(x.sum()))
        if x.sum() < 0:
            raise KeyError(x * 3, 4)
    except KeyError as error:
        return error.args[0] + error.args[1]
    return x


def test_python_source_asks_the_exception(tmp_path: Path) -> None:
    assert program_of(by_position, CALLS[0])
    sg.save(by_position, tmp_path / "f.py", args=(CALLS[0],))
    module = python_module(tmp_path / "f.py")
    for x in CALLS:
        assert_same(by_position(x), module.by_position(x))


def test_python_source_asks_what_failed(tmp_path: Path) -> None:
    sg.save(factored, tmp_path / "f.py", args=(CALLS[0],))
    module = python_module(tmp_path / "f.py")
    for x in CALLS:
        assert_same(factored(x), module.factored(x))


def test_other_files_say_so(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="an except block uses the exception"):
        sg.save(by_position, tmp_path / "f.pt2", args=(CALLS[0],))


class Shaped(Exception):
    def __init__(self, shape: Any, counts: Any) -> None:
        self.shape, self.counts = shape, counts


def leaving_with_a_shape(x: Tensor) -> Tensor:
    y = x[x > 0]
    if y.shape != x.shape:
        raise AssertionError(y.shape)
    return y


def leaving_with_containers(x: Tensor) -> Tensor:
    y = x[x > 0]
    if y.numel() < 3:
        raise ValueError("few", [y.numel(), 2], {"total": x.sum().item(), "shape": y.shape})
    return y


def leaving_with_attributes(x: Tensor) -> Tensor:
    y = x[x > 0]
    if y.numel() < 3:
        raise Shaped(y.shape, [y.numel()])
    return y


@pytest.mark.parametrize("function", [leaving_with_a_shape, leaving_with_containers, leaving_with_attributes])
def test_what_leaves_the_call_holds_what_eager_holds(function: Any) -> None:
    static = sg.to_static(function, full_graph=True, backend="eager")
    for x in CALLS:
        told = []
        for each in (function, static):
            try:
                told.append(each(x))
            except (AssertionError, ValueError, Shaped) as error:
                held = (*error.args, *vars(error).values())
                told.append((type(error), held, [type(each) for each in held]))
        assert repr(told[0]) == repr(told[1])


def with_a_list_that_stays(x: Tensor, seen: list[Any]) -> None:
    seen.append(x.sum().item())
    if x.sum() > 3:
        raise KeyError(seen)


def test_a_list_that_was_there_before_is_no_copy() -> None:
    with pytest.raises(sg.CaptureError, match="a KeyError that holds staged values is raised"):
        sg.to_static(with_a_list_that_stays, backend="eager")(CALLS[0], [])
