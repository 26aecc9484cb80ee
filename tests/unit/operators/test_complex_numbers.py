"""Complex numbers of Python's that only the run knows."""

from __future__ import annotations

import cmath
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.cases.harness import python_module
from tests.unit.trace.agreement import agree

CALLS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [-0.5, 0.25, 0.0], [0.0, 0.0, 1.0])]


def arithmetic(x: Tensor) -> Any:
    z = complex(int(x[0]), x[1].item())
    w = z * 2 + 1j - x.size(0)
    mixed = (2.0 - z, x[2].item() * z, int(x[2]) + 2j, 3 / (z + 5), z**2, 2**z)
    return z, w, w.real, w.imag, w.conjugate(), abs(w), -w, +w, z * w, mixed


def compared(x: Tensor) -> Any:
    z, w = complex(x[0].item(), x[1].item()), complex(x[1].item(), x[1].item())
    return z == w, z != w, z == x[0].item(), x[0].item() == z, z == 1 + 2j, z in [w, z], bool(z), z == "a", z is None


def beside_tensors(x: Tensor) -> Any:
    z = complex(x[0].item(), 2)
    return x * z, z * x, z - x, x / z, torch.add(x, x, alpha=2) + z, x[0] * z, x.to(torch.complex64).mul_(z)


def made_into_tensors(x: Tensor) -> Any:
    z = complex(x[0].item(), 2)
    return torch.full((2,), z), torch.full((2,), fill_value=z), torch.tensor([z, 1]), torch.where(x > 0, x + 0j, z)


def in_arms(x: Tensor) -> Any:
    z = complex(x[0].item(), 2)
    if x.sum() > 3:
        z = z * 1j
    else:
        z = 1j
    return z, abs(z)


def constants_of_arms(x: Tensor) -> Any:
    z = 1 + 1j if x.sum() > 3 else 2j
    return x * z, z, z.imag


def mandelbrot(x: Tensor) -> Any:
    z, c, n = 0j, complex(x[0].item(), x[1].item()), 0
    while abs(z) < 2 and n < 10:
        z = z * z + c
        n += 1
    return z, n


def begun_with_a_constant(x: Tensor) -> Any:
    z = 1j
    while abs(z) < x.sum():
        z = z * 2j
    return z


def on_some_paths(x: Tensor) -> Any:
    z = None
    if x[0] > 0:
        z = complex(x[1].item(), 1)
    if z is None:
        return x
    return x * z


def beside_a_real_one(x: Tensor) -> Any:
    z = 0
    if x.sum() > 3:
        z = complex(x[0].item(), 2)
    return z + 1


def elements(x: Tensor) -> Any:
    found, total = [0j], 0j
    for v in x.tolist():
        if v > 0:
            total += complex(v, -v)
            found.append(total)
        if abs(total) > 4:
            break
    return found, total, len(found), sum(found, 0j), x * found[-1]


def of_a_tensor(x: Tensor) -> Any:
    y = torch.complex(x, x * 2)
    z = y[0].item()
    return z, complex(y[1]), isinstance(z, complex), isinstance(z, float), type(z), [z, z], {"a": z}, y.tolist()


def made_of_others(x: Tensor) -> Any:
    z = complex(x[0].item(), x[1])
    return complex(x[0]), complex(z), complex(z, 1), complex(1, z), complex(imag=x[0].item()), complex(x[0], x[1])


def of_cmath(x: Tensor) -> Any:
    z = complex(x[0].item(), x[1].item())
    return cmath.exp(z), cmath.phase(z), cmath.sqrt(x[0].item()), cmath.isnan(z), cmath.rect(x[0].item(), 1.0)


def shown(x: Tensor) -> Any:
    z = complex(x[0].item(), 1)
    print(z, f"{z:.2f}")
    return f"{z}", str(z), repr(z)


def divided_by_zero(x: Tensor) -> Any:
    try:
        return 1j / complex(x[0].item(), 0)
    except ZeroDivisionError:
        return 5


