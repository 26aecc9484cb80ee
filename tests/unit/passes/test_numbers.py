from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.numbers.number_operations import LOWERINGS, lower_number
from stillgraph.passes.regions.values import dtype_of, kind_of
from tests.unit.passes.captured import run

NUMBERS = st.one_of(st.booleans(), st.integers(-20, 20), st.floats(-20, 20).map(lambda f: round(f, 3)))
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    max,
    min,
    math.pow,
]
WHOLE = [operator.and_, operator.or_, operator.xor]
UNARY = [operator.neg, operator.pos, abs, operator.not_, bool, int, float, round, math.floor, math.ceil, math.trunc]


def _emit(target: Any, *args: Any, kind: type | None = None, **kwargs: Any) -> Any:
    """Run at once what a pass would write down."""
    result = getattr(args[0], target)(*args[1:], **kwargs) if isinstance(target, str) else target(*args, **kwargs)
    assert kind is None or result.dtype == dtype_of(kind), f"{target} gives {result.dtype}, declared is {kind}"
    return result


def _check(function: Callable[..., Any], *values: Any) -> None:
    try:
        expected = function(*values)
    except (ZeroDivisionError, ValueError, OverflowError):
        assume(False)
    assume(not isinstance(expected, complex))
    kind = kind_of(expected)
    if function in (max, min):  # the kind of the result is only known when running: the wider one is declared
        kind = max((type(v) for v in values), key=(bool, int, float).index)
    assert kind is not None
    operands = [(type(v), torch.tensor(v, dtype=dtype_of(type(v)))) for v in values]
    got = lower_number(_emit, function, kind, operands)
    assert got.dtype == dtype_of(kind)
    assert math.isclose(got.item(), expected, rel_tol=1e-12), f"{got.item()} instead of {expected}"


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
@given(left=NUMBERS, right=NUMBERS)
def test_two_numbers(function: Callable[..., Any], left: Any, right: Any) -> None:
    _check(function, left, right)


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
@given(left=st.integers(-9, 9) | st.booleans(), right=st.integers(-9, 9) | st.booleans())
def test_two_whole_numbers(function: Callable[..., Any], left: Any, right: Any) -> None:
    _check(function, left, right)


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
@given(value=NUMBERS)
def test_one_number(function: Callable[..., Any], value: Any) -> None:
    _check(function, value)


@given(value=st.floats(-20, 20), digits=st.integers(0, 4))
def test_rounded_to_digits(value: float, digits: int) -> None:
    got = lower_number(_emit, round, float, [(float, torch.tensor(value, dtype=torch.float64)), (int, digits)])
    assert math.isclose(got.item(), round(value, digits), abs_tol=10.0**-digits)


def test_what_torch_has_nothing_for() -> None:
    assert math.gamma not in LOWERINGS
    assert lower_number(_emit, math.gamma, float, []) is None

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * math.gamma(float(x.sum()))

    with pytest.raises(ExportError, match="gamma on numbers"):
        pipeline.run(sg.export(scaled, (torch.ones(4),)))


# ---- numbers that meet tensors
TENSORS = [
    torch.tensor([1, 2, 3]),
    torch.tensor([1.5, 2.0]),
    torch.tensor([1.5, 2.0], dtype=torch.float64),
    torch.tensor(2),
    torch.tensor(2.5),
    torch.tensor([True, False]),
    torch.tensor([1, 2], dtype=torch.int8),
    torch.tensor([1.5, 0.1], dtype=torch.bfloat16),
    torch.tensor(True),
]


def whole(x: torch.Tensor, source: torch.Tensor) -> list[torch.Tensor]:
    n = source.item()
    return [x + n, n * x, x / n, x**n, x > n, x // n, torch.where(x > 1, x, n), torch.full_like(x, n)]


def fraction(x: torch.Tensor, source: torch.Tensor) -> list[torch.Tensor]:
    n = source.item()
    return [x + n, n - x, x / n, n**x, x >= n, torch.where(x > 1, x, n)]


def bounded(x: torch.Tensor, source: torch.Tensor) -> list[torch.Tensor]:
    n = source.item()
    return [x.clamp(min=n), torch.clamp(x, 0, n), x.masked_fill(x > n, n), torch.tensor(n), torch.full((2,), n)]


@pytest.mark.parametrize("tensor", [t for t in TENSORS if t.dtype != torch.bool], ids=lambda t: f"{t.dtype}{t.dim()}")
@pytest.mark.parametrize(
    ("function", "number"),
    [(whole, torch.tensor(2)), (fraction, torch.tensor(0.5, dtype=torch.float64)), (bounded, torch.tensor(1))],
)
def test_dtypes_are_those_of_eager(function: Callable[..., Any], number: torch.Tensor, tensor: torch.Tensor) -> None:
    expected = function(tensor, number)
    lowered = pipeline.run(sg.export(function, (tensor, number)))
    got = run(lowered, (tensor, number))
    for want, have in zip(expected, got, strict=True):
        have = have if isinstance(have, torch.Tensor) else torch.tensor(have, dtype=want.dtype)
        torch.testing.assert_close(have, want)


def test_the_dtypes_of_zero_dimensional_results() -> None:
    def scaled(x: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x * source.item()

    args = (torch.tensor(2.5), torch.tensor(0.1, dtype=torch.float64))
    lowered = pipeline.run(sg.export(scaled, args))
    (result,) = lowered.graph.graph.output_node().args[0]
    assert result.meta["val"].dtype == torch.float32


# ---- sizes
def test_a_number_that_is_asked_for_as_a_size() -> None:
    def padded(x: torch.Tensor) -> torch.Tensor:
        n = int(x.sum())
        return torch.cat([x, torch.zeros(n + 1)])

    lowered = pipeline.run(sg.export(padded, (torch.ones(3),)))
    assert "item" in {node.target for node in lowered.graph.graph.nodes}
    assert run(lowered, (torch.ones(2),))[0].shape == (5,)


def test_symbolic_sizes_stay_symbols() -> None:
    def mean(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x.reshape(x.shape[0] * 3)
        else:
            x = x.flatten()
        return x / x.shape[0]

    lowered = pipeline.run(sg.export(mean, (torch.ones(4, 3),), input_spec=[sg.InputSpec([None, 3])]))
    text = str(lowered)
    assert "item" not in text
    torch.testing.assert_close(run(lowered, (torch.ones(2, 3),))[0], torch.ones(6) / 6)


def test_an_element_and_a_slice_that_only_the_run_knows() -> None:
    def rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for row in range(x.shape[0]):
            part = x[row, : lengths[row]]
            out[row, : len(part)] = part.flip(0)
        return out

    given = (torch.arange(12.0).reshape(3, 4), torch.tensor([3, 1, 4]))
    spec = [sg.InputSpec([None, None]), sg.InputSpec([None], torch.int64)]
    lowered = pipeline.run(sg.export(rows, given, input_spec=spec))
    for call in (given, (torch.arange(10.0).reshape(2, 5), torch.tensor([0, 2]))):
        torch.testing.assert_close(run(lowered, call), [rows(*call)])


# ---- what is read is read when eager reads it
def test_a_number_read_before_its_tensor_is_overwritten() -> None:
    def read(x: torch.Tensor) -> torch.Tensor:
        count = torch.tensor(1)
        n = count.item()
        count += 5
        return x * n + count

    lowered = pipeline.run(sg.export(read, (torch.ones(2),)))
    torch.testing.assert_close(run(lowered, (torch.ones(2),))[0], torch.full((2,), 7.0))
