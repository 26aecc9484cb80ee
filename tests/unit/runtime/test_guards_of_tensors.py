from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from stillgraph.program.guards import Guard, SizeGuard
from stillgraph.program.sources import Argument, Item
from stillgraph.runtime.guards.checking import compile_guards
from stillgraph.runtime.guards.explaining import explain_miss
from tests.unit.runtime.guard_cases import BASE, holds
from tests.unit.runtime.programs import X, mode_guard, tensor_guard

# ---- tensors
OTHERS = {
    "dtype": BASE.double(),
    "shape": torch.zeros(3, 5),
    "rank": torch.zeros(3, 4, 1),
    "fewer dimensions": torch.zeros(4),
    "requires grad": torch.zeros(3, 4, requires_grad=True),
    "type": nn.Parameter(torch.zeros(3, 4), requires_grad=False),
    "device": torch.zeros(3, 4, device="meta"),
    "sparse": torch.zeros(3, 4).to_sparse().requires_grad_(),
    "no tensor": "x",
    "none": None,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_tensor_that_differs(other: Any) -> None:
    check = compile_guards((), [tensor_guard(X, BASE)])
    for value, fits in [(BASE, True), (other, False), (torch.ones(3, 4), True), (other, False)]:
        assert (check((value,), {}) is not None) is fits
    assert not holds([tensor_guard(X, BASE)], other)


def test_unknown_dimensions() -> None:
    guards: list[Guard] = [tensor_guard(X, BASE, shape=(None, 4))]
    assert holds(guards, torch.zeros(7, 4))
    assert holds(guards, torch.zeros(0, 4))
    assert not holds(guards, torch.zeros(3, 5))
    assert not holds(guards, torch.zeros(4))


def test_strides_count_where_they_are_given() -> None:
    turned = torch.zeros(4, 3).t()
    assert holds([tensor_guard(X, BASE)], turned)
    assert not holds([tensor_guard(X, BASE, strides=(4, 1))], turned)
    assert holds([tensor_guard(X, BASE, strides=(1, 3))], turned)


def test_a_tensor_changed_in_place() -> None:
    value = nn.Parameter(torch.zeros(3, 4))
    check = compile_guards((), [tensor_guard(X, value)])
    assert [check((value,), {}) is not None for _ in range(2)] == [True, True]
    value.requires_grad_(False)
    assert check((value,), {}) is None
    value.requires_grad_(True)
    assert check((value,), {}) is not None
    value.data = value.data.double()
    assert check((value,), {}) is None
    value.data = torch.zeros(2, 2)
    assert check((value,), {}) is None


def test_tensors_fit_in_whatever_mode_they_are_checked() -> None:
    guards: list[Guard] = [tensor_guard(X, BASE), tensor_guard(Item(Argument(1), 0), BASE)]
    check = compile_guards((), guards)
    call = ((torch.ones(3, 4), [torch.ones(3, 4)]), {})
    assert check(*call) == ()
    for mode in [torch.no_grad(), torch.inference_mode(), torch.autocast("cpu", torch.bfloat16), torch.device("meta")]:
        with mode:
            assert check(*call) == ()
        assert check(*call) == ()


def test_one_tensor_at_two_sources() -> None:
    guards: list[Guard] = [tensor_guard(X, BASE), tensor_guard(Argument(1), BASE)]
    assert holds(guards, BASE, BASE)
    assert not holds(guards, BASE, BASE.double())


tensors = st.builds(
    lambda shape, dtype, grad, turned: (
        torch.zeros(shape, dtype=dtype).t() if turned and len(shape) == 2 else torch.zeros(shape, dtype=dtype)
    ).requires_grad_(grad and dtype.is_floating_point),
    st.lists(st.integers(0, 2), max_size=3),
    st.sampled_from([torch.float32, torch.float64, torch.int64]),
    st.booleans(),
    st.booleans(),
)


@given(tensors, tensors, st.booleans(), st.booleans())
def test_native_and_slow_checks_of_tensors_agree(captured: Any, called: Any, strides: bool, dynamic: bool) -> None:
    shape = tuple(None if dynamic and i == 0 else size for i, size in enumerate(captured.shape))
    guard = tensor_guard(X, captured, shape=shape, strides=captured.stride() if strides else None)
    check = compile_guards((), [guard])
    assert check((captured,), {}) == ()  # from here on torch's own check is in use
    fits = explain_miss([guard], (called,), {}) is None
    assert (check((called,), {}) is not None) is fits
    assert fits is (
        (called.dtype, called.requires_grad, called.dim()) == (captured.dtype, captured.requires_grad, captured.dim())
        and all(known in (None, size) for known, size in zip(shape, called.shape, strict=True))
        and (not strides or called.stride() == captured.stride())
    )


# ---- modes
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (torch.no_grad, "grad mode should be on, but is off"),
        (torch.inference_mode, "grad mode should be on, but is off"),
        (lambda: torch.autocast("cpu", torch.bfloat16), "autocast should be off, but is autocast(cpu, bfloat16)"),
        (lambda: torch.device("meta"), "the default device should be cpu, but is meta"),
    ],
)
def test_modes(mode: Any, sentence: str) -> None:
    guards: list[Guard] = [mode_guard()]
    assert holds(guards)
    with mode():
        assert not holds(guards)
        assert explain_miss(guards, (), {}) == sentence
        inner: list[Guard] = [mode_guard()]
        assert holds(inner)
    assert holds(guards)
    assert not holds(inner)


def test_autocast_of_another_dtype() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        guards: list[Guard] = [mode_guard()]
    with torch.autocast("cpu", torch.float16):
        assert not holds(guards)


def test_the_default_dtype() -> None:
    guards: list[Guard] = [mode_guard()]
    torch.set_default_dtype(torch.float64)
    try:
        assert not holds(guards)
        assert explain_miss(guards, (), {}) == "the default dtype should be torch.float32, but is torch.float64"
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_torch_function_mode_that_is_no_default_device() -> None:
    guards: list[Guard] = [mode_guard()]
    with torch.overrides.BaseTorchFunctionMode():
        assert holds(guards)


# ---- sizes
def test_conditions_on_sizes() -> None:
    guard = SizeGuard("s0 > 2 and max(s0, s1) < math.inf", (("s0", X, 0), ("s1", Argument(1), 1)))
    assert holds([guard], torch.zeros(3), torch.zeros(1, 1))
    assert not holds([guard], torch.zeros(2), torch.zeros(1, 1))
    assert not holds([guard], torch.zeros(3), torch.zeros(1))
    assert not holds([guard], 3, torch.zeros(1, 1))


def test_a_condition_on_what_is_no_size() -> None:
    with pytest.raises(ValueError, match="names 'v0'"):
        compile_guards((), [SizeGuard("s0 > v0", (("s0", X, 0),))])
