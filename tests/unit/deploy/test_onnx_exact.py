"""What onnxruntime computes differently from PyTorch, before and after it is written in another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.onnx.onnx_exact import make_exact

NAN, INF = float("nan"), float("inf")
LARGE = torch.tensor([3 * 10**9, -3 * 10**9, 7, 2**40, 1])
MISSING = torch.tensor([[1.0, NAN, 3.0], [3.0, 2.0, NAN], [1.0, 2.0, 3.0]])


def run(text: str, *given: Tensor, exact: bool = True) -> list[Tensor]:
    """What onnxruntime gives for a graph in ONNX's text form, written exactly or as it stands."""
    model = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}'))
    if exact:
        make_exact(model)
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    made: list[Any] = session.run(None, {name: each.numpy() for name, each in zip(names, given)})
    return [torch.from_numpy(np.asarray(each)) for each in made]


CLIP = "g (int64[n] x, int64 low, int64 high) => (int64[n] y) { y = Clip(x, low, high) }"
SUM = "g (int64[n] x) => (int64 y) { y = ReduceSum<keepdims=0>(x) }"
LARGEST = "g (float[n,m] x, int64[1] axes) => (float[n] y) { y = ReduceMax<keepdims=0>(x, axes) }"
MEAN = "g (float[n,m] x, int64[1] axes) => (float[m] y) { y = ReduceMean<keepdims=0>(x, axes) }"
SIGN = "g (float[n,m] x) => (float[n,m] y) { y = Sign(x) }"
TOP = "g (float[n,m] x, int64[1] k) => (float[n,k] y, int64[n,k] i) { y, i = TopK<axis=-1>(x, k) }"
PLACE = "g (float[n,m] x) => (int64[n] y) { y = ArgMax<axis=1, keepdims=0>(x) }"


@pytest.mark.parametrize(
    ("text", "given", "want"),
    [
        (CLIP, (LARGE, torch.tensor(-5), torch.tensor(5)), LARGE.clamp(-5, 5)),
        (SUM, (torch.tensor([2**53 + 1, 1, -(2**40)]),), torch.tensor(2**53 + 2 - 2**40)),
        (LARGEST, (MISSING, torch.tensor([1])), MISSING.amax(1)),
        (MEAN, (torch.zeros(0, 3), torch.tensor([0])), torch.zeros(0, 3).mean(0)),
        (SIGN, (MISSING,), MISSING.sign()),
        (PLACE, (MISSING,), MISSING.argmax(1)),
    ],
    ids=["clip", "sum", "largest", "mean", "sign", "place"],
)
def test_exact(text: str, given: tuple[Tensor, ...], want: Tensor) -> None:
    (got,) = run(text, *given)
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def test_it_is_needed() -> None:
    """The day onnxruntime gives PyTorch's mean of nothing, that form can go.

    The others are not asked: for those onnxruntime has code of its own for each kind of processor.
    """
    (mean,) = run(MEAN, torch.zeros(0, 3), torch.tensor([0]), exact=False)
    assert mean.tolist() == [0, 0, 0]


def test_maximum_and_minimum_of_large_integers() -> None:
    text = "g (int64[n] x, int64[n] y) => (int64[n] a, int64[n] b) { a = Max(x, y)  b = Min(x, y) }"
    largest, smallest = run(text, LARGE, LARGE.flip(0))
    assert torch.equal(largest, torch.maximum(LARGE, LARGE.flip(0)))
    assert torch.equal(smallest, torch.minimum(LARGE, LARGE.flip(0)))