def what_none_has(x: Tensor) -> Any:
    z, said = complex(x[0].item(), 1), []
    for attempt in (
        lambda: z < 1,
        lambda: z <= 1,
        lambda: z // 1,
        lambda: z % 2,
        lambda: "a" + z,
        lambda: int(z),
        lambda: float(z),
        lambda: z.foo,
        lambda: setattr(z, "real", 1.0),
    ):
        try:
            attempt()
        except (TypeError, AttributeError) as error:
            said.append(str(error))
    return said, hasattr(z, "imag"), hasattr(z, "foo"), getattr(z, "real")  # noqa: B009


def given(x: Tensor, z: complex = 2 + 1j) -> Any:
    return complex(x[0].item(), 0) * z + z


EVERY = [
    *(arithmetic, compared, beside_tensors, made_into_tensors, in_arms, constants_of_arms, mandelbrot),
    *(begun_with_a_constant, on_some_paths, beside_a_real_one, elements, of_a_tensor, made_of_others, of_cmath),
    *(shown, divided_by_zero, what_none_has, given),
]


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", EVERY)
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for x in CALLS:
        assert repr(traced(x.clone())) == repr(function(x.clone()))


class Holder:
    z = 0j


def test_one_that_is_stored() -> None:
    held = Holder()

    def function(x: Tensor) -> Any:
        held.z = held.z + complex(x[0].item(), 1)
        return held.z.real

    static = sg.to_static(function, backend="eager", full_graph=True)
    for number in (1.0, 2.0, -1.0):
        static(torch.tensor([number]))
    assert held.z == 2 + 3j


def test_gradients_go_through_what_it_scales() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        z = complex(x[0].item(), 2) if x.sum() > 0 else 1j
        return torch.view_as_real(y * z).sum()

    for x in CALLS:
        grads = []
        for called in (function, sg.to_static(function, backend="eager", full_graph=True)):
            y = torch.ones(2, requires_grad=True)
            called(x, y).backward()
            grads.append(y.grad)
        assert_same(*grads)


def test_a_key_is_refused() -> None:
    def function(x: Tensor) -> Any:
        return {complex(x[0].item(), 1): 2}

    with pytest.raises(sg.CaptureError) as refused:
        sg.to_static(function, backend="eager", full_graph=True)(CALLS[0])
    assert refused.value.reason.code == "SG301"


def in_a_file(x: Tensor) -> Any:
    z = complex(x[0].item(), x[1].item())
    w = z * (2 - 1j) + 1 - x[2].item()
    return z, w, abs(w), -w, w.conjugate(), w == z, w != z, z / 2, x * z, z - x, torch.full((2,), z), x[0] * z


FILES = [in_a_file, in_arms, constants_of_arms, mandelbrot, begun_with_a_constant, elements]


@pytest.mark.parametrize("function", FILES)
@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_files(function: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"saved{suffix}"
    sg.save(function, path, args=(CALLS[0],))
    loaded = sg.load(path) if suffix == ".pt2" else getattr(python_module(path), function.__name__)
    for x in CALLS:
        assert_same(function(x), loaded(x), f"{suffix} of {x}")


def test_errors_in_files(tmp_path: Path) -> None:
    def divided(x: Tensor) -> Any:
        return complex(x[1].item(), 1) / x[0].item()

    def absolute(x: Tensor) -> Any:
        return abs(complex(x[0].item(), x[0].item()))

    path = tmp_path / "saved.pt2"
    for function, value in ((divided, 0.0), (absolute, 1.5e308)):
        x = torch.tensor([value, 1.0], dtype=torch.float64)
        with pytest.raises(ArithmeticError) as expected:
            function(x)
        sg.save(function, path, args=(torch.ones(2, dtype=torch.float64),))
        with pytest.raises(type(expected.value), match=str(expected.value)):
            sg.load(path)(x)


def test_what_no_file_has(tmp_path: Path) -> None:
    def function(x: Tensor) -> Any:
        return complex(x[0].item(), 1) / complex(x[1].item(), 1)

    with pytest.raises(sg.ExportError) as refused:
        sg.save(function, tmp_path / "saved.pt2", args=(CALLS[0],))
    assert refused.value.reason.code == "SG402"
