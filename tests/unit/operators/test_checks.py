"""``torch._check`` and its kin are enforced by each run: the exception is that of torch, and so is what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental import symbolic_shapes

import stillgraph as sg
from tests.importing import installed
from tests.unit.trace.agreement import agree

t = torch.tensor


def sizes(x: Tensor) -> Tensor:
    n: Any = x.item()
    torch._check(n >= 0)
    torch._check(n <= 5)
    return torch.zeros(n, 2)


def said(x: Tensor) -> Tensor:
    n = x.item()
    torch._check(n <= 5, lambda: f"too big {n}")
    return x + n


def of_value(x: Tensor) -> Tensor:
    torch._check_value(x.item() <= 5, lambda: "bad")
    return x + 1


def of_index(x: Tensor) -> Tensor:
    torch._check_index(int(x) < 5)
    return x + 1


def of_type(x: Tensor) -> Tensor:
    torch._check_type(int(x) < 5, lambda: "of this type")
    return x + 1


def not_implemented(x: Tensor) -> Tensor:
    torch._check_not_implemented(int(x) < 5)
    return x + 1


def of_any_class(x: Tensor) -> Tensor:
    torch._check_with(KeyError, x.item() == 4, lambda: "q")  # type: ignore[arg-type]  # of any class
    return x + 1


def of_all_elements(x: Tensor) -> Tensor:
    torch._check_tensor_all(x < 5, lambda: "one is not")
    torch._check_tensor_all_with(ValueError, x != 3)
    return x + 1


def among_some(x: Tensor) -> Tensor:
    torch._check(x.item() in (1, 4))
    return x + 1


def on_one_path(x: Tensor) -> Tensor:
    if x.item() > 7:
        torch._check(x.item() <= 5, lambda: f"{x.item()} of {x.dtype}")
    return x + 1


def handled(x: Tensor) -> tuple[Tensor, str]:
    try:
        torch._check_value(x.item() < 5, lambda: "big")
    except ValueError as error:
        return x - 1, str(error)
    return x + 1, ""


def asked_for_its_message(x: Tensor) -> Tensor:
    def message() -> str:
        print("asked")
        return "said"

    torch._check(x.item() < 5, message)
    return x + 1


def asserted(x: Tensor) -> Tensor:
    torch._assert(x.item() == 4, "must be 4")
    return x + 1


def asserted_with_values(x: Tensor) -> Tensor:
    torch._assert(x < 5, f"is {x.item()}")
    return x + 1


def asserted_later(x: Tensor) -> Tensor:
    torch._assert_async(x < 5)
    torch.ops.aten._assert_async.msg(x != 3, "is 3")
    return x + 1


def asserted_of_a_number(x: Tensor) -> Tensor:
    torch._assert_scalar(x.item() < 5, "small")
    return x + 1


def in_a_range(x: Tensor) -> Tensor:
    n = x.item()
    torch.sym_constrain_range(n, min=2)
    torch.ops.aten.sym_constrain_range_for_size(n, max=5)
    return torch.zeros(n)  # type: ignore[call-overload]  # a whole number


def of_what_a_tensor_is(x: Tensor) -> Tensor:
    kept = torch.arange(6)[: x.item()]  # type: ignore[misc]  # a whole number
    torch.ops.aten._assert_tensor_metadata.default(kept, [4], [1], torch.int64, device="cpu", layout=torch.strided)
    return kept * 2


def of_another_dtype(x: Tensor) -> Tensor:
    torch._assert_tensor_metadata(x, None, None, torch.float64)  # type: ignore[call-overload]  # not in the stubs
    return x + 1


def in_a_loop(x: Tensor) -> Tensor:
    n = x.item()
    while n > 0:
        torch._check(n != 3, lambda: f"meets {n}")  # noqa: B023  # called at once
        n = n - 2
    return x + n


CHECKS = [
    *(sizes, said, of_value, of_index, of_type, not_implemented, of_any_class, of_all_elements, among_some),
    *(on_one_path, handled, asked_for_its_message, asserted, asserted_with_values, asserted_later),
    *(asserted_of_a_number, in_a_range, in_a_loop, of_what_a_tensor_is, of_another_dtype),
]


@pytest.mark.parametrize("function", CHECKS, ids=lambda function: function.__name__)
def test_checks_of_values_of_the_run_are_enforced(function: Any) -> None:
    agree(function, t(4), t(9), t(-3), t(3))


@pytest.mark.parametrize("function", [said, on_one_path, of_all_elements], ids=lambda function: function.__name__)
def test_they_are_without_a_full_graph(function: Any) -> None:
    static = sg.symbolic_trace(function)
    for value in (t(4), t(9), t(4)):
        assert raised(static, value) == raised(function, value)


@pytest.mark.parametrize("function", [of_value, of_all_elements, asserted, pytest.param(sizes, marks=pytest.mark.slow)])
def test_they_are_in_files(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "it.pt2", args=(t(4),))
    loaded = sg.load(tmp_path / "it.pt2")
    assert torch.equal(loaded(t(4)), function(t(4)))
    for value in (t(9), t(3)):
        expected, actual = raised(function, value), raised(loaded, value)
        assert (expected and expected[0]) == (actual and actual[0])


def test_what_is_no_check_is_said_as_by_torch() -> None:
    agree(lambda x: torch._check(x.sum() > 0, lambda: "neg"), torch.ones(2))  # type: ignore[arg-type]  # a tensor
    agree(lambda x: torch._check_tensor_all(x), torch.ones(2))
    agree(lambda x: torch._check(x.item() > 0, "text"), t(1), t(-1))  # type: ignore[arg-type]  # a text


def test_they_tell_the_capture_facts() -> None:
    def pairs(x: Tensor, y: Tensor) -> Tensor:
        kept = x[y > 0]
        torch._check(kept.shape[0] == x.shape[0], lambda: f"got {kept.shape[0]} of {x.shape[0]}")
        return x + kept

    agree(pairs, (torch.ones(3), t([1, 1, 1])), (torch.ones(3), t([1, 1, 0])))


@pytest.mark.parametrize("name", ["guard_or_false", "guard_or_true", "statically_known_true", "expect_true"])
def test_what_torch_would_not_know_while_tracing_the_run_knows(name: str) -> None:
    asks: Any = getattr(symbolic_shapes, name)

    def branches(x: Tensor) -> Tensor:
        kept = x[x > 0]
        if asks(kept.shape[0] == 2):
            return kept + 10
        return kept

    agree(branches, t([1, 1, 1]), t([1, 1, 0]))


def test_they_are_in_libraries_that_are_not_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        import torch
        from torch.fx.experimental.symbolic_shapes import guard_or_false
        def checked(x):
            n = x.item()
            torch._check(n <= 5, lambda: f"lib {n}")
            return x + 1 if guard_or_false(n == 4) else x
    """
    library = installed(tmp_path, "lib_of_checks", source, monkeypatch)
    static = sg.to_static(lambda x: library.checked(x), backend="eager")
    assert (static(t(4)), static(t(2)), raised(static, t(9))) == (t(5), t(2), (RuntimeError, "lib 9"))


def test_a_program_with_checks_depends_on_nothing_of_theirs() -> None:
    static = sg.to_static(of_value, backend="eager")
    assert "polyfills" not in str(static.get_program(t(4)))


def raised(function: Any, value: Tensor) -> tuple[type, str] | None:
    try:
        function(value)
    except Exception as error:
        return type(error), str(error)
    return None