FACTORS = torch.tensor([[2**31 + 1, 3, 7], [2**29 + 5, 2**31 - 1, 3], [-1, 5, 2**21 + 1]])


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_products_of_large_integers(keepdims: int, count: int) -> None:
    text = f"""g (int64[n,m] x) => (int64[k] a, int64[j] b, int64 c) {{
        places = Constant<value = int64[1] {{1}}>()
        first = Constant<value = int64[1] {{0}}>()
        a = ReduceProd<keepdims={keepdims}>(x, places)
        b = ReduceProd<keepdims={keepdims}>(x, first)
        c = ReduceProd<keepdims=0>(x)
    }}"""
    text = text.replace("int64[k] a, int64[j] b", "int64[k,1] a, int64[1,j] b") if keepdims else text
    x = FACTORS[:, :count]
    along, across, all_ = run(text, x)
    assert torch.equal(along, x.prod(1, keepdim=bool(keepdims)))
    assert torch.equal(across, x.prod(0, keepdim=bool(keepdims)))
    assert torch.equal(all_, x.prod())


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 31, 62, 63, 64, 201])
def test_powers_of_large_integers(exponent: int) -> None:
    text = f"""g (int64[n,m] x, int64 s) => (int64[n,m] y, int64 z) {{
        e = Constant<value = int64 {{{exponent}}}>()
        y = Pow(x, e)
        z = Pow(s, e)
    }}"""
    powers, power = run(text, FACTORS, FACTORS[0, 0])
    assert torch.equal(powers, FACTORS**exponent)
    assert torch.equal(power, FACTORS[0, 0] ** exponent)


def test_powers_of_which_the_run_knows_the_exponent() -> None:
    text = "g (int64[n,m] x, int64[m] e) => (int64[n,m] y) { y = Pow(x, e) }"
    bases = torch.cat([FACTORS, torch.tensor([[1, -1, 0], [-3, 2, -1]])])
    for exponents in ([2, 1, 0], [3, 39, 5], [-1, -2, -3], [-2, -1, 7], [64, 65, 99]):
        exponent = torch.tensor(exponents)
        (powers,) = run(text, bases, exponent)
        assert torch.equal(powers, bases**exponent), exponents
    (nothing,) = run(text, bases[:0], torch.tensor([2, 1, 0]))
    assert nothing.shape == (0, 3)


def test_programs_with_large_integers(tmp_path: Path) -> None:
    def function(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, int]:
        y = x.cumprod(1)
        while n > 0:
            y, n = y * x.prod(0), n - 1
        return y, x**3, int(x[0, 0]) ** 2 + 1

    sg.save(function, tmp_path / "function.onnx", args=(torch.ones(3, 3, dtype=torch.int64), torch.tensor(1)))
    loaded = sg.load(tmp_path / "function.onnx")
    for n in (0, 2):
        got, want = loaded(FACTORS % 2**31, torch.tensor(n)), function(FACTORS % 2**31, torch.tensor(n))
        assert torch.equal(got[0], want[0])
        assert torch.equal(got[1], want[1])
        assert got[2] == want[2]


def test_missing_values_are_the_largest() -> None:
    values, places = run(TOP, MISSING, torch.tensor([2]))
    want = MISSING.topk(2, dim=1)
    torch.testing.assert_close(values, want.values, equal_nan=True)
    assert torch.equal(places, want.indices)


def test_bodies_of_branches_are_written_too() -> None:
    text = """g (bool p, int64[n] x, int64[n] y) => (int64[n] z) {
        z = If(p) <
            then_branch = a () => (int64[n] c) { c = Max(x, y) },
            else_branch = b () => (int64[n] d) { d = Min(x, y) }
        >
    }"""
    (largest,) = run(text, torch.tensor(True), LARGE, LARGE.flip(0))
    assert torch.equal(largest, torch.maximum(LARGE, LARGE.flip(0)))


def test_what_is_exact_stays() -> None:
    text = """g (bool[n] x, float[2] f) => (int64 y, float z) {
        n = Cast<to=7>(x)
        y = ReduceSum<keepdims=0>(n)
        z = ReduceMean<keepdims=0>(f)
    }"""
    model = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}'))
    make_exact(model)
    assert [node.op_type for node in model.graph] == ["Cast", "ReduceSum", "ReduceMean"]


ENDS = [0.0, 1.0, -1.0, 2.5, -2.5, 7.0, -7.0, INF, -INF, NAN, 0.1, -0.3, 3.0, 123456.7]


def of_tensors(x: Tensor, y: Tensor) -> Any:
    return x % y, x // y, x % 3.5, x // 0.1


def of_numbers(x: Tensor, y: Tensor) -> Any:
    left, right = float(x), float(y)
    return left % right, left // right


def test_rests_and_whole_quotients_of_floats(tmp_path: Path) -> None:
    sg.save(of_tensors, tmp_path / "x.onnx", args=(torch.ones(196), torch.ones(196)))
    x = torch.tensor(ENDS).repeat_interleave(len(ENDS))
    y = torch.tensor(ENDS).repeat(len(ENDS))
    for found, expected in zip(sg.load(tmp_path / "x.onnx")(x, y), of_tensors(x, y), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_rests_and_whole_quotients_of_numbers(tmp_path: Path) -> None:
    sg.save(of_numbers, tmp_path / "x.onnx", args=(torch.tensor(5.0), torch.tensor(3.0)))
    loaded = sg.load(tmp_path / "x.onnx")
    for left in ENDS:
        for right in ENDS[1:]:
            given = torch.tensor(left), torch.tensor(right)
            found, expected = torch.tensor(loaded(*given)), torch.tensor(of_numbers(*given))
            torch.testing.assert_close(found, expected, rtol=1e-15, atol=0, equal_nan=True)


ZEROS = torch.tensor([0.0, -0.0, 1.5, -2.0, NAN, INF, -INF])
PICKED = {
    "of two": "g (bool[n] c, float[n] x, float[n] y) => (float[n] z) { z = Where(c, x, y) }",
    "of its own and a constant": (
        "g (bool[n] c, float[n] x, float[n] y) => (float[n] z) { one = Constant<value = float {1}>()"
        " z = Where(c, x, one) }"
    ),
    "of a constant and another": (
        "g (bool[n] c, float[n] x, float[n] y) => (float[n] z) { one = Constant<value = float {1}>()"
        " z = Where(c, one, y) }"
    ),
}


@pytest.mark.parametrize("form", PICKED)
def test_the_signs_of_zeros_that_a_condition_picks(form: str) -> None:
    one = torch.ones(())
    for truth in (True, False):
        for other in ZEROS:
            condition, others = torch.full((len(ZEROS),), truth), other.expand(len(ZEROS)).contiguous()
            operands = {"of two": (ZEROS, others), "of its own and a constant": (ZEROS, one)}.get(form, (one, others))
            want = torch.where(condition, *operands)
            (got,) = run(PICKED[form], condition, ZEROS, others)
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
            assert torch.equal(got.signbit() & (got == 0), want.signbit() & (want == 0))


def test_a_constant_that_comes_first_costs_nothing() -> None:
    text = PICKED["of a constant and another"]
    model = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}'))
    make_exact(model)
    assert [node.op_type for node in model.graph] == ["Constant", "Where"]


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_sign_of_a_zero_in_a_file(tmp_path: Path, shape: tuple[int, ...]) -> None:
    def picks(x: Tensor, y: Tensor) -> tuple[Tensor, float, float, float]:
        a, b = float(x.flatten()[0]), float(y.flatten()[0])
        return torch.where(x <= y, x, y), max(a, b), min(a, b), round(a, 1)

    path = tmp_path / "picks.onnx"
    sg.save(picks, path, args=(torch.ones(shape), torch.ones(shape)))
    loaded = sg.load(path)
    for first in (0.0, -0.0, -0.04):
        for second in (0.0, -0.0, 1.0):
            given = (torch.full(shape, first), torch.full(shape, second))
            for want, got in zip(picks(*given), loaded(*given)):
                want, got = torch.as_tensor(want), torch.as_tensor(got)
                assert torch.equal(want, got), given
                assert torch.equal(want.signbit(), got.signbit()), given
